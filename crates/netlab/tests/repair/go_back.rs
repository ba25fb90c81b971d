//! Flows whose receivers keep nothing, and whose senders go back: nothing is lost.

use super::{Drawn, Repair, SEEDS, SEEDS_AT_NIGHT, check_all, check_one};
use dacapo_base::Random;
use dacapo_base::seeds::number;

const ARQ_GBN: u16 = 0x15;

/// One unit of all that are sent would be too many.
const LEFT: f64 = 1e-9;

fn draw(seed: u64) -> Drawn {
    let mut random = Random::from_number(seed ^ 0x0060_0BAC);
    let repair = Repair {
        module: ARQ_GBN,
        params: Vec::new(),
        hold: None,
        is_whole: true,
        ..Repair::default()
    };
    let mut drawn = Drawn::with(seed, &mut random, repair);
    // All that is under way leaves again for each packet that is lost, or overtaken: that is
    // little, and few are overtaken.
    drawn.scenario.pattern.every *= 6;
    drawn.scenario.link.reorder /= 10.0;
    drawn.scenario.link.keep_order = true;
    drawn
}

#[test]
fn two_hundred_seeds_account_for_every_unit_and_lose_none() {
    check_all("go_back", number("DACAPO_SEEDS", SEEDS), LEFT, draw);
}

#[test]
#[ignore = "10,000 worlds, a quarter of an hour: make nightly"]
fn ten_thousand_seeds_do_too() {
    check_all("go_back", SEEDS_AT_NIGHT, LEFT, draw);
}

#[test]
fn one_seed() {
    check_one(draw);
}
