//! Flows with a deadline, over links that lose, delay and queue: no unit is handed over later than
//! that, what is late is told, and what would have been in time is not called late.
//!
//! A failure prints its seed and the command that repeats it alone. `DACAPO_SEEDS` sets how many
//! are run.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_base::Random;
use dacapo_base::seeds::number;
use dacapo_link::{LinkConfig, Loss};
use dacapo_netlab::scenario::{Outcome, Scenario, raw_offer, run};
use dacapo_netlab::seeds::check_seeds;
use dacapo_wire::graph::GraphForm;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const SEEDS: u64 = 200;
const SEEDS_AT_NIGHT: u64 = 10_000;
const UNITS: u64 = 2_000;

/// The numbers of the modules.
const SEGMENT: u16 = 1;
const SEQUENCE: u16 = 2;
const CHECKSUM: u16 = 3;
const ARQ_NAK: u16 = 6;
const ARQ_SR: u16 = 7;
const USE_BY: u16 = 8;

/// Times on the wire are cut to microseconds.
const GRAIN: Duration = Duration::from_micros(1);

struct Drawn {
    scenario: Scenario,
    deadline: Duration,
    /// By how much what is known of the peer's clock may be wrong.
    error: Duration,
}

/// `is_free`: the same without its deadline.
fn draw(seed: u64, is_free: bool) -> Drawn {
    let mut random = Random::from_number(seed ^ 0xDEAD_11E5);
    let delay = Duration::from_millis(1 + random.below(60));
    let jitter = delay.min(Duration::from_millis(random.below(30)));
    let mean = random.unit() * 0.1;
    let link = LinkConfig {
        delay,
        jitter,
        keep_order: random.chance(0.5),
        loss: Loss::burst(mean, 1.5 + random.unit() * 4.0).unwrap_or_default(),
        duplicate: random.unit() * 0.03,
        ..LinkConfig::default()
    };
    let mut scenario = Scenario::new(seed, link);
    scenario.pattern.count = UNITS;
    scenario.pattern.every = Duration::from_micros(500 + random.below(2_000));
    scenario.changes = random.below(3) as u32;
    scenario.has_two_clocks = random.chance(0.5);
    let deadline = delay + Duration::from_millis(random.below(80));
    let stamps = (USE_BY, vec![(0, deadline.as_nanos() as u64)]);
    let mut modules = if is_free { Vec::new() } else { vec![stamps] };
    let repairs = random.below(3);
    if random.chance(0.5) {
        scenario.pattern.len_max = 4_000;
        modules.push((SEGMENT, if repairs == 2 { vec![(0, 60_000_000_000)] } else { Vec::new() }));
    }
    match repairs {
        0 => modules.push((SEQUENCE, vec![(0, random.below(80) * 1_000_000)])),
        1 => {
            modules.push((SEQUENCE, vec![(0, 80_000_000)]));
            modules.push((ARQ_NAK, vec![(0, 80_000_000)]));
        }
        _ => modules.push((ARQ_SR, Vec::new())),
    }
    modules.push((CHECKSUM, Vec::new()));
    let longest = scenario.pattern.len_max as u32 + 16;
    let mut offer = raw_offer("deadline", GraphForm::line(modules), 200_000_000, longest);
    offer.digest = false;
    scenario.offer = Some(offer);
    // Half of what the two ways of an exchange may differ by: each is the delay, and up to the
    // jitter more or less.
    let error = if scenario.has_two_clocks { jitter + GRAIN } else { GRAIN };
    Drawn { scenario, deadline, error }
}

/// What must hold whatever the link does: the reason if it does not.
fn broken(drawn: &Drawn, outcome: &Outcome) -> Option<String> {
    outcome.ready_at?;
    if !outcome.closes() {
        return Some(format!("the ledgers do not close: {:?}", outcome.ledgers));
    }
    let (record, most) = (&outcome.record, drawn.deadline + drawn.error);
    if let Some(wait) = record.waits.iter().find(|wait| **wait > most) {
        return Some(format!("a unit was handed over after {wait:?}, deadline {most:?}"));
    }
    if record.altered + record.misnumbered > 0 || !record.numbers.is_sorted() {
        return Some("altered, misnumbered or out of order".into());
    }
    (outcome.views_left > 0).then(|| format!("{} views were not given back", outcome.views_left))
}

#[derive(Debug, Default)]
struct Totals {
    /// Units that were called late, and that are without a deadline.
    late: u64,
    late_without: u64,
    in_time: u64,
    lost: u64,
}

fn check_all(seeds: u64) {
    let totals = Mutex::new(Totals::default());
    check_seeds("deadline one_seed", seeds, |seed| {
        let drawn = draw(seed, false);
        let outcome = run(&drawn.scenario);
        let broken = broken(&drawn, &outcome);
        let free = run(&draw(seed, true).scenario);
        let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(ledger), Some(_)) = (&outcome.ledgers.0, free.ready_at) else { return broken };
        totals.late += ledger.late;
        totals.lost += ledger.lost;
        totals.in_time += ledger.delivered;
        let is_late = |wait: &&Duration| **wait > drawn.deadline;
        totals.late_without += free.record.waits.iter().filter(is_late).count() as u64;
        broken
    });
    let totals = totals.into_inner().unwrap();
    println!("{seeds} seeds: {totals:?}");
    let (late, without) = (totals.late as f64, totals.late_without as f64);
    assert!(late > 0.01 * totals.in_time as f64, "too few are late to say anything");
    assert!((0.95..1.05).contains(&(late / without)), "{late} late, {without} without a deadline");
}

#[test]
fn two_hundred_seeds_hand_nothing_over_late() {
    check_all(number("DACAPO_SEEDS", SEEDS));
}

#[test]
#[ignore = "10,000 worlds, a quarter of an hour: make nightly"]
fn ten_thousand_seeds_do_not_either() {
    check_all(SEEDS_AT_NIGHT);
}

#[test]
fn one_seed() {
    let drawn = draw(number("DACAPO_SEED", 1998), false);
    let outcome = run(&drawn.scenario);
    println!("{:?}\n{:?}", drawn.scenario.offer, drawn.scenario.link);
    println!("{:?}, {:?}", outcome.ledgers, outcome.error);
    assert_eq!(broken(&drawn, &outcome), None);
}
