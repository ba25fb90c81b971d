//! A peer that has been let in and plays with flows to groups: as their creator and as one of
//! their members.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::raw::RawPeer;
use common::{Lab, ms, offer, pattern};
use dacapo_base::Random;
use dacapo_core::{Code, Command, CoreEvent, Done, JoinParams, Port, SessionId};
use dacapo_netlab::traffic::{PatternSink, Seen};
use dacapo_wire::message::Message;
use dacapo_wire::session::{
    Accept, Activate, Answer, Close, Deactivate, Direction, End, FlowAnswer, FlowOffer, Join,
    Offer, Report,
};
use quinn_proto::StreamId;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;

const LABEL: u32 = 0xBEEF_0000;
const UNITS: u64 = 1_000;

fn extend(transcript: [u8; 32], message: &Message) -> [u8; 32] {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).unwrap();
    Sha256::new().chain_update(transcript).chain_update(&bytes).finalize().into()
}

/// A core, and a raw peer that has greeted it.
fn greeted() -> (Lab, RawPeer) {
    let mut lab = Lab::new("delay=20ms");
    lab.pattern = pattern(UNITS);
    let address = lab.world.address(lab.creator);
    let mut raw = RawPeer::new(&lab.world, address, 66, 1);
    let (_, welcome) = raw.greet(&mut lab.world, lab.creator);
    raw.answers_probes = Some(welcome.path_token);
    raw.probe(&mut lab.world, lab.creator, welcome.path_token, 0);
    lab.run(ms(0));
    (lab, raw)
}

fn run(lab: &mut Lab, raw: &mut RawPeer, time: u64) {
    RawPeer::run(&mut [raw], &mut lab.world, lab.creator, ms(time));
    lab.run(ms(0));
}

fn to_group(names: &[&str]) -> FlowOffer {
    let multicast = "239.6.6.6:6666".parse().ok();
    FlowOffer { transport: 6, multicast, datagram_len: 1_452, ..offer("cast", names) }
}

fn taken(base: Option<u64>) -> FlowAnswer {
    FlowAnswer {
        flow: 0,
        accepted: Ok(()),
        label: LABEL,
        datagram_len: 1_452,
        stream_token: None,
        stream_port: None,
        base,
    }
}

/// The core asks the raw peer for a session, and is offered this flow.
fn offered(lab: &mut Lab, raw: &mut RawPeer, flow: FlowOffer) -> (StreamId, SessionId, Message) {
    let opened = |event: &CoreEvent| match event {
        CoreEvent::PeerOpen { peer } => Some(*peer),
        _ => None,
    };
    let (now, peer) = (lab.now(), lab.find(lab.creator, opened).unwrap().1);
    let core = lab.world.core(lab.creator);
    let session = core
        .handle_command(
            now,
            Command::Join { peer, name: "raw".into(), params: JoinParams::default() },
        )
        .and_then(Done::session)
        .unwrap();
    run(lab, raw, 100);
    let stream = raw.accepted[0];
    assert!(matches!(raw.next(stream), Some(Message::Join(_))));
    let offer = Offer { session: 1, flows: vec![flow], ..Offer::default() };
    raw.say(stream, offer.clone());
    run(lab, raw, 100);
    (stream, session, offer.into())
}

/// The same, up to the ACCEPT with this base.
fn served(lab: &mut Lab, raw: &mut RawPeer, base: Option<u64>) -> (StreamId, SessionId, Seen) {
    let (stream, session, offer) = offered(lab, raw, to_group(&["sequence"]));
    let (sink, seen) = PatternSink::new(lab.pattern);
    let now = lab.now();
    let ports = vec![Some(Port::Sink(Box::new(sink) as _))];
    lab.world.core(lab.creator).answer(now, session, ports).unwrap();
    run(lab, raw, 1_200);
    let Some(Message::Answer(answer)) = raw.next(stream) else { panic!("no ANSWER") };
    assert_eq!(answer.flows[0].accepted, Ok(()), "it has joined");
    assert_eq!(lab.world.memberships(lab.creator).count(), 1);
    let transcript = extend(extend([0; 32], &offer), &answer.into());
    raw.say(stream, Accept { transcript, flows: vec![taken(base)] });
    run(lab, raw, 100);
    (stream, session, seen)
}

#[test]
fn an_accept_without_a_base_or_with_an_absurd_one_breaks_the_protocol() {
    for base in [None, Some(u64::MAX), Some((1 << 56) + 1)] {
        let (mut lab, mut raw) = greeted();
        let (_, session, _) = served(&mut lab, &mut raw, base);
        let (_, error) = lab.end_of(lab.creator, session, ms(100));
        let error = error.unwrap();
        assert_eq!(error.code, Code::Violation, "{error}");
        assert!(error.text.contains("base"), "{error}");
        assert_eq!(lab.world.memberships(lab.creator).count(), 0, "the group is left");
        lab.check_empty();
    }
}

#[test]
fn an_offer_that_cannot_go_to_a_group_is_refused_before_anything_is_joined() {
    for flow in [
        FlowOffer { direction: Direction::ToCreator, ..to_group(&[]) },
        FlowOffer { multicast: None, ..to_group(&[]) },
        FlowOffer { transport: 1, ..to_group(&[]) },
    ] {
        let (mut lab, mut raw) = greeted();
        let (_, session, _) = offered(&mut lab, &mut raw, flow);
        let (_, error) = lab.end_of(lab.creator, session, ms(200));
        assert_eq!(error.unwrap().code, Code::Unsupported);
        assert_eq!(lab.world.memberships(lab.creator).count(), 0);
        lab.check_empty();
    }
}

