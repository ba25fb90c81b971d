//! `dacapo bench safenet`: every figure is there, and hangs together; how good it is decides
//! nothing.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{Place, in_order};
use serde_json::Value;

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key}: {value}"))
}

#[test]
fn every_level_has_its_points_and_a_line_through_them() {
    let place = Place::new();
    let args = ["bench", "safenet", "--seconds", "1ms", "--json"];
    let out = place.start(&args).wait(common::LONG).expect(0).out;
    let all: Value = serde_json::from_str(&out).unwrap();
    let levels = all["levels"].as_array().unwrap();
    let names: Vec<String> = levels
        .iter()
        .map(|row| format!("{} {} {}", row["level"], row["cast"], row["receivers"]))
        .collect();
    let expected = [
        "user\" \"unicast\" 1",
        "user\" \"multicast\" 1",
        "user\" \"multicast\" 2",
        "transport\" \"unicast\" 1",
    ];
    assert_eq!(names, expected.map(|name| format!("\"{name}")));
    for row in levels {
        let points = row["points"].as_array().unwrap();
        assert_eq!(points.len(), if row["level"] == "user" { 7 } else { 6 });
        let (at_0, slope) =
            (number(&row["fit"], "intercept_us"), number(&row["fit"], "slope_ns_per_byte") / 1e3);
        for point in points {
            let line = at_0 + slope * number(point, "bytes");
            let above = number(point, "latency_us") - line;
            assert!((above - number(point, "residual_us")).abs() < 1e-6, "{row}");
            assert!(number(point, "throughput_mbit_s") >= 0.0);
        }
    }
    assert_eq!(number(&levels[0]["then"], "intercept_us"), 5_420.0);
    assert_eq!(number(&all["then_network"], "slope_ns_per_byte"), 341.0);
}

#[test]
fn the_table_names_the_document_and_help_has_examples() {
    let place = Place::new();
    let out =
        place.start(&["bench", "safenet", "--seconds", "1ms"]).wait(common::LONG).expect(0).out;
    in_order(&out, &["latency", "65536", "as a line", "5420", "network (FDDI)", "Virginia"]);
    let help = place.run(&["bench", "safenet", "--help"]).expect(0).out;
    in_order(&help, &["--seconds", "--json", "Examples:", "dacapo bench safenet"]);
}
