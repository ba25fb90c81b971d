//! A peer that has proved who it is, has greeted, and then does whatever it likes: a table of
//! scripted cases, in both roles. What it does ends its own session or connection with a code, or
//! is passed over; nobody else notices, and nothing is left.
//!
//! ```text
//!   matrix       every message in every state, against the tables of docs/protocol.md
//!   greeting … data    scripted cases by theme: (name, how far it has come, script, outcome)
//!   known        cases whose outcome was wrong once, each with a test of its own
//! ```
//!
//! One case alone: `CASE="its name" cargo test -p dacapo-netlab --test hostile_control`.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod activation;
mod arena;
mod changes;
mod closing;
mod control;
mod counts;
mod data;
mod expect;
mod greeting;
mod joining;
mod known;
mod matrix;
mod offers;
mod probes;
mod records;
mod streams;
mod wire;

use arena::{Arena, As, At};
use dacapo_core::Code;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What becomes of what the script has begun.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// The session ends with this code, the raw peer is told, its connection stays.
    Session(Code),
    /// No session begins: its stream is reset with this code, the connection stays.
    Stream(Code),
    /// The connection ends with this code.
    Connection(Code),
    /// It is passed over: the session goes on.
    GoesOn,
    /// The connection goes on; the script has looked at the rest.
    Open,
    /// The script has looked at everything.
    Seen,
}

/// A scripted case.
struct Case {
    name: &'static str,
    role: As,
    at: At,
    /// The session that is joined.
    session: &'static str,
    script: fn(&mut Arena),
    outcome: Outcome,
}

/// A case of a raw peer that dials and joins.
fn dialer(name: &'static str, at: At, outcome: Outcome, script: fn(&mut Arena)) -> Case {
    Case { name, role: As::Dialer, at, session: "usual", script, outcome }
}

/// A case of a raw peer that listens and is joined.
fn listener(name: &'static str, at: At, outcome: Outcome, script: fn(&mut Arena)) -> Case {
    Case { name, role: As::Listener, at, session: "usual", script, outcome }
}

impl Case {
    fn run(&self) {
        let mut arena = Arena::new(self.role, self.at, self.session);
        (self.script)(&mut arena);
        match self.outcome {
            Outcome::Session(code) => arena.expect_end(code),
            Outcome::Stream(code) => arena.expect_reset(code),
            Outcome::Connection(code) => arena.expect_lost(code),
            Outcome::GoesOn => arena.expect_goes_on(),
            Outcome::Open => arena.expect_open(),
            Outcome::Seen => {}
        }
        arena.finish();
    }
}

/// Runs the cases of a theme, all of them, and names those that went wrong.
fn run_all(theme: &str, cases: &[Case]) {
    let wanted = std::env::var("CASE").ok();
    let is_wanted = |case: &&Case| wanted.as_ref().is_none_or(|wanted| wanted == case.name);
    let goes_wrong = |case: &&Case| catch_unwind(AssertUnwindSafe(|| case.run())).is_err();
    let wrong: Vec<String> = cases
        .iter()
        .filter(is_wanted)
        .filter(goes_wrong)
        .map(|case| {
            let command = "cargo test -p dacapo-netlab --test hostile_control";
            format!("{} ({:?})\n    CASE={:?} {command}", case.name, case.role, case.name)
        })
        .collect();
    assert!(wrong.is_empty(), "{theme}: {} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Every theme with its cases.
fn themes() -> Vec<(&'static str, Vec<Case>)> {
    vec![
        ("greeting", greeting::cases()),
        ("joining", joining::cases()),
        ("offers", offers::cases()),
        ("activation", activation::cases()),
        ("counts", counts::cases()),
        ("changes", changes::cases()),
        ("closing", closing::cases()),
        ("control", control::cases()),
        ("records", records::cases()),
        ("streams", streams::cases()),
        ("probes", probes::cases()),
        ("data", data::cases()),
    ]
}

#[test]
fn there_are_at_least_110_cases_and_no_two_have_one_name() {
    let themes = themes();
    themes.iter().for_each(|(theme, cases)| println!("{theme}: {}", cases.len()));
    let mut names: Vec<&str> =
        themes.iter().flat_map(|(_, cases)| cases).map(|case| case.name).collect();
    let count = names.len();
    println!("{count} cases");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name is there twice");
    assert!(count >= 110, "{count} cases");
}

#[test]
fn greeting_of_a_hostile_peer() {
    run_all("greeting", &greeting::cases());
}

#[test]
fn joining_of_a_hostile_peer() {
    run_all("joining", &joining::cases());
}

#[test]
fn offers_of_a_hostile_peer() {
    run_all("offers", &offers::cases());
}

#[test]
fn activation_of_a_hostile_peer() {
    run_all("activation", &activation::cases());
}

#[test]
fn counts_of_a_hostile_peer() {
    run_all("counts", &counts::cases());
}

#[test]
fn changes_of_a_hostile_peer() {
    run_all("changes", &changes::cases());
}

#[test]
fn closing_of_a_hostile_peer() {
    run_all("closing", &closing::cases());
}

#[test]
fn control_of_a_hostile_peer() {
    run_all("control", &control::cases());
}

#[test]
fn records_of_a_hostile_peer() {
    run_all("records", &records::cases());
}

#[test]
fn streams_of_a_hostile_peer() {
    run_all("streams", &streams::cases());
}

#[test]
fn probes_of_a_hostile_peer() {
    run_all("probes", &probes::cases());
}

#[test]
fn data_of_a_hostile_peer() {
    run_all("data", &data::cases());
}
