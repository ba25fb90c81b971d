//! `dacapo bench lift`: every figure is there, and hangs together; how good it is decides nothing.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../../dacapo/tests/common/mod.rs"]
mod common;
mod eval;

use common::{Place, in_order};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The program with no other program to be found than what is in `path`.
fn bench_lift(place: &Place, path: &Path, args: &[&str]) -> String {
    let mut command = eval::command(place, &[&["lift", "--seconds", "0.01"], args].concat());
    command.env("PATH", path);
    place.start_command(command).wait(common::LONG).expect(0).out
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A program of this name that ends at once with this code.
fn fake_gstreamer(place: &Place, code: u8) -> std::path::PathBuf {
    let dir = place.path(&format!("programs-{code}"));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("gst-launch-1.0");
    std::fs::write(&file, format!("#!/bin/sh\nexit {code}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn check_spread(spread: &Value) {
    let at = |key: &str| spread[key].as_f64().unwrap_or_else(|| panic!("{key}: {spread}"));
    assert!(at("q1_ns") <= at("median_ns") && at("median_ns") <= at("q3_ns"), "{spread}");
}

#[test]
fn every_chain_is_measured_in_each_way() {
    let place = Place::new();
    let all = json(&bench_lift(&place, &place.path("nothing"), &["--json"]));
    assert!(all["rounds"].as_u64().unwrap() >= 5);
    check_spread(&all["clock_reading"]);
    let marginal = all["marginal"].as_array().unwrap();
    let cases: Vec<String> = marginal
        .iter()
        .map(|it| {
            let word = |key: &str| it[key].as_str().unwrap();
            format!("{} {} {}", word("module"), it["batch"], word("called"))
        })
        .collect();
    let ways = ["monomorphised", "counted", "timed"];
    let mut expected = Vec::new();
    for module in ["touch", "pass"] {
        for batch in [1, 32] {
            expected.extend(ways.map(|way| format!("{module} {batch} {way}")));
        }
    }
    assert_eq!(cases, expected);
    for it in marginal {
        check_spread(&it["per_packet_and_module"]);
        let totals = it["totals"].as_array().unwrap();
        let modules: Vec<u64> = totals.iter().map(|row| row["modules"].as_u64().unwrap()).collect();
        assert_eq!(modules, [0, 3, 5, 10, 20]);
        totals.iter().for_each(|row| check_spread(&row["per_packet"]));
        let least = totals.iter().map(|row| row["per_packet"]["median_ns"].as_f64().unwrap());
        assert!(least.fold(f64::MAX, f64::min) > 0.0, "{it}");
    }
}

#[test]
fn lives_buffers_and_the_figures_of_1998_stand_beside_each_other() {
    let place = Place::new();
    let all = json(&bench_lift(&place, &place.path("nothing"), &["--json"]));
    let fixed = all["fixed"].as_array().unwrap();
    let fed: Vec<&str> = fixed.iter().map(|it| it["fed"].as_str().unwrap()).collect();
    assert_eq!(fed, ["alone", "batch of 32", "train of 32"]);
    fixed.iter().for_each(|it| check_spread(&it["per_packet"]));
    let buffers = all["buffers"].as_array().unwrap();
    let bytes: Vec<u64> = buffers.iter().map(|it| it["bytes"].as_u64().unwrap()).collect();
    assert_eq!(bytes, [0, 1, 10, 100, 1_000, 10_000]);
    for it in buffers {
        check_spread(&it["now"]);
        check_spread(&it["first_use"]);
        assert!(it["1998"]["first_us"].as_u64().is_some_and(|us| (15..=80).contains(&us)), "{it}");
    }
    let then = &all["1998"];
    let averages: Vec<u64> =
        (0..3).map(|at| then["table_1"][at]["average_us"].as_u64().unwrap()).collect();
    assert_eq!(averages, [11, 14, 20]);
    assert_eq!(then["per_module_us"]["text"], 0.4);
}

#[test]
fn gstreamer_is_measured_where_it_is_and_its_absence_or_failure_is_said() {
    let place = Place::new();
    let without = bench_lift(&place, &place.path("nothing"), &[]);
    in_order(&without, &["module", "touch", "pass", "1998", "touch writes", "not installed"]);
    let with = json(&bench_lift(&place, &fake_gstreamer(&place, 0), &["--json"]));
    assert!(with["gstreamer"]["identity_ns"].is_number(), "{}", with["gstreamer"]);
    let broken = json(&bench_lift(&place, &fake_gstreamer(&place, 3), &["--json"]));
    let error = broken["gstreamer"]["error"].as_str().unwrap();
    assert!(error.contains("gst-launch-1.0") && error.contains('3'), "{error}");
    assert!(broken["gstreamer"]["identity_ns"].is_null());
}

#[test]
fn help_has_examples() {
    let place = Place::new();
    let help = eval::run(&place, &["lift", "--help"]).expect(0).out;
    in_order(&help, &["--seconds", "--json", "Examples:", "dacapo bench lift"]);
}
