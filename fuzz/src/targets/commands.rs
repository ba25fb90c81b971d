//! Commands in any order, to two cores in virtual time that serve and join each other's sessions.
//!
//! ```text
//!   input -> serve, connect, join, answer, activate, change, control, close, …, time
//!            |
//!            v   done, or refused with a reason; no panic, no standstill; a command takes no
//!                more memory than its bytes justify; when all is over nothing is left
//! ```

use crate::input::Input;
use crate::oracle;
use crate::rig::ports;
use dacapo_base::Time;
use dacapo_core::{
    Code, Command, Core, CoreConfig, CoreEvent, DialParams, Done, Error, JoinParams, JoinRequest,
    PeerId, Port, SessionId, SessionProvider, SessionSpec, StreamId, StreamWriter,
};
use dacapo_heap::{Use, measure};
use dacapo_netlab::traffic::{Pattern, PatternSink, PatternSource};
use dacapo_netlab::{NodeId, World};
use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::{Direction, FlowOffer};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

/// The most commands of a script.
const STEPS_MAX: usize = 120;

/// What is remembered of each kind; older ones are asked for no more.
const KNOWN_MAX: usize = 8;

/// A report that a stream is closed, which it is not.
pub(super) const CLOSED_BY_A_LIE: &str = "said to be closed";

const NAMES: [&str; 4] = ["one", "two", "three", "no name!"];

/// Carries no streams.
struct Nobody;

impl StreamWriter for Nobody {
    fn write_split(&mut self, _: Time, _: StreamId, _: &[u8], _: &[u8]) -> bool {
        false
    }
}

/// Opens what a flow needs, or nothing.
struct Serves {
    fails: bool,
}

impl SessionProvider for Serves {
    fn open(&mut self, flow: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        if self.fails { Err("it does not open".into()) } else { Ok(port(flow, true)) }
    }
}

/// Units for a second and more, or somebody who takes them.
fn port(flow: &FlowOffer, is_creator: bool) -> Port {
    let every = Duration::from_millis(5);
    let pattern = Pattern { count: 300, every, len_min: 16, len_max: 300, seed: 7 };
    if (flow.direction == Direction::ToParticipant) == is_creator {
        Port::Source(Box::new(PatternSource::new(pattern)))
    } else {
        Port::Sink(Box::new(PatternSink::new(pattern).0))
    }
}

/// What a node has been told.
#[derive(Default)]
struct Known {
    peers: Vec<PeerId>,
    sessions: Vec<SessionId>,
    offers: Vec<(SessionId, Vec<FlowOffer>)>,
}

/// Two cores, and what became of what was asked of them.
pub(super) struct Scene {
    world: World,
    nodes: [NodeId; 2],
    known: [Known; 2],
    /// What has happened, by its kind: how far a script has come.
    seen: BTreeSet<&'static str>,
    /// Streams of flows, also those that are gone.
    streams: [Vec<StreamId>; 2],
}

impl Scene {
    pub fn new() -> Self {
        let link = "delay=2ms,jitter=1ms,loss=1%".parse().expect("the link is valid");
        let mut world = World::new(5, link);
        let config = || {
            let mut config = CoreConfig::new(dacapo_netlab::catalogue());
            config.boot = [1; 16];
            config.pool_bytes_max = 16 << 20;
            config
        };
        let nodes = [world.add(config()), world.add(config())];
        world.dials(nodes[1]);
        Self {
            world,
            nodes,
            known: Default::default(),
            seen: BTreeSet::new(),
            streams: Default::default(),
        }
    }

    /// Calls a core, which may allocate as much as so many bytes justify.
    pub fn call<R>(&mut self, at: usize, len: usize, body: impl FnOnce(&mut Core, Time) -> R) -> R {
        let (now, node) = (self.world.now(), self.nodes[at]);
        let core = self.world.core(node);
        let before = core.pool().stats().bytes;
        let (result, used) = measure(|| body(core, now));
        let grown = (core.pool().stats().bytes - before.min(core.pool().stats().bytes)) as u64;
        let allocated_bytes = used.allocated_bytes.saturating_sub(grown);
        oracle::check("a command", len, Use { allocated_bytes, ..used });
        result
    }

    fn command(&mut self, at: usize, len: usize, command: Command) -> Option<Done> {
        let done = self.call(at, len, |core, now| core.handle_command(now, command));
        self.note(done)
    }

