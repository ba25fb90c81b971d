//! A core that dials and joins, and a creator that says anything in any order.
//!
//! What it is not: the creator's own side; that is `core_listener`.

use super::core_listener::{SESSION_MAX, Session, answers, finish};
use super::samples;
use crate::input::Input;
use crate::rig::peer::{Peer, extend};
use crate::rig::{Rig, ports};
use dacapo_core::{CoreEvent, PeerId, Wishes};
use dacapo_wire::graph::{GraphForm, NodeForm};
use dacapo_wire::hub::Welcome;
use dacapo_wire::message::MessageKind;
use dacapo_wire::session::{Accept, Activated, Direction, FlowOffer, Offer};
use quinn_proto::StreamId;
use std::collections::BTreeSet;
use std::time::Duration;

struct Scene {
    rig: Rig,
    peer: Peer,
    hub: Option<StreamId>,
    /// The peer, as the core calls it, once it is open.
    open: Option<PeerId>,
    sessions: Vec<Session>,
}

impl Scene {
    fn new() -> Self {
        let mut rig = Rig::new(2);
        let mut peer = Peer::server(66, 2);
        let (now, remote) = (rig.now(), peer.control);
        rig.core().connect(now, remote).expect("a core has room for a peer");
        peer.talk(&mut rig);
        let mut scene = Self { rig, peer, hub: None, open: None, sessions: Vec::new() };
        scene.talk();
        scene
    }

    /// Lets both talk, and the core's application in between.
    fn talk(&mut self) {
        for _ in 0..2 {
            self.hear();
            self.act();
        }
        self.hear();
    }

    fn hear(&mut self) {
        self.peer.talk(&mut self.rig);
        for stream in std::mem::take(&mut self.peer.accepted) {
            if self.hub.is_none() {
                self.hub = Some(stream);
            } else {
                self.sessions.push(Session::new(stream));
            }
        }
        for session in &mut self.sessions {
            while let Some(message) = self.peer.next(session.stream) {
                session.note(message);
            }
        }
    }

    /// The application of the core: it answers every offer and begins at once.
    fn act(&mut self) {
        let now = self.rig.now();
        let events = self.rig.take_events();
        for event in &events {
            let core = self.rig.core();
            match event {
                CoreEvent::PeerOpen { peer } => self.open = Some(*peer),
                CoreEvent::Offered { session, flows, .. } => {
                    let ports = flows.iter().map(|flow| Some(ports::port(flow, false)));
                    // A session that is over by now has said so.
                    let _ = core.answer(now, *session, ports.collect());
                }
                CoreEvent::Ready { session } => drop(core.activate(now, *session)),
                _ => {}
            }
        }
        self.rig.events = events;
        self.rig.drop_events();
    }

    fn session(&mut self, input: &mut Input<'_>) -> Option<&mut Session> {
        let at = usize::from(input.u8()) % self.sessions.len().max(1);
        self.sessions.get_mut(at)
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.u8() % 12 {
            0 => self.join(),
            1 => self.offer(input),
            2 => self.accept(input),
            3 | 4 => {
                let at = usize::from(input.u8()) % self.sessions.len().max(1);
                let Some(session) = self.sessions.get_mut(at) else { return };
                let message = session.message(input);
                self.peer.say(session.stream, message);
            }
            5 => {
                let Some(stream) = self.session(input).map(|it| it.stream) else { return };
                self.peer.push(stream, input.piece());
            }
            6 => self.hub_message(input),
            7 => self.data(input),
            8 => self.rig.handle(self.peer.data, input.piece()),
            9 => self.rig.pass(Duration::from_millis(1 << (input.u8() % 13))),
            10 => {
                let by_force = input.u8().is_multiple_of(2);
                let Some(stream) = self.session(input).map(|it| it.stream) else { return };
                self.peer.end(stream, by_force);
            }
            _ => {
                let Some(stream) = self.session(input).map(|it| it.stream) else { return };
                self.peer.say(stream, Activated { request: input.u8().into() });
            }
        }
    }

    /// The application joins a session of the peer.
    fn join(&mut self) {
        let (now, open) = (self.rig.now(), self.open);
        if let Some(peer) = open {
            // What cannot be joined is an error to the application and no more.
            let _ = self.rig.core().join(now, peer, "any", Wishes::default());
        }
    }

    fn offer(&mut self, input: &mut Input<'_>) {
        let count = input.u8() % 5;
        let flows: Vec<FlowOffer> = (0..count).map(|at| flow(at.into(), input)).collect();
        let title = String::from_utf8_lossy(input.piece()).into_owned();
        let offer = Offer { title, flows, ..Offer::default() };
        let Some(session) = self.session(input) else { return };
        session.note(offer.clone().into());
        let stream = session.stream;
        self.peer.say(stream, offer);
    }

    fn accept(&mut self, input: &mut Input<'_>) {
        let Some(session) = self.session(input) else { return };
        let count = session.offer.as_ref().map_or(0, |offer| offer.flows.len());
        let mut transcript = session.transcript;
        if input.u8() == 0xFF {
            transcript = extend(transcript, &Activated { request: 1 }.into());
        }
        let stream = session.stream;
        self.peer.say(stream, Accept { transcript, flows: answers(count, input) });
    }

