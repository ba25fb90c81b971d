//! `dacapo bench link`: every way is measured in every round; how good it is decides nothing.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../../dacapo/tests/common/mod.rs"]
mod common;
mod eval;

use common::Place;
use eval::json_of;

#[test]
fn bench_link_measures_every_way_in_every_round() {
    let place = Place::new();
    let args = ["link", "--seconds", "50ms", "--rounds", "1"];
    let all = json_of(&eval::run(&place, &[&args[..], &["--json"]].concat()).expect(0));
    let ways = all["ways"].as_array().unwrap();
    assert!(ways.len() >= 2 && ways[0]["way"] == "plain" && ways[1]["way"] == "relay", "{all}");
    for way in ways {
        let rates = way["rates"].as_array().unwrap();
        assert_eq!(rates.len(), 4);
        for rate in rates {
            assert!(rate["datagrams_per_s"].as_f64().unwrap() > 0.0, "{way}");
        }
        assert!(way["delay"]["p50_us"].as_f64().unwrap() > 0.0, "{way}");
    }
    assert!(ways[1]["late_at_20ms"]["p99_us"].is_number(), "{all}");
}
