//! Advisories about what a peer says that was let in: messages at the wrong time, floods of
//! requests, figures that cannot be.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{active, answer, check_empty, check_held, check_serves, let_in, ready, serving, told};
use dacapo_core::{Code, Command, CoreEvent, DialParams, Done, JoinParams};
use dacapo_fuzz::rig::peer::{Peer, extend};
use dacapo_fuzz::rig::{Rig, ports};
use dacapo_fuzz::targets::samples;
use dacapo_wire::change::Prepare;
use dacapo_wire::graph::{GraphForm, NodeForm};
use dacapo_wire::hub::{List, Welcome};
use dacapo_wire::message::{Message, MessageKind};
use dacapo_wire::session::{
    Accept, Activated, Control, Direction, End, FlowAnswer, FlowOffer, Join, Offer, Report,
};
use quinn_proto::StreamId;

/// libsrt CVE-2026-55868: a key message after set-up moved the protection down. Here OFFER, ANSWER,
/// ACCEPT and JOIN after set-up: the session ends, nothing is agreed anew, others go on.
#[test]
fn adv_srt_55868_set_up_messages_after_set_up() {
    for kind in [MessageKind::Join, MessageKind::Offer, MessageKind::Answer, MessageKind::Accept] {
        let mut rig = serving();
        let (mut bystander, ..) = let_in(&mut rig, 50);
        let (other, ..) = active(&mut rig, &mut bystander, "up");
        let (mut peer, ..) = let_in(&mut rig, 66);
        let (stream, ..) = active(&mut rig, &mut peer, "up");
        peer.say(stream, samples::message(kind));
        peer.talk(&mut rig);
        let told = told(&mut peer, stream);
        assert_eq!(told, Some(Code::Violation as u64), "{} after set-up", kind.name());
        bystander.talk(&mut rig);
        assert_eq!(common::told(&mut bystander, other), None, "the other session goes on");
        check_serves(&mut rig, 67);
    }
}

/// The same at the other end: a creator that offers or accepts again.
#[test]
fn adv_srt_55868_a_second_offer_to_a_participant() {
    for kind in [MessageKind::Offer, MessageKind::Accept, MessageKind::Answer] {
        let (mut rig, mut peer, stream) = joined_by_core();
        peer.say(stream, samples::message(kind));
        peer.talk(&mut rig);
        let told = told(&mut peer, stream);
        assert_eq!(told, Some(Code::Violation as u64), "{} after set-up", kind.name());
        assert_eq!(rig.core().sessions().count(), 0);
    }
}

/// A core that has joined a session of a flow on a stream, which is ready at its end.
fn joined_by_core() -> (Rig, Peer, StreamId) {
    let (mut rig, mut peer) = (Rig::new(2), Peer::server(66, 2));
    let (now, remote) = (rig.now(), peer.control);
    rig.core()
        .handle_command(
            now,
            Command::Connect { remote: remote.into(), params: DialParams::default() },
        )
        .and_then(Done::peer)
        .unwrap();
    peer.talk(&mut rig);
    let hub = peer.accepted[0];
    peer.say(hub, Welcome { version: 1, ..Welcome::default() });
    peer.talk(&mut rig);
    let events = rig.take_events();
    let open = events.iter().find_map(|event| match event {
        CoreEvent::PeerOpen { peer } => Some(*peer),
        _ => None,
    });
    let now = rig.now();
    rig.core()
        .handle_command(
            now,
            Command::Join {
                peer: open.unwrap(),
                name: "any".into(),
                params: JoinParams::default(),
            },
        )
        .and_then(Done::session)
        .unwrap();
    peer.talk(&mut rig);
    let stream = peer.accepted[1];
    let flow = FlowOffer { flow: 0, ..ports::flow("f", Direction::ToCreator, &[1, 2, 3], 3) };
    let offer = Offer { flows: vec![flow], ..Offer::default() };
    peer.say(stream, offer.clone());
    peer.talk(&mut rig);
    let now = rig.now();
    for event in rig.take_events() {
        if let CoreEvent::Offered { session, flows, .. } = event {
            let ports = flows.iter().map(|flow| Some(ports::port(flow, false))).collect();
            rig.core().answer(now, session, ports).unwrap();
        }
    }
    peer.talk(&mut rig);
    let said: Vec<Message> = std::iter::from_fn(|| peer.next(stream)).collect();
    let answer = said.into_iter().find(|it| matches!(it, Message::Answer(_)));
    let transcript = extend(extend([0; 32], &offer.into()), &answer.expect("an ANSWER"));
    let flow = FlowAnswer { stream_token: Some([7; 16]), ..common::answer(1).flows.remove(0) };
    peer.say(stream, Accept { transcript, flows: vec![flow] });
    peer.talk(&mut rig);
    (rig, peer, stream)
}

