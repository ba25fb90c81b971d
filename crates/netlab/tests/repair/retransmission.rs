//! Flows whose receivers ask for what is missing.

use super::{Drawn, Repair, SEEDS, SEEDS_AT_NIGHT, check_all, check_one};
use dacapo_base::Random;
use dacapo_base::seeds::number;
use std::time::Duration;

const ARQ_NAK: u16 = 6;

/// Some of the deadlines that are drawn leave no time for an answer, which takes up to 142 ms.
const LEFT: f64 = 0.22;

fn draw(seed: u64) -> Drawn {
    let mut random = Random::from_number(seed ^ 0xA49_A49);
    let deadline_ms = 20 + random.below(500);
    let is_ordered = random.chance(0.4);
    let hold = Duration::from_millis(deadline_ms + 40);
    let repair = Repair {
        module: ARQ_NAK,
        params: vec![(0, deadline_ms * 1_000_000), (1, is_ordered.into())],
        hold: (!is_ordered).then_some(hold),
        is_whole: false,
        ..Repair::default()
    };
    Drawn::with(seed, &mut random, repair)
}

#[test]
fn two_hundred_seeds_account_for_every_unit_and_get_most_of_what_is_lost() {
    check_all("retransmission", number("DACAPO_SEEDS", SEEDS), LEFT, draw);
}

#[test]
#[ignore = "10,000 worlds, a quarter of an hour: make nightly"]
fn ten_thousand_seeds_do_too() {
    check_all("retransmission", SEEDS_AT_NIGHT, LEFT, draw);
}

#[test]
fn one_seed() {
    check_one(draw);
}
