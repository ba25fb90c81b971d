//! Cases of OFFER and ACCEPT, of a raw peer that is a creator: graphs, lengths, numbers, hashes.

use crate::Case;
use crate::Outcome::{GoesOn, Open, Seen, Session};
use crate::arena::{Arena, At, answer, taken, usual_flows};
use crate::common::{graph, offer, offer_back, offer_tcp};
use crate::listener;
use crate::wire::{bytes_of, field, record, record_of};
use dacapo_core::{Code, CoreEvent};
use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::message::{Message, MessageKind};
use dacapo_wire::session::{Accept, FlowOffer, Offer};

pub fn cases() -> Vec<Case> {
    let parts = [graphs(), limits(), lengths(), counts(), accepts(), streams()];
    parts.into_iter().flatten().collect()
}

/// Offers one flow, which is the usual one changed so.
fn offer_one(arena: &mut Arena, change: impl FnOnce(&mut FlowOffer)) {
    let mut flow = FlowOffer { datagram_len: 1_452, ..offer("down", &["sequence"]) };
    change(&mut flow);
    offer_all(arena, vec![flow]);
}

fn offer_all(arena: &mut Arena, flows: Vec<FlowOffer>) {
    arena.offer = Offer { session: u64::MAX, flows, ..Offer::default() };
    arena.say(arena.offer.clone());
    arena.run(20);
}

/// The application sees the offer, takes it, and the session is set up and activated.
fn set_up(arena: &mut Arena) {
    assert_eq!(arena.count(|event| matches!(event, CoreEvent::Offered { .. })), 1, "not offered");
    arena.core_answers();
    let Some(Message::Answer(answer)) = arena.take() else { panic!("no ANSWER") };
    arena.answer = answer;
    let transcript = arena.expected_transcript();
    let flows = crate::arena::answer(arena.offer.flows.len()).flows;
    arena.say(Accept { transcript, flows });
    arena.run(20);
    arena.core_activates();
    arena.say(dacapo_wire::session::Activated { request: 1 });
}

fn graphs() -> Vec<Case> {
    let refused = |name, code, script| listener(name, At::Opened, Session(code), script);
    let illegal = |name, script| listener(name, At::Opened, Session(Code::IllegalGraph), script);
    vec![
        refused("a graph with a module that nobody has", Code::UnknownModule, |arena| {
            offer_one(arena, |flow| flow.graph.nodes[0].module = 0xF00D);
        }),
        refused("a graph of 32 modules that nobody has", Code::UnknownModule, |arena| {
            let params: Vec<_> = (0..12).map(|number| (number, u64::MAX)).collect();
            let bomb = GraphForm::line((0..32).map(|at| (0xF000 + at, params.clone())));
            offer_one(arena, |flow| flow.graph = bomb);
        }),
        illegal("a graph of 32 times the same module", |arena| {
            let graph = graph(&["sequence"; 32]);
            offer_one(arena, |flow| flow.graph = graph);
        }),
        illegal("a graph with a module twice", |arena| {
            offer_one(arena, |flow| flow.graph = graph(&["sequence", "sequence"]));
        }),
        illegal("a graph upside down", |arena| {
            offer_one(arena, |flow| flow.graph = graph(&["checksum", "sequence", "segment"]));
        }),
        illegal("a graph with a parameter out of its range", |arena| {
            offer_one(arena, |flow| flow.graph.nodes[0].params = vec![(0, u64::MAX)]);
        }),
        illegal("a graph with a parameter that its module does not have", |arena| {
            offer_one(arena, |flow| flow.graph.nodes[0].params = vec![(60_000, 1)]);
        }),
        refused("a graph with branches", Code::Unsupported, |arena| {
            offer_one(arena, |flow| {
                flow.graph = graph(&["segment", "sequence", "checksum"]);
                flow.graph.nodes[2].parent = 0;
            });
        }),
        refused("a graph of 33 modules", Code::Malformed, |arena| {
            let nodes = [0xFF, 0, 2, 0].repeat(33);
            push_graph(arena, &[&[33][..], &nodes].concat());
        }),
        refused("a graph whose module is its own parent", Code::Malformed, |arena| {
            push_graph(arena, &[2, 0xFF, 0, 1, 0, 1, 0, 2, 0]);
        }),
        refused("a graph that is cut off", Code::Malformed, |arena| {
            push_graph(arena, &[2, 0xFF, 0, 1, 0]);
        }),
        refused("a graph of 4,097 bytes", Code::Malformed, |arena| push_graph(arena, &[0; 4_097])),
        refused("a module with 255 parameters", Code::Malformed, |arena| {
            let params = [0; 10].repeat(255);
            push_graph(arena, &[&[1, 0xFF, 0, 2, 255][..], &params].concat());
        }),
    ]
}

