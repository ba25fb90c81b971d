//! How a [`Trial`] is run: what both applications do, and when which fault happens.

use super::{Carrier, EachWay, End, Fault, FlowOutcome, FlowPlan, Outcome, Stages, Trial};
use crate::scenario::{UnitOnLink, raw_offer, watch_units};
use crate::traffic::{PatternSink, PatternSource, Seen};
use crate::{NodeId, Trace, World};
use dacapo_base::Time;
use dacapo_core::{
    Command, CoreConfig, CoreEvent, DialParams, Done, JoinParams, JoinRequest, Ledger, PeerId,
    Port, SessionId, SessionProvider, SessionSpec,
};
use dacapo_lift::{Catalogue, DropReason};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::{Direction, FlowOffer};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The name under which the session is served.
const NAME: &str = "trial";

/// After the close everything is over within this time: the answer's watchdog, and some.
const CLOSE_MAX: Duration = Duration::from_secs(12);

/// When connections must be gone after the end: an end that does not hear the goodbye gives up
/// after at most five minutes without life.
const CLEAR_MAX: Duration = Duration::from_secs(330);

type Sinks = Arc<Mutex<Vec<Option<Seen>>>>;
type Units = Arc<Mutex<BTreeMap<u64, UnitOnLink>>>;

/// The creator's access modules.
struct Serves {
    flows: Vec<FlowPlan>,
    sinks: Sinks,
}

impl SessionProvider for Serves {
    fn open(&mut self, offer: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        let place: usize = offer.name.parse().map_err(|_| "a flow that is not served")?;
        let flow = self.flows.get(place).ok_or("a flow that is not served")?;
        Ok(port(flow, Direction::ToParticipant, place, &self.sinks))
    }
}

/// A source where this end sends, else a sink whose record is kept.
fn port(flow: &FlowPlan, sends: Direction, place: usize, sinks: &Sinks) -> Port {
    if flow.direction == sends {
        return Port::Source(Box::new(PatternSource::new(flow.pattern)));
    }
    let (sink, seen) = PatternSink::new(flow.pattern);
    if let Some(kept) = sinks.lock().unwrap_or_else(PoisonError::into_inner).get_mut(place) {
        *kept = Some(seen);
    }
    Port::Sink(Box::new(sink))
}

struct Run<'a> {
    trial: &'a Trial,
    nodes: [NodeId; 2],
    sinks: Sinks,
    peer: Option<PeerId>,
    /// The session's number at each end.
    session: [Option<SessionId>; 2],
    begun: Time,
    running: Option<Time>,
    from_start: VecDeque<(Duration, Fault)>,
    from_running: VecDeque<(Duration, Fault)>,
    next_change: Time,
    changes_left: u32,
    /// The creator's number for the participant of the session.
    served: Option<PeerId>,
    /// The participant is done with the creator.
    goodbye: bool,
    outcome: Outcome,
}

/// Runs a trial to its end.
///
/// # Panics
/// When the trial itself is not valid: a link, graph or length that cannot be.
#[must_use]
pub fn run(trial: &Trial) -> Outcome {
    let (mut world, mut run) = begin(trial);
    let units = Units::default();
    if let ([flow], true) = (&trial.flows[..], trial.exact) {
        let names = flow.graphs[0].iter();
        let specs = names.filter_map(|name| Some(trial.catalogue.by_name(name)?.spec));
        watch_units(&mut world, run.nodes[0], specs, &units);
    }
    run.connect(&mut world);
    run.whole(&mut world);
    run.finish(&mut world, &units)
}

/// Runs a trial until both ends are ready or the participant is told that they will not be, at most
/// for `time_max`: when what was reached.
///
/// # Panics
/// As [`run`].
#[must_use]
pub fn set_up(trial: &Trial) -> Stages {
    let (mut world, mut run) = begin(trial);
    run.connect(&mut world);
    run.go(&mut world, trial.time_max, |run| {
        let stages = &run.outcome.stages;
        stages.failed.or(stages.ready.and(stages.creator_ready)).is_some()
    });
    run.outcome.stages
}