    fn hub_message(&mut self, input: &mut Input<'_>) {
        let Some(hub) = self.hub else { return };
        let kinds = MessageKind::ALL;
        match input.u8() {
            0..=0x7F => {
                let version = if input.u8() == 0xFF { 9 } else { 1 };
                let boot = [input.u8() % 2; 16];
                self.peer.say(hub, Welcome { version, boot, ..Welcome::default() });
            }
            0x80..=0xDF => {
                let kind = kinds.get(usize::from(input.u8()) % kinds.len());
                kind.iter().for_each(|kind| self.peer.say(hub, samples::message(**kind)));
            }
            _ => self.peer.push(hub, input.piece()),
        }
    }

    /// Data with labels of the core.
    fn data(&mut self, input: &mut Input<'_>) {
        let pick = usize::from(input.u8());
        let Some(session) = self.session(input) else { return };
        let datagrams = session.data(pick, input.piece());
        datagrams.iter().for_each(|bytes| self.rig.handle(self.peer.data, bytes));
    }
}

/// A flow of an offer, with figures of the fuzzer.
fn flow(number: u16, input: &mut Input<'_>) -> FlowOffer {
    let how = input.u8();
    let modules = input.take(3).to_vec();
    let node = |(place, module): (usize, u8)| NodeForm {
        parent: (place as u8).wrapping_sub(1),
        module: u16::from(module % 6),
        params: if module > 0xF0 { vec![(0, u64::from(module) << 20)] } else { Vec::new() },
    };
    let graph = GraphForm { nodes: modules.into_iter().enumerate().map(node).collect() };
    let (up, down) = (Direction::ToCreator, Direction::ToParticipant);
    FlowOffer {
        flow: if how & 0x40 == 0 { number } else { u16::from(how) },
        name: format!("f{number}"),
        direction: if how & 1 == 0 { down } else { up },
        graph,
        transport: if how & 2 == 0 { 1 } else { 3 },
        bound_bps: if how & 4 == 0 { 10_000_000 } else { input.number() },
        unit_len_max: if how & 8 == 0 { 1_000 } else { input.u32() },
        datagram_len: if how & 0x10 == 0 { 1_200 } else { input.u16() },
        playout_ns: if how & 0x20 == 0 { 0 } else { input.number() },
        ..ports::flow("x", down, &[], 1)
    }
}

/// What dialing may hold, in bytes: an attempt every 500 ms for 10 s, each with the table of
/// streams that a connection has.
const DIALING_MAX: i64 = 4 << 20;

/// A script of what a creator does.
pub fn dialer(bytes: &[u8]) {
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
        let most = received + DIALING_MAX + SESSION_MAX * scene.sessions.len() as i64;
        let held = meter.live - before.live;
        assert!(held <= most, "{held} bytes are held, at most {most} may be: {meter:?}");
    }
    finish(&mut scene.rig, &mut scene.peer);
    scene.rig.seen
}

/// Sessions over a stream, which need no data path, and some of what may go wrong.
pub fn dialer_seeds() -> Vec<Vec<u8>> {
    let message = |kind: u8, figures: &[u8]| [&[3, 0, 0, 0, kind], figures].concat();
    let welcome = vec![6, 0, 1, 1, 9, 1];
    let offer = |how: u8, modules: [u8; 3]| {
        [&[0, 1, 1, how], &modules[..], &[3, b'a', b'b', b'c', 0]].concat()
    };
    let accept = vec![2, 0, 0, 0, 11, 0, 1, 9, 6];
    let unit = |len: u8| [&[7, 0x80, 0, len][..], &vec![len; len.into()]].concat();
    let junk = vec![7, 0, 0, 8, 0, 0, 0, 0, 0x80, 0, 0, 0];
    let close = message(6, &[]);
    let over = [message(3, &[2, 40, 0]), vec![9, 10], close.clone(), vec![9, 8]].concat();
    let on_stream = [welcome.clone(), offer(2, [1, 2, 3]), accept.clone()].concat();
    let up = [welcome.clone(), offer(3, [1, 2, 3]), accept.clone(), vec![9, 12]].concat();
    vec![
        welcome.clone(),
        [on_stream.clone(), unit(20), unit(90), over.clone()].concat(),
        [on_stream.clone(), junk, unit(9), over.clone()].concat(),
        [up, message(4, &[8, 0, 0, 0, 0]), close, vec![9, 12, 9, 12]].concat(),
        [welcome.clone(), offer(3, [0, 1, 2]), accept.clone(), over.clone()].concat(),
        [welcome.clone(), offer(0, [1, 2, 3]), vec![9, 12], accept].concat(),
        [welcome.clone(), offer(8, [1, 2, 3]), vec![0xFF; 8]].concat(),
        [welcome.clone(), offer(2, [3, 1, 5]), over].concat(),
        [on_stream, offer(2, [1, 2, 3]), vec![2, 0, 0, 0]].concat(),
        vec![6, 0, 0xFF, 1, 9, 12],
        [welcome, vec![6, 0x90, 4, 6, 0x90, 5, 6, 0xF0, 4, 0, 7, 0, 0]].concat(),
        vec![9, 12, 9, 12, 9, 12],
    ]
}
