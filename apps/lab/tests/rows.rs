//! Every row of the table holds, in its short form.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_lab::commands::run_and_tell;
use dacapo_lab::faults::{all, by_id};
use dacapo_lab::{Fault, Scale, Seen};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn rows_have_names_of_their_own_and_say_what_they_do() {
    let names: Vec<&str> = all().map(|row| row.id).collect();
    let unique: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(unique.len(), names.len(), "a name stands twice: {names:?}");
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    for row in all() {
        assert!(row.id.chars().all(is_plain) && !row.id.is_empty(), "{}", row.id);
        assert!(!row.fault.is_empty() && !row.injector.is_empty(), "{}", row.id);
        assert!(!row.expected.is_empty() && row.test.starts_with("cargo test"), "{}", row.id);
        let named = row.bench.is_none_or(|bench| bench.split(' ').any(|word| word == row.id));
        assert!(named, "{}: the command names another row: {:?}", row.id, row.bench);
    }
}

#[test]
fn every_row_holds_in_its_short_form() {
    let mut failed = Vec::new();
    for row in all() {
        match (row.run)(&Scale::short()) {
            Ok(seen) => {
                println!("{}: {}", row.id, seen.figure);
                assert!(!seen.figure.contains('\n'), "{}: a figure is one line", row.id);
                assert!(seen.json.is_object(), "{}: no figures for programs", row.id);
            }
            Err(reason) => failed.push(format!("{}: {reason}", row.id)),
        }
    }
    assert!(failed.is_empty(), "{} rows failed:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn a_row_gives_the_same_figures_again() {
    let row = by_id("loss-10").unwrap();
    let seen = || (row.run)(&Scale::short().with_seeds(Some(3)).from_seed(5)).unwrap();
    assert_eq!(seen().json, seen().json);
    let others = (row.run)(&Scale::short().with_seeds(Some(3))).unwrap();
    assert_ne!(seen().json, others.json, "other seeds, other figures");
}

#[test]
fn a_planted_failure_is_told_and_is_no_success() {
    fn good(_: &Scale) -> Result<Seen, String> {
        Ok(Seen::new("all of it".into(), Value::Null))
    }
    fn planted(_: &Scale) -> Result<Seen, String> {
        Err("seed 3: planted".into())
    }
    let row = |id, run| Fault {
        id,
        fault: "a fault",
        injector: "none",
        expected: "nothing",
        test: "none",
        bench: None,
        run,
    };
    let (good, planted) = (row("good", good), row("planted", planted));
    for json in [false, true] {
        assert!(run_and_tell(&[&good], &Scale::short(), json).unwrap());
        assert!(!run_and_tell(&[&good, &planted, &good], &Scale::short(), json).unwrap());
    }
}
