//! Flows of which the newest unit is to arrive, over links that lose much, and change their graphs
//! meanwhile: the last one always comes, all come in order, and the ledgers close.
//!
//! A failure prints its seed and the command that repeats it alone. `DACAPO_SEEDS` sets how many
//! are run.

use dacapo_base::Random;
use dacapo_base::seeds::number;
use dacapo_link::{LinkConfig, Loss};
use dacapo_netlab::scenario::{Outcome, Scenario, raw_offer, run};
use dacapo_netlab::seeds::check_seeds;
use dacapo_wire::graph::GraphForm;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SEEDS: u64 = 200;

/// The numbers of the modules.
const SEGMENT: u16 = 1;
const CHECKSUM: u16 = 3;
const LATEST: u16 = 13;

fn draw(seed: u64) -> Scenario {
    let mut random = Random::from_number(seed ^ 0x001A_7E57);
    let delay = Duration::from_millis(1 + random.below(100));
    let link = LinkConfig {
        delay,
        jitter: delay.min(Duration::from_millis(random.below(30))),
        keep_order: random.chance(0.5),
        loss: Loss::burst(random.unit() * 0.3, 1.5 + random.unit() * 4.0).unwrap_or_default(),
        duplicate: random.unit() * 0.03,
        corrupt_undetected: random.unit() * 0.01,
        ..LinkConfig::default()
    };
    let mut scenario = Scenario::new(seed, link);
    scenario.pattern.count = 20 + random.below(200);
    scenario.pattern.every = Duration::from_millis(1 + random.below(150));
    scenario.time_max = Duration::from_secs(120);
    scenario.changes = random.below(3) as u32;
    let mut modules = vec![(LATEST, Vec::new())];
    if random.chance(0.5) {
        scenario.pattern.len_max = 4_000;
        modules.push((SEGMENT, Vec::new()));
    }
    modules.push((CHECKSUM, Vec::new()));
    let longest = scenario.pattern.len_max as u32 + 16;
    let mut offer = raw_offer("newest", GraphForm::line(modules), 200_000_000, longest);
    offer.digest = false;
    scenario.offer = Some(offer);
    scenario
}

/// What must hold whatever the link does: the reason if it does not.
fn broken(scenario: &Scenario, outcome: &Outcome) -> Option<String> {
    outcome.ready_at?;
    if !outcome.closes() {
        return Some(format!("the ledgers do not close: {:?}", outcome.ledgers));
    }
    let record = &outcome.record;
    let newest = record.numbers.last().copied();
    if newest != Some(scenario.pattern.count - 1) {
        return Some(format!("the newest is {newest:?} of {}", scenario.pattern.count));
    }
    if record.altered + record.misnumbered > 0 || !record.numbers.is_sorted_by(|a, b| a < b) {
        return Some("altered, misnumbered, twice or out of order".into());
    }
    (outcome.views_left > 0).then(|| format!("{} views were not given back", outcome.views_left))
}

#[test]
fn two_hundred_seeds_hand_the_newest_over() {
    let (lost, ran) = (AtomicU64::new(0), AtomicU64::new(0));
    check_seeds("newest one_seed", number("DACAPO_SEEDS", SEEDS), |seed| {
        let scenario = draw(seed);
        let outcome = run(&scenario);
        if let Some(ledger) = &outcome.ledgers.0 {
            ran.fetch_add(1, Ordering::Relaxed);
            lost.fetch_add(ledger.lost, Ordering::Relaxed);
        }
        broken(&scenario, &outcome)
    });
    let (lost, ran) = (lost.into_inner(), ran.into_inner());
    println!("{ran} ran, {lost} units lost");
    assert!(lost > ran && ran > 100, "{ran} ran, and {lost} units lost: too few to say anything");
}

#[test]
fn one_seed() {
    let scenario = draw(number("DACAPO_SEED", 1998));
    let outcome = run(&scenario);
    println!("{:?}\n{:?}", scenario.offer, scenario.link);
    println!("{:?}, {:?}", outcome.ledgers, outcome.error);
    assert_eq!(broken(&scenario, &outcome), None);
}