/// Offers the usual flow with these bytes as its graph.
fn push_graph(arena: &mut Arena, bytes: &[u8]) {
    let flow = FlowOffer { datagram_len: 1_452, ..offer("down", &[]) };
    let whole = bytes_of(Offer { session: 1, flows: vec![flow], ..Offer::default() });
    let empty = field(36, &[0]);
    let at = whole.windows(empty.len()).position(|it| it == empty).expect("the graph");
    let flow_at = whole.windows(2).position(|it| it == [0, 14]).expect("the flow");
    let inner = [&whole[flow_at + 4..at], &field(36, bytes), &whole[at + empty.len()..]].concat();
    let fields = [&whole[6..flow_at], &field(14, &inner)].concat();
    arena.push(&record(MessageKind::Offer.code(), &fields));
    arena.run(20);
}

fn limits() -> Vec<Case> {
    let refused = |name, code, script| listener(name, At::Opened, Session(code), script);
    vec![
        refused("units of 4 GiB", Code::UnitTooLarge, |arena| {
            offer_one(arena, |flow| flow.unit_len_max = u32::MAX);
        }),
        refused("units of 64 MiB in one datagram", Code::IllegalGraph, |arena| {
            offer_one(arena, |flow| flow.unit_len_max = 64 << 20);
        }),
        refused("datagrams of no length", Code::IllegalGraph, |arena| {
            offer_one(arena, |flow| flow.datagram_len = 0);
        }),
        refused("datagrams shorter than their headers", Code::IllegalGraph, |arena| {
            offer_one(arena, |flow| flow.datagram_len = 12);
        }),
        refused("a transport that is none", Code::Unsupported, |arena| {
            offer_one(arena, |flow| flow.transport = 0);
        }),
        refused("a transport that nobody has", Code::Unsupported, |arena| {
            offer_one(arena, |flow| flow.transport = 0x8123);
        }),
        refused("a flow that is numbered as another", Code::Violation, |arena| {
            offer_one(arena, |flow| flow.flow = 1);
        }),
        refused("a flow with the number of all", Code::Violation, |arena| {
            offer_one(arena, |flow| flow.flow = 0xFFFF);
        }),
        refused("two flows with one number", Code::Violation, |arena| {
            let mut flows = usual_flows();
            flows[1].flow = 0;
            offer_all(arena, flows);
        }),
        refused("two flows of one name", Code::Violation, |arena| {
            let mut flows = usual_flows();
            let taken = flows[0].name.clone();
            flows[1].name = taken;
            offer_all(arena, flows);
        }),
        refused("a medium that is none", Code::Malformed, |arena| {
            let bytes = bytes_of(Offer { session: 1, flows: usual_flows(), ..Offer::default() });
            let medium = field(43, &[0]);
            let at = bytes.windows(5).position(|it| it == medium).unwrap();
            let mut odd = bytes.clone();
            odd[at + 4] = 200;
            arena.push(&odd);
        }),
        refused("a title of 257 bytes", Code::Malformed, |arena| {
            let fields = [field(13, &[0; 8]), field(12, &[b't'; 257])];
            arena.push(&record_of(MessageKind::Offer, &fields));
        }),
        refused("257 attributes", Code::Malformed, |arena| {
            let flow = bytes_of(Offer { session: 1, flows: usual_flows(), ..Offer::default() });
            let flow_at = flow.windows(2).position(|it| it == [0, 14]).unwrap();
            let len = usize::from(u16::from_be_bytes([flow[flow_at + 2], flow[flow_at + 3]]));
            let inner = &flow[flow_at + 4..flow_at + 4 + len];
            let inner = [inner, &field(45, &[0; 20]).repeat(257)].concat();
            let fields = [field(13, &[0; 8]), field(12, b""), field(14, &inner)];
            arena.push(&record_of(MessageKind::Offer, &fields));
        }),
    ]
}

