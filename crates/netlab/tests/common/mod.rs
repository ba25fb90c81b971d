//! Two cores (or more) driven by hand: what each reports is kept, and the clock moves step by step.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod cast;
pub mod places;
pub mod raw;

use dacapo_base::Time;
use dacapo_core::{
    Code, Command, CoreConfig, CoreEvent, DialParams, Done, Error, GIVE_UP_AFTER, JoinParams,
    JoinRequest, Ledger, PeerId, Port, SessionId, SessionProvider, SessionSpec,
};
use dacapo_lift::Catalogue;
use dacapo_netlab::scenario::raw_offer;
use dacapo_netlab::traffic::{Pattern, PatternSink, PatternSource, Seen};
use dacapo_netlab::{NodeId, World, catalogue};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::{Direction, FlowOffer};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A short name for durations.
pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The usual units: small ones, a millisecond apart.
pub fn pattern(count: u64) -> Pattern {
    Pattern { count, every: ms(1), len_min: 16, len_max: 300, seed: 7 }
}

/// The modules that exist, without the one of this name.
pub fn catalogue_without(name: &str) -> Catalogue {
    let all = catalogue();
    let unwanted = all.by_name(name).map(|entry| entry.spec.id);
    all.only(|id| Some(id) != unwanted, |_| true)
}

/// The configuration of a node: everything there is, and one boot, so that the clocks are one.
pub fn config() -> CoreConfig {
    let mut config = CoreConfig::new(catalogue());
    config.boot = [1; 16];
    config.pool_bytes_max = 64 << 20;
    config
}

/// A graph of modules by their names.
pub fn graph(names: &[&str]) -> GraphForm {
    let catalogue = catalogue();
    GraphForm::line(names.iter().map(|name| {
        let entry = catalogue.by_name(name).expect("the test's modules exist");
        (entry.spec.id, Vec::new())
    }))
}

/// The offer of a flow that everything can be changed in.
pub fn offer(name: &str, names: &[&str]) -> FlowOffer {
    raw_offer(name, graph(names), 100_000_000, 400)
}

/// The same, over a stream.
pub fn offer_tcp(name: &str, names: &[&str]) -> FlowOffer {
    FlowOffer { transport: 3, bound_bps: 0, ..offer(name, names) }
}

/// The same, from the participant to the creator.
pub fn offer_back(name: &str, names: &[&str]) -> FlowOffer {
    FlowOffer { direction: Direction::ToCreator, ..offer(name, names) }
}

/// The usual flow.
pub fn plain() -> Vec<FlowOffer> {
    vec![offer("flow", &["segment", "sequence", "checksum"])]
}

/// Pattern ports for the participant's end, and what its sinks see.
pub fn pattern_ports(
    pattern: Pattern,
    flows: &[FlowOffer],
) -> (Vec<Option<Port>>, Vec<Option<Seen>>) {
    let port = |flow: &FlowOffer| match flow.direction {
        Direction::ToParticipant => {
            let (sink, seen) = PatternSink::new(pattern);
            (Some(Port::Sink(Box::new(sink))), Some(seen))
        }
        Direction::ToCreator => (Some(Port::Source(Box::new(PatternSource::new(pattern)))), None),
    };
    flows.iter().map(port).unzip()
}

/// Opens access modules by a function.
pub struct Opens<F>(pub F);

impl<F: FnMut(&FlowOffer) -> Result<Port, String> + Send> SessionProvider for Opens<F> {
    fn open(&mut self, flow: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        (self.0)(flow)
    }
}

/// The sinks that a creator has opened, in order.
pub type Sinks = Arc<Mutex<Vec<Seen>>>;

/// A session at both ends.
#[derive(Clone, Debug)]
pub struct Joined {
    pub here: SessionId,
    pub there: SessionId,
    /// What the participant's sinks have seen, flow by flow.
    pub seen: Vec<Option<Seen>>,
}

impl Joined {
    pub fn numbers(&self, flow: usize) -> Vec<u64> {
        self.seen[flow].as_ref().expect("a sink").record().numbers.clone()
    }
}

/// A world of a creator and a participant, and everything they reported.
pub struct Lab {
    pub world: World,
    pub creator: NodeId,
    pub participant: NodeId,
    pub log: Vec<(NodeId, Time, CoreEvent)>,
    pub pattern: Pattern,
    pub sinks: Sinks,
    /// How long contact may be lost in the sessions that are published from now on.
    pub give_up_after: Duration,
    /// How many participants such a session takes.
    pub participants_max: usize,
    node_count: usize,
}

