//! A core that listens and serves, and a participant that says anything in any order.
//!
//! ```text
//!   input -> steps: the right message, a wrong one, bytes, frames, datagrams, time
//!            |
//!            v     no panic, memory in proportion, and when the peer is gone nothing is left
//! ```
//!
//! What it is not: a model of the protocol; which message is taken when is compared with the page
//! of the protocol elsewhere. What must hold here holds for every order.

use super::core_quic::{CONNECTION_MAX, KEPT_MAX, greet};
use super::modules::End as Sender;
use super::samples;
use crate::input::Input;
use crate::rig::peer::{Peer, extend};
use crate::rig::{Rig, ports};
use dacapo_core::Code;
use dacapo_wire::change::{Mode, Prepare};
use dacapo_wire::data;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::message::{Message, MessageKind};
use dacapo_wire::session::{
    Accept, Activate, Answer, Close, Control, Deactivate, End, FlowAnswer, FlowOffer, Join, Offer,
    Report,
};
use dacapo_wire::unit;
use quinn_proto::StreamId;
use std::collections::BTreeSet;
use std::time::Duration;

/// What a session may hold beside the pool, in bytes, however many flows it has.
pub const SESSION_MAX: i64 = 512 << 10;

/// What the other side of a session remembers.
pub struct Session {
    /// Its stream.
    pub stream: StreamId,
    /// As both remember it.
    pub transcript: [u8; 32],
    /// The offer that came or went.
    pub offer: Option<Offer>,
    /// What the core has accepted, with its labels.
    pub labels: Vec<u32>,
    epoch: u64,
    /// An honest sender for each flow of the offer, and how many units it has sent.
    senders: Vec<(Sender, u64)>,
}

impl Session {
    /// One of which nothing was said yet.
    #[must_use]
    pub fn new(stream: StreamId) -> Self {
        let (transcript, offer, labels) = ([0; 32], None, Vec::new());
        Self { stream, transcript, offer, labels, epoch: 0, senders: Vec::new() }
    }

    /// Notes what the core has said.
    pub fn note(&mut self, message: Message) {
        match &message {
            Message::Offer(offer) => {
                self.transcript = extend([0; 32], &message);
                self.senders = offer.flows.iter().filter_map(sender).collect();
                self.offer = Some(offer.clone());
            }
            Message::Answer(Answer { flows }) => {
                self.transcript = extend(self.transcript, &message);
                self.labels = flows.iter().map(|flow| flow.label).collect();
            }
            Message::Accept(Accept { flows, .. }) => {
                self.labels = flows.iter().map(|flow| flow.label).collect();
            }
            _ => {}
        }
    }

    /// The datagrams of a unit as an honest sender of a flow makes them.
    pub fn unit(&mut self, flow: usize, bytes: &[u8]) -> Vec<Vec<u8>> {
        let label = self.labels.get(flow).copied().unwrap_or(0);
        let Some((sender, count)) = self.senders.get_mut(flow) else { return Vec::new() };
        let header = unit::Header::new(unit::Kind::Data, *count).emit();
        *count += u64::from(sender.feed(&[&header[..], bytes].concat()));
        let with_label =
            |packet: Vec<u8>| [&data::Header { label }.emit()[..], packet.as_slice()].concat();
        sender.wire().into_iter().map(with_label).collect()
    }

    /// Data of a flow: an honest unit, or bytes behind a label.
    pub fn data(&mut self, pick: usize, bytes: &[u8]) -> Vec<Vec<u8>> {
        let flow = pick % self.labels.len().max(1);
        if pick >= 0x80 {
            return self.unit(flow, bytes);
        }
        let label = self.labels.get(flow).copied().unwrap_or(0);
        vec![[&data::Header { label }.emit()[..], bytes].concat()]
    }

