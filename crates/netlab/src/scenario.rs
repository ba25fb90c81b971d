//! [`Scenario`]: one session between two cores over a link, run to its end, with everything
//! counted.
//!
//! The run behind the seeds: dial, join, activate, send a pattern, change epochs on the way if
//! asked, end.

use crate::traffic::{Pattern, PatternSink, PatternSource, Record, Seen};
use crate::{NodeId, Trace, World};
use dacapo_base::{Random, Time};
use dacapo_core::{
    Command, CoreConfig, CoreEvent, DialParams, Done, Error, Forgets, JoinParams, JoinRequest,
    Ledger, Port, SessionId, SessionProvider, SessionSpec,
};
use dacapo_lift::{Catalogue, DropReason, ModuleCounters, ModuleSpec};
use dacapo_link::{LinkConfig, LinkStats, Loss, Passage};
use dacapo_path::ControllerEntry;
use dacapo_wire::data::{self, TYPE_DATA};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::medium::Medium;
use dacapo_wire::session::{Direction, FlowOffer};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The name under which the session is served.
const NAME: &str = "pattern";

/// What is run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What everything random follows from.
    pub seed: u64,
    /// The link, each way. Of one that manages its queue [`Outcome::units`] does not say what it
    /// takes.
    pub link: LinkConfig,
    /// The links of further networks, each way, by which the creator is reached too: of flows over
    /// several paths.
    pub further: Vec<LinkConfig>,
    /// From when on, after the flow has begun to run, nothing passes a network any more; 0 is the
    /// first.
    pub cuts: Vec<(Duration, u8)>,
    /// The graph, by the modules' names.
    pub graph: Vec<&'static str>,
    /// The flow as it is offered, its graph with parameters; none: `graph` with theirs by default.
    pub offer: Option<FlowOffer>,
    /// The units.
    pub pattern: Pattern,
    /// The hard bound of the rate.
    pub bound_bps: u64,
    /// How often the flow changes to an equal graph while it runs.
    pub changes: u32,
    /// What controls paths, as of hosts one that yields to others does; none: they keep the bound.
    pub controller: Option<ControllerEntry>,
    /// The ends have a clock each, which they compare over the path; else they share one.
    pub has_two_clocks: bool,
    /// The most virtual time.
    pub time_max: Duration,
    /// The modules; tests put in modules with planted bugs.
    pub catalogue: Catalogue,
    /// At each how many steps the world looks at everything besides what is ready; 0: never.
    pub steps_per_visit: u64,
    /// For tests of that: the owner in each core that forgets when its own are due.
    pub forgets: Option<Forgets>,
}

impl Scenario {
    /// The usual scenario: 1,000 small units, a millisecond apart.
    #[must_use]
    pub fn new(seed: u64, link: LinkConfig) -> Self {
        Self {
            seed,
            link,
            further: Vec::new(),
            cuts: Vec::new(),
            graph: vec!["segment", "sequence", "checksum"],
            offer: None,
            pattern: Pattern {
                count: 1_000,
                every: Duration::from_millis(1),
                len_min: 16,
                len_max: 300,
                seed,
            },
            bound_bps: 100_000_000,
            changes: 0,
            controller: None,
            has_two_clocks: false,
            time_max: Duration::from_secs(60),
            catalogue: crate::catalogue(),
            steps_per_visit: crate::seeds::steps_per_visit(),
            forgets: None,
        }
    }

