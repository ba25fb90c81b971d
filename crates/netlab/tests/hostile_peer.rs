//! A peer that has been let in and breaks the protocol: its session or its connection ends with a
//! code, and the sessions of others run on.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::raw::{RawPeer, hello};
use common::{Joined, Lab, ms, offer, offer_back, pattern, plain};
use dacapo_core::{Code, CoreEvent};
use dacapo_wire::change::{Abort, Cannot, Done, Mode, Prepare, Ready, Switched};
use dacapo_wire::hub::{Goodbye, Listing, Welcome};
use dacapo_wire::message::Message;
use dacapo_wire::session::{
    Accept, Activate, Activated, Answer, Close, Closed, Control, ControlAnswer, Deactivate, End,
    FlowAnswer, Join, Offer, Report,
};
use quinn_proto::StreamId;
use sha2::{Digest, Sha256};

/// An honest pair of cores with a running flow, and a raw peer that has connected to the creator.
struct Arena {
    lab: Lab,
    honest: Joined,
    raw: RawPeer,
}

impl Arena {
    fn new() -> Self {
        let mut lab = Lab::new("delay=20ms");
        lab.pattern = pattern(100_000);
        let honest = lab.start(plain());
        lab.publish("down", vec![offer("down", &["sequence"])]);
        lab.publish("up", vec![offer_back("up", &["sequence"]), offer("down", &["sequence"])]);
        let address = lab.world.address(lab.creator);
        let raw = RawPeer::new(&lab.world, address, 66, 1);
        let mut arena = Self { lab, honest, raw };
        arena.run(200);
        assert!(arena.raw.connected);
        arena
    }

    /// The same, greeted.
    fn greeted() -> (Self, StreamId, Welcome) {
        let mut arena = Self::new();
        let (hub, welcome) = arena.raw.greet(&mut arena.lab.world, arena.lab.creator);
        (arena, hub, welcome)
    }

    /// The same, with a session whose flow of five units has ended; its stream.
    fn ended() -> (Self, StreamId) {
        let (mut arena, _, welcome) = Self::greeted();
        let creator = arena.lab.creator;
        arena.raw.answers_probes = Some(welcome.path_token);
        arena.raw.probe(&mut arena.lab.world, creator, welcome.path_token, 0);
        arena.lab.pattern = pattern(5);
        arena.lab.publish("short", vec![offer("short", &["sequence"])]);
        let (stream, ..) = arena.active("short");
        arena.run(100);
        match arena.raw.next(stream) {
            Some(Message::End(end)) => assert_eq!(end.units, 5),
            other => panic!("no END but {other:?}"),
        }
        (arena, stream)
    }

    fn run(&mut self, time: u64) {
        let (world, creator) = (&mut self.lab.world, self.lab.creator);
        RawPeer::run(&mut [&mut self.raw], world, creator, ms(time));
        self.lab.run(ms(0));
    }

    /// Joins a session; its stream and the offer.
    fn join(&mut self, name: &str) -> (StreamId, Offer) {
        let stream = self.raw.open().expect("a stream");
        self.raw.say(stream, join(name));
        self.run(100);
        match self.raw.next(stream) {
            Some(Message::Offer(offer)) => (stream, offer),
            other => panic!("no OFFER but {other:?}"),
        }
    }

    /// Joins and answers; the stream, the offer, and what was accepted.
    fn ready(&mut self, name: &str) -> (StreamId, [u8; 32], Accept) {
        let (stream, offer) = self.join(name);
        let answer = answer(offer.flows.len());
        let transcript = extend(extend([0; 32], &offer.into()), &answer.clone().into());
        self.raw.say(stream, answer);
        self.run(100);
        match self.raw.next(stream) {
            Some(Message::Accept(accept)) => (stream, transcript, accept),
            other => panic!("no ACCEPT but {other:?}"),
        }
    }

    fn active(&mut self, name: &str) -> (StreamId, [u8; 32], Accept) {
        let ready = self.ready(name);
        self.raw.say(ready.0, Activate { request: 1 });
        self.run(100);
        assert!(matches!(self.raw.next(ready.0), Some(Message::Activated(_))));
        ready
    }

