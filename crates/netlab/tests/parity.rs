//! 200 seeds of flows with parities, over links that lose, repeat, reorder and alter: every unit is
//! accounted for, none comes twice, altered or, below `sequence`, out of order; and of what is lost
//! most is computed.
//!
//! A failure prints its seed; `DACAPO_SEED=n cargo test -p dacapo-netlab --test parity one_seed`
//! repeats it alone. `DACAPO_SEEDS` sets how many are run.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_base::Random;
use dacapo_base::seeds::{each_seed, number};
use dacapo_link::{LinkConfig, Loss};
use dacapo_netlab::scenario::{Outcome, Scenario, raw_offer, run};
use dacapo_wire::graph::GraphForm;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const SEEDS: u64 = 200;
const UNITS: u64 = 3_000;

/// The numbers of the modules.
const SEGMENT: u16 = 1;
const SEQUENCE: u16 = 2;
const CHECKSUM: u16 = 3;
const FEC_RS: u16 = 5;

/// A flow and a link.
struct Drawn {
    scenario: Scenario,
    is_ordered: bool,
    is_checked: bool,
}

fn draw(seed: u64) -> Drawn {
    let mut random = Random::from_number(seed ^ 0xFEC0_FEC0);
    let (is_ordered, is_checked) = (random.chance(0.7), random.chance(0.7));
    let is_segmented = random.chance(0.5);
    let sources = 1 + random.below(40);
    let parities = random.below(sources.min(12) + 1);
    let span_ms = 1 + random.below(100);
    let mut modules = Vec::new();
    if is_segmented {
        modules.push((SEGMENT, Vec::new()));
    }
    if is_ordered {
        // As long as a block and its parities take, and the jitter.
        modules.push((SEQUENCE, vec![(0, (2 * span_ms + 40) * 1_000_000)]));
    }
    modules.push((FEC_RS, vec![(0, sources), (1, parities), (2, span_ms * 1_000_000)]));
    if is_checked {
        modules.push((CHECKSUM, Vec::new()));
    }
    let mean = random.unit() * 0.15;
    let burst = Loss::burst(mean, 1.5 + random.unit() * 6.0).unwrap_or_default();
    let link = LinkConfig {
        delay: Duration::from_millis(1 + random.below(60)),
        jitter: Duration::from_millis(random.below(2) * random.below(10)),
        keep_order: random.chance(0.5),
        loss: if random.chance(0.5) { burst } else { Loss::Random { p: mean } },
        duplicate: random.unit() * 0.05,
        reorder: random.unit() * 0.05,
        reorder_by: Duration::from_millis(1 + random.below(30)),
        corrupt: random.unit() * 0.01,
        // What nobody checks, nobody finds.
        corrupt_undetected: if is_checked { random.unit() * 0.01 } else { 0.0 },
        ..LinkConfig::default()
    };
    let link = LinkConfig { jitter: link.jitter.min(link.delay), ..link };
    let mut scenario = Scenario::new(seed, link);
    scenario.pattern.count = UNITS;
    scenario.pattern.every = Duration::from_micros(300 + random.below(2_000));
    scenario.pattern.len_max = if is_segmented { 4_000 } else { 1_300 };
    scenario.changes = random.below(3) as u32;
    let longest = scenario.pattern.len_max as u32 + 16;
    let mut offer = raw_offer("parity", GraphForm::line(modules), 200_000_000, longest);
    offer.digest = is_ordered;
    scenario.offer = Some(offer);
    Drawn { scenario, is_ordered, is_checked }
}

/// What must hold whatever the link does: the reason if it does not.
fn broken(drawn: &Drawn, outcome: &Outcome) -> Option<String> {
    let record = &outcome.record;
    outcome.ready_at?;
    if !outcome.closes() {
        return Some(format!("the ledgers do not close: {:?}", outcome.ledgers));
    }
    if record.altered + record.misnumbered > 0 {
        return Some(format!("{} altered, {} misnumbered", record.altered, record.misnumbered));
    }
    if drawn.is_ordered && !record.numbers.is_sorted() {
        return Some("out of order".into());
    }
    let mut once = record.numbers.clone();
    once.sort_unstable();
    once.dedup();
    if once.len() < record.numbers.len() {
        return Some(format!("{} units came twice", record.numbers.len() - once.len()));
    }
    (outcome.views_left > 0).then(|| format!("{} views were not given back", outcome.views_left))
}

#[derive(Debug, Default)]
struct Totals {
    units: u64,
    lost: u64,
    /// Packets that were lost or altered on the way to the participant, and all of them.
    packets_lost: u64,
    packets: u64,
    checked: u64,
    ordered: u64,
    changed: u64,
}

fn check(seed: u64, totals: &Mutex<Totals>) {
    let drawn = draw(seed);
    let outcome = run(&drawn.scenario);
    if let Some(reason) = broken(&drawn, &outcome) {
        panic!(
            "seed {seed}: {reason}\nrepeat: DACAPO_SEED={seed} cargo test -p dacapo-netlab \
             --test parity one_seed -- --nocapture"
        );
    }
    let link = &outcome.to_participant;
    let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
    totals.units += UNITS;
    totals.lost += UNITS - outcome.record.numbers.len() as u64;
    totals.packets_lost += link.lost_random + link.lost_burst + link.corrupted_detected;
    totals.packets += link.sent;
    totals.checked += u64::from(drawn.is_checked);
    totals.ordered += u64::from(drawn.is_ordered);
    totals.changed += u64::from(outcome.changed);
}

#[test]
fn two_hundred_seeds_account_for_every_unit_and_compute_most_of_what_is_lost() {
    check_all(number("DACAPO_SEEDS", SEEDS));
}

#[test]
#[ignore = "minutes: make nightly"]
fn ten_thousand_seeds_do_too() {
    check_all(10_000);
}

fn check_all(seeds: u64) {
    let totals = Mutex::new(Totals::default());
    each_seed(0..seeds, |seed| check(seed, &totals));
    let totals = totals.into_inner().unwrap();
    println!("{seeds} seeds: {totals:?}");
    let share = |part: u64, of: u64| part as f64 / of as f64;
    let (lost, on_the_way) =
        (share(totals.lost, totals.units), share(totals.packets_lost, totals.packets));
    assert!(on_the_way > 0.04, "{on_the_way} of the packets were lost");
    // A third of the blocks has none or too few parities.
    assert!(lost < on_the_way * 0.7, "{lost} of the units, {on_the_way} of the packets were lost");
    let drawn = [totals.checked, totals.ordered, totals.changed];
    assert!(drawn.iter().all(|count| *count > seeds / 2), "{drawn:?} of {seeds}");
}

#[test]
fn one_seed() {
    let seed = number("DACAPO_SEED", 1998);
    let drawn = draw(seed);
    let outcome = run(&drawn.scenario);
    println!("{:?}\n{:?}\n{:?}", drawn.scenario.offer, drawn.scenario.link, outcome.ledgers);
    assert_eq!(broken(&drawn, &outcome), None, "seed {seed}");
}