fn lengths() -> Vec<Case> {
    let runs = |name, script| listener(name, At::Opened, GoesOn, script);
    vec![
        runs("a rate of one bit per second", |arena| {
            let flow = FlowOffer { bound_bps: 1, datagram_len: 1_452, ..offer_back("up", &[]) };
            offer_all(arena, vec![flow]);
            set_up(arena);
            arena.run(3_000);
            let sent = arena.raw.datagrams.iter().filter(|it| it[0] == 0x80).count();
            assert!(sent <= 20, "{sent} datagrams in 3 s at 1 bit/s");
        }),
        runs("the greatest rate there is", |arena| {
            let flow =
                FlowOffer { bound_bps: u64::MAX, datagram_len: 1_452, ..offer_back("up", &[]) };
            offer_all(arena, vec![flow]);
            set_up(arena);
            arena.run(500);
        }),
        runs("datagrams as long as their length allows", |arena| {
            let flow = FlowOffer { datagram_len: u16::MAX, ..offer_back("up", &["segment"]) };
            offer_all(arena, vec![flow]);
            set_up(arena);
            arena.run(200);
            assert!(arena.raw.datagrams.iter().all(|it| it.len() <= 1_452));
        }),
        runs("units of no length", |arena| {
            let flow = FlowOffer { unit_len_max: 0, datagram_len: 1_452, ..offer_back("up", &[]) };
            offer_all(arena, vec![flow]);
            set_up(arena);
            arena.run(100);
        }),
        runs("a playout beyond all time", |arena| {
            let flow =
                FlowOffer { playout_ns: u64::MAX, datagram_len: 1_452, ..offer_back("a", &[]) };
            offer_all(arena, vec![flow]);
            set_up(arena);
        }),
        runs("a priority beyond all priorities", |arena| {
            let priority =
                AttributeForm { key: 9, min: Some(i64::MAX), max: Some(i64::MIN), weight: None };
            let mut flow = FlowOffer { datagram_len: 1_452, ..offer_back("up", &[]) };
            flow.attributes = vec![priority; 256];
            offer_all(arena, vec![flow]);
            set_up(arena);
            arena.run(200);
        }),
        runs("copies of every packet, as many as there may be", |arena| {
            let mut flow = FlowOffer { datagram_len: 1_452, ..offer_back("up", &["repeat"]) };
            flow.graph.nodes[0].params = vec![(0, 3), (1, 1_000_000)];
            offer_all(arena, vec![flow]);
            set_up(arena);
            arena.run(200);
        }),
    ]
}

fn counts() -> Vec<Case> {
    vec![
        listener("OFFER of 64 flows", At::Opened, GoesOn, |arena| {
            let bare = usual_flows().remove(2);
            let of = |flow| FlowOffer { flow, name: format!("bare-{flow}"), ..bare.clone() };
            offer_all(arena, (0..64).map(of).collect());
            set_up(arena);
            arena.extra_answers = 200;
            arena.run(100);
        }),
        listener("OFFER of 65 flows", At::Opened, Session(Code::Malformed), |arena| {
            let one = bytes_of(Offer { session: 1, flows: usual_flows(), ..Offer::default() });
            let at = one.windows(2).position(|it| it == [0, 14]).unwrap();
            let flows = [&one[6..at], &one[at..].repeat(22)].concat();
            arena.push(&record(MessageKind::Offer.code(), &flows));
        }),
        listener("OFFER of no flow", At::Opened, Open, |arena| {
            offer_all(arena, Vec::new());
            arena.core_answers();
            assert!(matches!(arena.take(), Some(Message::Answer(_))));
        }),
        listener("OFFER twice", At::Offered, Session(Code::Violation), |arena| {
            arena.say(arena.offer.clone());
        }),
        listener("OFFER after the set-up", At::Ready, Session(Code::Violation), |arena| {
            arena.say(arena.offer.clone());
        }),
        listener("OFFER while flows run", At::Active, Session(Code::Violation), |arena| {
            arena.say(Offer {
                session: 2,
                title: "late".into(),
                flows: usual_flows(),
                ..Offer::default()
            });
        }),
        listener("OFFER after the end", At::Active, Open, |arena| {
            arena.say(dacapo_wire::session::Close { code: 304, text: String::new() });
            arena.say(arena.offer.clone());
            arena.run(40);
            assert_eq!(arena.ended(), Some(Some(Code::Refused)));
            assert_eq!(arena.count(|event| matches!(event, CoreEvent::Offered { .. })), 1);
        }),
    ]
}

/// Accepts with this transcript and these flows.
fn accept(arena: &mut Arena, transcript: [u8; 32], numbers: &[usize]) {
    let flows = numbers.iter().map(|at| taken(*at)).collect();
    arena.say(Accept { transcript, flows });
}