    /// The session of a stream ended with this code, and the raw peer was told.
    fn expect_end(&mut self, what: &str, stream: StreamId, code: Code) {
        self.run(200);
        let ended = self.lab.log.iter().rev().find_map(|(node, _, event)| match event {
            CoreEvent::SessionEnded { error, .. } if *node == self.lab.creator => {
                Some(error.clone())
            }
            _ => None,
        });
        let ended = ended.unwrap_or_else(|| panic!("{what}: no session ended"));
        assert_eq!(ended.as_ref().map(|it| it.code), Some(code), "{what}: {ended:?}");
        let read = self.raw.streams.get(&stream).expect("the stream");
        let told = read.records.iter().any(|record| match record {
            Message::Close(close) => close.code == code as u16,
            Message::Refuse(refuse) => refuse.code == code as u16,
            _ => false,
        });
        assert!(told || read.ended == Some(Some(code as u64)), "{what}: {:?}", read.ended);
        assert!(self.raw.lost.is_none(), "{what}: the connection is left");
    }

    /// The connection ended with this code.
    fn expect_lost(&mut self, what: &str, code: Code) {
        self.run(200);
        assert_eq!(self.raw.closed_with(), Some(code), "{what}: {:?}", self.raw.lost);
    }

    /// The others have not noticed, and nothing is left of the raw peer.
    fn finish(mut self, what: &str) {
        let gone = self.raw.lost.is_some();
        if !gone {
            let _ = self.raw.open();
        }
        self.run(300);
        let (lab, honest) = (&mut self.lab, &self.honest);
        assert_eq!(lab.ended(lab.participant, honest.here), None, "{what}");
        let peer = lab.dial();
        let other = lab.set_up(peer, "down");
        lab.activate(other.here);
        lab.run(ms(200));
        assert!(other.numbers(0).len() > 100, "{what}: others can join");
        for session in [honest, &other] {
            lab.close(lab.participant, session.here);
            let (here, there) = lab.ledgers(session, 0, ms(2_000));
            assert!(here.closes() && there.closes(), "{what}: {here:?}");
            assert_eq!((here.lost, there.unknown, here.delivered), (0, 0, here.sent), "{what}");
        }
        // The raw peer falls silent.
        lab.run(ms(40_000));
        lab.check_empty();
        assert_eq!(lab.world.core(lab.creator).connection_count(), 1, "{what}");
    }
}

fn answer(count: usize) -> Answer {
    let flow = |at: usize| FlowAnswer {
        flow: at as u16,
        accepted: Ok(()),
        label: 0x1230 + 16 * at as u32,
        datagram_len: 1_200,
        stream_token: None,
        base: None,
        stream_port: None,
    };
    Answer { flows: (0..count).map(flow).collect() }
}

fn extend(transcript: [u8; 32], message: &Message) -> [u8; 32] {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).unwrap();
    Sha256::new().chain_update(transcript).chain_update(&bytes).finalize().into()
}

fn join(name: &str) -> Join {
    Join { name: name.into(), ..Join::default() }
}

fn end(flow: u16, units: u64) -> End {
    End { flow, units, ..End::default() }
}

#[test]
fn whatever_is_wrong_on_the_hub_ends_the_connection() {
    let long = [&0x0001_u16.to_be_bytes()[..], &70_000_u32.to_be_bytes()].concat();
    let unknown = [&0x0777_u16.to_be_bytes()[..], &0_u32.to_be_bytes()].concat();
    let short = [&0x0004_u16.to_be_bytes()[..], &2_u32.to_be_bytes(), &[1, 2]].concat();
    for (what, bytes) in [("too long", long), ("unknown", unknown), ("malformed", short)] {
        let (mut arena, hub, _) = Arena::greeted();
        arena.raw.push(hub, &bytes);
        arena.expect_lost(what, Code::Malformed);
        arena.finish(what);
    }
    let wrong: [Message; 6] = [
        hello().into(),
        Welcome::default().into(),
        join("down").into(),
        Closed.into(),
        end(0, 1).into(),
        Activate { request: 1 }.into(),
    ];
    for message in wrong {
        let (mut arena, hub, _) = Arena::greeted();
        let what = format!("{} on the hub", message.kind().name());
        arena.raw.say(hub, message);
        arena.expect_lost(&what, Code::Violation);
        arena.finish(&what);
    }
}

