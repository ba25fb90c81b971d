//! A core that dials and joins, and a creator that says anything in any order.

use super::script::{self, Scene, Script, Session, answers};
use crate::input::Input;
use crate::rig::peer::{Peer, extend};
use crate::rig::{Rig, ports};
use dacapo_core::{Command, CoreEvent, DialParams, Done, JoinParams, PeerId};
use dacapo_wire::graph::{GraphForm, NodeForm};
use dacapo_wire::hub::Welcome;
use dacapo_wire::session::{Accept, Activated, Direction, FlowOffer, Offer};
use std::collections::BTreeSet;

/// A creator and the core that dials it.
struct Creator {
    scene: Scene,
    /// The peer, as the core calls it, once it is open.
    open: Option<PeerId>,
}

impl Script for Creator {
    const HELD_MAX: i64 = DIALING_MAX;

    fn new() -> Self {
        let mut rig = Rig::new(2);
        let mut peer = Peer::server(66, 2);
        let (now, remote) = (rig.now(), peer.control);
        rig.core()
            .handle_command(
                now,
                Command::Connect { remote: remote.into(), params: DialParams::default() },
            )
            .and_then(Done::peer)
            .expect("a core has room for a peer");
        peer.talk(&mut rig);
        let mut creator = Self { scene: Scene::new(rig, peer, None), open: None };
        creator.talk();
        creator
    }

    fn scene(&mut self) -> &mut Scene {
        &mut self.scene
    }

    fn talk(&mut self) {
        for _ in 0..2 {
            self.hear();
            self.act();
        }
        self.hear();
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let scene = &mut self.scene;
        match input.u8() % 12 {
            0 => self.join(),
            1 => self.offer(input),
            2 => self.accept(input),
            3 | 4 => scene.message(input),
            5 => scene.bytes(input),
            6 => self.hub_message(input),
            7 => scene.data(input),
            8 => scene.rig.handle(scene.peer.data, input.piece()),
            9 => scene.pass(input),
            10 => scene.end(input),
            _ => {
                let Some(stream) = scene.stream(input) else { return };
                scene.peer.say(stream, Activated { request: input.u8().into() });
            }
        }
    }
}

impl Creator {
    fn hear(&mut self) {
        let scene = &mut self.scene;
        scene.talk();
        for stream in std::mem::take(&mut scene.peer.accepted) {
            if scene.hub.is_none() {
                scene.hub = Some(stream);
            } else {
                scene.sessions.push(Session::new(stream));
            }
        }
        scene.note();
    }

    /// The application of the core: it answers every offer and begins at once.
    fn act(&mut self) {
        let events = self.scene.rig.take_events();
        for event in &events {
            let rig = &mut self.scene.rig;
            match event {
                CoreEvent::PeerOpen { peer } => self.open = Some(*peer),
                CoreEvent::Offered { session, flows, .. } => {
                    let ports = flows.iter().map(|flow| Some(ports::port(flow, false)));
                    let ports = ports.collect();
                    // A session that is over by now has said so.
                    let _ = rig.call(0, |core, now| core.answer(now, *session, ports));
                }
                CoreEvent::Ready { session } => {
                    let activate = Command::Activate(*session);
                    drop(rig.call(0, |core, now| core.handle_command(now, activate)));
                }
                _ => {}
            }
        }
        self.scene.rig.events = events;
        self.scene.rig.drop_events();
    }

    /// The application joins a session of the peer.
    fn join(&mut self) {
        if let Some(peer) = self.open {
            let join = Command::Join { peer, name: "any".into(), params: JoinParams::default() };
            // What cannot be joined is an error to the application and no more.
            let _ = self.scene.rig.call(0, |core, now| core.handle_command(now, join));
        }
    }

    fn offer(&mut self, input: &mut Input<'_>) {
        let count = input.u8() % 5;
        let flows: Vec<FlowOffer> = (0..count).map(|at| flow(at.into(), input)).collect();
        let title = String::from_utf8_lossy(input.piece()).into_owned();
        let offer = Offer { title, flows, ..Offer::default() };
        let Some(session) = self.scene.session(input) else { return };
        session.note(offer.clone().into());
        let stream = session.stream;
        self.scene.peer.say(stream, offer);
    }

    fn accept(&mut self, input: &mut Input<'_>) {
        let Some(session) = self.scene.session(input) else { return };
        let count = session.offer.as_ref().map_or(0, |offer| offer.flows.len());
        let mut transcript = session.transcript;
        if input.u8() == 0xFF {
            transcript = extend(transcript, &Activated { request: 1 }.into());
        }
        let stream = session.stream;
        self.scene.peer.say(stream, Accept { transcript, flows: answers(count, input) });
    }

    fn hub_message(&mut self, input: &mut Input<'_>) {
        let Some(hub) = self.scene.hub else { return };
        match input.u8() {
            0..=0x7F => {
                let version = if input.u8() == 0xFF { 9 } else { 1 };
                let boot = [input.u8() % 2; 16];
                self.scene.peer.say(hub, Welcome { version, boot, ..Welcome::default() });
            }
            0x80..=0xDF => self.scene.sample(hub, input),
            _ => self.scene.peer.push(hub, input.piece()),
        }
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
    script::play::<Creator>(bytes)
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