    /// A scenario with loss of 0 to 20 %, at random or in bursts, and everything else that a link
    /// does to datagrams.
    #[must_use]
    pub fn faulty(seed: u64) -> Self {
        let mut random = Random::from_number(seed ^ 0x5EED);
        let mean_loss = random.unit() * 0.2;
        let delay = Duration::from_millis(1 + random.below(80));
        let link = LinkConfig {
            delay,
            jitter: delay.min(Duration::from_millis(random.below(20))),
            keep_order: random.chance(0.5),
            loss: match random.below(3) {
                0 => Loss::Random { p: mean_loss },
                1 => bursts(mean_loss, 2.0 + random.unit() * 10.0),
                _ => bursts(mean_loss / 2.0, 3.0),
            },
            duplicate: random.unit() * 0.1,
            reorder: random.unit() * 0.05,
            reorder_by: Duration::from_millis(1 + random.below(30)),
            corrupt: random.unit() * 0.01,
            corrupt_undetected: random.unit() * 0.01,
            ..LinkConfig::default()
        };
        let mut scenario = Self::new(seed, link);
        let large = random.chance(0.25);
        scenario.pattern.count = if large { 10_000 } else { 7_500 };
        scenario.pattern.len_max = if large { 2_500 } else { 300 };
        scenario.pattern.every = Duration::from_micros(500);
        scenario.changes = random.below(4) as u32;
        scenario
    }
}

/// Losses in bursts; none where there can be no such bursts.
fn bursts(mean_loss: f64, mean_burst_len: f64) -> Loss {
    Loss::burst(mean_loss, mean_burst_len).unwrap_or_default()
}

/// What the link did to the datagrams of each unit that fits one datagram.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnitOnLink {
    /// Copies that arrive unaltered.
    pub arrives: u32,
    /// Copies of which nobody knows yet whether they arrive: they were put into a queue with active
    /// queue management, which says it when the transmitter takes them, and not unit by unit.
    pub waits: u32,
    /// Datagrams sent.
    pub sent: u32,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// When the session was set up; `None` when it was not.
    pub ready_at: Option<Time>,
    /// What the sink saw.
    pub record: Record,
    /// The receiver's and the sender's account.
    pub ledgers: (Option<Ledger>, Option<Ledger>),
    /// Whether both ends saw the same bytes, where that can be said.
    pub hash: Option<bool>,
    /// How often the sender's flow ended up in a new epoch, and how often a change failed.
    pub changed: u32,
    /// Changes that failed.
    pub change_failed: u32,
    /// Why the session ended, at the participant.
    pub error: Option<Error>,
    /// Why the flow was refused, where its session goes on without it.
    pub refused: Option<Error>,
    /// The emulator's record, to and from the participant.
    pub to_participant: LinkStats,
    /// The way back.
    pub to_creator: LinkStats,
    /// Single-datagram units on the link, by number.
    pub units: BTreeMap<u64, UnitOnLink>,
    /// The counters of the receiver's modules in its last epoch.
    pub modules: Vec<(&'static str, ModuleCounters)>,
    /// The digest of the run.
    pub trace: Trace,
    /// Views that were not given back, at both ends.
    pub views_left: usize,
    /// The virtual time of the end.
    pub ended_at: Time,
}

impl Outcome {
    /// True when both ledgers are there, agree and close with nothing unknown.
    #[must_use]
    pub fn closes(&self) -> bool {
        match &self.ledgers {
            (Some(receiver), Some(sender)) => {
                receiver.closes()
                    && sender.closes()
                    && receiver.unknown == 0
                    && receiver.sent == sender.sent
                    && receiver.delivered == sender.delivered
                    && receiver.delivered == self.record.numbers.len() as u64
            }
            _ => false,
        }
    }

    /// How many packets the receiver's modules dropped for a reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.modules.iter().map(|(_, seen)| seen.up.dropped[reason.index()]).sum()
    }
}

struct PatternPublisher(Pattern);

impl SessionProvider for PatternPublisher {
    fn open(&mut self, _: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        Ok(Port::Source(Box::new(PatternSource::new(self.0))))
    }
}

/// The offer of a raw flow from the creator.
#[must_use]
pub fn raw_offer(name: &str, graph: GraphForm, bound_bps: u64, unit_len_max: u32) -> FlowOffer {
    FlowOffer {
        name: name.into(),
        direction: Direction::ToParticipant,
        medium: Medium::Raw,
        graph,
        transport: 1,
        bound_bps,
        unit_len_max,
        digest: true,
        ..FlowOffer::default()
    }
}

struct Run {
    creator: NodeId,
    participant: NodeId,
    session: Option<SessionId>,
    served: Option<SessionId>,
    seen: Option<Seen>,
    outcome: Outcome,
    changes_left: u32,
    next_change: Time,
    cuts_made: usize,
    closing: bool,
    over: bool,
}