#[test]
fn nothing_but_hello_may_come_first() {
    let wrong: [Message; 4] = [
        join("down").into(),
        Listing { request: 1, sessions: Vec::new() }.into(),
        Welcome::default().into(),
        Closed.into(),
    ];
    for message in wrong {
        let mut arena = Arena::new();
        let what = format!("{} before HELLO", message.kind().name());
        let hub = arena.raw.open().unwrap();
        arena.raw.say(hub, message);
        arena.expect_lost(&what, Code::Violation);
        arena.finish(&what);
    }
}

#[test]
fn who_was_refused_for_its_version_can_join_nothing() {
    let mut arena = Arena::new();
    let hub = arena.raw.open().unwrap();
    let mut future = hello();
    (future.version_min, future.version_max) = (7, 9);
    arena.raw.say(hub, future);
    arena.run(100);
    match arena.raw.next(hub) {
        Some(Message::Refuse(refuse)) => assert_eq!(refuse.code, Code::NoCommonVersion as u16),
        other => panic!("no REFUSE but {other:?}"),
    }
    let stream = arena.raw.open().unwrap();
    arena.raw.say(stream, join("down"));
    arena.expect_lost("JOIN without a version", Code::Violation);
    arena.finish("JOIN without a version");
}

#[test]
fn who_greets_with_nothing_is_dropped_after_ten_seconds() {
    let mut arena = Arena::new();
    arena.run(10_500);
    assert_eq!(arena.raw.closed_with(), Some(Code::Unreachable));
    arena.finish("no HELLO");
}

#[test]
fn a_goodbye_and_an_end_of_the_hub_are_an_end_in_order() {
    let (mut arena, hub, _) = Arena::greeted();
    let (stream, _, _) = arena.active("down");
    arena.raw.say(hub, Goodbye { code: Code::Closed as u16, text: "bye".into() });
    arena.expect_lost("GOODBYE", Code::Closed);
    assert!(arena.raw.streams.contains_key(&stream));
    arena.finish("GOODBYE");
}

/// Every message that must not come in a state ends the session with 301.
#[test]
fn messages_in_the_wrong_state_end_the_session() {
    let before_ready: [Message; 9] = [
        join("down").into(),
        Accept::default().into(),
        Activate { request: 1 }.into(),
        Deactivate { request: 1 }.into(),
        end(0, 0).into(),
        Report::default().into(),
        Closed.into(),
        Prepare::default().into(),
        Control { request: 1, flow: 0, epoch: 0, module: 0, payload: vec![1] }.into(),
    ];
    for message in before_ready {
        let what = format!("{} after OFFER", message.kind().name());
        let (mut arena, ..) = Arena::greeted();
        let (stream, _) = arena.join("down");
        arena.raw.say(stream, message);
        arena.expect_end(&what, stream, Code::Violation);
        arena.finish(&what);
    }
    let when_active: [Message; 7] = [
        join("down").into(),
        Answer { flows: Vec::new() }.into(),
        Activate { request: 2 }.into(),
        Activated { request: 2 }.into(),
        hello().into(),
        Closed.into(),
        Offer::default().into(),
    ];
    for message in when_active {
        let what = format!("{} while active", message.kind().name());
        let (mut arena, ..) = Arena::greeted();
        let (stream, ..) = arena.active("down");
        arena.raw.say(stream, message);
        arena.expect_end(&what, stream, Code::Violation);
        arena.finish(&what);
    }
}