impl Lab {
    pub fn new(link: &str) -> Self {
        Self::with(1, link, config(), config())
    }

    pub fn with(seed: u64, link: &str, creator: CoreConfig, participant: CoreConfig) -> Self {
        let mut world = World::new(seed, link.parse().expect("the test's link is valid"));
        let creator = world.add(creator);
        let participant = world.add(participant);
        world.dials(participant);
        let (log, sinks) = (Vec::new(), Sinks::default());
        let (pattern, node_count) = (pattern(1_000), 2);
        let give_up_after = GIVE_UP_AFTER;
        Self {
            world,
            creator,
            participant,
            log,
            pattern,
            sinks,
            give_up_after,
            participants_max: 100,
            node_count,
        }
    }

    pub fn now(&self) -> Time {
        self.world.now()
    }

    /// One jump of the clock, at most to `until`.
    fn step(&mut self, until: Time) {
        let mut begun = false;
        self.world.run(until, |_| std::mem::replace(&mut begun, true));
        self.collect();
    }

    fn collect(&mut self) {
        for node in self.nodes() {
            while let Some(event) = self.world.poll_event(node) {
                self.log.push((node, self.world.now(), event));
            }
        }
    }

    fn nodes(&self) -> Vec<NodeId> {
        (0..self.node_count).map(NodeId).collect()
    }

    /// Another participant beside the first; make it `participant` to let it act.
    pub fn add_participant(&mut self) -> NodeId {
        let node = self.world.add(config());
        self.world.dials(node);
        self.node_count += 1;
        node
    }

    /// Runs until `done`, at most this long; true when it was done.
    pub fn wait(&mut self, most: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let until = self.now() + most;
        loop {
            self.collect();
            if done(self) {
                return true;
            }
            if self.now() >= until {
                return false;
            }
            self.step(until);
        }
    }

    pub fn run(&mut self, time: Duration) {
        self.wait(time, |_| false);
    }

    /// Runs until a node has reported something, counted from the beginning; what and when.
    pub fn expect<T>(
        &mut self,
        node: NodeId,
        most: Duration,
        mut pick: impl FnMut(&CoreEvent) -> Option<T>,
    ) -> (Time, T) {
        let mut found = None;
        let came = self.wait(most, |lab| {
            found = lab.find(node, &mut pick);
            found.is_some()
        });
        assert!(came, "{node:?} did not report it in {most:?}; it reported {:#?}", self.log);
        found.expect("it came")
    }

    /// The first report of a node that `pick` takes.
    pub fn find<T>(
        &self,
        node: NodeId,
        mut pick: impl FnMut(&CoreEvent) -> Option<T>,
    ) -> Option<(Time, T)> {
        let of_node = self.log.iter().filter(|(at, ..)| *at == node);
        of_node.filter_map(|(_, when, event)| pick(event).map(|it| (*when, it))).next()
    }

    pub fn count(&self, node: NodeId, mut pick: impl FnMut(&CoreEvent) -> bool) -> usize {
        self.log.iter().filter(|(at, _, event)| *at == node && pick(event)).count()
    }

    /// Serves a session of these flows, with pattern sources and sinks.
    pub fn publish(&mut self, name: &str, flows: Vec<FlowOffer>) {
        let (pattern, sinks) = (self.pattern, self.sinks.clone());
        self.publish_with(name, flows, move |flow| {
            Ok(match flow.direction {
                Direction::ToParticipant => Port::Source(Box::new(PatternSource::new(pattern))),
                Direction::ToCreator => {
                    let (sink, seen) = PatternSink::new(pattern);
                    sinks.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
                    Port::Sink(Box::new(sink))
                }
            })
        });
    }

    pub fn publish_with(
        &mut self,
        name: &str,
        flows: Vec<FlowOffer>,
        open: impl FnMut(&FlowOffer) -> Result<Port, String> + Send + 'static,
    ) {
        let spec = SessionSpec {
            name: name.into(),
            title: "A test".into(),
            flows,
            participants_max: self.participants_max,
            give_up_after: self.give_up_after,
        };
        let served = self.world.core(self.creator).publish(spec, Box::new(Opens(open)));
        served.expect("the test's session is valid");
    }