/// A world in which nothing has happened yet.
fn begin(trial: &Trial) -> (World, Run<'_>) {
    let mut world = World::new(trial.seed, trial.links.to_participant.clone());
    let creator = world.add(config(trial));
    let participant = world.add(config(trial));
    world.dials(participant);
    world.relink(participant, creator, trial.links.to_creator.clone());
    world.relink(creator, participant, trial.links.to_participant.clone());
    let sinks = Sinks::new(Mutex::new(vec![None; trial.flows.len()]));
    let serves = Serves { flows: trial.flows.clone(), sinks: sinks.clone() };
    let spec = SessionSpec {
        name: NAME.into(),
        title: "A trial".into(),
        flows: offers(trial),
        participants_max: 1,
        give_up_after: dacapo_core::GIVE_UP_AFTER,
    };
    world.core(creator).publish(spec, Box::new(serves)).expect("the trial's session is valid");
    let run = Run {
        trial,
        nodes: [creator, participant],
        sinks,
        peer: None,
        session: [None; 2],
        begun: world.now(),
        running: None,
        from_start: trial.from_start.iter().cloned().collect(),
        from_running: trial.from_running.iter().cloned().collect(),
        next_change: Time::NEVER,
        changes_left: trial.changes,
        served: None,
        goodbye: false,
        outcome: empty(trial, &mut world, [creator, participant]),
    };
    (world, run)
}

fn config(trial: &Trial) -> CoreConfig {
    let mut config = CoreConfig::new(trial.catalogue.clone());
    config.boot = [1; 16];
    config.pool_bytes_max = 64 << 20;
    config
}