    /// A message of a session, with figures of the fuzzer.
    pub fn message(&mut self, input: &mut Input<'_>) -> Message {
        let (flow, request) = (u16::from(input.u8() % 4), u32::from(input.u8()));
        match input.u8() % 8 {
            0 => Activate { request }.into(),
            1 => Deactivate { request }.into(),
            2 => self.prepare(flow, input),
            3 => {
                let (units, bytes) = (input.number(), input.number());
                End { flow, units, bytes, code: u16::from(input.u8()), ..End::default() }.into()
            }
            4 => Report {
                flow,
                delivered: input.number(),
                lost: input.number(),
                dropped: vec![(input.u8(), input.number())],
                unknown: input.number(),
                ..Report::default()
            }
            .into(),
            5 => {
                let module =
                    if input.u8().is_multiple_of(2) { 0xFFFF } else { u16::from(input.u8() % 5) };
                let epoch = u64::from(input.u8() % 3);
                Control { request, flow, epoch, module, payload: input.piece().to_vec() }.into()
            }
            6 => Close { code: Code::Closed as u16, text: "enough".into() }.into(),
            _ => {
                let kinds = MessageKind::ALL;
                let kind = kinds.get(usize::from(input.u8()) % kinds.len());
                kind.map_or(Activate { request }.into(), |&kind| samples::message(kind))
            }
        }
    }

    /// A change of a flow, in order but for what the fuzzer says.
    fn prepare(&mut self, flow: u16, input: &mut Input<'_>) -> Message {
        let modules: Vec<u16> = input.take(3).iter().map(|byte| u16::from(byte % 6)).collect();
        self.epoch = self.epoch.saturating_add(u64::from(input.u8() % 3));
        let mut prepare = Prepare {
            flow,
            epoch: self.epoch,
            label: input.u32(),
            mode: if input.u8().is_multiple_of(4) { Mode::Break } else { Mode::Make },
            graph: GraphForm::line(modules.into_iter().map(|module| (module, Vec::new()))),
            ..Prepare::default()
        };
        self.transcript = extend(self.transcript, &prepare.clone().into());
        prepare.transcript = self.transcript;
        prepare.into()
    }
}

/// The honest sender of a flow whose graph is a line of modules that there are.
fn sender(flow: &FlowOffer) -> Option<(Sender, u64)> {
    let catalogue = dacapo::catalogue();
    let name = |id: u16| catalogue.by_id(id).map(|entry| entry.spec.name);
    let names: Option<Vec<&str>> = flow.graph.nodes.iter().map(|node| name(node.module)).collect();
    Some((Sender::try_new(&names?)?, 0))
}

/// An answer to an offer: each flow is taken, or as the fuzzer says.
#[must_use]
pub fn answers(count: usize, input: &mut Input<'_>) -> Vec<FlowAnswer> {
    let how = input.u8();
    let flow = |at: usize| FlowAnswer {
        flow: at as u16,
        accepted: if how & 1 << (at % 4) == 0 { Ok(()) } else { Err((404, "no".into())) },
        label: 0x1230 + at as u32,
        datagram_len: if how & 0x10 == 0 { 1_200 } else { u16::from(how) },
        stream_token: (how & 0x20 == 0).then_some([7; 16]),
    };
    let more = usize::from(how & 0xC0 == 0xC0);
    (0..count + more).map(flow).collect()
}

/// A participant and the core that it talks to.
struct Scene {
    rig: Rig,
    peer: Peer,
    hub: Option<StreamId>,
    sessions: Vec<Session>,
    token: [u8; 16],
    question: u64,
}

impl Scene {
    fn new() -> Self {
        let mut rig = Rig::new(1);
        ports::publish(&mut rig);
        let mut peer = Peer::client(&rig, 66, 1);
        let hub = greet(&mut rig, &mut peer);
        let mut token = [0; 16];
        if let Some(Message::Welcome(welcome)) = hub.and_then(|hub| peer.next(hub)) {
            token = welcome.path_token;
        }
        Self { rig, peer, hub, sessions: Vec::new(), token, question: 0 }
    }

    fn talk(&mut self) {
        self.peer.talk(&mut self.rig);
        for session in &mut self.sessions {
            while let Some(message) = self.peer.next(session.stream) {
                session.note(message);
            }
        }
        self.rig.drop_events();
    }