/// A record with one field of a kind's sample replaced by `len` bytes.
fn with_field(kind: MessageKind, tag: u16, len: usize) -> Vec<u8> {
    let sample = samples::record(&samples::message(kind));
    let (head, mut rest) = sample.split_at(dacapo_wire::record::HEADER_LEN);
    let mut body = Vec::new();
    while let Some((field, after)) = rest.split_first_chunk::<4>() {
        let [a, b, c, d] = *field;
        let (value, after) = after.split_at(usize::from(u16::from_be_bytes([c, d])));
        let value = if u16::from_be_bytes([a, b]) == tag { vec![b'x'; len] } else { value.into() };
        body.extend_from_slice(&[a, b]);
        body.extend_from_slice(&(value.len() as u16).to_be_bytes());
        body.extend_from_slice(&value);
        rest = after;
    }
    [&head[..2], &(body.len() as u32).to_be_bytes(), &body].concat()
}

/// libsrt CVE-2026-55869: a key message of 1,352 bytes went into 104. Every field of bounded
/// length, a byte longer than that and as long as can be.
#[test]
fn adv_srt_55869_fields_longer_than_their_bound() {
    use MessageKind::{Close, Control, Prepare};
    for (kind, tag, most) in [(Prepare, 37, 256), (Close, 9, 512), (Control, 30, 4_096)] {
        for len in [most + 1, 1_352.max(most + 1), 60_000] {
            let mut rig = serving();
            let (mut peer, ..) = let_in(&mut rig, 66);
            let (stream, ..) = active(&mut rig, &mut peer, "up");
            peer.push(stream, &with_field(kind, tag, len));
            // What exceeds the window of the stream goes on as the core reads.
            (0..3).for_each(|_| peer.talk(&mut rig));
            let told = told(&mut peer, stream);
            assert_eq!(told, Some(Code::Malformed as u64), "{} with {len} bytes", kind.name());
            check_serves(&mut rig, 67);
        }
    }
}

/// SCTP CVE-2026-99128: a chunk of length 0 was looked at for ever. Fields and records of length 0,
/// as many as there is room for.
#[test]
fn adv_cve_2026_99128_nothing_again_and_again() {
    let mut rig = serving();
    let (mut peer, hub, _) = let_in(&mut rig, 66);
    let (stream, ..) = active(&mut rig, &mut peer, "up");
    // A record that is passed over, of 16,000 fields of no length; then 5,000 of no length at all.
    let fields = [0x12, 0x34, 0, 0].repeat(16_000);
    let long = [&0x8001_u16.to_be_bytes()[..], &(fields.len() as u32).to_be_bytes(), &fields];
    peer.push(stream, &long.concat());
    peer.push(stream, &[&0x8002_u16.to_be_bytes()[..], &[0; 4]].concat().repeat(5_000));
    // The same fields in a message that is understood.
    let list = samples::record(&List { request: 9 }.into());
    let mut padded = [&list[6..], &fields].concat();
    let head = [&list[..2], &(padded.len() as u32).to_be_bytes()].concat();
    padded.splice(0..0, head);
    peer.push(hub, &padded);
    (0..8).for_each(|_| peer.talk(&mut rig));
    let listing = peer.next(hub);
    assert!(matches!(&listing, Some(Message::Listing(it)) if it.request == 9), "{listing:?}");
    assert_eq!(told(&mut peer, stream), None, "what is passed over breaks nothing");
}

/// Optimistic acknowledgement, as far as a receiver here says anything: a REPORT before the END, of
/// more than was sent, twice, of a flow that it does not receive.
#[test]
fn adv_cve_2025_4820_reports_of_what_was_not_sent() {
    let all = Report { delivered: u64::MAX, lost: u64::MAX, unknown: 1, ..Report::default() };
    let cases = [
        ("down", all.clone(), "before END"),
        ("up", all.clone(), "of a flow that it sends"),
        ("down", Report { flow: 9, ..all }, "of no flow"),
    ];
    for (name, report, what) in cases {
        let mut rig = serving();
        let (mut peer, ..) = let_in(&mut rig, 66);
        let (stream, ..) = ready(&mut rig, &mut peer, name);
        peer.say(stream, report);
        peer.talk(&mut rig);
        assert_eq!(told(&mut peer, stream), Some(Code::Violation as u64), "REPORT {what}");
        check_serves(&mut rig, 67);
    }
}

