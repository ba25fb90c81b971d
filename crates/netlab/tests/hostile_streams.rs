//! A peer that has been let in and plays with streams of flows: what it asks for is refused or
//! given up in time, and nothing is left.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::raw::RawPeer;
use common::{Lab, graph, ms, offer_tcp, plain};
use dacapo_core::{Code, Command, CoreEvent, Done, Ending, JoinParams, Port, SessionId};
use dacapo_netlab::traffic::{PatternSink, Seen};
use dacapo_wire::change::{Mode, Prepare};
use dacapo_wire::message::Message;
use dacapo_wire::session::{
    Accept, Activate, Answer, Close, Direction, End, FlowAnswer, FlowOffer, Join, Offer,
};
use quinn_proto::StreamId;
use sha2::{Digest, Sha256};

fn extend(transcript: [u8; 32], message: &Message) -> [u8; 32] {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).unwrap();
    Sha256::new().chain_update(transcript).chain_update(&bytes).finalize().into()
}

/// A core, and a raw peer that has greeted it.
fn greeted() -> (Lab, RawPeer) {
    let mut lab = Lab::new("delay=20ms");
    let address = lab.world.address(lab.creator);
    let mut raw = RawPeer::new(&lab.world, address, 66, 1);
    raw.greet(&mut lab.world, lab.creator);
    lab.run(ms(0));
    (lab, raw)
}

fn run(lab: &mut Lab, raw: &mut RawPeer, time: u64) {
    RawPeer::run(&mut [raw], &mut lab.world, lab.creator, ms(time));
    lab.run(ms(0));
}

fn taken(flow: u16, stream_token: Option<[u8; 16]>) -> FlowAnswer {
    FlowAnswer {
        flow,
        accepted: Ok(()),
        label: 48,
        datagram_len: 65_535,
        stream_token,
        stream_port: None,
        base: None,
    }
}

/// The raw peer joins a session of one flow on a stream; its stream, transcript and token.
fn joined(lab: &mut Lab, raw: &mut RawPeer, flow: FlowOffer) -> (StreamId, [u8; 32], [u8; 16]) {
    lab.publish("tcp", vec![flow]);
    let stream = raw.open().unwrap();
    raw.say(stream, Join { name: "tcp".into(), ..Join::default() });
    run(lab, raw, 100);
    let Some(Message::Offer(offer)) = raw.next(stream) else { panic!("no OFFER") };
    let answer = Answer { flows: vec![taken(0, None)] };
    let transcript = extend(extend([0; 32], &offer.into()), &answer.clone().into());
    raw.say(stream, answer);
    run(lab, raw, 100);
    let Some(Message::Accept(accept)) = raw.next(stream) else { panic!("no ACCEPT") };
    let token = accept.flows[0].stream_token.expect("a token for the stream");
    (stream, transcript, token)
}

#[test]
fn a_peer_that_never_dials_gets_the_end_of_its_flow_after_ten_seconds() {
    let (mut lab, mut raw) = greeted();
    let (stream, ..) = joined(&mut lab, &mut raw, offer_tcp("down", &[]));
    raw.say(stream, Activate { request: 1 });
    run(&mut lab, &mut raw, 9_500);
    assert!(matches!(raw.next(stream), Some(Message::Activated(_))));
    assert_eq!(raw.next(stream), None, "nothing is sent without a stream");
    run(&mut lab, &mut raw, 1_000);
    match raw.next(stream) {
        Some(Message::End(end)) => {
            assert_eq!((end.units, end.code), (0, Code::NoDataPath as u16), "{end:?}");
        }
        other => panic!("no END but {other:?}"),
    }
    raw.say(stream, Close { code: Code::Closed as u16, text: String::new() });
    run(&mut lab, &mut raw, 15_000);
    lab.check_empty();
}

#[test]
fn tokens_differ_from_flow_to_flow() {
    let (mut lab, mut raw) = greeted();
    let (_, _, first) = joined(&mut lab, &mut raw, offer_tcp("a", &[]));
    let (_, _, second) = joined(&mut lab, &mut raw, offer_tcp("b", &[]));
    assert_ne!(first, second);
}