/// Runs a scenario to its end.
///
/// # Panics
/// When the scenario itself is not valid: a link, graph or name that cannot be.
#[must_use]
pub fn run(scenario: &Scenario) -> Outcome {
    let offer = offer_of(scenario);
    let mut world = World::new(scenario.seed, scenario.link.clone());
    world.set_steps_per_visit(scenario.steps_per_visit);
    let creator = world.add(config(scenario, 1));
    let participant = world.add(config(scenario, 1 + u8::from(scenario.has_two_clocks)));
    world.dials(participant);
    add_networks(&mut world, [creator, participant], &scenario.further);
    if let Some(forgets) = scenario.forgets {
        for node in [creator, participant] {
            world.core(node).forget_due(forgets);
        }
    }
    let spec = SessionSpec {
        name: NAME.into(),
        title: "A pattern".into(),
        flows: vec![offer.clone()],
        participants_max: 1,
        give_up_after: dacapo_core::GIVE_UP_AFTER,
    };
    let publisher = Box::new(PatternPublisher(scenario.pattern));
    world.core(creator).publish(spec, publisher).expect("the scenario's session is valid");
    let units = Arc::new(Mutex::new(BTreeMap::new()));
    watch_units(&mut world, creator, specs_of(&offer.graph, &scenario.catalogue), &units);
    let mut run = Run {
        outcome: empty_outcome(&mut world, creator, participant),
        creator,
        participant,
        session: None,
        served: None,
        seen: None,
        changes_left: scenario.changes,
        next_change: Time::NEVER,
        cuts_made: 0,
        closing: false,
        over: false,
    };
    let (now, address) = (world.now(), world.address(creator));
    world
        .core(participant)
        .handle_command(
            now,
            Command::Connect { remote: address.into(), params: DialParams::default() },
        )
        .and_then(Done::peer)
        .expect("a world has room for a peer");
    let until = now + scenario.time_max;
    while !run.over && world.now() < until {
        let next = run.next_change.min(run.next_cut(scenario)).min(until);
        world.run(next, |world| {
            run.turn(world, scenario);
            run.over || run.next_change < next || run.next_cut(scenario) < next
        });
        run.cut(&mut world, scenario);
        run.change(&mut world, scenario, &offer.graph);
    }
    run.finish(world, &units)
}

/// Makes further networks, in which the first of the nodes serves, too.
fn add_networks(world: &mut World, [creator, participant]: [NodeId; 2], links: &[LinkConfig]) {
    for (net, link) in (1..).zip(links) {
        world.relink_in(net, creator, participant, link.clone());
        world.relink_in(net, participant, creator, link.clone());
    }
    if let Ok(last @ 1..) = u8::try_from(links.len()) {
        world.serves_in(creator, last);
    }
}

fn config(scenario: &Scenario, boot: u8) -> CoreConfig {
    let mut config = CoreConfig::new(scenario.catalogue.clone());
    config.boot = [boot; 16];
    config.pool_bytes_max = 64 << 20;
    if let Some(entry) = &scenario.controller {
        config.controllers = entry.clone().into();
    }
    config
}

/// The flow.
fn offer_of(scenario: &Scenario) -> FlowOffer {
    if let Some(offer) = &scenario.offer {
        return offer.clone();
    }
    let graph = GraphForm::line(scenario.graph.iter().map(|name| {
        let entry = scenario.catalogue.by_name(name).expect("the scenario's modules exist");
        (entry.spec.id, Vec::new())
    }));
    let longest = scenario.pattern.len_max as u32 + 16;
    raw_offer("pattern", graph, scenario.bound_bps, longest)
}

fn empty_outcome(world: &mut World, creator: NodeId, participant: NodeId) -> Outcome {
    Outcome {
        ready_at: None,
        record: Record::default(),
        ledgers: (None, None),
        hash: None,
        changed: 0,
        change_failed: 0,
        error: None,
        refused: None,
        to_participant: world.link_stats(creator, participant),
        to_creator: world.link_stats(participant, creator),
        units: BTreeMap::new(),
        modules: Vec::new(),
        trace: Trace::default(),
        views_left: 0,
        ended_at: Time::ZERO,
    }
}