/// The same from the other side: an END after more units than there are numbers, and one that takes
/// back what came.
#[test]
fn adv_cve_2025_4820_ends_of_what_cannot_be() {
    let mut rig = serving();
    let (mut peer, ..) = let_in(&mut rig, 66);
    let (stream, ..) = active(&mut rig, &mut peer, "up");
    peer.say(stream, End { units: u64::MAX, ..End::default() });
    peer.talk(&mut rig);
    assert_eq!(told(&mut peer, stream), Some(Code::Violation as u64));
    let (stream, ..) = active(&mut rig, &mut peer, "up");
    peer.say(stream, End { units: 1 << 40, bytes: u64::MAX, ..End::default() });
    peer.talk(&mut rig);
    let before = rig.meter;
    rig.pass(std::time::Duration::from_secs(60));
    peer.talk(&mut rig);
    // A million million units that never came are a number, not a list.
    check_held(&rig, before, 64 << 10);
    check_serves(&mut rig, 67);
}

/// quic-go GHSA-ppxx-5m9h-6vxf and its like: answers that are asked for faster than they are read.
#[test]
fn adv_ghsa_ppxx_a_flood_of_lists_that_nobody_reads() {
    let mut rig = serving();
    let (mut peer, hub, _) = let_in(&mut rig, 66);
    // The peer's window is full and stays so: it reads nothing.
    peer.streams.remove(&hub);
    let before = rig.meter;
    for request in 0..30_000 {
        peer.say(hub, List { request });
        if request % 500 == 0 {
            peer.talk(&mut rig);
            check_held(&rig, before, 1 << 20);
        }
    }
    (0..20).for_each(|_| peer.talk(&mut rig));
    check_held(&rig, before, 1 << 20);
    check_serves(&mut rig, 67);
}

/// A packet or two have room for a hundred requests: some are read at a time, and all are answered,
/// in their order.
#[test]
fn adv_ghsa_ppxx_a_hundred_requests_at_once_are_answered_in_order() {
    let mut rig = serving();
    let (mut peer, hub, _) = let_in(&mut rig, 66);
    (0..100).for_each(|request| peer.say(hub, List { request }));
    peer.talk(&mut rig);
    rig.pass(std::time::Duration::from_millis(1));
    peer.talk(&mut rig);
    let answers = std::iter::from_fn(|| peer.next(hub)).map(|answer| match answer {
        Message::Listing(listing) => listing.request,
        other => panic!("{other:?}"),
    });
    assert!(answers.eq(0..100));
}

/// The same by commands to a module of a session.
#[test]
fn adv_ghsa_ppxx_a_flood_of_commands_that_nobody_reads() {
    let mut rig = serving();
    let (mut peer, ..) = let_in(&mut rig, 66);
    let (stream, ..) = active(&mut rig, &mut peer, "down");
    peer.streams.remove(&stream);
    let before = rig.meter;
    for request in 0..800 {
        let (flow, module, payload) = (0, 0xFFFF, vec![3; 4_000]);
        peer.say(stream, Control { request, flow, epoch: 0, module, payload });
        peer.talk(&mut rig);
        check_held(&rig, before, 1 << 20);
    }
    check_serves(&mut rig, 67);
}

/// Questions on the data path faster than their answers go out: at most so many wait.
#[test]
fn adv_ghsa_ppxx_a_flood_of_questions_on_the_data_path() {
    let mut rig = serving();
    let (peer, _, welcome) = let_in(&mut rig, 66);
    let before = rig.meter;
    for number in 0..5_000 {
        let question = Peer::question(&rig, welcome.path_token, number);
        rig.handle(peer.data, &question);
    }
    check_held(&rig, before, 0);
    rig.settle();
    let answers = rig.take_sent();
    let to_data = answers.iter().filter(|sent| sent.remote == peer.data.into());
    assert!((1..=256).contains(&to_data.count()), "answers that wait are bounded");
    assert!(answers.iter().all(|sent| sent.bytes.len() <= 1_452), "no longer than the question");
}

