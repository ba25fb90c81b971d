//! A film of 4.4 Mbit/s while it is shown, over a link that loses 5 % in runs of three, 60 ms there
//! and back, within 180 ms and 1.25 times its bytes: what is asked for again must fit the bound, or
//! everything behind it is late. It is what `dacapo-eval run media-5-3` does in real time.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_link::LinkConfig;
use dacapo_netlab::scenario::{Scenario, raw_offer, run};
use dacapo_wire::graph::GraphForm;
use std::time::Duration;

const LINK: &str = "rate=20Mbit/s,delay=30ms,jitter=1ms,loss=5%,burst=3";
const UNIT_LEN: usize = 1_316;
const UNITS: u64 = 8_300;

/// The numbers of the modules, and their parameters in milliseconds.
const USE_BY: (u16, u64) = (8, 180);
const ARQ_NAK: (u16, u64) = (6, 137);
const CHECKSUM: u16 = 3;

fn film(seed: u64, bound_bps: u64) -> Scenario {
    let link: LinkConfig = LINK.parse().unwrap();
    let mut scenario = Scenario::new(seed, link);
    scenario.pattern.count = UNITS;
    scenario.pattern.every = Duration::from_micros(2_393);
    (scenario.pattern.len_min, scenario.pattern.len_max) = (UNIT_LEN, UNIT_LEN);
    scenario.changes = 0;
    scenario.time_max = Duration::from_secs(60);
    scenario.has_two_clocks = true;
    let within = |(module, ms): (u16, u64)| (module, vec![(0, ms * 1_000_000)]);
    let (use_by, mut arq_nak) = (within(USE_BY), within(ARQ_NAK));
    // In order, and with the room that the bound leaves beside 4.4 Mbit/s.
    let spare_milli = if bound_bps < 10_000_000 { 172 } else { 1_000 };
    arq_nak.1.extend([(1, 1), (2, spare_milli)]);
    let graph = GraphForm::line([use_by, arq_nak, (CHECKSUM, Vec::new())]);
    let mut offer = raw_offer("film", graph, bound_bps, UNIT_LEN as u32 + 16);
    offer.digest = false;
    scenario.offer = Some(offer);
    scenario
}

/// How many of the units of 16 films are missing, and how many packets left for each.
fn missing(bound_bps: u64) -> (f64, f64) {
    let (mut missing, mut packets) = (0, 0);
    for seed in 0..16 {
        let outcome = run(&film(seed, bound_bps));
        assert!(outcome.closes(), "seed {seed}: {:?}", outcome.ledgers);
        missing += UNITS - outcome.record.numbers.len() as u64;
        packets += outcome.to_participant.sent;
    }
    let all = (16 * UNITS) as f64;
    println!(
        "{bound_bps} bit/s: {:.4} % missing, {:.3} packets for each",
        missing as f64 / all * 100.0,
        packets as f64 / all
    );
    (missing as f64 / all, packets as f64 / all)
}

#[test]
fn what_is_asked_for_again_fits_the_bound() {
    let (bounded, packets) = missing(5_500_000);
    assert!(bounded < 0.001, "{bounded:.5} of the units are missing");
    assert!(packets < 1.18, "{packets:.3} packets for each");
    let (free, _) = missing(50_000_000);
    assert!(free < 0.001, "{free:.5} without a bound");
}
