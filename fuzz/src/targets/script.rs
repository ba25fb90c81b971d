//! What the scripts of `core_listener` and `core_dialer` have in common: sessions, and the steps
//! that both ends take.
//!
//! ```text
//!   input -> Script::step -> Scene { rig, peer, sessions } -> talk -> what is held is bounded
//!                                                              at the end nothing is left
//! ```

use super::core_quic::KEPT_MAX;
use super::modules::try_end;
use super::samples;
use crate::input::Input;
use crate::rig::Rig;
use crate::rig::peer::{Peer, extend};
use dacapo_core::Code;
use dacapo_lift::conformance::End as Sender;
use dacapo_wire::change::{Mode, Prepare};
use dacapo_wire::data;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::message::{Message, MessageKind};
use dacapo_wire::session::{
    Accept, Activate, Answer, Close, Control, Deactivate, End, FlowAnswer, FlowOffer, Offer, Report,
};
use dacapo_wire::unit;
use quinn_proto::StreamId;
use std::collections::BTreeSet;
use std::time::Duration;

/// What a session may hold beside the pool, in bytes, however many flows it has.
const SESSION_MAX: i64 = 512 << 10;

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
    Some((try_end(&names?)?, 0))
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
        base: None,
        stream_port: None,
    };
    let more = usize::from(how & 0xC0 == 0xC0);
    (0..count + more).map(flow).collect()
}

/// A core, and somebody who talks with it.
pub struct Scene {
    /// The core.
    pub rig: Rig,
    /// Who talks with it.
    pub peer: Peer,
    /// The stream of the greeting, once it is there.
    pub hub: Option<StreamId>,
    /// The sessions, whoever opened them.
    pub sessions: Vec<Session>,
}

impl Scene {
    /// One without sessions.
    #[must_use]
    pub fn new(rig: Rig, peer: Peer, hub: Option<StreamId>) -> Self {
        Self { rig, peer, hub, sessions: Vec::new() }
    }

    /// Lets both say what they have to say.
    pub fn talk(&mut self) {
        self.peer.talk(&mut self.rig);
    }

    /// Notes what the core has said in sessions.
    pub fn note(&mut self) {
        for session in &mut self.sessions {
            while let Some(message) = self.peer.next(session.stream) {
                session.note(message);
            }
        }
    }

    /// The session that the input chooses.
    pub fn session(&mut self, input: &mut Input<'_>) -> Option<&mut Session> {
        let at = usize::from(input.u8()) % self.sessions.len().max(1);
        self.sessions.get_mut(at)
    }

    /// The stream of the session that the input chooses.
    pub fn stream(&mut self, input: &mut Input<'_>) -> Option<StreamId> {
        self.session(input).map(|session| session.stream)
    }

    /// Says a message of a session.
    pub fn message(&mut self, input: &mut Input<'_>) {
        let Some(session) = self.session(input) else { return };
        let (message, stream) = (session.message(input), session.stream);
        self.peer.say(stream, message);
    }

    /// Says a message as its sample is.
    pub fn sample(&mut self, stream: StreamId, input: &mut Input<'_>) {
        let kinds = MessageKind::ALL;
        let kind = kinds.get(usize::from(input.u8()) % kinds.len());
        kind.iter().for_each(|kind| self.peer.say(stream, samples::message(**kind)));
    }

    /// Sends bytes on the stream of a session.
    pub fn bytes(&mut self, input: &mut Input<'_>) {
        let Some(stream) = self.stream(input) else { return };
        self.peer.push(stream, input.piece());
    }

    /// A datagram of a flow, with a label that the core has given out.
    pub fn data(&mut self, input: &mut Input<'_>) {
        let pick = usize::from(input.u8());
        let Some(session) = self.session(input) else { return };
        let datagrams = session.data(pick, input.piece());
        datagrams.iter().for_each(|bytes| self.rig.handle(self.peer.data, bytes));
    }

    /// Ends the stream of a session.
    pub fn end(&mut self, input: &mut Input<'_>) {
        let by_force = input.u8().is_multiple_of(2);
        let Some(stream) = self.stream(input) else { return };
        self.peer.end(stream, by_force);
    }

    /// Lets up to four seconds pass.
    pub fn pass(&mut self, input: &mut Input<'_>) {
        self.rig.pass(Duration::from_millis(1 << (input.u8() % 13)));
    }
}

/// One who plays what a fuzzer says.
pub trait Script {
    /// What the core may hold in bytes, beside what came in and its sessions.
    const HELD_MAX: i64;

    /// The beginning.
    fn new() -> Self;

    /// Where it plays.
    fn scene(&mut self) -> &mut Scene;

    /// Does what the input says next.
    fn step(&mut self, input: &mut Input<'_>);

    /// Lets both talk, and the core's application in between.
    fn talk(&mut self);
}

/// Plays a script and checks everything; the kinds of what the core has reported on the way.
///
/// # Panics
/// Something does not hold.
pub fn play<S: Script>(bytes: &[u8]) -> BTreeSet<&'static str> {
    let mut script = S::new();
    let before = script.scene().rig.meter;
    let mut input = Input(bytes);
    while !input.is_empty() {
        script.step(&mut input);
        script.talk();
        let scene = script.scene();
        let meter = scene.rig.meter;
        let received = 2 * (meter.received - before.received) as i64;
        let most = received + S::HELD_MAX + SESSION_MAX * scene.sessions.len() as i64;
        let held = meter.live - before.live;
        assert!(held <= most, "{held} bytes are held, at most {most} may be: {meter:?}");
    }
    let scene = script.scene();
    finish(&mut scene.rig, &mut scene.peer);
    std::mem::take(&mut scene.rig.seen)
}

/// The peer goes, and everything of it with it.
fn finish(rig: &mut Rig, peer: &mut Peer) {
    peer.close(rig);
    peer.talk(rig);
    rig.pass(Duration::from_secs(30));
    // One that was not heard any more is given up after a time, and at the latest after this one.
    rig.pass(Duration::from_secs(420));
    rig.check_empty(KEPT_MAX);
}
