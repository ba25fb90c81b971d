//! Flows that leave in bursts (`rate-burst`), over links that delay and reorder and lose nothing,
//! and that change their graphs meanwhile: every unit comes, whatever still waits for its burst
//! when an epoch or the flow ends.
//!
//! A failure prints its seed and the command that repeats it alone. `DACAPO_SEEDS` sets how many
//! are run.

use dacapo_base::Random;
use dacapo_base::seeds::number;
use dacapo_link::LinkConfig;
use dacapo_netlab::scenario::{Outcome, Scenario, raw_offer, run};
use dacapo_netlab::seeds::check_seeds;
use dacapo_wire::graph::GraphForm;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SEEDS: u64 = 200;

/// The numbers of the modules.
const SEGMENT: u16 = 1;
const SEQUENCE: u16 = 2;
const RATE_BURST: u16 = 18;

/// How long `segment` waits for what comes an interval later, in ns.
const PATIENCE: u64 = 10_000_000_000;

fn draw(seed: u64) -> Scenario {
    let mut random = Random::from_number(seed ^ 0xB0_0057);
    let delay = Duration::from_millis(1 + random.below(50));
    let link = LinkConfig {
        delay,
        jitter: delay.min(Duration::from_millis(random.below(20))),
        keep_order: random.chance(0.5),
        ..LinkConfig::default()
    };
    let mut scenario = Scenario::new(seed, link);
    let rate = 5_000 + random.below(300_000);
    // Intervals of up to half a second; units of up to two bursts, at twice the rate at most.
    let burst = (1_500 + random.below(60_000)).min(rate / 2).max(1_500);
    scenario.pattern.len_max = 16 + random.below(2 * burst) as usize;
    let every_ns = scenario.pattern.len_max as u64 * 500_000_000 / rate / (1 + random.below(2));
    scenario.pattern.every = Duration::from_nanos(every_ns.max(100_000));
    scenario.pattern.count = 50 + random.below(100);
    scenario.changes = random.below(4) as u32;
    scenario.time_max = Duration::from_secs(600);
    let mut modules =
        vec![(RATE_BURST, vec![(0, rate), (1, burst)]), (SEGMENT, vec![(0, PATIENCE)])];
    if random.chance(0.5) {
        modules.push((SEQUENCE, Vec::new()));
    }
    let longest = scenario.pattern.len_max as u32 + 16;
    // The bound is what the network bears, or only a little more than the rate.
    scenario.bound_bps = if random.chance(0.5) { 100_000_000 } else { rate * 8 * 5 / 4 + 50_000 };
    let mut offer = raw_offer("bursts", GraphForm::line(modules), scenario.bound_bps, longest);
    offer.digest = true;
    scenario.offer = Some(offer);
    scenario
}

/// What must hold: the reason if it does not.
fn broken(scenario: &Scenario, outcome: &Outcome) -> Option<String> {
    if !outcome.closes() {
        return Some(format!("the ledgers do not close: {:?}", outcome.ledgers));
    }
    let (count, record) = (outcome.record.numbers.len() as u64, &outcome.record);
    if count != scenario.pattern.count {
        return Some(format!("{count} units came of {}", scenario.pattern.count));
    }
    if record.altered + record.misnumbered > 0 {
        return Some("altered or misnumbered".into());
    }
    (outcome.views_left > 0).then(|| format!("{} views were not given back", outcome.views_left))
}

#[test]
fn two_hundred_seeds_lose_nothing_to_their_bursts() {
    let (units, changed) = (AtomicU64::new(0), AtomicU64::new(0));
    check_seeds("bursts one_seed", number("DACAPO_SEEDS", SEEDS), |seed| {
        let scenario = draw(seed);
        let outcome = run(&scenario);
        units.fetch_add(scenario.pattern.count, Ordering::Relaxed);
        changed.fetch_add(outcome.changed.into(), Ordering::Relaxed);
        broken(&scenario, &outcome)
    });
    let (units, changed) = (units.into_inner(), changed.into_inner());
    println!("{units} units, {changed} changes of graphs");
    assert!(changed > 50, "{changed} changes: too few to say anything");
}

#[test]
fn one_seed() {
    let scenario = draw(number("DACAPO_SEED", 1998));
    let outcome = run(&scenario);
    println!("{:?}\n{:?}", scenario.offer, scenario.link);
    println!("{:?}, {:?}", outcome.ledgers, outcome.error);
    assert_eq!(broken(&scenario, &outcome), None);
}
