//! [`draw`]: a [`Trial`] with every fault in it, drawn from a seed.
//!
//! ```text
//!   each link    loss 0-30 % or bursts, duplicates to 50 %, reordering, corruption of both kinds,
//!                jitter to 1 s, a narrow transmitter with a short queue, an MTU black hole
//!   on the way   partitions up to 2 s both ways or one way, from the start or while flows run;
//!                other links; clocks that drift; streams that break or stand
//!   session      one to three flows both ways over datagrams and streams, changes of epoch
//! ```
//!
//! The harshest network that the specification speaks of, a few hundred to a thousand units a time,
//! so that ten thousand seeds take minutes.
//!
//! What is promised under all of it is what [`crate::trial::check`] says: a connection or a typed
//! reason within 10.1 s of `connect`; a session or a typed reason within 30.1 s more; reasons are
//! the network's (contact lost, no answer, no data path, unreachable, closed); every end is told
//! once; the books of every flow close at each end, and agree when the session ends as usual;
//! nothing altered, repeated or out of order where the graph promises that; no change of epoch
//! hangs; nothing is left. Most seeds get much more: see [`Totals`].

use crate::trial::{Carrier, EachWay, End, Fault, FlowPlan, Outcome, Trial};
use dacapo_base::Random;
use dacapo_link::{LinkConfig, Loss, Mtu, QueueLimit};
use dacapo_wire::session::Direction;
use std::time::Duration;

/// The most that is lost on average in one direction.
const LOSS_MAX: f64 = 0.3;

/// The graphs of flows of units that fit a datagram, and of any.
const GRAPHS_SMALL: [&[&str]; 9] = [
    &["sequence", "checksum"],
    &["segment", "sequence", "checksum"],
    &["segment", "sequence", "repeat", "checksum"],
    &["segment", "sequence", "fec-rs", "checksum"],
    &["segment", "sequence", "arq-nak", "checksum"],
    &["segment", "arq-sr", "checksum"],
    &["sequence"],
    &["checksum"],
    &[],
];
const GRAPHS_LARGE: [&[&str]; 3] =
    [&["segment", "sequence", "checksum"], &["segment", "checksum"], &["segment", "sequence"]];

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The trial of a seed.
#[must_use]
pub fn draw(seed: u64) -> Trial {
    let mut random = Random::from_number(seed ^ 0x0A11_FA17);
    // A third of the seeds is harsh in everything, so that the others get far enough to be tried.
    let harshness = if random.chance(0.33) { 1.0 } else { random.unit() * 0.5 };
    let delay = ms(1 + random.below(149));
    let to_participant = link(&mut random, harshness, delay);
    let to_creator = link(&mut random, harshness, delay);
    let mut trial = Trial::new(seed, EachWay { to_participant, to_creator });
    let count = 1 + random.below(3);
    trial.flows = (0..count).map(|place| flow(&mut random, seed, place)).collect();
    trial.changes = random.below(4) as u32;
    trial.must_complete = false;
    trial.time_max = Duration::from_secs(90);
    from_start(&mut random, &mut trial);
    from_running(&mut random, &mut trial, harshness, delay);
    trial
}

fn link(random: &mut Random, harshness: f64, delay: Duration) -> LinkConfig {
    let mut some = |share: f64, most: f64| {
        let (here, value) = (random.chance(share), random.unit());
        if here { value * most * harshness } else { 0.0 }
    };
    let (loss, burst_len) = (some(0.8, LOSS_MAX), 1.5 + some(0.5, 20.0));
    let (duplicate, reorder) = (some(0.5, 0.5), some(0.5, 0.25));
    let (corrupt, corrupt_undetected) = (some(0.4, 0.1), some(0.4, 0.1));
    let jitter = Duration::from_secs_f64(some(0.5, 1.0));
    let mut config = LinkConfig {
        delay: delay.max(jitter.min(ms(200))),
        jitter,
        keep_order: random.chance(0.5),
        loss: match random.below(2) {
            0 => Loss::Random { p: loss },
            _ => Loss::burst(loss, burst_len).unwrap_or(Loss::Random { p: loss }),
        },
        duplicate,
        reorder,
        reorder_by: ms(1 + random.below(300)),
        corrupt,
        corrupt_undetected,
        ..LinkConfig::default()
    };
    if random.chance(0.2) {
        config.rate_bits_per_s = Some(200_000 << random.below(6));
        config.queue = QueueLimit { packets: 1 + random.below(100) as usize, bytes: 1_500_000 };
    }
    if random.chance(0.1) {
        config.mtu = Some(Mtu::black_hole(1_280 + random.below(300) as usize));
    }
    config
}

fn flow(random: &mut Random, seed: u64, place: u64) -> FlowPlan {
    let mut flow = FlowPlan::new(seed.wrapping_mul(31).wrapping_add(place), 0);
    if random.chance(0.3) {
        flow.carrier = Carrier::Tcp;
        flow.graphs = vec![vec!["segment"], vec![]];
    } else if random.chance(0.3) {
        flow.graphs = pick(random, &GRAPHS_LARGE);
        flow.pattern.len_max = 5_000;
    } else {
        flow.graphs = pick(random, &GRAPHS_SMALL);
    }
    if place > 0 && random.chance(0.5) {
        flow.direction = Direction::ToCreator;
    }
    flow.pattern.count = 150 + random.below(450);
    flow.pattern.every = Duration::from_micros(500 + random.below(9_500));
    flow
}

