//! A core that listens and serves, and a participant that says anything in any order.
//!
//! ```text
//!   input -> steps: the right message, a wrong one, bytes, frames, datagrams, time
//!            |
//!            v     no panic, memory in proportion, and when the peer is gone nothing is left
//! ```
//!
//! What must hold here holds for every order.

use super::core_quic::{CONNECTION_MAX, greet};
use super::script::{self, Scene, Script, Session, answers};
use crate::input::Input;
use crate::rig::peer::{Peer, extend};
use crate::rig::{Rig, ports};
use dacapo_wire::message::Message;
use dacapo_wire::session::{Answer, Join};
use std::collections::BTreeSet;

/// A participant and the core that it talks to.
struct Participant {
    scene: Scene,
    token: [u8; 16],
    question: u64,
}

impl Script for Participant {
    const HELD_MAX: i64 = CONNECTION_MAX;

    fn new() -> Self {
        let mut rig = Rig::new(1);
        ports::publish(&mut rig);
        let mut peer = Peer::client(&rig, 66, 1);
        let hub = greet(&mut rig, &mut peer);
        let mut token = [0; 16];
        if let Some(Message::Welcome(welcome)) = hub.and_then(|hub| peer.next(hub)) {
            token = welcome.path_token;
        }
        Self { scene: Scene::new(rig, peer, hub), token, question: 0 }
    }

    fn scene(&mut self) -> &mut Scene {
        &mut self.scene
    }

    fn talk(&mut self) {
        self.scene.talk();
        self.scene.note();
        self.scene.rig.drop_events();
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let scene = &mut self.scene;
        match input.u8() % 12 {
            0 => self.join(input.u8()),
            1 => self.answer(input),
            2 | 3 => scene.message(input),
            4 => scene.bytes(input),
            5 => self.hub_message(input),
            6 => self.ask(),
            7 => scene.data(input),
            8 => scene.rig.handle(scene.peer.data, input.piece()),
            9 => scene.pass(input),
            10 => scene.end(input),
            _ => {
                let (frames, from) = (input.piece(), scene.peer.control);
                let sealed = scene.peer.sealed(frames);
                sealed.iter().for_each(|bytes| scene.rig.handle_frames(from, bytes, frames));
            }
        }
    }
}

impl Participant {
    fn join(&mut self, which: u8) {
        let name = ports::SESSIONS.get(usize::from(which) % 5).copied().unwrap_or("none");
        let Some(stream) = self.scene.peer.open() else { return };
        let (modules, transports) = (vec![1, 2, 3, 4, 0xF123], vec![1, 3, 0x9001]);
        let live = which & 0x80 != 0;
        let join = Join { name: name.into(), modules, transports, live, ..Join::default() };
        self.scene.peer.say(stream, join);
        self.scene.sessions.push(Session::new(stream));
    }

    fn answer(&mut self, input: &mut Input<'_>) {
        let Some(session) = self.scene.session(input) else { return };
        let count = session.offer.as_ref().map_or(0, |offer| offer.flows.len());
        let answer: Message = Answer { flows: answers(count, input) }.into();
        session.transcript = extend(session.transcript, &answer);
        let stream = session.stream;
        self.scene.peer.say(stream, answer);
    }

    fn hub_message(&mut self, input: &mut Input<'_>) {
        let Some(hub) = self.scene.hub else { return };
        match input.u8() {
            // A list is the one thing that may be said often.
            0..=0xBF => {
                let request = input.u8().into();
                self.scene.peer.say(hub, dacapo_wire::hub::List { request });
            }
            0xC0..=0xDF => self.scene.sample(hub, input),
            _ => self.scene.peer.push(hub, input.piece()),
        }
    }

    /// Opens the data path, or shows life on it.
    fn ask(&mut self) {
        let question = Peer::question(&self.scene.rig, self.token, self.question);
        self.question += 1;
        self.scene.rig.handle(self.scene.peer.data, &question);
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
    script::play::<Participant>(bytes)
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
    // Nothing shows that the old epoch has left, so its rest is waited for while contact lasts.
    let rest = [pass(10), vec![6]].concat().repeat(6);
    let changed = [change.clone(), switched, rest].concat();
    seeds.push([set_up(1), data.clone(), changed, end(3), over.clone()].concat());
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