#[test]
fn accounts_that_cannot_be_end_the_session() {
    let wrong: [(&str, Message); 6] = [
        ("END of a flow that the creator sends", end(1, 3).into()),
        ("END of no flow", end(7, 3).into()),
        ("END after more units than there are numbers", end(0, u64::MAX).into()),
        ("REPORT of a flow that the creator receives", Report::default().into()),
        ("REPORT of no flow", Report { flow: 9, ..Report::default() }.into()),
        ("REPORT before END", Report { flow: 1, ..Report::default() }.into()),
    ];
    for (what, message) in wrong {
        let (mut arena, ..) = Arena::greeted();
        let (stream, ..) = arena.active("up");
        arena.raw.say(stream, message);
        arena.expect_end(what, stream, Code::Violation);
        arena.finish(what);
    }
}

#[test]
fn a_report_is_taken_once_and_only_when_it_adds_up() {
    let (mut arena, stream) = Arena::ended();
    let report = Report {
        flow: 0,
        delivered: 2,
        dropped: vec![(1, 1), (200, 1)],
        lost: 1,
        duplicates: u64::MAX,
        bytes: u64::MAX,
        hash: [1; 32],
        ..Report::default()
    };
    arena.raw.say(stream, report.clone());
    arena.run(100);
    let ledger = arena.lab.log.iter().rev().find_map(|(node, _, event)| match event {
        CoreEvent::FlowEnded { ledger, .. } if *node == arena.lab.creator => Some(ledger.clone()),
        _ => None,
    });
    assert!(ledger.expect("the flow is accounted for").closes());
    arena.raw.say(stream, report);
    arena.expect_end("REPORT twice", stream, Code::Violation);
    arena.finish("REPORT twice");
}

#[test]
fn a_report_of_huge_numbers_ends_the_session_and_overflows_nothing() {
    let (mut arena, stream) = Arena::ended();
    let report = Report {
        flow: 0,
        delivered: u64::MAX,
        late: u64::MAX,
        lost: u64::MAX,
        dropped: vec![(1, u64::MAX), (1, u64::MAX), (200, u64::MAX), (201, u64::MAX)],
        duplicates: u64::MAX,
        unknown: u64::MAX,
        bytes: u64::MAX,
        hash: [1; 32],
    };
    arena.raw.say(stream, report);
    arena.expect_end("REPORT of huge numbers", stream, Code::Violation);
    arena.finish("REPORT of huge numbers");
}

#[test]
fn an_answer_that_does_not_fit_the_offer_ends_the_session() {
    let flows = |numbers: &[u16]| {
        let mut wrong = answer(numbers.len());
        wrong.flows.iter_mut().zip(numbers).for_each(|(flow, number)| flow.flow = *number);
        wrong
    };
    for numbers in [&[][..], &[0], &[1, 0], &[0, 0], &[0, 1, 2], &[0, 0xFFFF]] {
        let what = format!("ANSWER for {numbers:?}");
        let (mut arena, ..) = Arena::greeted();
        let (stream, _) = arena.join("up");
        arena.raw.say(stream, flows(numbers));
        arena.expect_end(&what, stream, Code::Violation);
        arena.finish(&what);
    }
}

#[test]
fn labels_of_nothing_and_lengths_of_nothing_harm_nobody() {
    for (label, datagram_len) in [(0, 1_200), (0, 0), (7, 1), (7, 60), (7, u16::MAX)] {
        let what = format!("label {label}, datagrams of {datagram_len}");
        let (mut arena, ..) = Arena::greeted();
        let (stream, _) = arena.join("up");
        let mut odd = answer(2);
        odd.flows.iter_mut().for_each(|flow| {
            (flow.label, flow.datagram_len) = (label, datagram_len);
        });
        arena.raw.say(stream, odd);
        arena.run(100);
        let Some(Message::Accept(accept)) = arena.raw.next(stream) else { panic!("no ACCEPT") };
        let fits = datagram_len >= 1_200;
        assert!(
            accept.flows.iter().all(|flow| flow.accepted.is_ok() == fits),
            "{what}: {accept:?}"
        );
        arena.raw.say(stream, Activate { request: 1 });
        arena.run(300);
        arena.raw.say(stream, Close { code: Code::Closed as u16, text: String::new() });
        arena.run(300);
        arena.finish(&what);
    }
}

