//! Flows with parities.

use super::{Drawn, Repair, SEEDS, SEEDS_AT_NIGHT, check_all, check_one};
use dacapo_base::Random;
use dacapo_base::seeds::number;
use std::time::Duration;

const FEC_RS: u16 = 5;

/// A third of the blocks that are drawn has none or too few parities.
const LEFT: f64 = 0.7;

fn draw(seed: u64) -> Drawn {
    let mut random = Random::from_number(seed ^ 0xFEC0_FEC0);
    let sources = 1 + random.below(40);
    let parities = random.below(sources.min(12) + 1);
    let span_ms = 1 + random.below(100);
    let repair = Repair {
        module: FEC_RS,
        params: vec![(0, sources), (1, parities), (2, span_ms * 1_000_000)],
        // As long as a block and its parities take, and the jitter.
        hold: Some(Duration::from_millis(2 * span_ms + 40)),
        is_whole: false,
        ..Repair::default()
    };
    Drawn::with(seed, &mut random, repair)
}

#[test]
fn two_hundred_seeds_account_for_every_unit_and_compute_a_third_of_what_is_lost() {
    check_all("parity", number("DACAPO_SEEDS", SEEDS), LEFT, draw);
}

#[test]
#[ignore = "10,000 worlds, a quarter of an hour: make nightly"]
fn ten_thousand_seeds_do_too() {
    check_all("parity", SEEDS_AT_NIGHT, LEFT, draw);
}

#[test]
fn one_seed() {
    check_one(draw);
}