/// RUSTSEC-2026-0154 (russh): a length of 32 bits was believed and allocated.
#[test]
fn adv_rustsec_2026_0154_a_length_alone_gets_no_memory() {
    for (len, is_legal) in [(65_536_u32, true), (65_537, false), (u32::MAX, false)] {
        let mut rig = serving();
        let (mut peer, ..) = let_in(&mut rig, 66);
        let (stream, ..) = active(&mut rig, &mut peer, "up");
        let before = rig.meter;
        peer.push(stream, &[&0x0013_u16.to_be_bytes()[..], &len.to_be_bytes(), &[1; 10]].concat());
        peer.talk(&mut rig);
        let is_ended = told(&mut peer, stream) == Some(Code::Malformed as u64);
        assert_eq!(is_ended, !is_legal, "a record of {len} bytes");
        check_held(&rig, before, -(56 << 10));
    }
}

/// R2.4, bombs: graphs, flows and modules at and above their bounds, and offers of the longest
/// units; what is refused costs nothing, what is taken costs little.
#[test]
fn adv_bincode_2025_0141_bombs_of_graphs_and_flows() {
    let node = |place: usize| NodeForm {
        parent: (place as u8).wrapping_sub(1),
        module: 1 + (place % 4) as u16,
        params: (0..12).map(|number| (number, u64::MAX)).collect(),
    };
    let graph = GraphForm { nodes: (0..32).map(node).collect() };
    let mut rig = serving();
    let (mut peer, ..) = let_in(&mut rig, 66);
    let (stream, transcript, _) = active(&mut rig, &mut peer, "up");
    let before = rig.meter;
    let mut prepare = Prepare { epoch: 1, label: 9, graph, ..Prepare::default() };
    prepare.transcript = extend(transcript, &prepare.clone().into());
    peer.say(stream, prepare);
    peer.talk(&mut rig);
    let next = peer.next(stream);
    assert!(matches!(next, Some(Message::Cannot(_))), "a bomb of a graph is refused: {next:?}");
    let join = Join {
        name: "up".into(),
        modules: (0..256).collect(),
        transports: (0..16).collect(),
        attributes: vec![samples::attribute(); 32],
        live: true,
        follows: false,
    };
    for _ in 0..40 {
        let Some(stream) = peer.open() else { break };
        peer.say(stream, join.clone());
        peer.talk(&mut rig);
    }
    check_held(&rig, before, 2 << 20);
    // It has taken every place of the session.
    peer.close(&rig);
    peer.talk(&mut rig);
    check_serves(&mut rig, 67);
}

/// MediaMTX issue 4678, zeromq issue 4286: sessions that come and go leave nothing.
#[test]
fn adv_mediamtx_4678_sessions_that_come_and_go() {
    let mut rig = serving();
    check_serves(&mut rig, 60);
    check_empty(&mut rig);
    let before = rig.meter.live;
    for round in 0..60_u8 {
        let (mut peer, ..) = let_in(&mut rig, 66);
        let (stream, ..) = active(&mut rig, &mut peer, "up");
        match round % 3 {
            0 => peer.say(
                stream,
                dacapo_wire::session::Close { code: Code::Closed as u16, text: String::new() },
            ),
            1 => peer.end(stream, true),
            _ => peer.say(stream, Activated { request: 3 }),
        }
        peer.talk(&mut rig);
        peer.close(&rig);
        peer.talk(&mut rig);
        rig.pass(std::time::Duration::from_secs(20));
        rig.take_sent();
        rig.drop_events();
    }
    check_empty(&mut rig);
    let left = rig.meter.live - before;
    assert!(left <= 32 << 10, "{left} bytes are left of 60 sessions");
}

/// An answer for other flows than those of the offer is no agreement (finding 4, R2.3).
#[test]
fn adv_srt_55868_an_answer_to_what_was_not_offered() {
    for count in [0, 1, 3, 64] {
        let mut rig = serving();
        let (mut peer, ..) = let_in(&mut rig, 66);
        let stream = peer.open().unwrap();
        peer.say(stream, Join { name: "both".into(), ..Join::default() });
        peer.talk(&mut rig);
        peer.say(stream, answer(count));
        peer.talk(&mut rig);
        assert_eq!(told(&mut peer, stream), Some(Code::Violation as u64), "{count} answers");
        check_serves(&mut rig, 67);
    }
}
