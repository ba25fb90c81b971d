//! Flows with sums of rows and columns.

use super::{Drawn, Repair, SEEDS, SEEDS_AT_NIGHT, check_all, check_one};
use dacapo_base::Random;
use dacapo_base::seeds::number;
use std::time::Duration;

const FEC_XOR: u16 = 14;

/// A third of the grids that are drawn has too few sums for what the links lose, or too short ones.
const LEFT: f64 = 0.7;

fn draw(seed: u64) -> Drawn {
    let mut random = Random::from_number(seed ^ 0x0F17_0F17);
    let arrangement = 1 + random.below(3);
    let (columns, rows) = (1 + random.below(16), 1 + random.below(8));
    let span_ms = 1 + random.below(200);
    let repair = Repair {
        module: FEC_XOR,
        params: vec![(0, arrangement), (1, columns), (2, rows), (3, span_ms * 1_000_000)],
        // As long as a sum takes, and the jitter.
        hold: Some(Duration::from_millis(span_ms + 40)),
        is_whole: false,
        ..Repair::default()
    };
    Drawn::with(seed, &mut random, repair)
}

#[test]
fn two_hundred_seeds_account_for_every_unit_and_compute_a_third_of_what_is_lost() {
    check_all("grid", number("DACAPO_SEEDS", SEEDS), LEFT, draw);
}

#[test]
#[ignore = "10,000 worlds, a quarter of an hour: make nightly"]
fn ten_thousand_seeds_do_too() {
    check_all("grid", SEEDS_AT_NIGHT, LEFT, draw);
}

#[test]
fn one_seed() {
    check_one(draw);
}