#[test]
fn a_change_from_the_wrong_side_or_of_nothing_is_refused_and_the_flow_goes_on() {
    let (mut arena, ..) = Arena::greeted();
    let (stream, transcript, _) = arena.active("up");
    let graph = common::graph(&["sequence"]);
    let mut epoch = 0;
    let mut prepare = |arena: &mut Arena, flow, graph, transcript: Option<[u8; 32]>, mode| {
        epoch += 1;
        let mut prepare = Prepare { flow, epoch, label: 48, mode, graph, ..Prepare::default() };
        let bare = prepare.clone().into();
        prepare.transcript = transcript.map_or([5; 32], |it| extend(it, &bare));
        arena.raw.say(stream, prepare.clone());
        arena.run(60);
        match arena.raw.next(stream) {
            Some(Message::Cannot(cannot)) => (prepare.transcript, Err(cannot.code)),
            Some(Message::Ready(ready)) => (prepare.transcript, Ok(ready.label)),
            other => panic!("neither READY nor CANNOT but {other:?}"),
        }
    };
    let code = |code: Code| Err(code as u16);
    let wrong_side = prepare(&mut arena, 1, graph.clone(), Some(transcript), Mode::Make);
    assert_eq!(wrong_side.1, code(Code::Violation));
    let nothing = prepare(&mut arena, 9, graph.clone(), Some(transcript), Mode::Make);
    assert_eq!(nothing.1, code(Code::NoSuchThing));
    let forgotten = prepare(&mut arena, 0, graph.clone(), None, Mode::Make);
    assert_eq!(forgotten.1, code(Code::Violation));
    let (transcript, broken) = prepare(&mut arena, 0, graph.clone(), Some(transcript), Mode::Break);
    assert_eq!(broken, code(Code::Unsupported), "break");
    let illegal = common::graph(&["checksum", "sequence"]);
    let (transcript, illegal) = prepare(&mut arena, 0, illegal, Some(transcript), Mode::Make);
    assert_eq!(illegal, code(Code::IllegalGraph));
    let mut unknown = graph.clone();
    unknown.nodes[0].module = 0xF00D;
    let (transcript, unknown) = prepare(&mut arena, 0, unknown, Some(transcript), Mode::Make);
    assert_eq!(unknown, code(Code::UnknownModule));
    // Two may be prepared beside the one that runs, not three.
    let (transcript, first) = prepare(&mut arena, 0, graph.clone(), Some(transcript), Mode::Make);
    let (transcript, second) = prepare(&mut arena, 0, graph.clone(), Some(transcript), Mode::Make);
    assert!(first.is_ok() && second.is_ok());
    let (_, third) = prepare(&mut arena, 0, graph, Some(transcript), Mode::Make);
    assert_eq!(third, code(Code::TooMany));
    // Their beginnings in the wrong order, beyond all numbers, again, and of epochs that are none.
    for (epoch, base) in [(8, 5), (7, 10), (8, 7), (7, u64::MAX), (99, 0), (7, 3), (8, u64::MAX)] {
        arena.raw.say(stream, Switched { flow: 0, epoch, base });
        arena.run(20);
    }
    arena.run(300);
    arena.raw.say(stream, Abort { flow: 0, epoch: 7 });
    arena.raw.say(stream, Done { flow: 0, epoch: 0, delivered: 1, lost: 2 });
    arena.raw.say(stream, Done { flow: 1, epoch: 0, delivered: 1, lost: 2 });
    arena.raw.say(stream, Ready { flow: 1, epoch: 1, label: 3, position: None });
    arena.raw.say(stream, Ready { flow: 60_000, epoch: 1, label: 3, position: Some(4) });
    arena.raw.say(stream, Cannot { flow: 1, epoch: 1, code: 1, text: "no".into() });
    arena.raw.say(stream, ControlAnswer { request: 5, code: 0, payload: vec![1] });
    arena.run(300);
    arena.raw.say(stream, end(0, 5));
    arena.run(400);
    let reports = arena.raw.streams[&stream].records.iter();
    let reports: Vec<_> = reports.filter(|it| matches!(it, Message::Report(_))).collect();
    assert_eq!(reports.len(), 1, "the flow went on to its end");
    arena.raw.say(stream, Close { code: Code::Closed as u16, text: String::new() });
    arena.run(300);
    arena.finish("changes");
}

