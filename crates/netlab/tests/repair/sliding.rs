//! Flows with repairs of a sliding window.

use super::{Drawn, Repair, SEEDS, SEEDS_AT_NIGHT, check_all, check_one};
use dacapo_base::Random;
use dacapo_base::seeds::number;
use std::time::Duration;

const FEC_RLC: u16 = 9;

/// A third of the windows that are drawn has too few repairs, or is too short.
const LEFT: f64 = 0.7;

fn draw(seed: u64) -> Drawn {
    let mut random = Random::from_number(seed ^ 0x51D1_51D1);
    let percent = 1 + random.below(60);
    let window = 1 + random.below(255);
    let span_ms = 1 + random.below(200);
    let repair = Repair {
        module: FEC_RLC,
        params: vec![(0, percent), (1, window), (2, span_ms * 1_000_000)],
        // As long as a source is in repairs, and the jitter.
        hold: Some(Duration::from_millis(span_ms + 40)),
        is_whole: false,
        ..Repair::default()
    };
    Drawn::with(seed, &mut random, repair)
}

#[test]
fn two_hundred_seeds_account_for_every_unit_and_compute_a_third_of_what_is_lost() {
    check_all("sliding", number("DACAPO_SEEDS", SEEDS), LEFT, draw);
}

#[test]
#[ignore = "10,000 worlds, a quarter of an hour: make nightly"]
fn ten_thousand_seeds_do_too() {
    check_all("sliding", SEEDS_AT_NIGHT, LEFT, draw);
}

#[test]
fn one_seed() {
    check_one(draw);
}