    fn session(&mut self, input: &mut Input<'_>) -> Option<&mut Session> {
        let at = usize::from(input.u8()) % self.sessions.len().max(1);
        self.sessions.get_mut(at)
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.u8() % 12 {
            0 => self.join(input.u8()),
            1 => self.answer(input),
            2 | 3 => {
                let at = usize::from(input.u8()) % self.sessions.len().max(1);
                let Some(session) = self.sessions.get_mut(at) else { return };
                let message = session.message(input);
                self.peer.say(session.stream, message);
            }
            4 => {
                let Some(stream) = self.session(input).map(|it| it.stream) else { return };
                self.peer.push(stream, input.piece());
            }
            5 => self.hub_message(input),
            6 => self.ask(),
            7 => self.data(input),
            8 => self.rig.handle(self.peer.data, input.piece()),
            9 => self.rig.pass(Duration::from_millis(1 << (input.u8() % 13))),
            10 => {
                let by_force = input.u8().is_multiple_of(2);
                let Some(stream) = self.session(input).map(|it| it.stream) else { return };
                self.peer.end(stream, by_force);
            }
            _ => {
                let frames = self.peer.sealed(input.piece());
                frames.iter().for_each(|bytes| self.rig.handle(self.peer.control, bytes));
            }
        }
    }

    fn join(&mut self, which: u8) {
        let name = ports::SESSIONS.get(usize::from(which) % 5).copied().unwrap_or("none");
        let Some(stream) = self.peer.open() else { return };
        let (modules, transports) = (vec![1, 2, 3, 4, 0xF123], vec![1, 3, 0x9001]);
        let live = which & 0x80 != 0;
        let join = Join { name: name.into(), modules, transports, live, ..Join::default() };
        self.peer.say(stream, join);
        self.sessions.push(Session::new(stream));
    }

    fn answer(&mut self, input: &mut Input<'_>) {
        let Some(session) = self.session(input) else { return };
        let count = session.offer.as_ref().map_or(0, |offer| offer.flows.len());
        let answer: Message = Answer { flows: answers(count, input) }.into();
        session.transcript = extend(session.transcript, &answer);
        let stream = session.stream;
        self.peer.say(stream, answer);
    }

    fn hub_message(&mut self, input: &mut Input<'_>) {
        let Some(hub) = self.hub else { return };
        let kinds = MessageKind::ALL;
        match input.u8() {
            // A list is the one thing that may be said often.
            0..=0xBF => self.peer.say(hub, dacapo_wire::hub::List { request: input.u8().into() }),
            0xC0..=0xDF => {
                let kind = kinds.get(usize::from(input.u8()) % kinds.len());
                kind.iter().for_each(|kind| self.peer.say(hub, samples::message(**kind)));
            }
            _ => self.peer.push(hub, input.piece()),
        }
    }

    /// Opens the data path, or shows life on it.
    fn ask(&mut self) {
        let question = Peer::question(&self.rig, self.token, self.question);
        self.question += 1;
        self.rig.handle(self.peer.data, &question);
    }

    /// A datagram of a flow, with a label that the core has given out.
    fn data(&mut self, input: &mut Input<'_>) {
        let pick = usize::from(input.u8());
        let Some(session) = self.session(input) else { return };
        let datagrams = session.data(pick, input.piece());
        datagrams.iter().for_each(|bytes| self.rig.handle(self.peer.data, bytes));
    }
}

/// A script of what a participant does.
pub fn listener(bytes: &[u8]) {
    play(bytes);
}

/// Plays a script and checks everything; the kinds of what the core has reported on the way.
///
/// # Panics
/// Something does not hold.
pub fn play(bytes: &[u8]) -> BTreeSet<&'static str> {
    let mut scene = Scene::new();
    let before = scene.rig.meter;
    let mut input = Input(bytes);
    while !input.is_empty() {
        scene.step(&mut input);
        scene.talk();
        let meter = scene.rig.meter;
        let received = 2 * (meter.received - before.received) as i64;
        let most = received + CONNECTION_MAX + SESSION_MAX * scene.sessions.len() as i64;
        let held = meter.live - before.live;
        assert!(held <= most, "{held} bytes are held, at most {most} may be: {meter:?}");
    }
    finish(&mut scene.rig, &mut scene.peer);
    scene.rig.seen
}

