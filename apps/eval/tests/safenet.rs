//! `dacapo bench safenet`: every figure is there, and hangs together; how good it is decides
//! nothing.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../../dacapo/tests/common/mod.rs"]
mod common;
mod eval;

use common::{Place, in_order};
use serde_json::Value;

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key}: {value}"))
}

/// Runs it, for as short as it goes.
fn measured(args: &[&str]) -> Value {
    let place = Place::new();
    let all = [&["safenet", "--seconds", "1ms", "--json"], args].concat();
    let out = eval::run(&place, &all).expect(0).out;
    serde_json::from_str(&out).unwrap()
}

/// Each level with its cast and receivers, and the line through its points.
fn names(all: &Value) -> Vec<String> {
    for row in all["levels"].as_array().unwrap() {
        let (at_0, slope) =
            (number(&row["fit"], "intercept_us"), number(&row["fit"], "slope_ns_per_byte") / 1e3);
        for point in row["points"].as_array().unwrap() {
            let line = at_0 + slope * number(point, "bytes");
            let above = number(point, "latency_us") - line;
            assert!((above - number(point, "residual_us")).abs() < 1e-6, "{row}");
            assert!(number(point, "throughput_mbit_s") >= 0.0);
            let arrived = number(point, "arrived");
            assert!((0.0..=1.0).contains(&arrived), "{row}");
            let is_kept =
                row["cast"] == "unicast" && (row["level"] == "user" || row["level"] == "transport");
            assert!(!is_kept || arrived == 1.0, "what is repaired arrives: {row}");
        }
    }
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let name = |row: &Value| {
        let count = row["points"].as_array().unwrap().len();
        format!("{} {} {}: {count}", text(row, "level"), text(row, "cast"), row["receivers"])
    };
    all["levels"].as_array().unwrap().iter().map(name).collect()
}

/// What is measured over every network.
const OVER_A_NETWORK: [&str; 5] = [
    "user unicast 1: 7",
    "user multicast 1: 7",
    "user multicast 2: 7",
    "transport unicast 1: 6",
    "udp unicast 1: 7",
];

/// The level of frames is there where it can be, else it is said why not.
fn check_frames(all: &Value, names: &[String]) {
    let left_out = all["left_out"].as_array().unwrap();
    let levels = all["levels"].as_array().unwrap().iter();
    let by: Vec<&Value> = levels.map(|row| &row["frames"]).filter(|by| !by.is_null()).collect();
    if let Some(left_out) = left_out.first() {
        dacapo_base::skip(left_out);
        let why = left_out["why"].as_str().unwrap();
        if left_out["level"] == "MAC (Ethernet), ring" {
            // This kernel has none.
            assert_eq!(by, ["calls"], "{why}");
            return;
        }
        assert_eq!(names, OVER_A_NETWORK);
        assert!(why.contains("need root") || why.contains("`ip`"), "{why}");
    } else {
        assert_eq!(names, [&OVER_A_NETWORK[..], &["mac unicast 1: 5"; 2]].concat());
        assert_eq!(by, ["ring", "calls"]);
    }
}

#[test]
fn every_level_in_memory_has_its_points_and_a_line_through_them() {
    let all = measured(&["--over", "memory"]);
    assert_eq!(names(&all), OVER_A_NETWORK[..4]);
    assert_eq!(all["network"], "memory");
    let levels = all["levels"].as_array().unwrap();
    assert_eq!(number(&levels[0]["then"], "intercept_us"), 5_420.0);
    assert_eq!(number(&all["then_network"], "slope_ns_per_byte"), 341.0);
}

/// Where frames are sent, whatever the others go over.
const CABLE: &str = "a cable between two network namespaces";

#[test]
fn over_udp_plain_sockets_stand_beside_and_frames_where_they_may() {
    let all = measured(&[]);
    assert_eq!(all["network"], "udp");
    for row in all["levels"].as_array().unwrap() {
        let place = if row["level"] == "mac" { CABLE } else { "loopback" };
        assert_eq!(row["place"], place, "{row}");
    }
    check_frames(&all, &names(&all));
    let beside = &all["user_beside_plain_udp"];
    assert!(number(beside, "slope_ratio").is_finite());
    assert!(number(beside, "intercept_above_us").is_finite());
}

#[test]
fn over_a_cable_every_level_is_measured_or_it_is_said_what_lacks() {
    for over in ["ip", "ethernet"] {
        if dacapo_sys::process::uid() != 0 {
            let place = Place::new();
            let error = eval::run(&place, &["safenet", "--over", over]).expect(1).err;
            in_order(&error, &["bench safenet", "need root", "--over udp"]);
            dacapo_base::skip(format!("a cable for {over}: this is not root"));
            continue;
        }
        let all = measured(&["--over", over, "--no-check"]);
        assert_eq!((&all["network"], &all["checked"]), (&over.into(), &false.into()));
        check_frames(&all, &names(&all));
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let place = Place::new();
    let error = eval::run(&place, &["safenet", "--over", "memory", "--no-check"]).expect(2).err;
    in_order(&error, &["--no-check", "over memory", "--over udp"]);
}

#[test]
fn the_table_names_the_document_and_help_has_examples() {
    let place = Place::new();
    let args = ["safenet", "--over", "memory", "--seconds", "1ms"];
    let out = eval::run(&place, &args).expect(0).out;
    in_order(
        &out,
        &[
            "over memory",
            "all ends in one process: user",
            "latency",
            "65536",
            "as a line",
            "5420",
            "network (FDDI)",
            "Virginia",
        ],
    );
    let help = eval::run(&place, &["safenet", "--help"]).expect(0).out;
    in_order(&help, &["--over", "--seconds", "--json", "Examples:", "dacapo bench safenet"]);
}