fn form(catalogue: &Catalogue, names: &[&'static str]) -> GraphForm {
    GraphForm::line(names.iter().map(|name| {
        let entry = catalogue.by_name(name).expect("the trial's modules exist");
        (entry.spec.id, Vec::new())
    }))
}

fn offers(trial: &Trial) -> Vec<FlowOffer> {
    let offer = |(place, flow): (usize, &FlowPlan)| {
        let graph = form(&trial.catalogue, &flow.graphs[0]);
        let longest = flow.pattern.len_max as u32 + 16;
        let offer = raw_offer(&place.to_string(), graph, flow.bound_bps, longest);
        let transport = if flow.carrier == Carrier::Tcp { 3 } else { offer.transport };
        FlowOffer { direction: flow.direction, transport, ..offer }
    };
    trial.flows.iter().enumerate().map(offer).collect()
}

fn empty(trial: &Trial, world: &mut World, nodes: [NodeId; 2]) -> Outcome {
    Outcome {
        stages: Stages::default(),
        flows: vec![FlowOutcome::default(); trial.flows.len()],
        ended: [None, None],
        ends: [0; 2],
        lost: [None, None],
        settled: false,
        changes: (0, 0, 0),
        links: EachWay {
            to_participant: world.link_stats(nodes[0], nodes[1]),
            to_creator: world.link_stats(nodes[1], nodes[0]),
        },
        units: BTreeMap::new(),
        dropped: (0, 0),
        amplification: 0.0,
        left: [0; 4],
        cleared_after: None,
        killed: [false; 2],
        trace: Trace::default(),
    }
}

impl Run<'_> {
    fn connect(&mut self, world: &mut World) {
        self.act(world);
        let address = world.address(self.nodes[0]);
        let local = world.local(self.nodes[1]);
        let peer = world
            .core(self.nodes[1])
            .handle_command(
                local,
                Command::Connect { remote: address.into(), params: DialParams::default() },
            )
            .and_then(Done::peer);
        self.peer = Some(peer.expect("a world has room for a peer"));
    }

    /// Join, run, close, say goodbye.
    fn whole(&mut self, world: &mut World) {
        let time_max = self.trial.time_max;
        self.go(world, time_max, |run| run.is_settled() || run.is_over());
        self.outcome.settled = self.is_settled();
        // The world heals: what the faults left must be cleared away.
        self.note_modules(world);
        let ends = [(1, self.session[1]), (0, self.session[0])];
        let alive = ends.into_iter().find(|(end, _)| !self.outcome.killed[*end]);
        if let Some((end, Some(session))) = alive {
            let local = world.local(self.nodes[end]);
            // It may have ended meanwhile; that is reported.
            let _ = world.core(self.nodes[end]).handle_command(local, Command::Close(session));
        }
        self.go(world, CLOSE_MAX, |run| run.is_over());
        if let (Some(peer), false) = (self.peer, self.outcome.killed[1]) {
            self.goodbye = true;
            let local = world.local(self.nodes[1]);
            let _ = world.core(self.nodes[1]).handle_command(local, Command::Disconnect(peer));
        }
    }

    /// Runs for at most this long, with all faults, until `done`.
    fn go(&mut self, world: &mut World, most: Duration, done: fn(&Run<'_>) -> bool) {
        let until = world.now() + most;
        loop {
            let next = self.next_due().min(until);
            let over = world.run(next, |world| {
                self.handle_events(world);
                done(self) || self.next_due() < next
            });
            if done(self) || (world.now() >= until && !over) {
                return;
            }
            self.act(world);
            if world.now() >= until {
                return;
            }
        }
    }

    /// When the next fault or change is due.
    fn next_due(&self) -> Time {
        let start = self.from_start.front().map(|(after, _)| self.begun + *after);
        let running = self.running.zip(self.from_running.front());
        let running = running.map(|(running, (after, _))| running + *after);
        let change = Some(self.next_change);
        [start, running, change].into_iter().flatten().min().unwrap_or(Time::NEVER)
    }

    fn act(&mut self, world: &mut World) {
        let now = world.now();
        while self.from_start.front().is_some_and(|(after, _)| self.begun + *after <= now) {
            let fault = self.from_start.pop_front();
            fault.into_iter().for_each(|(_, fault)| self.apply(world, fault));
        }
        let Some(running) = self.running else { return };
        while self.from_running.front().is_some_and(|(after, _)| running + *after <= now) {
            let fault = self.from_running.pop_front();
            fault.into_iter().for_each(|(_, fault)| self.apply(world, fault));
        }
        if self.next_change <= now {
            self.change(world);
        }
    }

    fn apply(&mut self, world: &mut World, fault: Fault) {
        let [creator, participant] = self.nodes;
        let node = |end: End| self.nodes[end.index()];
        match fault {
            Fault::Links(links) => {
                world.relink(creator, participant, links.to_participant);
                world.relink(participant, creator, links.to_creator);
            }
            Fault::Cut(cut) => {
                world.cut(creator, participant, cut.to_participant);
                world.cut(participant, creator, cut.to_creator);
            }
            Fault::Jump(end, by) => world.jump(node(end), by),
            Fault::Drift(end, ppm) => world.drift(node(end), ppm),
            Fault::Calendar(ahead) => world.calendar(ahead),
            Fault::Freeze(end, frozen) => world.freeze(node(end), frozen),
            Fault::Kill(end) => {
                world.kill(node(end));
                self.outcome.killed[end.index()] = true;
            }
            Fault::BreakStreams => world.break_streams(creator, participant),
            Fault::HoldStreams(held) => world.hold_streams(held),
        }
    }

    /// Begins the change that is due; while one goes on the next one waits for its turn.
    fn change(&mut self, world: &mut World) {
        let pattern = self.trial.flows[0].pattern;
        let every = pattern.every * pattern.count as u32 / (self.trial.changes + 1);
        self.next_change = world.now() + every.max(Duration::from_millis(1));
        let (Some(session), 1..) = (self.session[0], self.changes_left) else {
            self.next_change = Time::NEVER;
            return;
        };
        let graphs = &self.trial.flows[0].graphs;
        let turn = self.trial.changes - self.changes_left + 1;
        let graph = form(&self.trial.catalogue, &graphs[turn as usize % graphs.len()]);
        let local = world.local(self.nodes[0]);
        if world
            .core(self.nodes[0])
            .handle_command(local, Command::Change { session, flow: 0, graph })
            .is_ok()
        {
            self.changes_left -= 1;
            self.outcome.changes.0 += 1;
        }
    }

    fn is_settled(&self) -> bool {
        self.running.is_some() && self.outcome.flows.iter().all(|flow| flow.ends == [1, 1])
    }

    /// Nothing more comes of the session at any end that lives.
    fn is_over(&self) -> bool {
        let never = self.session[1].is_none() && self.outcome.lost[1].is_some();
        let over = |end: usize| {
            let begun = self.session[end].is_some();
            self.outcome.killed[end] || self.outcome.ended[end].is_some() || (never && !begun)
        };
        over(0) && over(1)
    }

    fn handle_events(&mut self, world: &mut World) {
        for end in End::BOTH {
            while let Some(event) = world.poll_event(self.nodes[end.index()]) {
                self.handle(world, end, event);
            }
        }
    }

    fn handle(&mut self, world: &mut World, end: End, event: CoreEvent) {
        let after = Some(world.now().since(self.begun));
        let place = end.index();
        match event {
            CoreEvent::PeerOpen { peer } if end == End::Participant => {
                self.outcome.stages.open = after;
                self.join(world, peer);
            }
            CoreEvent::Offered { session, flows, .. } => {
                self.outcome.stages.offered = after;
                self.answer(world, session, &flows);
            }
            CoreEvent::Ready { session } if end == End::Creator => {
                self.session[0] = Some(session);
                let mut sessions = world.core(self.nodes[0]).sessions();
                self.served = sessions.find(|(id, ..)| *id == session).map(|(.., peer)| peer);
                self.outcome.stages.creator_ready = after;
            }
            CoreEvent::Ready { session } => {
                self.outcome.stages.ready = after;
                let local = world.local(self.nodes[1]);
                // It may have ended at once; that is reported.
                let _ = world.core(self.nodes[1]).handle_command(local, Command::Activate(session));
            }
            CoreEvent::Active { .. } if end == End::Participant => self.begin(world.now()),
            CoreEvent::FlowEnded { flow, ledger, hash, .. } => {
                self.note_flow_end(end, flow, *ledger, hash);
            }
            CoreEvent::FlowFailed { flow, .. } => self.outcome.flows[flow].failures += 1,
            CoreEvent::Changed { .. } if end == End::Creator => self.outcome.changes.1 += 1,
            CoreEvent::ChangeFailed { .. } if end == End::Creator => self.outcome.changes.2 += 1,
            CoreEvent::SessionEnded { session, error } => {
                self.session[place].get_or_insert(session);
                self.note_failure(end, error.is_some(), after);
                self.outcome.ends[place] += 1;
                self.outcome.ended[place].get_or_insert(error.map_or(Ok(()), Err));
            }
            CoreEvent::PeerLost { peer, error } if self.is_loss(end, peer) => {
                self.note_failure(end, true, after);
                self.outcome.lost[place].get_or_insert(error);
            }
            _ => {}
        }
    }

    /// The peer of the session is lost, and not one of its attempts to connect.
    fn is_loss(&self, end: End, peer: PeerId) -> bool {
        !self.goodbye && (end == End::Participant || self.served == Some(peer))
    }

    fn note_failure(&mut self, end: End, failed: bool, after: Option<Duration>) {
        let stages = &mut self.outcome.stages;
        if failed && end == End::Participant {
            stages.failed = stages.failed.or(after);
        }
    }

    fn join(&mut self, world: &mut World, peer: PeerId) {
        if self.session[1].is_none() {
            let local = world.local(self.nodes[1]);
            let joined = world
                .core(self.nodes[1])
                .handle_command(
                    local,
                    Command::Join { peer, name: NAME.into(), params: JoinParams::default() },
                )
                .and_then(Done::session);
            self.session[1] = joined.ok();
        }
    }

    fn answer(&mut self, world: &mut World, session: SessionId, flows: &[FlowOffer]) {
        let plans = self.trial.flows.iter().enumerate().take(flows.len());
        let ports =
            plans.map(|(place, flow)| Some(port(flow, Direction::ToCreator, place, &self.sinks)));
        let ports = ports.collect();
        let local = world.local(self.nodes[1]);
        // It may have ended at once; that is reported.
        let _ = world.core(self.nodes[1]).answer(local, session, ports);
    }

    fn begin(&mut self, now: Time) {
        self.running = Some(now);
        self.outcome.stages.running = Some(now.since(self.begun));
        let pattern = self.trial.flows.first().map(|flow| flow.pattern);
        if let (Some(pattern), 1..) = (pattern, self.trial.changes) {
            self.next_change =
                now + pattern.every * pattern.count as u32 / (self.trial.changes + 1);
        }
    }

    fn note_flow_end(&mut self, end: End, flow: usize, ledger: Ledger, hash: Option<bool>) {
        let sender = match self.trial.flows[flow].direction {
            Direction::ToParticipant => End::Creator,
            Direction::ToCreator => End::Participant,
        };
        let flow = &mut self.outcome.flows[flow];
        flow.ends[end.index()] += 1;
        flow.hash = flow.hash.or(hash);
        let place = if end == sender { &mut flow.sent } else { &mut flow.received };
        place.get_or_insert(ledger);
    }

    fn note_modules(&mut self, world: &mut World) {
        let down =
            self.trial.flows.first().map(|it| it.direction) == Some(Direction::ToParticipant);
        let end = usize::from(down);
        let Some(session) = self.session[end] else { return };
        let status = world.core(self.nodes[end]).status(session);
        let Some(flow) = status.first() else { return };
        let sum = |reason: DropReason| {
            flow.modules.iter().map(|it| it.counters.up.dropped[reason.index()]).sum()
        };
        self.outcome.dropped = (sum(DropReason::Checksum), sum(DropReason::Duplicate));
    }

    fn finish(mut self, world: &mut World, units: &Units) -> Outcome {
        let [creator, participant] = self.nodes;
        let (begun, killed) = (world.now(), self.outcome.killed);
        let alive = move |end: usize| !killed[end];
        let connections = |world: &mut World, end: usize, node| {
            if alive(end) { world.core(node).connection_count() } else { 0 }
        };
        let cleared = world.run(begun + CLEAR_MAX, |world| {
            self.handle_events(world);
            connections(world, 0, creator) + connections(world, 1, participant) == 0
        });
        self.outcome.cleared_after = cleared.then(|| world.now().since(begun));
        let sums = [creator, participant].into_iter().enumerate().filter(|(end, _)| alive(*end));
        let mut left = [0; 4];
        for (end, node) in sums {
            left[0] += world.core(node).pool().live_views();
            left[1] += world.core(node).sessions().count();
            left[2] += connections(world, end, node);
        }
        left[3] = world.stream_count();
        let mut outcome = self.outcome;
        outcome.left = left;
        outcome.amplification = world.amplification();
        outcome.links = EachWay {
            to_participant: world.link_stats(creator, participant),
            to_creator: world.link_stats(participant, creator),
        };
        outcome.units = units.lock().unwrap_or_else(PoisonError::into_inner).clone();
        outcome.trace = world.trace();
        let sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        for (flow, seen) in outcome.flows.iter_mut().zip(sinks.iter()) {
            flow.record = seen.as_ref().map(|it| it.record().clone()).unwrap_or_default();
        }
        drop(sinks);
        outcome
    }
}
