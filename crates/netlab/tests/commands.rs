//! Random commands in a random order: each is done, or refused with a reason; nothing panics,
//! stands still or is kept when all is over.
//!
//! A million in all; `DACAPO_COMMANDS` says how many of them each of eight pairs of cores gets.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, Opens, graph, ms, offer, offer_back, offer_tcp, pattern, pattern_ports};
use dacapo_base::seeds::{each_seed, number};
use dacapo_base::{Random, Time};
use dacapo_core::{
    Code, Command, CoreEvent, DialParams, Done, Error, JoinParams, PeerId, Port, SessionId,
    SessionSpec, StreamId, StreamWriter,
};
use dacapo_netlab::NodeId;
use dacapo_netlab::traffic::{Pattern, PatternSink, PatternSource};
use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::{Direction, FlowOffer};
use std::time::Duration;

const COMMANDS: u64 = 125_000;
const SEEDS: u64 = 8;
const NAMES: [&str; 4] = ["one", "two", "three", "no name!"];
const NOWHERE: &str = "192.0.2.9:9";

/// Carries no streams.
struct Nobody;

impl StreamWriter for Nobody {
    fn write_split(&mut self, _: Time, _: StreamId, _: &[u8], _: &[u8]) -> bool {
        false
    }
}

/// What a node has been told, old and new.
#[derive(Default)]
struct Known {
    peers: Vec<PeerId>,
    sessions: Vec<SessionId>,
    offers: Vec<(SessionId, Vec<FlowOffer>)>,
}