#[test]
fn a_change_to_another_transport_is_refused_and_one_to_the_same_is_not() {
    let (mut lab, mut raw) = greeted();
    let up = FlowOffer { direction: Direction::ToCreator, ..offer_tcp("up", &[]) };
    let (stream, mut transcript, _) = joined(&mut lab, &mut raw, up);
    for (epoch, transport) in [(1, Some(1)), (2, Some(0x8001)), (3, Some(3)), (4, None)] {
        let mut prepare = Prepare {
            epoch,
            label: 48,
            mode: Mode::Make,
            graph: graph(&["checksum"]),
            transport,
            ..Prepare::default()
        };
        transcript = extend(transcript, &prepare.clone().into());
        prepare.transcript = transcript;
        raw.say(stream, prepare);
        run(&mut lab, &mut raw, 60);
        match (raw.next(stream), transport) {
            (Some(Message::Cannot(cannot)), Some(1 | 0x8001)) => {
                assert_eq!(cannot.code, Code::Unsupported as u16);
            }
            (Some(Message::Ready(_)), Some(3) | None) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A core that joins a session of the raw peer: the stream, and what its sink sees.
fn served(
    lab: &mut Lab,
    raw: &mut RawPeer,
    token: Option<[u8; 16]>,
) -> (StreamId, SessionId, Seen) {
    let peer = lab.find(lab.creator, |event| match event {
        CoreEvent::PeerOpen { peer } => Some(*peer),
        _ => None,
    });
    let now = lab.now();
    let core = lab.world.core(lab.creator);
    let session = core
        .handle_command(
            now,
            Command::Join {
                peer: peer.unwrap().1,
                name: "raw".into(),
                params: JoinParams::default(),
            },
        )
        .and_then(Done::session)
        .unwrap();
    run(lab, raw, 100);
    let stream = raw.accepted[0];
    assert!(matches!(raw.next(stream), Some(Message::Join(_))));
    let flow = FlowOffer { datagram_len: 65_535, ..offer_tcp("down", &[]) };
    let offer = Offer { session: 1, flows: vec![flow], ..Offer::default() };
    raw.say(stream, offer.clone());
    run(lab, raw, 100);
    let (sink, seen) = PatternSink::new(lab.pattern);
    let now = lab.now();
    let ports = vec![Some(Port::Sink(Box::new(sink) as _))];
    lab.world.core(lab.creator).answer(now, session, ports).unwrap();
    run(lab, raw, 100);
    let Some(Message::Answer(answer)) = raw.next(stream) else { panic!("no ANSWER") };
    let transcript = extend(extend([0; 32], &offer.into()), &answer.into());
    raw.say(stream, Accept { transcript, flows: vec![taken(0, token)] });
    run(lab, raw, 100);
    (stream, session, seen)
}

#[test]
fn an_accept_without_a_token_breaks_the_protocol() {
    let (mut lab, mut raw) = greeted();
    let (_, session, _) = served(&mut lab, &mut raw, None);
    let (_, error) = lab.end_of(lab.creator, session, ms(100));
    let error = error.unwrap();
    assert_eq!(error.code, Code::Violation, "{error}");
    assert!(error.text.contains("token"), "{error}");
    lab.check_empty();
}

#[test]
fn a_sender_that_says_its_end_after_the_flow_was_given_up_is_told_what_came() {
    let (mut lab, mut raw) = greeted();
    // Nobody listens where the raw peer is: the stream does not open.
    let (stream, session, seen) = served(&mut lab, &mut raw, Some([7; 16]));
    let failed = |event: &CoreEvent| match event {
        CoreEvent::FlowFailed { error, .. } => Some(error.code),
        _ => None,
    };
    assert_eq!(lab.find(lab.creator, failed).unwrap().1, Code::NoDataPath);
    assert_eq!(lab.ledger(lab.creator, session, 0), None, "the sender's END is waited for");
    run(&mut lab, &mut raw, 16_000);
    let ledger = lab.ledger(lab.creator, session, 0).expect("given up");
    assert!(ledger.closes() && ledger.sent_at_least, "{ledger:?}");
    let ending = seen.record().ending.clone();
    assert!(matches!(ending, Some(Ending::Abnormal(_))), "{ending:?}");
    raw.say(stream, End { units: 5, ..End::default() });
    run(&mut lab, &mut raw, 100);
    match raw.next(stream) {
        Some(Message::Report(report)) => {
            assert_eq!((report.delivered, report.lost, report.unknown), (0, 0, 5));
        }
        other => panic!("no REPORT but {other:?}"),
    }
    let ended = lab.count(lab.creator, |it| matches!(it, CoreEvent::FlowEnded { .. }));
    assert_eq!(ended, 1, "the application has its account already");
    raw.say(stream, Close { code: Code::Closed as u16, text: String::new() });
    run(&mut lab, &mut raw, 200);
    lab.check_empty();
}

#[test]
fn a_core_that_serves_plain_flows_asks_for_no_streams() {
    let mut lab = Lab::new("delay=20ms");
    let joined = lab.start(plain());
    assert_eq!(lab.world.stream_count(), 0);
    lab.close(lab.participant, joined.here);
    lab.end_of(lab.participant, joined.here, ms(1_000));
}
