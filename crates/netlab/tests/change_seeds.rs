//! A running flow changes epoch by `make` to an equal graph: nothing is lost beyond what the link
//! took, nothing is repeated, nothing is reordered.
//!
//! What the link took is known exactly: units lie whole in one datagram, and the observer of the
//! world notes for each whether a true copy of it arrives.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_base::Random;
use dacapo_link::{LinkConfig, Loss};
use dacapo_netlab::scenario::{Outcome, Scenario, run};
use std::time::Duration;

const SEEDS: u64 = 200;
const CHANGES: u32 = 5;

/// A link with every fault, each seed another one; nothing comes later than `sequence` waits.
fn link(seed: u64) -> LinkConfig {
    let mut random = Random::from_number(seed ^ 0xC4A6E);
    let mut config = LinkConfig {
        delay: Duration::from_millis(1 + random.below(60)),
        jitter: Duration::from_millis(random.below(6)),
        keep_order: random.chance(0.5),
        loss: Loss::Random { p: random.unit() * 0.15 },
        duplicate: random.unit() * 0.1,
        reorder: random.unit() * 0.1,
        reorder_by: Duration::from_millis(1 + random.below(15)),
        corrupt_undetected: random.unit() * 0.02,
        ..LinkConfig::default()
    };
    config.jitter = config.jitter.min(config.delay);
    config
}

fn check(seed: u64, outcome: &Outcome) {
    let hint =
        format!("seed {seed}: cargo test -p dacapo-netlab --test change_seeds -- --nocapture");
    assert_eq!(outcome.error, None, "{hint}");
    assert!(outcome.closes(), "{hint}: {:?}", outcome.ledgers);
    let record = &outcome.record;
    assert!(
        record.numbers.windows(2).all(|pair| pair[0] < pair[1]),
        "{hint}: repeated or reordered"
    );
    assert_eq!((record.altered, record.misnumbered), (0, 0), "{hint}");
    let taken: Vec<u64> =
        outcome.units.iter().filter(|(_, unit)| unit.arrives == 0).map(|(n, _)| *n).collect();
    assert_eq!(record.lost, taken, "{hint}: lost beyond what the link took, or not seen");
    assert_eq!(outcome.views_left, 0, "{hint}");
    // One that the end of the flow overtakes is taken back.
    assert!(outcome.change_failed <= 1, "{hint}: {} changes failed", outcome.change_failed);
}

#[test]
fn two_hundred_seeds_lose_only_what_the_link_took() {
    let (mut lost, mut changed, mut duplicated, mut reordered) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let mut scenario = Scenario::new(seed, link(seed));
        scenario.pattern.count = 3_000;
        scenario.changes = CHANGES;
        let outcome = run(&scenario);
        check(seed, &outcome);
        assert!(outcome.changed >= 1, "seed {seed}: {} changes", outcome.changed);
        lost += outcome.record.lost.len();
        changed += outcome.changed;
        duplicated += outcome.to_participant.duplicated;
        reordered += outcome.to_participant.reordered;
    }
    println!("{changed} changes, {lost} units lost, {duplicated} repeated, {reordered} reordered");
    assert!(changed >= SEEDS as u32 * 3, "{changed} changes");
    assert!(lost > 5_000 && duplicated > 5_000 && reordered > 1_000, "the links did little");
}