fn accepts() -> Vec<Case> {
    let broken = |name, script| listener(name, At::Answered, Session(Code::Violation), script);
    vec![
        broken("ACCEPT with another transcript", |arena| accept(arena, [7; 32], &[0, 1, 2])),
        broken("ACCEPT with the transcript of the OFFER alone", |arena| {
            let first = crate::arena::extend([0; 32], &arena.offer.clone().into());
            accept(arena, first, &[0, 1, 2]);
        }),
        broken("ACCEPT of no flow", |arena| accept(arena, arena.transcript, &[])),
        broken("ACCEPT of fewer flows", |arena| accept(arena, arena.transcript, &[0, 1])),
        broken("ACCEPT of more flows", |arena| accept(arena, arena.transcript, &[0, 1, 2, 3])),
        broken("ACCEPT with the flows out of order", |arena| {
            accept(arena, arena.transcript, &[2, 1, 0]);
        }),
        broken("ACCEPT twice", |arena| {
            accept(arena, arena.transcript, &[0, 1, 2]);
            accept(arena, arena.transcript, &[0, 1, 2]);
        }),
        listener("ACCEPT while flows run", At::Active, Session(Code::Violation), |arena| {
            arena.say(arena.accept.clone());
        }),
        listener("ACCEPT never comes", At::Answered, Session(Code::NoAnswer), |arena| {
            arena.run(10_000);
        }),
        listener("ACCEPT of what was refused", At::Offered, Open, |arena| {
            let (now, session) = (arena.lab.now(), arena.session.unwrap());
            let core = arena.lab.world.core(arena.core);
            core.answer(now, session, vec![None, None, None]).unwrap();
            arena.run(250);
            let Some(Message::Answer(answer)) = arena.take() else { panic!("no ANSWER") };
            assert!(answer.flows.iter().all(|flow| flow.accepted.is_err()));
            arena.answer = answer;
            accept(arena, arena.expected_transcript(), &[0, 1, 2]);
            arena.run(40);
            arena.core_activates();
        }),
        listener("ACCEPT that refuses with codes that are none", At::Answered, Open, |arena| {
            let mut flows = answer(3).flows;
            flows[0].accepted = Err((0, "ok?".into()));
            flows[1].accepted = Err((u16::MAX, "x".repeat(512)));
            arena.say(Accept { transcript: arena.transcript, flows });
            arena.run(40);
            arena.core_activates();
        }),
        listener(
            "ACCEPT with labels of zero, and tokens for flows without a stream",
            At::Answered,
            GoesOn,
            |arena| {
                let mut flows = answer(3).flows;
                flows.iter_mut().for_each(|it| (it.label, it.stream_token) = (0, Some([1; 16])));
                arena.say(Accept { transcript: arena.transcript, flows });
                arena.run(40);
                assert_eq!(arena.lab.world.stream_count(), 0, "nothing is dialed");
            },
        ),
    ]
}

/// Offers two flows on streams and answers with these tokens.
fn accept_streams(arena: &mut Arena, tokens: [Option<[u8; 16]>; 2]) {
    let mut flows = vec![offer_tcp("a", &[]), offer_tcp("b", &[])];
    flows.iter_mut().zip(0..).for_each(|(it, at)| (it.flow, it.datagram_len) = (at, 65_000));
    offer_all(arena, flows);
    arena.core_answers();
    let Some(Message::Answer(answer)) = arena.take() else { panic!("no ANSWER") };
    arena.answer = answer;
    let mut flows = crate::arena::answer(2).flows;
    flows.iter_mut().zip(tokens).for_each(|(flow, token)| flow.stream_token = token);
    arena.say(Accept { transcript: arena.expected_transcript(), flows });
    arena.run(40);
}

fn streams() -> Vec<Case> {
    vec![
        listener(
            "streams of flows without tokens",
            At::Opened,
            Session(Code::Violation),
            |arena| {
                accept_streams(arena, [Some([1; 16]), None]);
            },
        ),
        listener(
            "two streams of flows with one token, where nobody listens",
            At::Opened,
            Seen,
            |arena| {
                accept_streams(arena, [Some([1; 16]); 2]);
                arena.run(11_000);
                let failed = |event: &CoreEvent| match event {
                    CoreEvent::FlowFailed { error, .. } => error.code == Code::NoDataPath,
                    _ => false,
                };
                assert_eq!(arena.count(failed), 2, "each flow has failed, once");
            },
        ),
    ]
}
