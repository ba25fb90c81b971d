//! Whole sessions in virtual time.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_link::LinkConfig;
use dacapo_netlab::scenario::{Scenario, run};

#[test]
fn a_perfect_link_delivers_everything_and_the_ledgers_close() {
    let scenario = Scenario::new(1, "delay=10ms".parse().unwrap());
    let outcome = run(&scenario);
    assert_eq!(outcome.error, None);
    assert!(outcome.closes(), "{:?}", outcome.ledgers);
    assert_eq!(outcome.record.numbers, (0..1_000).collect::<Vec<_>>());
    assert_eq!(outcome.hash, Some(true));
    assert_eq!((outcome.record.altered, outcome.record.misnumbered), (0, 0));
    assert_eq!(outcome.views_left, 0);
}

#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() {
    let link: LinkConfig =
        "loss=5%,delay=20ms,jitter=5ms,dup=2%,reorder=2%,corrupt=1%,corrupt-undetected=1%"
            .parse()
            .unwrap();
    for seed in 0..5 {
        let mut scenario = Scenario::new(seed, link.clone());
        scenario.changes = 3;
        let (first, again) = (run(&scenario), run(&scenario));
        assert!(first.trace.count > 1_000, "seed {seed}");
        assert_eq!(first.trace, again.trace, "seed {seed}");
        assert_eq!(first.record.numbers, again.record.numbers, "seed {seed}");
    }
    let other = run(&Scenario::new(99, link.clone())).trace;
    assert_ne!(run(&Scenario::new(0, link)).trace, other);
}
