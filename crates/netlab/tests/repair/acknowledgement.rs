//! Flows whose senders send again what is not acknowledged: nothing is lost.

use super::{Drawn, Repair, SEEDS, SEEDS_AT_NIGHT, check_all, check_one};
use dacapo_base::Random;
use dacapo_base::seeds::number;

const ARQ_SR: u16 = 7;

/// One unit of all that are sent would be too many.
const LEFT: f64 = 1e-9;

fn draw(seed: u64) -> Drawn {
    let mut random = Random::from_number(seed ^ 0xA55_A55);
    // Of three one as they come.
    let is_ordered = !seed.is_multiple_of(3);
    let repair = Repair {
        module: ARQ_SR,
        params: vec![(0, is_ordered.into())],
        is_whole: true,
        is_unordered: !is_ordered,
        ..Repair::default()
    };
    Drawn::with(seed, &mut random, repair)
}

#[test]
fn two_hundred_seeds_account_for_every_unit_and_lose_none() {
    check_all("acknowledgement", number("DACAPO_SEEDS", SEEDS), LEFT, draw);
}

#[test]
#[ignore = "10,000 worlds, a quarter of an hour: make nightly"]
fn ten_thousand_seeds_do_too() {
    check_all("acknowledgement", SEEDS_AT_NIGHT, LEFT, draw);
}

#[test]
fn one_seed() {
    check_one(draw);
}