    /// What is refused says why, and it is no mistake of the core's own.
    fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => {
                self.seen.insert("done");
                Some(value)
            }
            Err(error) => {
                assert!(!error.to_string().is_empty() && error.code != Code::Internal, "{error}");
                self.seen.insert("refused");
                None
            }
        }
    }

    pub fn step(&mut self, input: &mut Input<'_>) {
        let how = input.u8();
        let at = usize::from(how >> 7);
        match how & 0x7F {
            0..=7 => self.connect(at, input),
            8..=11 => self.of_peer(at, input),
            12..=27 => self.serve(at, input),
            28..=47 => self.join(at, input),
            48..=63 => self.answer(at, input),
            64..=103 => self.of_session(at, input),
            104..=107 => self.hand_over(at, input),
            _ => self.pass(Duration::from_millis(1 << (input.u8() % 13))),
        }
    }

    pub fn note_seen(&mut self, kind: &'static str) {
        self.seen.insert(kind);
    }

    pub fn address_of(&self, at: usize) -> SocketAddr {
        self.world.address(self.nodes[at])
    }

    pub fn peer(&self, at: usize, which: u8) -> Option<PeerId> {
        pick_at(&self.known[at].peers, which)
    }

    /// The stream of a flow that runs at a core, or ran.
    pub fn stream(&mut self, at: usize, which: u8) -> Option<StreamId> {
        let core = self.world.core(self.nodes[at]);
        let ids: Vec<SessionId> = core.sessions().map(|(id, _, _)| id).collect();
        let now = ids.iter().flat_map(|id| core.status(*id)).filter_map(|flow| flow.stream);
        let known = &mut self.streams[at];
        for stream in now {
            if !known.contains(&stream) {
                known.push(stream);
            }
        }
        pick_at(known, which)
    }

    fn connect(&mut self, at: usize, input: &mut Input<'_>) {
        let how = input.u8();
        let nowhere = SocketAddr::from(([192, 0, 2, how], u16::from(how)));
        let there = self.world.address(self.nodes[0]);
        let remote = if how < 0xC0 { there } else { nowhere };
        if at == 0 && how < 0xC0 {
            return;
        }
        let params = DialParams { wait: (how & 1 == 1).then_some(Duration::from_secs(3)) };
        let dialed = self.command(at, 0, Command::Connect { remote: remote.into(), params });
        self.known[at].peers.extend(dialed.and_then(|done| done.peer().ok()));
    }

    fn of_peer(&mut self, at: usize, input: &mut Input<'_>) {
        let Some(peer) = pick(&self.known[at].peers, input) else { return };
        let gone = input.u8() & 3 == 0;
        self.command(at, 0, if gone { Command::Disconnect(peer) } else { Command::List(peer) });
    }

    fn serve(&mut self, at: usize, input: &mut Input<'_>) {
        let name = name(input);
        let (how, count) = (input.u8(), input.u8() % 5);
        if how & 7 == 7 {
            self.command(at, 0, Command::Unpublish(name.into()));
            return;
        }
        let spec = SessionSpec {
            name: name.into(),
            title: "Any".into(),
            flows: (0..count).map(|number| flow(number, input)).collect(),
            participants_max: 1 + usize::from(how >> 6),
            give_up_after: Duration::from_millis(u64::from(input.u16())),
        };
        let provider = Box::new(Serves { fails: how & 0x38 == 0x38 });
        let served = self.call(at, 4_096, |core, _| core.publish(spec, provider));
        self.note(served);
    }

    fn join(&mut self, at: usize, input: &mut Input<'_>) {
        let Some(peer) = pick(&self.known[at].peers, input) else { return };
        let (name, how) = (name(input).to_owned(), input.u8());
        let attributes = vec![AttributeForm::default(); usize::from(how >> 3)];
        let params = JoinParams { attributes, ..JoinParams::default() };
        let joined = self.command(at, 4_096, Command::Join { peer, name, params });
        self.known[at].sessions.extend(joined.and_then(|done| done.session().ok()));
    }

    fn answer(&mut self, at: usize, input: &mut Input<'_>) {
        let how = input.u8();
        let Some((session, flows)) = pick(&self.known[at].offers, input) else { return };
        let mut ports: Vec<_> = flows.iter().map(|flow| Some(port(flow, false))).collect();
        match how & 7 {
            0 => drop(ports.pop()),
            1 => ports.iter_mut().for_each(|port| *port = None),
            2 => ports.reverse(),
            _ => self.known[at].offers.retain(|(id, _)| *id != session),
        }
        let answered = self.call(at, 4_096, |core, now| core.answer(now, session, ports));
        self.note(answered);
    }

    fn of_session(&mut self, at: usize, input: &mut Input<'_>) {
        let Some(id) = pick(&self.known[at].sessions, input) else { return };
        let (what, flow) = (input.u8() % 16, input.u8() % 6);
        let command = match what {
            0..=4 => Command::Activate(id),
            5 | 6 => Command::Deactivate(id),
            7 => Command::Close(id),
            8 => Command::CloseBecause(id, Error::new(Code::Refused, "enough")),
            9..=11 => Command::Change { session: id, flow: flow.into(), graph: graph(input) },
            12 => Command::GiveUpAfter(id, Duration::from_millis(u64::from(input.u16()))),
            _ => {
                let module = if what == 13 { 0xFFFF } else { u16::from(flow) };
                let payload = vec![what; usize::from(input.u16() % 5_000)];
                Command::Control { session: id, flow: flow.into(), module, payload }
            }
        };
        let len = if let Command::Control { payload, .. } = &command { payload.len() } else { 0 };
        self.command(at, len, command);
    }

    /// A unit past the source, and a look at everything.
    fn hand_over(&mut self, at: usize, input: &mut Input<'_>) {
        let Some(id) = pick(&self.known[at].sessions, input) else { return };
        let (flow, unit) = (usize::from(input.u8() % 6), vec![7; usize::from(input.u16() % 2_000)]);
        self.call(at, unit.len(), |core, now| {
            core.wake(now, id, flow);
            core.offer(now, id, flow, &unit, &mut Nobody);
            let flows = core.status(id).len();
            assert!(flows <= 64, "{flows} flows");
            _ = (core.has_backlog(id, flow), core.path_mtu(id));
        });
    }

    /// Lets time pass; what the cores report is noted.
    fn pass(&mut self, time: Duration) {
        self.world.run_for(time);
        for (at, node) in self.nodes.into_iter().enumerate() {
            while let Some(event) = self.world.poll_event(node) {
                self.hear(at, event);
            }
            let known = &mut self.known[at];
            known.peers.drain(..known.peers.len().saturating_sub(KNOWN_MAX));
            known.sessions.drain(..known.sessions.len().saturating_sub(KNOWN_MAX));
            known.offers.drain(..known.offers.len().saturating_sub(KNOWN_MAX));
        }
    }

    fn hear(&mut self, at: usize, event: CoreEvent) {
        let known = &mut self.known[at];
        let kind = match event {
            CoreEvent::PeerOpen { peer } => {
                known.peers.push(peer);
                "peer open"
            }
            CoreEvent::Offered { session, flows, .. } => {
                known.offers.push((session, flows));
                "offered"
            }
            CoreEvent::Ready { session } => {
                known.sessions.push(session);
                "ready"
            }
            CoreEvent::Active { .. } => "active",
            CoreEvent::Changed { .. } => "changed",
            CoreEvent::ChangeFailed { .. } => "change failed",
            CoreEvent::ControlAnswered { .. } => "answered",
            CoreEvent::FlowEnded { ledger, .. } => {
                assert!(ledger.closes(), "{ledger:?}");
                "flow ended"
            }
            CoreEvent::SessionEnded { .. } => "session ended",
            _ => return,
        };
        self.seen.insert(kind);
    }

    /// Everything ends, and nothing is left.
    pub fn finish(mut self) -> BTreeSet<&'static str> {
        for at in 0..self.nodes.len() {
            for name in NAMES {
                self.command(at, 0, Command::Unpublish(name.into()));
            }
            let open = |core: &mut Core, _| -> Vec<(SessionId, PeerId)> {
                core.sessions().map(|(id, _, peer)| (id, peer)).collect()
            };
            for (id, peer) in self.call(at, 0, open) {
                self.command(at, 0, Command::CloseBecause(id, Error::new(Code::Closed, "")));
                self.command(at, 0, Command::Disconnect(peer));
            }
            for peer in std::mem::take(&mut self.known[at].peers) {
                self.command(at, 0, Command::Disconnect(peer));
            }
        }
        // One of whom nobody knows any more has nothing, and is given up when it is silent.
        self.pass(Duration::from_secs(480));
        for node in self.nodes {
            let core = self.world.core(node);
            assert_eq!(core.sessions().count(), 0, "sessions are left at {node:?}");
            assert_eq!(core.pool().live_views(), 0, "views are left at {node:?}");
            assert_eq!(core.pool().stats().views_lost, 0, "a module has panicked at {node:?}");
        }
        // A core closes no stream of which it was told that it is closed.
        if !self.seen.contains(CLOSED_BY_A_LIE) {
            assert_eq!(self.world.stream_count(), 0, "streams are left");
        }
        self.seen
    }
}

