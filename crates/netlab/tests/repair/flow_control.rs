//! Flows that wait for room, above a module that loses nothing: none stands still for good,
//! whatever is lost on both ways and however often its graph changes.

use super::{Drawn, Repair, SEEDS, SEEDS_AT_NIGHT, check_all, check_one};
use dacapo_base::Random;
use dacapo_base::seeds::number;

const ARQ_SR: u16 = 7;
const WINDOW: u16 = 0x13;
const CREDIT: u16 = 0x14;

/// One unit of all that are sent would be too many.
const LEFT: f64 = 1e-9;

fn draw(seed: u64) -> Drawn {
    let mut random = Random::from_number(seed ^ 0x00F1_00C0);
    // Few units, or bytes: so that it waits again and again.
    let by_bytes = (WINDOW, vec![(0, 2_000 + random.below(50_000))]);
    let by_units = (CREDIT, vec![(0, 1 + random.below(100))]);
    let above = Some(if random.chance(0.5) { by_bytes } else { by_units });
    let repair = Repair { above, module: ARQ_SR, is_whole: true, ..Repair::default() };
    Drawn::with(seed, &mut random, repair)
}

#[test]
fn two_hundred_seeds_account_for_every_unit_and_lose_none() {
    check_all("flow_control", number("DACAPO_SEEDS", SEEDS), LEFT, draw);
}

#[test]
#[ignore = "10,000 worlds, a quarter of an hour: make nightly"]
fn ten_thousand_seeds_do_too() {
    check_all("flow_control", SEEDS_AT_NIGHT, LEFT, draw);
}

#[test]
fn one_seed() {
    check_one(draw);
}