    /// Connects and waits until the peer answers.
    pub fn dial(&mut self) -> PeerId {
        let (now, address) = (self.now(), self.world.address(self.creator));
        let peer = self
            .world
            .core(self.participant)
            .handle_command(
                now,
                Command::Connect { remote: address.into(), params: DialParams::default() },
            )
            .and_then(Done::peer)
            .expect("room");
        let (_, ()) = self.expect(self.participant, ms(10_000), |event| {
            matches!(event, CoreEvent::PeerOpen { peer: open } if *open == peer).then_some(())
        });
        peer
    }

    pub fn join(&mut self, peer: PeerId, name: &str) -> SessionId {
        let now = self.now();
        let wishes = JoinParams::default();
        self.world
            .core(self.participant)
            .handle_command(now, Command::Join { peer, name: name.into(), params: wishes })
            .and_then(Done::session)
            .expect("the peer is open")
    }

    /// Waits for the offer of a session.
    pub fn offered(&mut self, session: SessionId) -> Vec<FlowOffer> {
        let offered = |event: &CoreEvent| match event {
            CoreEvent::Offered { session: id, flows, .. } if *id == session => Some(flows.clone()),
            _ => None,
        };
        self.expect(self.participant, ms(10_000), offered).1
    }

    /// Pattern ports for the participant's end.
    pub fn ports(&self, flows: &[FlowOffer]) -> (Vec<Option<Port>>, Vec<Option<Seen>>) {
        pattern_ports(self.pattern, flows)
    }

    /// Answers an offer with pattern ports.
    pub fn answer(&mut self, here: SessionId, flows: &[FlowOffer]) -> Vec<Option<Seen>> {
        let (now, (ports, seen)) = (self.now(), self.ports(flows));
        self.world.core(self.participant).answer(now, here, ports).expect("an offer waits");
        seen
    }

    /// Joins, answers and waits until both ends are ready.
    pub fn set_up(&mut self, peer: PeerId, name: &str) -> Joined {
        self.set_up_as(peer, name, |_| ())
    }

    /// The same with ports that `adapt` has changed.
    pub fn set_up_as(
        &mut self,
        peer: PeerId,
        name: &str,
        adapt: impl FnOnce(&mut [Option<Port>]),
    ) -> Joined {
        let here = self.join(peer, name);
        let flows = self.offered(here);
        let known = self.count(self.creator, |event| matches!(event, CoreEvent::Ready { .. }));
        let (now, (mut ports, seen)) = (self.now(), self.ports(&flows));
        adapt(&mut ports);
        self.world.core(self.participant).answer(now, here, ports).expect("an offer waits");
        let there = self.ready(here, known);
        Joined { here, there, seen }
    }

    /// Waits until both ends are ready; the session at the creator, which has been ready so many
    /// times before.
    pub fn ready(&mut self, here: SessionId, known: usize) -> SessionId {
        self.expect(self.participant, ms(15_000), |event| {
            matches!(event, CoreEvent::Ready { session } if *session == here).then_some(())
        });
        let there = self.log.iter().filter(|(at, ..)| *at == self.creator);
        let mut there = there.filter_map(|(_, _, event)| match event {
            CoreEvent::Ready { session } => Some(*session),
            _ => None,
        });
        there.nth(known).expect("the creator is ready first")
    }

    pub fn activate(&mut self, here: SessionId) {
        let known = self.count(self.participant, active(here));
        self.command(self.participant, Command::Activate(here)).expect("it is ready");
        let done = self.wait(ms(10_000), |lab| lab.count(lab.participant, active(here)) > known);
        assert!(done, "not active in 10 s");
    }

    /// Everything up to running flows, over one link.
    pub fn start(&mut self, flows: Vec<FlowOffer>) -> Joined {
        self.publish("test", flows);
        let peer = self.dial();
        let joined = self.set_up(peer, "test");
        self.activate(joined.here);
        joined
    }

    /// One of the commands of an application, now.
    pub fn command(&mut self, node: NodeId, command: Command) -> Result<Done, Error> {
        let now = self.now();
        self.world.core(node).handle_command(now, command)
    }

    pub fn close(&mut self, node: NodeId, session: SessionId) {
        self.command(node, Command::Close(session)).expect("the session is there");
    }