fn pick<T: Clone>(all: &[T], input: &mut Input<'_>) -> Option<T> {
    pick_at(all, input.u8())
}

fn pick_at<T: Clone>(all: &[T], which: u8) -> Option<T> {
    all.get(usize::from(which) % all.len().max(1)).cloned()
}

fn name(input: &mut Input<'_>) -> &'static str {
    NAMES[usize::from(input.u8()) % NAMES.len()]
}

fn graph(input: &mut Input<'_>) -> GraphForm {
    let count = usize::from(input.u8() % 5);
    let nodes = (0..count).map(|_| match input.u8() {
        known @ 0..=0xEF => (1 + u16::from(known % 4), Vec::new()),
        more => (0xF000 + u16::from(more), vec![(1, u64::MAX)]),
    });
    GraphForm::line(nodes.collect::<Vec<_>>())
}

fn flow(number: u8, input: &mut Input<'_>) -> FlowOffer {
    let how = input.u8();
    let transport = [1, 1, 3, 10][usize::from(how & 3)];
    let direction = if how & 4 == 0 { Direction::ToParticipant } else { Direction::ToCreator };
    let asked = AttributeForm { key: u16::from(how >> 4), min: Some(1), ..<_>::default() };
    let attributes = if how & 8 == 0 { Vec::new() } else { vec![asked] };
    let name = if how == 0xFF { "same".into() } else { format!("flow-{number}") };
    let offer = ports::flow(&name, direction, &[], transport);
    let bound_bps = if transport == 10 { 1_000_000 } else { offer.bound_bps };
    FlowOffer { graph: graph(input), attributes, bound_bps, ..offer }
}

/// A script of commands.
pub fn commands(bytes: &[u8]) {
    play(bytes);
}

/// Plays a script and checks everything; what has happened on the way, by its kind.
///
/// # Panics
/// Something does not hold.
pub fn play(bytes: &[u8]) -> BTreeSet<&'static str> {
    let (mut scene, mut input) = (Scene::new(), Input(bytes));
    let mut steps = 0;
    while !input.is_empty() && steps < STEPS_MAX {
        scene.step(&mut input);
        steps += 1;
    }
    scene.finish()
}

