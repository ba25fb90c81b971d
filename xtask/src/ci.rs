//! `cargo xtask ci`, `check` and `night`: what a change must pass, what is quick of it, and what is
//! too long for it, each step with a budget of time.
//!
//! Steps run in order and to the end even when one fails, so that one run shows everything that is
//! wrong; the tests come late, so that their outcome is what one sees, and after them what needs
//! the program that they have built.
//!
//! Invariants: the output of a step streams through unchanged; of a program of tests ([`lanes`]) it
//! is shown where it failed, and kept in `target/tests`. A step that fails fails the run, and the
//! end tells which tests failed, why, and what repeats them ([`failures`]). A step over 1.5 times
//! its budget is a warning, and fails the run under `CI_STRICT=1`; a budget is for two cores, that
//! of `ci` for an empty target folder and the whole of it for 30 minutes, that of `check` for one
//! that is warm. Each step's time is kept in `target/times.jsonl`. Tests that could not run are
//! counted and listed at the end ([`skips`]); a reason that `.ci/skips.toml` does not list fails
//! the run, and under `CI_STRICT=1` any does.

mod child;
mod failures;
mod lanes;
mod programs;
mod steps;

use std::env;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use failures::Failures;
use steps::{CHECK, CI, NIGHT, Step, Work};

use crate::skips::{self, Left, Skips};
use crate::tidy::tree::Tree;
use crate::times::Times;
use crate::{docs, features, fuzz, mutants, ratchet, tidy, touched};

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    /// Passed, over 1.5 times its budget.
    Slow,
    Failed,
}

impl Outcome {
    fn new(has_passed: bool, took: Duration, budget_s: u64) -> Self {
        match (has_passed, took > Duration::from_secs(budget_s) * 3 / 2) {
            (false, _) => Self::Failed,
            (true, true) => Self::Slow,
            (true, false) => Self::Passed,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Slow => "over its budget",
            Self::Failed => "FAILED",
        }
    }

    fn is_fatal(self, is_strict: bool) -> bool {
        match self {
            Self::Passed => false,
            Self::Slow => is_strict,
            Self::Failed => true,
        }
    }
}

/// One row of the table at the end.
#[derive(Clone, Copy, Debug)]
struct Row {
    step: Step,
    took: Duration,
    outcome: Outcome,
}

/// Runs what a change must pass in `root` and prints the table; true when all passed.
///
/// # Errors
/// Cargo or the repository cannot be run or read.
pub fn run(root: &Path) -> io::Result<bool> {
    run_steps(root, "ci", &CI)
}

/// Runs what is quick of it in `root` and prints the table; true when all passed.
///
/// # Errors
/// As [`run`].
pub fn run_quick(root: &Path) -> io::Result<bool> {
    run_steps(root, "check", &CHECK)
}

/// Runs what is too long for [`run`] and prints the table; true when all passed.
///
/// # Errors
/// As [`run`].
pub fn run_night(root: &Path) -> io::Result<bool> {
    run_steps(root, "night", &NIGHT)
}

fn run_steps(root: &Path, name: &'static str, steps: &[Step]) -> io::Result<bool> {
    let times = Times::new(root, name);
    let skipped = Skips::new(root)?;
    let mut failures = Failures::default();
    let mut rows = Vec::new();
    for &step in steps {
        let start = Instant::now();
        let has_passed = perform(step, root, &skipped, &mut failures)?;
        let took = start.elapsed();
        let outcome = Outcome::new(has_passed, took, step.budget_s);
        times.keep(step.name, took, outcome.label())?;
        rows.push(Row { step, took, outcome });
    }
    let skipped = skipped.text()?;
    let others = skips::Allowed::read(root)?.others(&skipped);
    print!("{}{}", skips::list(&skipped, &Left::of(&Tree::read(root)?)), table(&rows));
    print!("{}", failures.text());
    let is_strict = env::var_os("CI_STRICT").is_some_and(|value| value == "1");
    let has_skipped = is_strict && skips::count(&skipped) > 0;
    if !others.is_empty() {
        println!("\n  left out for a reason that .ci/skips.toml does not list:");
        others.iter().for_each(|test| println!("    {test}"));
    }
    Ok(others.is_empty() && !has_skipped && !rows.iter().any(|row| row.outcome.is_fatal(is_strict)))
}