/// The modules of a graph.
pub(crate) fn specs_of(
    graph: &GraphForm,
    catalogue: &Catalogue,
) -> impl Iterator<Item = &'static ModuleSpec> {
    graph.nodes.iter().filter_map(|node| Some(catalogue.by_id(node.module)?.spec))
}

/// Notes for each unit that the creator sends whole in a datagram whether a true copy of it
/// arrives; `modules` are those of its only flow.
pub(crate) fn watch_units(
    world: &mut World,
    creator: NodeId,
    modules: impl Iterator<Item = &'static ModuleSpec>,
    units: &Arc<Mutex<BTreeMap<u64, UnitOnLink>>>,
) {
    // Where a unit's own bytes begin: data header, the modules' headers, unit header.
    let around = |(heads, tails): (usize, usize), it: &ModuleSpec| {
        (heads + usize::from(it.head), tails + usize::from(it.tail))
    };
    let (heads, tails) = modules.fold((0, 0), around);
    let begin = data::LEN + heads + dacapo_wire::unit::LEN;
    let units = units.clone();
    world.observe(move |crossing| {
        let unit = crossing.bytes.get(begin..crossing.bytes.len().saturating_sub(tails));
        let kind = crossing.bytes.get(begin - dacapo_wire::unit::LEN).map(|byte| byte >> 4);
        let is_data = crossing.bytes.first() == Some(&TYPE_DATA) && kind == Some(0);
        let number = unit.and_then(|unit| unit.first_chunk::<8>());
        if let (true, Some(number)) = (crossing.node == creator && is_data, number) {
            let mut units = units.lock().unwrap_or_else(PoisonError::into_inner);
            let unit: &mut UnitOnLink = units.entry(u64::from_be_bytes(*number)).or_default();
            unit.sent += 1;
            for passage in std::iter::once(&crossing.fate.item).chain(&crossing.fate.copy) {
                let arrives = matches!(passage, Passage::Arrives { corrupted: false, .. });
                unit.arrives += u32::from(arrives);
                unit.waits += u32::from(matches!(passage, Passage::Waits { .. }));
            }
        }
    });
}

impl Run {
    fn turn(&mut self, world: &mut World, scenario: &Scenario) {
        while let Some(event) = world.poll_event(self.participant) {
            self.handle_participant(world, scenario, event);
        }
        while let Some(event) = world.poll_event(self.creator) {
            self.handle_creator(world, event);
        }
    }

    fn handle_participant(&mut self, world: &mut World, scenario: &Scenario, event: CoreEvent) {
        let now = world.now();
        let core = world.core(self.participant);
        match event {
            CoreEvent::PeerOpen { peer } => {
                self.session = core
                    .handle_command(
                        now,
                        Command::Join { peer, name: NAME.into(), params: JoinParams::default() },
                    )
                    .and_then(Done::session)
                    .ok();
            }
            CoreEvent::Offered { session, .. } => {
                let (sink, seen) = PatternSink::new(scenario.pattern);
                self.seen = Some(seen);
                // A session that is over by now reports it in an event.
                let _ = core.answer(now, session, vec![Some(Port::Sink(Box::new(sink)))]);
            }
            CoreEvent::Ready { session } => {
                let _ = core.handle_command(now, Command::Activate(session));
            }
            CoreEvent::Active { .. } => {
                self.outcome.ready_at = Some(now);
                let every = scenario.pattern.every * scenario.pattern.count as u32;
                self.next_change = now + every / (scenario.changes + 1);
            }
            CoreEvent::FlowEnded { ledger, hash, .. } => {
                self.outcome.ledgers.0 = Some(*ledger);
                self.outcome.hash = hash;
            }
            CoreEvent::SessionEnded { error, .. } => {
                self.outcome.error = error;
                self.over = true;
            }
            CoreEvent::PeerLost { error, .. } => {
                self.outcome.error.get_or_insert(error);
                self.over = true;
            }
            _ => {}
        }
        let ended = self.outcome.ledgers.0.is_some() && self.outcome.ledgers.1.is_some();
        if let (true, Some(session), false) = (ended, self.session, self.closing) {
            self.closing = true;
            self.note_modules(world);
            let _ = world.core(self.participant).handle_command(now, Command::Close(session));
        }
    }