/// Datagrams of a flow from a peer that makes up units, marks and bases.
#[test]
fn units_and_marks_that_are_made_up_are_booked_and_harm_nobody() {
    let (mut arena, ..) = Arena::greeted();
    let (stream, transcript, accept) = arena.active("up");
    let label = accept.flows[0].label;
    let mut number = 0_u32;
    let mut datagram = |label: u32, unit: &[u8]| {
        let head = [&[0x80][..], &label.to_be_bytes(), &number.to_be_bytes()].concat();
        number += 1;
        [&head, unit].concat()
    };
    let mark = |kind: u32, epoch: u64, value: u64| {
        [&(kind << 28).to_be_bytes()[..], &epoch.to_be_bytes(), &value.to_be_bytes()].concat()
    };
    let mut prepare = Prepare {
        flow: 0,
        epoch: 1,
        label: 48,
        mode: Mode::Make,
        graph: common::graph(&[]),
        ..Prepare::default()
    };
    prepare.transcript = extend(transcript, &prepare.clone().into());
    arena.raw.say(stream, prepare);
    arena.run(60);
    let Some(Message::Ready(ready)) = arena.raw.next(stream) else { panic!("no READY") };
    let mut bytes = Vec::new();
    for kind in 0..16_u32 {
        for value in [0, 1, 1 << 27, (1 << 28) - 1, u64::MAX / 2, u64::MAX] {
            bytes.push(datagram(label, &mark(kind, 0, value)));
            bytes.push(datagram(label, &mark(kind, 1, value)));
            bytes.push(datagram(label, &(kind << 28 | (value as u32 & 0x0FFF_FFFF)).to_be_bytes()));
            let plain = [&[0x80][..], &ready.label.to_be_bytes()].concat();
            bytes.push([&plain[..], &mark(kind, 1, value)].concat());
            bytes.push(plain);
        }
    }
    for bytes in &bytes {
        arena.lab.world.inject(arena.lab.creator, arena.raw.data, bytes);
        arena.run(2);
    }
    arena.raw.say(stream, Switched { flow: 0, epoch: 1, base: u64::MAX });
    arena.raw.say(stream, Switched { flow: 0, epoch: 1, base: 1 << 55 });
    arena.run(200);
    for bytes in &bytes {
        arena.lab.world.inject(arena.lab.creator, arena.raw.data, bytes);
    }
    arena.run(200);
    arena.raw.say(stream, end(0, 3));
    arena.raw.say(stream, end(0, 4));
    arena.run(500);
    arena.raw.say(stream, Close { code: Code::Closed as u16, text: String::new() });
    arena.run(300);
    arena.finish("made up units");
}

#[test]
fn bytes_on_a_session_that_are_no_records_end_it() {
    let control = |len: usize| {
        let body = [
            &[0, 10, 0, 4, 0, 0, 0, 1][..],
            &[0, 15, 0, 2, 0, 0],
            &[0, 20, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0, 31, 0, 2, 0xFF, 0xFF],
            &30_u16.to_be_bytes(),
            &(len as u16).to_be_bytes(),
            &vec![7; len],
        ]
        .concat();
        [&0x001D_u16.to_be_bytes()[..], &(body.len() as u32).to_be_bytes(), &body].concat()
    };
    let header = |kind: u16, len: u32| [&kind.to_be_bytes()[..], &len.to_be_bytes()].concat();
    for (what, bytes) in [
        ("a control of 4,097 bytes", control(4_097)),
        ("a record that is too long", header(0x0013, 65_537)),
        ("the longest length", header(0x8001, u32::MAX)),
        ("an unknown type", header(0x7FFF, 0)),
        ("a field that is missing", header(0x0015, 0)),
        ("junk", vec![0xA5; 3_000]),
    ] {
        let (mut arena, ..) = Arena::greeted();
        let (stream, ..) = arena.active("down");
        arena.raw.push(stream, &bytes);
        arena.expect_end(what, stream, Code::Malformed);
        arena.finish(what);
    }
    // What is not known but may be passed over, and the longest control, are taken.
    let (mut arena, ..) = Arena::greeted();
    let (stream, ..) = arena.active("down");
    arena.raw.push(stream, &[&header(0x8123, 4)[..], b"what"].concat());
    arena.raw.push(stream, &control(4_096));
    arena.run(200);
    match arena.raw.next(stream) {
        Some(Message::ControlAnswer(answer)) => {
            assert_eq!((answer.code, answer.payload.len()), (0, 4_096))
        }
        other => panic!("no CONTROL_ANSWER but {other:?}"),
    }
    arena.finish("the longest control");
}