/// Sessions in order, and with something odd in the middle.
pub fn commands_seeds() -> Vec<Vec<u8>> {
    let pass = |bits: u8| vec![108, bits];
    // Two flows by datagrams, `segment`, `sequence` and `checksum` each, one of them back.
    let served = vec![12, 0, 0, 2, 0, 3, 0, 1, 2, 4, 2, 0, 1, 0x20, 0];
    let connected = [vec![0x80, 1], pass(10)].concat();
    let joined = [vec![0x80 | 28, 0, 0, 0], pass(10), vec![0x80 | 48, 3, 0], pass(11)].concat();
    let of = |at: u8, what: u8, rest: &[u8]| [&[at | 64, 0, what, 0], rest].concat();
    let here = |what: u8, rest: &[u8]| of(0x80, what, rest);
    let there = |what: u8, rest: &[u8]| of(0, what, rest);
    let begun = [&served[..], &connected, &joined, &here(0, &[]), &pass(8)].concat();
    let closed = [here(7, &[]), pass(11)].concat();
    let change = [there(9, &[2, 0, 1]), pass(9)].concat();
    let mut seeds = vec![
        [&begun[..], &pass(8), &closed].concat(),
        [&begun[..], &change, &change, &closed].concat(),
        [&begun[..], &here(13, &[0, 40]), &there(14, &[19, 136]), &pass(10), &closed].concat(),
        [&begun[..], &here(5, &[]), &pass(8), &here(0, &[]), &pass(8), &there(8, &[])].concat(),
        [&begun[..], &here(12, &[0, 0]), &[0x80 | 8, 0, 0], &pass(12)].concat(),
        [&served[..], &connected, &[0x80 | 28, 0, 3, 0xFF, 0x80 | 8, 0, 1], &pass(11)].concat(),
        [&begun[..], &[104, 0, 0, 3, 232, 0x80 | 104, 0, 1, 0, 9], &pass(7), &closed].concat(),
    ];
    // Over streams, and once for several; a name that nobody has; nobody at the address.
    let streams = vec![12, 1, 0xC0, 2, 2, 0, 3, 0, 0, 0x20, 0];
    seeds.push([&streams[..], &connected, &[0x80 | 28, 0, 1, 0], &pass(10)].concat());
    seeds.push([&begun[..], &served, &[12, 0, 7, 0], &[0x80, 0xFF], &pass(12)].concat());
    seeds.push([&begun[..], &joined, &joined, &there(7, &[]), &closed].concat());
    seeds
}