fn pick(random: &mut Random, graphs: &[&[&'static str]]) -> Vec<Vec<&'static str>> {
    let count = 1 + random.below(2);
    (0..count).map(|_| graphs[random.below(graphs.len() as u64) as usize].to_vec()).collect()
}

/// A cut of some ways, and its end, which lies at most 2 s later.
fn partition(random: &mut Random, faults: &mut Vec<(Duration, Fault)>, within: u64) {
    let (from, len) = (ms(random.below(within)), ms(1 + random.below(2_000)));
    let cut = match random.below(3) {
        0 => EachWay { to_participant: true, to_creator: false },
        1 => EachWay { to_participant: false, to_creator: true },
        _ => EachWay::both(true),
    };
    faults.push((from, Fault::Cut(cut)));
    faults.push((from + len, Fault::Cut(EachWay::both(false))));
}

fn from_start(random: &mut Random, trial: &mut Trial) {
    if random.chance(0.3) {
        partition(random, &mut trial.from_start, 1_000);
    }
    for end in End::BOTH {
        if random.chance(0.3) {
            let ppm = random.below(1_001) as i32 - 500;
            trial.from_start.push((Duration::ZERO, Fault::Drift(end, ppm)));
        }
    }
    trial.from_start.sort_by_key(|(after, _)| *after);
}

fn from_running(random: &mut Random, trial: &mut Trial, harshness: f64, delay: Duration) {
    let faults = &mut trial.from_running;
    if random.chance(0.4) {
        partition(random, faults, 3_000);
    }
    if random.chance(0.3) {
        let to_participant = link(random, harshness, delay);
        let to_creator = link(random, harshness, delay);
        let links = EachWay { to_participant, to_creator };
        faults.push((ms(random.below(3_000)), Fault::Links(Box::new(links))));
    }
    let streams = trial.flows.iter().any(|flow| flow.carrier == Carrier::Tcp);
    if streams && random.chance(0.2) {
        let from = random.below(2_000);
        faults.push((ms(from), Fault::HoldStreams(true)));
        faults.push((ms(from + 1 + random.below(3_000)), Fault::HoldStreams(false)));
    }
    if streams && random.chance(0.1) {
        faults.push((ms(random.below(3_000)), Fault::BreakStreams));
    }
    faults.sort_by_key(|(after, _)| *after);
}

/// What many seeds came to.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Trials.
    pub trials: u64,
    /// Sessions that were set up.
    pub ready: u64,
    /// Sessions that ended as usual.
    pub complete: u64,
    /// Units delivered.
    pub units: u64,
    /// Changes of epoch made.
    pub changes: u64,
    /// Flows over streams that ran.
    pub streams: u64,
    /// Datagrams that links lost, by chance, in bursts or in cuts.
    pub lost: u64,
    /// Datagrams that came twice.
    pub duplicated: u64,
    /// Datagrams that came out of order.
    pub reordered: u64,
    /// Datagrams that came altered.
    pub altered: u64,
    /// Datagrams dropped by queues, also by those who manage them, and by black holes.
    pub dropped: u64,
    /// The slowest set-up.
    pub slowest: Duration,
}

impl Totals {
    /// Adds a trial.
    pub fn add(&mut self, trial: &Trial, outcome: &Outcome) {
        self.trials += 1;
        self.ready += u64::from(outcome.stages.ready.is_some());
        self.complete += u64::from(outcome.settled && outcome.error().is_none());
        self.units += outcome.delivered();
        self.changes += u64::from(outcome.changes.1);
        let streams = trial.flows.iter().filter(|flow| flow.carrier == Carrier::Tcp).count();
        self.streams += if outcome.stages.running.is_some() { streams as u64 } else { 0 };
        for link in [&outcome.links.to_participant, &outcome.links.to_creator] {
            self.lost += link.lost_random + link.lost_burst + link.dropped_partition;
            self.duplicated += link.duplicated;
            self.reordered += link.reordered;
            self.altered += link.corrupted_undetected;
            self.dropped += link.dropped_queue + link.dropped_aqm + link.dropped_mtu;
        }
        self.slowest = self.slowest.max(outcome.stages.ready.unwrap_or_default());
    }

    /// Adds what others came to.
    pub fn merge(&mut self, other: &Self) {
        self.trials += other.trials;
        self.ready += other.ready;
        self.complete += other.complete;
        self.units += other.units;
        self.changes += other.changes;
        self.streams += other.streams;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.altered += other.altered;
        self.dropped += other.dropped;
        self.slowest = self.slowest.max(other.slowest);
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} seeds: {} set up (slowest {:.2?}), {} ended as usual; {} units, {} changes, {} \
             streams; the links lost {}, doubled {}, reordered {}, altered {}, refused {}",
            self.trials,
            self.ready,
            self.slowest,
            self.complete,
            self.units,
            self.changes,
            self.streams,
            self.lost,
            self.duplicated,
            self.reordered,
            self.altered,
            self.dropped
        )
    }
}