    /// The end of a session at a node: when, and why.
    pub fn ended(&self, node: NodeId, session: SessionId) -> Option<(Time, Option<Error>)> {
        self.find(node, |event| match event {
            CoreEvent::SessionEnded { session: id, error } if *id == session => Some(error.clone()),
            _ => None,
        })
    }

    /// Waits for the end of a session at a node.
    pub fn end_of(
        &mut self,
        node: NodeId,
        session: SessionId,
        most: Duration,
    ) -> (Time, Option<Error>) {
        let came = self.wait(most, |lab| lab.ended(node, session).is_some());
        assert!(came, "{session:?} did not end at {node:?} in {most:?}: {:#?}", self.log);
        self.ended(node, session).expect("it came")
    }

    pub fn ends(&self, node: NodeId, session: SessionId) -> usize {
        self.count(
            node,
            |event| matches!(event, CoreEvent::SessionEnded { session: id, .. } if *id == session),
        )
    }

    /// The account of a flow at a node.
    pub fn ledger(&self, node: NodeId, session: SessionId, flow: usize) -> Option<Ledger> {
        let ledger = self.find(node, |event| match event {
            CoreEvent::FlowEnded { session: id, flow: at, ledger, .. }
                if *id == session && *at == flow =>
            {
                Some(ledger.clone())
            }
            _ => None,
        });
        ledger.map(|(_, ledger)| *ledger)
    }

    /// Both accounts of a flow, once they are there.
    pub fn ledgers(&mut self, joined: &Joined, flow: usize, most: Duration) -> (Ledger, Ledger) {
        let (here, there) = ((self.participant, joined.here), (self.creator, joined.there));
        let came = self.wait(most, |lab| {
            lab.ledger(here.0, here.1, flow).is_some()
                && lab.ledger(there.0, there.1, flow).is_some()
        });
        assert!(came, "flow {flow} was not accounted for in {most:?}: {:#?}", self.log);
        let ledger = |(node, session)| self.ledger(node, session, flow).expect("it came");
        (ledger(here), ledger(there))
    }

    /// Views that are out at both ends.
    pub fn views(&mut self) -> usize {
        let nodes = self.nodes();
        nodes.into_iter().map(|node| self.world.core(node).pool().live_views()).sum()
    }

    /// Nothing is left of any session: no session, no view, no event of a session nobody knows.
    pub fn check_empty(&mut self) {
        self.run(ms(500));
        for node in self.nodes() {
            assert_eq!(self.world.core(node).sessions().count(), 0, "sessions left at {node:?}");
            self.check_ends(node);
        }
        assert_eq!(self.views(), 0, "views left");
        assert_eq!(self.world.stream_count(), 0, "connections of flows left");
    }

    /// Each session that was ever reported ended exactly once, and nothing came after its end.
    fn check_ends(&self, node: NodeId) {
        let mut over = Vec::new();
        for (_, when, event) in self.log.iter().filter(|(at, ..)| *at == node) {
            let Some(session) = session_of(event) else { continue };
            assert!(!over.contains(&session), "{node:?}, {when:?}: {event:?} after the end");
            if matches!(event, CoreEvent::SessionEnded { .. }) {
                over.push(session);
            }
        }
    }
}

fn active(here: SessionId) -> impl FnMut(&CoreEvent) -> bool {
    move |event| matches!(event, CoreEvent::Active { session } if *session == here)
}

/// The session that an event is about.
pub fn session_of(event: &CoreEvent) -> Option<SessionId> {
    match event {
        CoreEvent::Offered { session, .. }
        | CoreEvent::Ready { session }
        | CoreEvent::Active { session }
        | CoreEvent::Inactive { session }
        | CoreEvent::ContactLost { session }
        | CoreEvent::ContactRestored { session, .. }
        | CoreEvent::PathMtuChanged { session, .. }
        | CoreEvent::PathHeld { session, .. }
        | CoreEvent::Fallback { session, .. }
        | CoreEvent::FlowEnded { session, .. }
        | CoreEvent::FlowFailed { session, .. }
        | CoreEvent::Changed { session, .. }
        | CoreEvent::ChangeFailed { session, .. }
        | CoreEvent::ControlAnswered { session, .. }
        | CoreEvent::SessionEnded { session, .. } => Some(*session),
        _ => None,
    }
}

/// The code of an end, for comparisons.
pub fn code(end: &(Time, Option<Error>)) -> Option<Code> {
    end.1.as_ref().map(|error| error.code)
}
