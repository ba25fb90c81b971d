//! The delay figures that a receiver shows agree with the emulator's own record.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_link::LinkConfig;
use dacapo_netlab::scenario::{Scenario, run};
use std::time::Duration;

#[test]
fn delay_shown_is_the_delay_of_the_link_within_a_millisecond() {
    let link: LinkConfig = "delay=20ms,jitter=5ms".parse().unwrap();
    for seed in 0..10 {
        let mut scenario = Scenario::new(seed, link.clone());
        scenario.pattern.every = Duration::from_millis(20);
        let outcome = run(&scenario);
        assert!(outcome.closes(), "seed {seed}");
        let mut delays = outcome.record.delays.clone();
        delays.sort_unstable();
        let at = |q: f64| delays[((delays.len() - 1) as f64 * q) as usize];
        let record = &outcome.to_participant.delay;
        let pairs = [(at(0.5), record.p50().unwrap()), (at(0.99), record.p99().unwrap())];
        for (shown, truth) in pairs {
            let apart = shown.abs_diff(truth);
            assert!(apart < Duration::from_millis(1), "seed {seed}: {shown:?}, link {truth:?}");
        }
    }
}
