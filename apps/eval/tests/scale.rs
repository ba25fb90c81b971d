//! `dacapo bench scale`: everything that is asked for is set up and closed, nothing is left, and
//! what cannot be measured is a failure. How good the figures are decides nothing.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../../dacapo/tests/common/mod.rs"]
mod common;
mod eval;

use common::{LONG, Place, in_order, wait_until};
use serde_json::Value;
use std::fs;

#[test]
fn two_hundred_sessions_are_set_up_and_closed_and_five_hundred_opens_leave_none() {
    let place = Place::new();
    let args = ["scale", "--sessions", "200", "--opens", "500", "--idle", "500ms"];
    let run = eval::run(&place, &[&args[..], &["--json"]].concat()).expect(0);
    let all: Value = serde_json::from_str(&run.out).unwrap();
    for end in ["near", "far"] {
        let at = |look: &str, key: &str| all["looks"][look][end][key].as_u64().unwrap();
        assert_eq!((at("one_connection", "sessions"), at("one_connection", "connections")), (0, 1));
        assert_eq!((at("connected", "sessions"), at("connected", "connections")), (0, 4));
        assert_eq!((at("churned", "sessions"), at("churned", "connections")), (0, 4));
        assert_eq!((at("held", "sessions"), at("held", "connections")), (200, 4));
        assert_eq!((at("after", "sessions"), at("after", "connections")), (0, 4));
        assert_eq!(at("held", "descriptors"), at("after", "descriptors"), "{all}");
        for figure in ["connection_kib", "session_kib", "threads", "idle_percent", "growth_kib"] {
            let figure = &all["figures"][figure];
            assert!(figure[end].as_f64().is_some() && figure["met"].is_boolean(), "{all}");
        }
        assert!(all["figures"]["session_kib"][end].as_f64().unwrap() > 0.0, "{all}");
    }
    for rate in ["opened_per_s", "closed_per_s", "opens_and_closes_per_s"] {
        assert!(all["rates"][rate].as_f64().unwrap() > 0.0, "{all}");
    }
}

#[test]
fn units_are_sent_in_turns_over_all_sessions_and_none_is_opened_and_closed_besides() {
    let place = Place::new();
    let args = "scale --send 2000 --sessions 20 --connections 3 --idle 500ms --json";
    let run = eval::run(&place, &args.split(' ').collect::<Vec<_>>()).expect(0);
    let all: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&all["sessions"], &all["connections"]), (&20.into(), &3.into()));
    assert_eq!(all["asked_per_s"], 2_000);
    for path in ["units_per_s", "cpu_us_per_unit/both", "delay_us/p99", "memory_mib/far"] {
        let figure = all.pointer(&format!("/{path}")).and_then(Value::as_f64);
        assert!(figure.is_some_and(|it| it > 0.0), "{path}: {all}");
    }
}

#[test]
fn people_get_a_table_with_goals_and_whether_they_are_met() {
    let place = Place::new();
    let args = ["--sessions", "20", "--opens", "20", "--idle", "200ms", "--connections", "2"];
    let out = eval::run(&place, &[&["scale"], &args[..]].concat()).expect(0).out;
    let words = [
        "20 sessions over 2 connections",
        "a connection",
        "≤ 48",
        "a further session",
        "≤ 8",
        "threads",
        "met",
        "idle, 20 sessions",
        "growth by 20 opens and closes",
        "after all: 0 and 0 sessions, 2 and 2 connections",
    ];
    in_order(&out, &words);
}

#[test]
fn what_does_not_fit_a_connection_is_refused_before_anything_begins() {
    let place = Place::new();
    let few = ["scale", "--sessions", "5000", "--connections", "2"];
    let run = eval::run(&place, &few).expect(1);
    assert!(run.err.contains("use --connections"), "{}", run.all());
    let many = ["scale", "--sessions", "10", "--opens", "100000", "--connections", "2"];
    let run = eval::run(&place, &many).expect(1);
    assert!(run.err.contains("rest for two minutes"), "{}", run.all());
}

/// The far end that a process has started.
fn far_end(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// Whether a process catches SIGINT by now.
fn catches_interrupt(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|it| it & 2 != 0)
}

#[test]
fn a_signal_ends_both_ends() {
    let place = Place::new();
    let run = eval::start(&place, &["scale", "--sessions", "50", "--opens", "50"]);
    let pid = run.pid();
    let is_under_way = || far_end(pid).is_some() && catches_interrupt(pid);
    assert!(wait_until(LONG, is_under_way), "{}", run.err());
    let far = far_end(pid).unwrap();
    run.signal("INT");
    run.wait(LONG).expect(130);
    let is_gone = || !fs::exists(format!("/proc/{far}")).unwrap();
    assert!(wait_until(LONG, is_gone), "the far end, process {far}, is still there");
}
