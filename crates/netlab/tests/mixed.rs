//! Seeds of the world with every fault mixed: what is promised under all of them holds.
//!
//! `DACAPO_SEEDS` sets how many are run (10,000 are all), `DACAPO_SEED_FIRST` where they begin. A
//! failure prints its seed and the command that repeats it alone.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_base::seeds::{each_seed, number};
use dacapo_netlab::mixed::{Totals, draw};
use dacapo_netlab::seeds::failure;
use dacapo_netlab::trial::{EachWay, Outcome, Trial, check, run};
use std::sync::{Mutex, PoisonError};

const SEEDS: u64 = 500;

/// Runs a seed; what broke, and how to see it again.
fn try_seed(seed: u64, totals: &Mutex<Totals>) -> Option<String> {
    let trial = draw(seed);
    let outcome = run(&trial);
    totals.lock().unwrap_or_else(PoisonError::into_inner).add(&trial, &outcome);
    let broken = check(&trial, &outcome).err()?;
    Some(failure("mixed one_seed", seed, &broken))
}

#[test]
fn whatever_is_mixed_every_session_is_resolved_and_every_unit_accounted_for() {
    let (first, seeds) = (number("DACAPO_SEED_FIRST", 0), number("DACAPO_SEEDS", SEEDS));
    let (totals, broken) = (Mutex::new(Totals::default()), Mutex::new(Vec::new()));
    each_seed(first..first + seeds, |seed| {
        let found = try_seed(seed, &totals);
        broken.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
    });
    let (totals, broken) = (totals.into_inner().unwrap(), broken.into_inner().unwrap());
    println!("{totals}");
    assert!(broken.is_empty(), "{} seeds broke:\n{}", broken.len(), broken.join("\n"));
    // Far more than half must get through, or nothing was tried.
    assert!(totals.ready * 100 >= seeds * 90, "{totals}");
    assert!(totals.complete * 100 >= seeds * 60, "{totals}");
    let happened = [totals.changes, totals.streams, totals.lost, totals.duplicated];
    let happened = happened.into_iter().chain([totals.reordered, totals.altered, totals.dropped]);
    assert!(happened.min() > Some(seeds / 10), "a fault did not happen: {totals}");
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    for seed in [3, 14, 15] {
        let (first, again) = (run(&draw(seed)), run(&draw(seed)));
        assert_eq!(first.trace, again.trace, "seed {seed}");
        assert_eq!(first.delivered(), again.delivered(), "seed {seed}");
    }
}

/// A trial over links whose queue is managed and does not stay empty.
fn managed(exact: bool) -> (Trial, Outcome) {
    let link = "rate=1Mbit/s,delay=5ms,aqm=dualpi2,aqm-target=1ms".parse().unwrap();
    let mut trial = Trial { exact, ..Trial::new(7, EachWay::both(link)) };
    trial.flows[0].pattern.count = 500;
    let outcome = run(&trial);
    (trial, outcome)
}

#[test]
fn what_a_managed_queue_drops_is_in_the_totals_and_nothing_is_marked() {
    let (trial, outcome) = managed(false);
    let mut totals = Totals::default();
    totals.add(&trial, &outcome);
    let links = [&outcome.links.to_participant, &outcome.links.to_creator];
    let managed: u64 = links.iter().map(|link| link.dropped_aqm).sum();
    let all: u64 = links.iter().map(|link| link.dropped()).sum();
    assert!(managed > 0 && links.iter().all(|link| link.marked == 0), "{links:?}");
    assert_eq!((totals.dropped, totals.lost + totals.dropped), (managed, all));
}

#[test]
fn a_trial_over_a_managed_queue_cannot_be_exact() {
    let (trial, outcome) = managed(true);
    let refused = check(&trial, &outcome).unwrap_err();
    assert!(refused.contains("leave out aqm, or exact"), "{refused}");
}

#[test]
fn one_seed() {
    let seed = number("DACAPO_SEED", 1998);
    let trial = draw(seed);
    let outcome = run(&trial);
    println!("{trial:#?}");
    println!("{:#?} {:?} {:?}", outcome.stages, outcome.ended, outcome.lost);
    for flow in &outcome.flows {
        println!("sent {:?}\nreceived {:?}", flow.sent, flow.received);
    }
    assert_eq!(check(&trial, &outcome), Ok(()), "seed {seed}");
}
