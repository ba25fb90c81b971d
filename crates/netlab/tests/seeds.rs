//! 2,000 seeds of the world with every fault of the link: set up, deliver, and account for every
//! unit.
//!
//! A failure prints its seed; `DACAPO_SEED=n cargo test -p dacapo-netlab --test seeds one_seed`
//! repeats it alone. `DACAPO_SEEDS` sets how many are run.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_base::seeds::{each_seed, number};
use dacapo_lift::DropReason;
use dacapo_link::LinkStats;
use dacapo_netlab::scenario::{Outcome, Scenario, run};
use dacapo_netlab::seeds::failure;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const SEEDS: u64 = 2_000;
const UNITS_MIN: usize = 5_000;

/// What must hold whatever the link does: the reason if it does not.
fn broken(outcome: &Outcome) -> Option<String> {
    let record = &outcome.record;
    outcome.ready_at?;
    if !outcome.closes() {
        return Some(format!("the ledgers do not close: {:?}", outcome.ledgers));
    }
    if record.altered + record.misnumbered > 0 {
        return Some(format!("{} altered, {} misnumbered", record.altered, record.misnumbered));
    }
    if !record.numbers.windows(2).all(|pair| pair[0] < pair[1]) {
        return Some("repeated or out of order".into());
    }
    if outcome.views_left > 0 {
        return Some(format!("{} views were not given back", outcome.views_left));
    }
    None
}

#[derive(Default)]
struct Totals {
    ready: u64,
    enough: u64,
    units: u64,
    faults: LinkStats,
    checksum: u64,
    duplicate: u64,
    changed: u64,
    slowest_setup: Duration,
}

impl Totals {
    fn add(&mut self, outcome: &Outcome) {
        let to = &outcome.to_participant;
        self.ready += u64::from(outcome.ready_at.is_some());
        self.enough += u64::from(outcome.record.numbers.len() >= UNITS_MIN);
        self.units += outcome.record.numbers.len() as u64;
        self.faults.lost_random += to.lost_random;
        self.faults.lost_burst += to.lost_burst;
        self.faults.duplicated += to.duplicated;
        self.faults.reordered += to.reordered;
        self.faults.corrupted_detected += to.corrupted_detected;
        self.faults.corrupted_undetected += to.corrupted_undetected;
        self.checksum += outcome.dropped(DropReason::Checksum);
        self.duplicate += outcome.dropped(DropReason::Duplicate);
        self.changed += u64::from(outcome.changed);
        let setup = outcome.ready_at.map_or(Duration::ZERO, |at| at.since(dacapo_base::Time::ZERO));
        self.slowest_setup = self.slowest_setup.max(setup);
    }
}

fn check(seed: u64, totals: &Mutex<Totals>) {
    let outcome = run(&Scenario::faulty(seed));
    if let Some(reason) = broken(&outcome) {
        panic!("{}", failure("seeds one_seed", seed, &reason));
    }
    if outcome.record.numbers.len() < UNITS_MIN {
        println!("seed {seed}: set up at {:?}, {:?}", outcome.ready_at, outcome.error);
    }
    totals.lock().unwrap_or_else(PoisonError::into_inner).add(&outcome);
}

#[test]
fn two_thousand_seeds_deliver_and_account_for_every_unit() {
    let seeds = number("DACAPO_SEEDS", SEEDS);
    let totals = Mutex::new(Totals::default());
    each_seed(0..seeds, |seed| check(seed, &totals));
    let totals = totals.into_inner().unwrap();
    println!(
        "{seeds} seeds: {} set up (slowest {:.2?}), {} with at least {UNITS_MIN} units, {} units, \
         {} changes; {} lost at random, {} in bursts, {} duplicated, {} reordered, {} + {} \
         corrupted; {} caught by checksum, {} duplicates by sequence",
        totals.ready,
        totals.slowest_setup,
        totals.enough,
        totals.units,
        totals.changed,
        totals.faults.lost_random,
        totals.faults.lost_burst,
        totals.faults.duplicated,
        totals.faults.reordered,
        totals.faults.corrupted_detected,
        totals.faults.corrupted_undetected,
        totals.checksum,
        totals.duplicate
    );
    assert!(totals.enough * 100 >= seeds * 99, "{} of {seeds} delivered enough", totals.enough);
    let happened = [
        totals.faults.lost_random,
        totals.faults.lost_burst,
        totals.faults.duplicated,
        totals.faults.reordered,
        totals.faults.corrupted_detected,
        totals.faults.corrupted_undetected,
        totals.checksum,
        totals.duplicate,
        totals.changed,
    ];
    assert!(
        happened.iter().all(|&count| count > seeds / 2),
        "a fault did not happen: {happened:?}"
    );
}

#[test]
fn one_seed() {
    let seed = number("DACAPO_SEED", 1998);
    let outcome = run(&Scenario::faulty(seed));
    println!(
        "error {:?} ended {:?} {:?}\nsender {:?}\nreceiver {:?}",
        outcome.error,
        outcome.ended_at,
        Scenario::faulty(seed).link,
        outcome.ledgers.1,
        outcome.ledgers.0
    );
    assert_eq!(broken(&outcome), None, "seed {seed}");
}