    fn note_modules(&mut self, world: &mut World) {
        let Some(session) = self.session else { return };
        let status = world.core(self.participant).status(session);
        if let Some(flow) = status.first() {
            self.outcome.modules =
                flow.modules.iter().map(|it| (it.spec.name, it.counters)).collect();
        }
    }

    fn handle_creator(&mut self, world: &mut World, event: CoreEvent) {
        match event {
            CoreEvent::Ready { session } => self.served = Some(session),
            CoreEvent::FlowEnded { ledger, .. } => {
                self.outcome.ledgers.1 = Some(*ledger);
                // Who plays out is later than who sends.
                let both = self.outcome.ledgers.0.is_some();
                if let (Some(session), false, true) = (self.session, self.closing, both) {
                    self.closing = true;
                    self.note_modules(world);
                    let now = world.now();
                    let _ =
                        world.core(self.participant).handle_command(now, Command::Close(session));
                }
            }
            CoreEvent::Changed { .. } => self.outcome.changed += 1,
            CoreEvent::ChangeFailed { .. } => self.outcome.change_failed += 1,
            _ => {}
        }
    }

    /// When the next network is cut.
    fn next_cut(&self, scenario: &Scenario) -> Time {
        let next = self.outcome.ready_at.zip(scenario.cuts.get(self.cuts_made));
        next.map_or(Time::NEVER, |(ready, (after, _))| ready + *after)
    }

    /// Cuts the network that is due.
    fn cut(&mut self, world: &mut World, scenario: &Scenario) {
        if self.next_cut(scenario) > world.now() {
            return;
        }
        if let Some(&(_, net)) = scenario.cuts.get(self.cuts_made) {
            world.cut_in(net, self.creator, self.participant, true);
            world.cut_in(net, self.participant, self.creator, true);
            self.cuts_made += 1;
        }
    }

    /// Begins the change that is due.
    fn change(&mut self, world: &mut World, scenario: &Scenario, graph: &GraphForm) {
        let now = world.now();
        if self.next_change > now {
            return;
        }
        let every = scenario.pattern.every * scenario.pattern.count as u32;
        self.next_change = now + every / (scenario.changes + 1);
        if let (Some(served), 1..) = (self.served, self.changes_left) {
            // While one change goes on the next one waits for its turn.
            if world
                .core(self.creator)
                .handle_command(
                    now,
                    Command::Change { session: served, flow: 0, graph: graph.clone() },
                )
                .is_ok()
            {
                self.changes_left -= 1;
            }
        } else {
            self.next_change = Time::NEVER;
        }
    }

    fn finish(
        mut self,
        mut world: World,
        units: &Arc<Mutex<BTreeMap<u64, UnitOnLink>>>,
    ) -> Outcome {
        // The end of the session crosses the link, and the creator's watchdogs run out.
        world.run_for(Duration::from_secs(15));
        while let Some(event) = world.poll_event(self.creator) {
            self.handle_creator(&mut world, event);
        }
        let mut outcome = self.outcome;
        if let Some(session) = self.session {
            let flows = world.core(self.participant).status(session);
            outcome.refused = flows.into_iter().find_map(|flow| flow.refused);
        }
        outcome.to_participant = world.link_stats(self.creator, self.participant);
        outcome.to_creator = world.link_stats(self.participant, self.creator);
        outcome.trace = world.trace();
        outcome.ended_at = world.now();
        outcome.units = units.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(seen) = self.seen {
            outcome.record = seen.record().clone();
        }
        outcome.views_left = world.core(self.creator).pool().live_views()
            + world.core(self.participant).pool().live_views();
        outcome
    }
}