#[test]
fn junk_under_the_label_of_a_group_is_accounted_for_and_that_of_others_is_not_taken() {
    for seed in 0..30 {
        let (mut lab, mut raw) = greeted();
        let mut random = Random::from_number(seed);
        let base = [0, 7, 1 << 33][(seed % 3) as usize];
        let (stream, session, _) = served(&mut lab, &mut raw, Some(base));
        let own = lab.world.memberships(lab.creator).next().unwrap().source;
        let unknown = lab.world.core(lab.creator).counters().unknown_label;
        for _ in 0..300 {
            let mut bytes = vec![0; 5 + random.below(40) as usize];
            random.fill(&mut bytes);
            bytes[0] = 0x80;
            bytes[1..5].copy_from_slice(&LABEL.to_be_bytes());
            lab.world.inject(lab.creator, own, &bytes);
        }
        assert_eq!(lab.world.core(lab.creator).counters().unknown_label, unknown, "seed {seed}");
        for stranger in ["10.0.0.77:19980", "10.0.0.1:19980"] {
            let stranger: SocketAddr = stranger.parse().unwrap();
            let mut bytes = vec![0x80; 20];
            bytes[1..5].copy_from_slice(&LABEL.to_be_bytes());
            lab.world.inject(lab.creator, stranger, &bytes);
        }
        let counters = lab.world.core(lab.creator).counters();
        assert_eq!(counters.unknown_label, unknown + 2, "seed {seed}: the address counts");
        raw.say(stream, End { units: 100, ..End::default() });
        run(&mut lab, &mut raw, 1_000);
        let ledger = lab.ledger(lab.creator, session, 0).expect("it is accounted for");
        assert!(ledger.closes() && ledger.sent == 100, "seed {seed}: {ledger:?}");
        assert_eq!(lab.world.memberships(lab.creator).count(), 0, "the group is left");
        raw.say(stream, Close { code: Code::Closed as u16, text: String::new() });
        run(&mut lab, &mut raw, 300);
        lab.check_empty();
    }
}

#[test]
fn who_has_dialed_sends_to_no_group() {
    let mut lab = Lab::new("delay=20ms");
    let flow = to_group(&[]);
    lab.publish("test", vec![flow.clone()]);
    // The other way round: the one that listens asks the one that dialed.
    let (dialer, listener) = (lab.participant, lab.creator);
    lab.dial();
    lab.creator = dialer;
    lab.publish("test", vec![flow]);
    let opened = |event: &CoreEvent| match event {
        CoreEvent::PeerOpen { peer } => Some(*peer),
        _ => None,
    };
    let peer = lab.expect(listener, ms(2_000), opened).1;
    lab.participant = listener;
    let session = lab.join(peer, "test");
    let (_, error) = lab.end_of(listener, session, ms(2_000));
    let error = error.unwrap();
    assert!(error.text.contains("only who listens sends to a group"), "{error}");
    assert_eq!(error.code, Code::Unsupported);
}

/// A raw member beside one that plays by the rules: what it says, and the code of its end.
fn beside_another(says: impl FnOnce(&mut Lab, &mut RawPeer, StreamId)) {
    let (mut lab, mut raw) = greeted();
    lab.publish("cast", vec![to_group(&["sequence", "checksum"])]);
    let stream = raw.open().unwrap();
    raw.say(stream, Join { name: "cast".into(), ..Join::default() });
    run(&mut lab, &mut raw, 100);
    let Some(Message::Offer(_)) = raw.next(stream) else { panic!("no OFFER") };
    raw.say(stream, Answer { flows: vec![taken(None)] });
    run(&mut lab, &mut raw, 100);
    let Some(Message::Accept(accept)) = raw.next(stream) else { panic!("no ACCEPT") };
    assert_eq!(accept.flows[0].base, Some(0));
    let peer = lab.dial();
    let joined = lab.set_up(peer, "cast");
    lab.activate(joined.here);
    says(&mut lab, &mut raw, stream);
    let (here, there) = lab.ledgers(&joined, 0, ms(10_000));
    assert_eq!((here.delivered, there.delivered), (UNITS, UNITS), "the other gets everything");
    assert_eq!(joined.numbers(0), (0..UNITS).collect::<Vec<_>>());
    lab.close(lab.participant, joined.here);
    lab.end_of(lab.participant, joined.here, ms(2_000));
    // Whatever the raw member does, its session ends too.
    raw.say(stream, Close { code: Code::Violation as u16, text: String::new() });
    run(&mut lab, &mut raw, 1_000);
    lab.check_empty();
}

#[test]
fn what_a_member_says_is_not_the_trouble_of_another() {
    // A report that nobody asked for.
    beside_another(|lab, raw, stream| {
        raw.say(stream, Report { delivered: 5, ..Report::default() });
        run(lab, raw, 200);
    });
    // On and off, and on.
    beside_another(|lab, raw, stream| {
        for request in 1..40 {
            raw.say(stream, Activate { request });
            raw.say(stream, Deactivate { request });
        }
        run(lab, raw, 200);
    });
    // It goes without a word.
    beside_another(|lab, raw, _| run(lab, raw, 100));
    // An account that does not add up.
    beside_another(|lab, raw, stream| {
        run(lab, raw, 2_000);
        while let Some(message) = raw.next(stream) {
            if let Message::End(end) = message {
                raw.say(stream, Report { delivered: end.units + 1, ..Report::default() });
            }
        }
        run(lab, raw, 200);
    });
}