/// The peer goes, and everything of it with it.
pub fn finish(rig: &mut Rig, peer: &mut Peer) {
    peer.close(rig);
    peer.talk(rig);
    rig.pass(Duration::from_secs(30));
    // One that was not heard any more is given up after a time, and at the latest after this one.
    rig.pass(Duration::from_secs(420));
    rig.check_empty(KEPT_MAX);
}

/// Steps of scripts, so that seeds can be read.
pub(super) mod steps {
    /// Opens the path, joins a session, answers, activates and waits.
    pub fn set_up(name: u8) -> Vec<u8> {
        vec![6, 0, name, 1, 0, 0, 2, 0, 0, 1, 0, 6, 9, 6]
    }

    /// An honest unit of the first flow.
    pub fn unit(len: u8) -> Vec<u8> {
        [&[7, 0x80, 0, len][..], &vec![len; len.into()]].concat()
    }

    /// A message by its number in [`super::Session::message`], of flow 0, with its figures.
    pub fn message(kind: u8, figures: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0, kind], figures].concat()
    }

    /// A message of a kind as the sample is.
    pub fn sample(number: u8) -> Vec<u8> {
        message(7, &[number])
    }

    /// Lets `1 << bits` milliseconds pass.
    pub fn pass(bits: u8) -> Vec<u8> {
        vec![9, bits]
    }
}

/// Sessions set up and run in order, and the same with something odd in the middle.
pub fn listener_seeds() -> Vec<Vec<u8>> {
    use steps::{message, pass, sample, set_up, unit};
    let junk = vec![7, 0, 0, 12, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 1];
    let change = message(2, &[1, 2, 3, 1, 0, 0, 0, 48, 1]);
    let (switched, close) = (sample(24), message(6, &[]));
    let end = |units: u8| message(3, &[units, 40, 0]);
    let data = [unit(20), unit(90), unit(200), pass(6)].concat();
    let over = [pass(10), close.clone(), pass(8)].concat();
    let mut seeds: Vec<Vec<u8>> = (0..5).map(set_up).collect();
    // A flow up, in order; with a change; with junk among the data.
    seeds.push([set_up(1), data.clone(), end(3), over.clone()].concat());
    seeds.push([set_up(1), data.clone(), change.clone(), switched, end(3), over.clone()].concat());
    seeds.push([set_up(1), junk.clone(), data.clone(), junk, end(9), over.clone()].concat());
    // A flow down, with its report; commands; a pause.
    let report = message(4, &[8, 0, 0, 0, 0]);
    seeds.push([set_up(0), pass(10), report, close.clone(), pass(9)].concat());
    let command = message(5, &[0, 0, 5, 4, 0, 0, 0, 0]);
    let to_module = message(5, &[1, 1, 0, 9, 1, 0, 0, 0, 0, 1, 0, 0, 0]);
    seeds.push([set_up(2), command, to_module, over.clone()].concat());
    seeds.push([set_up(2), message(1, &[]), pass(5), message(0, &[]), over.clone()].concat());
    // Answered twice; lists; streams that end; a stream that never comes; a frame that is cut.
    seeds.push([set_up(0), vec![1, 0, 0, 9, 9], set_up(1), over].concat());
    seeds.push(vec![5, 0, 1, 5, 0, 2, 0, 2, 10, 0, 0, 9, 12, 6, 9, 12]);
    seeds.push([set_up(3), vec![9, 12, 9, 12, 9, 12, 10, 1, 0]].concat());
    seeds.push([set_up(0), change, vec![11, 2, 0x1A, 1, 5, 0xE0, 3, 1, 2, 3]].concat());
    seeds
}
