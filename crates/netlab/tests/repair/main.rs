//! 200 seeds of flows whose losses a module makes good, for each such module, over links that lose,
//! repeat, reorder and alter: every unit is accounted for, none comes twice, altered or, below
//! `sequence`, out of order; and of what is lost most is made good.
//!
//! A failure prints its seed and the command that repeats it alone. `DACAPO_SEEDS` sets how many
//! are run.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod acknowledgement;
mod flow_control;
mod go_back;
mod grid;
mod parity;
mod retransmission;
mod sliding;

use dacapo_base::Random;
use dacapo_base::seeds::number;
use dacapo_core::Code;
use dacapo_link::{LinkConfig, Loss};
use dacapo_netlab::scenario::{Outcome, Scenario, raw_offer, run};
use dacapo_netlab::seeds::check_seeds;
use dacapo_path::controllers::{bbr, cubic};
use dacapo_wire::graph::GraphForm;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const SEEDS: u64 = 200;
const SEEDS_AT_NIGHT: u64 = 10_000;
const UNITS: u64 = 3_000;

/// The numbers of the modules.
const SEGMENT: u16 = 1;
const SEQUENCE: u16 = 2;
const CHECKSUM: u16 = 3;

/// A module with its parameters, and how long what it repairs takes at most; `None`: it gives order
/// itself. Whether it loses nothing.
#[derive(Default)]
struct Repair {
    /// What stands above all others.
    above: Option<(u16, Vec<(u16, u64)>)>,
    module: u16,
    params: Vec<(u16, u64)>,
    hold: Option<Duration>,
    is_whole: bool,
    /// Packets go up as they come, though no `sequence` has a `hold`: units are one each.
    is_unordered: bool,
}

/// A flow and a link.
struct Drawn {
    scenario: Scenario,
    is_ordered: bool,
    is_checked: bool,
    /// Nothing may be lost.
    is_whole: bool,
}

impl Drawn {
    /// A flow over a link, both drawn, with this among its modules.
    fn with(seed: u64, random: &mut Random, repair: Repair) -> Self {
        let (is_sequenced, is_checked) = (random.chance(0.7), random.chance(0.7));
        let hold = repair.hold.filter(|_| is_sequenced);
        let is_whole = repair.is_whole;
        let is_ordered = !repair.is_unordered && (hold.is_some() || repair.hold.is_none());
        let is_segmented = random.chance(0.5) && !repair.is_unordered;
        let mut modules: Vec<_> = repair.above.into_iter().collect();
        if is_segmented {
            // What is sent again until it comes may take long.
            let patience = if is_whole { vec![(0, 60_000_000_000)] } else { Vec::new() };
            modules.push((SEGMENT, patience));
        }
        if let Some(hold) = hold {
            modules.push((SEQUENCE, vec![(0, hold.as_nanos() as u64)]));
        }
        modules.push((repair.module, repair.params));
        if is_checked {
            modules.push((CHECKSUM, Vec::new()));
        }
        let mut scenario = Scenario::new(seed, link(random, is_checked));
        scenario.pattern.count = UNITS;
        scenario.pattern.every = Duration::from_micros(300 + random.below(2_000));
        scenario.pattern.len_max = if is_segmented { 4_000 } else { 1_300 };
        scenario.changes = random.below(3) as u32;
        if is_whole {
            // A flow that yields takes its time where much is lost.
            let one_of = [None, Some(cubic::entry()), Some(bbr::entry())];
            scenario.controller = one_of.into_iter().nth(random.below(3) as usize).flatten();
            scenario.time_max = Duration::from_secs(3_600);
        }
        let longest = scenario.pattern.len_max as u32 + 16;
        let mut offer = raw_offer("repair", GraphForm::line(modules), 200_000_000, longest);
        offer.digest = is_ordered;
        scenario.offer = Some(offer);
        Self { scenario, is_ordered, is_checked, is_whole }
    }
}

fn link(random: &mut Random, is_checked: bool) -> LinkConfig {
    let mean = random.unit() * 0.15;
    let burst = Loss::burst(mean, 1.5 + random.unit() * 6.0).unwrap_or_default();
    let link = LinkConfig {
        delay: Duration::from_millis(1 + random.below(60)),
        jitter: Duration::from_millis(random.below(2) * random.below(10)),
        keep_order: random.chance(0.5),
        loss: if random.chance(0.5) { burst } else { Loss::Random { p: mean } },
        duplicate: random.unit() * 0.05,
        reorder: random.unit() * 0.05,
        reorder_by: Duration::from_millis(1 + random.below(30)),
        corrupt: random.unit() * 0.01,
        // What nobody checks, nobody finds.
        corrupt_undetected: if is_checked { random.unit() * 0.01 } else { 0.0 },
        ..LinkConfig::default()
    };
    LinkConfig { jitter: link.jitter.min(link.delay), ..link }
}