struct Chaos {
    lab: Lab,
    random: Random,
    known: [Known; 2],
    done: u64,
    refused: u64,
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut lab = Lab::new("delay=2ms,jitter=1ms,loss=1%");
        lab.pattern = units();
        let known = [Known::default(), Known::default()];
        Self { lab, random: Random::from_number(seed), known, done: 0, refused: 0 }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound.max(1) as u64) as usize
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let at = self.below(all.len());
        all.get(at).copied()
    }

    fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => {
                self.done += 1;
                Some(value)
            }
            Err(error) => {
                assert!(!error.to_string().is_empty() && error.code != Code::Internal, "{error}");
                self.refused += 1;
                None
            }
        }
    }

    fn graph(&mut self) -> GraphForm {
        match self.below(6) {
            0 => graph(&[]),
            1 => graph(&["sequence"]),
            2 => graph(&["segment", "sequence", "checksum"]),
            3 => graph(&["checksum", "segment"]),
            4 => GraphForm::line((0..3).map(|at| (0xF000 + at, vec![(1, u64::MAX)]))),
            _ => graph(&["sequence", "checksum"]),
        }
    }

    fn flows(&mut self) -> Vec<FlowOffer> {
        let count = self.below(5);
        let flow = |it: &mut Self| {
            let mut flow = match it.below(4) {
                0 => offer_back("back", &["sequence"]),
                1 => offer_tcp("stream", &[]),
                2 => FlowOffer { transport: 10, ..offer("all", &["sequence"]) },
                _ => FlowOffer { graph: it.graph(), ..offer("flow", &[]) },
            };
            let asked = AttributeForm { key: it.below(16) as u16, min: Some(1), ..<_>::default() };
            flow.attributes = vec![asked];
            flow
        };
        (0..count).map(|_| flow(self)).collect()
    }

    /// One command to one of the cores.
    fn command(&mut self) {
        let at = self.below(2);
        let node = [self.lab.creator, self.lab.participant][at];
        match self.below(16) {
            0 | 1 => self.dial(at, node),
            2..=5 => self.serve_or_join(at, node),
            6 | 7 => self.answer(at, node),
            _ => self.in_session(at, node),
        }
    }

    fn dial(&mut self, at: usize, node: NodeId) {
        let now = self.lab.now();
        let address = if self.random.chance(0.8) {
            self.lab.world.address(self.lab.creator)
        } else {
            NOWHERE.parse().unwrap()
        };
        let peer = self.pick(&self.known[at].peers.clone());
        match (self.below(8), peer) {
            (0, Some(peer)) => self
                .lab
                .world
                .core(node)
                .handle_command(now, Command::Disconnect(peer))
                .map(drop)
                .unwrap(),
            (1 | 2, Some(peer)) => {
                let listed = self.lab.world.core(node).handle_command(now, Command::List(peer));
                self.note(listed);
            }
            _ if at == 0 => {}
            _ => {
                let params = DialParams { wait: Some(Duration::from_secs(3)) };
                let dialed = self
                    .lab
                    .world
                    .core(node)
                    .handle_command(now, Command::Connect { remote: address.into(), params })
                    .and_then(Done::peer);
                let peer = self.note(dialed);
                self.known[at].peers.extend(peer);
            }
        }
    }

    fn serve_or_join(&mut self, at: usize, node: NodeId) {
        let now = self.lab.now();
        let name = NAMES[self.below(NAMES.len())];
        match self.below(6) {
            0 => self
                .lab
                .world
                .core(node)
                .handle_command(now, Command::Unpublish(name.into()))
                .map(drop)
                .unwrap(),
            1 | 2 => {
                let spec = SessionSpec {
                    name: name.into(),
                    title: "Chaos".into(),
                    flows: self.flows(),
                    participants_max: 1 + self.below(4),
                    give_up_after: ms(self.random.below(5_000)),
                };
                let fails = self.random.chance(0.1);
                let opens = Opens(move |flow: &FlowOffer| open(flow, fails));
                let published = self.lab.world.core(node).publish(spec, Box::new(opens));
                self.note(published);
            }
            _ => {
                let Some(peer) = self.pick(&self.known[at].peers.clone()) else { return };
                let attributes = vec![AttributeForm::default(); self.below(40)];
                let params = JoinParams { attributes, ..JoinParams::default() };
                let joined = self
                    .lab
                    .world
                    .core(node)
                    .handle_command(now, Command::Join { peer, name: name.into(), params })
                    .and_then(Done::session);
                let session = self.note(joined);
                self.known[at].sessions.extend(session);
            }
        }
    }

    fn answer(&mut self, at: usize, node: NodeId) {
        let now = self.lab.now();
        let index = self.below(self.known[at].offers.len());
        let Some((session, flows)) = self.known[at].offers.get(index).cloned() else { return };
        let (mut ports, _) = pattern_ports(units(), &flows);
        match self.below(5) {
            0 => drop(ports.pop()),
            1 => ports.iter_mut().for_each(|port| *port = None),
            2 => ports.reverse(),
            _ => drop(self.known[at].offers.remove(index)),
        }
        let answered = self.lab.world.core(node).answer(now, session, ports);
        self.note(answered);
    }

    fn in_session(&mut self, at: usize, node: NodeId) {
        let now = self.lab.now();
        let mut sessions = self.known[at].sessions.clone();
        sessions.extend(self.lab.world.core(node).sessions().map(|(id, ..)| id));
        let Some(id) = self.pick(&sessions) else { return };
        let (flow, len) = (self.below(5), self.below(5_000));
        let (graph, bytes) = (self.graph(), vec![7; len]);
        let what = self.below(12);
        let core = self.lab.world.core(node);
        let command = match what {
            0..=2 => Command::Activate(id),
            3 => Command::Deactivate(id),
            4 => Command::Close(id),
            5 => Command::CloseBecause(id, Error::new(Code::Refused, "chaos")),
            6 => Command::Change { session: id, flow, graph },
            7 => Command::GiveUpAfter(id, ms(len as u64)),
            8 | 9 => {
                let module = if what == 8 { 0xFFFF } else { flow as u16 };
                Command::Control { session: id, flow: flow as u16, module, payload: bytes }
            }
            10 => {
                core.wake(now, id, flow);
                core.offer(now, id, flow, &bytes, &mut Nobody);
                return self.done += 1;
            }
            _ => {
                let seen = (core.status(id).len(), core.has_backlog(id, flow), core.path_mtu(id));
                assert!(seen.0 <= 64, "{seen:?}");
                return self.done += 1;
            }
        };
        let result = core.handle_command(now, command);
        self.note(result);
    }

    /// What the cores have reported is noted and forgotten.
    fn listen(&mut self) {
        for (node, _, event) in std::mem::take(&mut self.lab.log) {
            let known = &mut self.known[usize::from(node == self.lab.participant)];
            match event {
                CoreEvent::PeerOpen { peer } => known.peers.push(peer),
                CoreEvent::Offered { session, flows, .. } => known.offers.push((session, flows)),
                CoreEvent::Ready { session } => known.sessions.push(session),
                _ => {}
            }
            // Old ones are asked for too, but not all that ever were.
            known.peers.drain(..known.peers.len().saturating_sub(20));
            known.sessions.drain(..known.sessions.len().saturating_sub(40));
            known.offers.drain(..known.offers.len().saturating_sub(10));
        }
    }

    /// Everything ends; nothing may be left.
    fn end(mut self) -> (u64, u64) {
        for node in [self.lab.creator, self.lab.participant] {
            let now = self.lab.now();
            let core = self.lab.world.core(node);
            NAMES.into_iter().for_each(|name| {
                core.handle_command(now, Command::Unpublish(name.into())).map(drop).unwrap()
            });
            let sessions: Vec<_> = core.sessions().map(|(id, _, peer)| (id, peer)).collect();
            for (id, peer) in sessions {
                // With the first session of a peer all of them go.
                let closed = core
                    .handle_command(now, Command::CloseBecause(id, Error::new(Code::Closed, "")));
                assert!(closed.is_ok() || core.sessions().all(|(it, ..)| it != id), "{closed:?}");
                core.handle_command(now, Command::Disconnect(peer)).map(drop).unwrap();
            }
        }
        for at in 0..2 {
            let node = [self.lab.creator, self.lab.participant][at];
            let now = self.lab.now();
            for peer in std::mem::take(&mut self.known[at].peers) {
                _ = self
                    .lab
                    .world
                    .core(node)
                    .handle_command(now, Command::Disconnect(peer))
                    .unwrap();
            }
        }
        self.lab.run(ms(60_000));
        for node in [self.lab.creator, self.lab.participant] {
            let core = self.lab.world.core(node);
            assert_eq!(core.sessions().count(), 0, "{node:?}");
            assert_eq!(core.pool().live_views(), 0, "{node:?}");
            assert_eq!(core.connection_count(), 0, "{node:?}");
        }
        (self.done, self.refused)
    }
}

fn units() -> Pattern {
    Pattern { every: ms(3), ..pattern(200) }
}

fn open(flow: &FlowOffer, fails: bool) -> Result<Port, String> {
    match flow.direction {
        _ if fails => Err("it does not open".into()),
        Direction::ToParticipant => Ok(Port::Source(Box::new(PatternSource::new(units())))),
        Direction::ToCreator => Ok(Port::Sink(Box::new(PatternSink::new(units()).0))),
    }
}

#[test]
fn random_commands_are_done_or_refused_and_leave_nothing() {
    let count = number("DACAPO_COMMANDS", COMMANDS);
    each_seed(0..number("DACAPO_SEEDS", SEEDS).min(SEEDS), |seed| {
        let mut chaos = Chaos::new(seed);
        for _ in 0..count {
            chaos.command();
            if chaos.random.chance(0.3) {
                let time = chaos.random.below(8);
                chaos.lab.run(ms(time));
                chaos.listen();
            }
        }
        let (done, refused) = chaos.end();
        assert!(done > count / 20 && refused > count / 20, "seed {seed}: {done}, {refused}");
    });
}
