//! What the tests of measurements share: the program, and whether what `net` says closes.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use crate::common::{Finished, LONG, Place, Running};
use serde_json::Value;
use std::process::Command;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_dacapo-eval");

/// The program, with nothing of the user's.
pub fn command(place: &Place, args: &[&str]) -> Command {
    place.program(PROGRAM, args)
}

pub fn start(place: &Place, args: &[&str]) -> Running {
    place.start_command(command(place, args))
}

/// Runs the program to its end.
pub fn run(place: &Place, args: &[&str]) -> Finished {
    start(place, args).wait(LONG)
}

pub fn json_of(run: &Finished) -> Value {
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.all()))
}

pub fn net(place: &Place, args: &[&str]) -> Running {
    start(place, &[&["net"], args].concat())
}

/// A far end at a port of the system's choice.
pub fn far_end(place: &Place, args: &[&str]) -> (Running, String) {
    let far = net(place, &[&["--listen", "127.0.0.1:0", "--json"], args].concat());
    let line = far.wait_for_out("\n", LONG);
    let said: Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    (far, said["addresses"][0].as_str().unwrap().to_owned())
}

pub fn count(way: &Value, key: &str) -> u64 {
    way[key].as_u64().unwrap_or_else(|| panic!("no {key} in {way}"))
}

/// The sums close, and bytes and units agree.
pub fn closes(way: &Value, unit_len: u64) {
    let parts = ["delivered", "late", "lost", "dropped", "unknown"];
    let sum: u64 = parts.iter().map(|part| count(way, &format!("units_{part}"))).sum();
    assert_eq!(sum, count(way, "units_sent"), "{way}");
    assert_eq!(way["closes"], true, "{way}");
    assert_eq!(count(way, "bytes_delivered"), count(way, "units_delivered") * unit_len, "{way}");
    for figure in ["gbit_per_s", "units_per_s", "seconds"] {
        assert!(way[figure].as_f64().unwrap() > 0.0, "{figure}: {way}");
    }
    assert!((0.0..1.0).contains(&way["loss"].as_f64().unwrap()), "{way}");
    let sends = &way["datagrams_per_send_call"];
    let counts = sends["counts"].as_array().unwrap();
    let calls: u64 = counts.iter().map(|bucket| count(bucket, "calls")).sum();
    assert!(calls > 0 && calls == count(sends, "calls"), "{way}");
    assert!(count(sends, "median_at_least") >= 1, "{way}");
}