#[test]
fn a_session_stream_that_is_reset_ends_the_session() {
    for state in 0..3 {
        let (mut arena, ..) = Arena::greeted();
        let stream = match state {
            0 => arena.join("down").0,
            1 => arena.ready("down").0,
            _ => arena.active("down").0,
        };
        arena.raw.reset(stream);
        arena.run(200);
        let ended = arena.lab.count(arena.lab.creator, |event| match event {
            CoreEvent::SessionEnded { error: Some(error), .. } => error.code == Code::Violation,
            _ => false,
        });
        assert_eq!(ended, 1, "state {state}");
        arena.finish("a reset");
    }
}

#[test]
fn two_thousand_streams_are_bounded_and_each_is_answered() {
    let (mut arena, ..) = Arena::greeted();
    let (mut opened, mut streams) = (0, Vec::new());
    for _ in 0..2_000 {
        // There are more when half are in use, and that has been told.
        let Some(stream) = arena.raw.open() else { break };
        arena.raw.say(stream, join("down"));
        streams.push(stream);
        opened += 1;
        if opened % 100 == 0 {
            arena.run(60);
        }
    }
    // More are told when they are an eighth of all.
    assert!((776..=886).contains(&opened), "{opened} streams at a time");
    arena.run(1_500);
    let mut offers = 0;
    for stream in &streams {
        match arena.raw.next(*stream) {
            Some(Message::Offer(_)) => offers += 1,
            Some(Message::Refuse(refuse)) => assert_eq!(refuse.code, Code::TooMany as u16),
            other => panic!("neither OFFER nor REFUSE but {other:?}"),
        }
    }
    assert_eq!(offers, 100, "as many as the session admits");
    assert_eq!(arena.lab.world.core(arena.lab.creator).sessions().count(), 101);
    streams.into_iter().for_each(|stream| arena.raw.reset(stream));
    arena.run(500);
    let mut again = 0;
    while again < 1_000 && arena.raw.open().is_some() {
        again += 1;
    }
    assert!(again > 750, "{again} more streams when the first are over");
    arena.finish("2,000 streams");
}

#[test]
fn a_source_whose_data_has_nowhere_to_go_costs_nothing() {
    let (mut arena, ..) = Arena::greeted();
    arena.active("down");
    let before = arena.lab.world.steps();
    arena.run(1_000);
    let steps = arena.lab.world.steps() - before;
    assert!(steps < 10_000, "{steps} turns in a second: a flow without a data path keeps it awake");
    arena.finish("no probe");
}

#[test]
fn a_peer_that_reads_nothing_is_bounded() {
    let (mut arena, ..) = Arena::greeted();
    let (stream, ..) = arena.active("down");
    // 400 answers of 4 KiB each are asked for; none is read.
    arena.raw.streams.remove(&stream);
    for request in 0..400 {
        let (flow, module, payload) = (0, 0xFFFF, vec![3; 4_096]);
        arena.raw.say(stream, Control { request, flow, epoch: 0, module, payload });
    }
    arena.run(3_000);
    let ended = arena.lab.count(arena.lab.creator, |event| match event {
        CoreEvent::SessionEnded { error: Some(error), .. } => error.code == Code::NoAnswer,
        _ => false,
    });
    assert_eq!(ended, 1, "what waits for a reader is bounded");
    arena.finish("no reader");
}