/// Whether the flow was refused, and nothing of it sent, because its units do not fit a path of
/// which the opening did not find out in time that it takes more than the least.
fn is_too_long(outcome: &Outcome) -> bool {
    let is_refused = outcome.refused.as_ref().is_some_and(|it| it.code == Code::IllegalGraph);
    is_refused && outcome.record.numbers.is_empty() && outcome.views_left == 0
}

/// What must hold whatever the link does: the reason if it does not.
fn broken(drawn: &Drawn, outcome: &Outcome) -> Option<String> {
    let record = &outcome.record;
    outcome.ready_at?;
    if is_too_long(outcome) {
        return None;
    }
    if !outcome.closes() {
        return Some(format!("the ledgers do not close: {:?}", outcome.ledgers));
    }
    if record.altered + record.misnumbered > 0 {
        return Some(format!("{} altered, {} misnumbered", record.altered, record.misnumbered));
    }
    let missing = UNITS.saturating_sub(record.numbers.len() as u64);
    if drawn.is_whole && missing > 0 {
        return Some(format!("{missing} units are missing"));
    }
    if drawn.is_ordered && !record.numbers.is_sorted() {
        return Some("out of order".into());
    }
    let mut once = record.numbers.clone();
    once.sort_unstable();
    once.dedup();
    if once.len() < record.numbers.len() {
        return Some(format!("{} units came twice", record.numbers.len() - once.len()));
    }
    (outcome.views_left > 0).then(|| format!("{} views were not given back", outcome.views_left))
}

#[derive(Debug, Default)]
struct Totals {
    units: u64,
    lost: u64,
    /// Packets that were lost or altered on the way to the participant, and all of them.
    packets_lost: u64,
    packets: u64,
    checked: u64,
    ordered: u64,
    changed: u64,
    refused: u64,
}

impl Totals {
    fn add(&mut self, drawn: &Drawn, outcome: &Outcome) {
        let link = &outcome.to_participant;
        if is_too_long(outcome) {
            self.refused += 1;
            return;
        }
        self.units += UNITS;
        self.lost += UNITS - outcome.record.numbers.len() as u64;
        self.packets_lost += link.lost_random + link.lost_burst + link.corrupted_detected;
        self.packets += link.sent;
        self.checked += u64::from(drawn.is_checked);
        self.ordered += u64::from(drawn.is_ordered);
        self.changed += u64::from(outcome.changed);
    }
}

/// Runs what `draw` makes of each seed; no more of the units may be lost than this part of the
/// share of packets that the links took.
fn check_all(name: &str, seeds: u64, left: f64, draw: impl Fn(u64) -> Drawn + Sync) {
    let totals = Mutex::new(Totals::default());
    check_seeds(&format!("repair {name}::one_seed"), seeds, |seed| {
        let drawn = draw(seed);
        let outcome = run(&drawn.scenario);
        totals.lock().unwrap_or_else(PoisonError::into_inner).add(&drawn, &outcome);
        broken(&drawn, &outcome)
    });
    let totals = totals.into_inner().unwrap();
    println!("{seeds} seeds: {totals:?}");
    // Losses in bursts may take every long question of an opening.
    assert!(totals.refused <= seeds / 2_000, "{} of {seeds} were refused", totals.refused);
    let share = |part: u64, of: u64| part as f64 / of as f64;
    let (lost, on_the_way) =
        (share(totals.lost, totals.units), share(totals.packets_lost, totals.packets));
    assert!(on_the_way > 0.04, "{on_the_way} of the packets were lost");
    assert!(lost < on_the_way * left, "{lost} of the units, {on_the_way} of the packets were lost");
    let drawn = [totals.checked, totals.ordered, totals.changed];
    assert!(drawn.iter().all(|count| *count > seeds / 2), "{drawn:?} of {seeds}");
}

/// Runs one seed, and prints what it is and what came of it.
fn check_one(draw: impl Fn(u64) -> Drawn) {
    let seed = number("DACAPO_SEED", 1998);
    let drawn = draw(seed);
    let outcome = run(&drawn.scenario);
    println!("{:?}\n{:?}", drawn.scenario.offer, drawn.scenario.link);
    let came = outcome.record.numbers.len();
    let (ready, ended) = (outcome.ready_at, outcome.ended_at);
    println!("{came} came: {:?}, {:?}, {ready:?} to {ended:?}", outcome.ledgers, outcome.error);
    assert_eq!(broken(&drawn, &outcome), None, "seed {seed}");
}