fn perform(step: Step, root: &Path, skipped: &Skips, failures: &mut Failures) -> io::Result<bool> {
    match step.work {
        Work::Tidy => {
            println!("\n== {}: cargo xtask tidy", step.name);
            tidy::run(root)
        }
        Work::Fuzz => {
            println!("\n== {}: cargo xtask fuzz --all --turn N", step.name);
            fuzz::run_for_ci(root)
        }
        Work::Ratchet => {
            println!("\n== {}: cargo xtask ratchet", step.name);
            ratchet::run(root, &[])
        }
        Work::Docs(words) => {
            println!("\n== {}: cargo xtask docs {}", step.name, words.join(" "));
            docs::run(root, words)
        }
        Work::Built(program, words) => {
            println!("\n== {}: {program} {}", step.name, words.join(" "));
            let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
            let program = root.join(target).join("debug").join(program);
            child::run(program, words, root, skipped)
        }
        Work::Mutants => {
            println!("\n== {}: cargo xtask mutants", step.name);
            mutants::run(root, &[])
        }
        Work::Touched => {
            println!("\n== {}: cargo xtask touched --check", step.name);
            touched::run(root, &["--check"])
        }
        Work::Features => {
            println!("\n== {}: cargo xtask features --check --built", step.name);
            features::run(root, &["--check", "--built"])
        }
        Work::Tests(words) => {
            println!("\n== {}: cargo test {}", step.name, words.join(" "));
            lanes::run(words, root, skipped, failures)
        }
        Work::Cargo(arguments) => {
            println!("\n== {}: cargo {}", step.name, arguments.join(" "));
            // Cargo says which one it is to what it starts.
            let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            child::run(cargo.into(), arguments, root, skipped)
        }
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = "\n  step     seconds   budget\n".to_owned();
    for Row { step, took, outcome } in rows {
        let (name, seconds, budget_s) = (step.name, took.as_secs_f64(), step.budget_s);
        let label = outcome.label();
        text.push_str(&format!("  {name:<8} {seconds:>7.1} {budget_s:>8}   {label}\n"));
    }
    let seconds: f64 = rows.iter().map(|row| row.took.as_secs_f64()).sum();
    let budget_s: u64 = rows.iter().map(|row| row.step.budget_s).sum();
    text.push_str(&format!("  {:<8} {seconds:>7.1} {budget_s:>8}\n", "all"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_slow_above_one_and_a_half_budgets_only() {
        let outcome = |seconds| Outcome::new(true, Duration::from_secs(seconds), 10);
        assert_eq!(outcome(15), Outcome::Passed);
        assert_eq!(outcome(16), Outcome::Slow);
        assert_eq!(Outcome::new(false, Duration::ZERO, 10), Outcome::Failed);
    }

    #[test]
    fn slowness_is_fatal_only_when_strict_and_failure_always() {
        assert!(!Outcome::Slow.is_fatal(false) && Outcome::Slow.is_fatal(true));
        assert!(Outcome::Failed.is_fatal(false) && !Outcome::Passed.is_fatal(true));
    }

    #[test]
    fn the_table_has_a_row_per_step_and_the_sum() {
        let row = |step: Step, outcome| Row { step, took: Duration::from_millis(1500), outcome };
        let text = table(&[row(CI[0], Outcome::Passed), row(CI[1], Outcome::Failed)]);
        assert_eq!(
            text,
            "\n  step     seconds   budget\n  fmt          1.5       10   ok\n  \
             tidy         1.5        5   FAILED\n  all          3.0       15\n"
        );
    }
}
