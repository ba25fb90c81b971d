//! `cargo xtask ci`: what a change must pass, each step with a budget of time.
//!
//! What it is: a list of steps, run in order and to the end even when one fails, so that one run
//! shows everything that is wrong; the tests come last, so that their outcome is what one sees.
//! What it is not: a cache or a scheduler; cargo is both.
//!
//! Invariants: the output of a step streams through unchanged. A step that fails fails the run. A
//! step over 1.5 times its budget is a warning, and fails the run under `CI_STRICT=1`; a budget is
//! for two cores and an empty target folder, the whole for 30 minutes.

use std::env;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{fuzz, ratchet, tidy};

/// What a step does.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Cargo with these arguments.
    Cargo(&'static [&'static str]),
    /// The rules of [`tidy`], in this process.
    Tidy,
    /// Every target of [`fuzz`] for a short time, from this process.
    Fuzz,
    /// The counts of [`ratchet`], from this process.
    Ratchet,
}

/// One step.
#[derive(Clone, Copy, Debug)]
struct Step {
    name: &'static str,
    budget_s: u64,
    work: Work,
}

const STEPS: [Step; 7] = [
    Step { name: "fmt", budget_s: 20, work: Work::Cargo(&["fmt", "--all", "--check"]) },
    Step { name: "tidy", budget_s: 10, work: Work::Tidy },
    Step {
        name: "clippy",
        budget_s: 300,
        work: Work::Cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ]),
    },
    Step {
        name: "doc",
        budget_s: 160,
        work: Work::Cargo(&["doc", "--no-deps", "--workspace", "--locked"]),
    },
    // Our crates with counters of coverage, the others as the tests need them; then 6 s for each
    // target.
    Step { name: "fuzz", budget_s: 220, work: Work::Fuzz },
    // The one release build here, of what the cores need and no more; the counts take 15 s.
    Step { name: "ratchet", budget_s: 110, work: Work::Ratchet },
    // All failures in one run, not those of the first test binary only.
    Step {
        name: "test",
        budget_s: 850,
        work: Work::Cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]),
    },
];

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

/// Runs every step in `root` and prints the table; true when all passed.
///
/// # Errors
/// Cargo or the repository cannot be run or read.
pub fn run(root: &Path) -> io::Result<bool> {
    let mut rows = Vec::new();
    for step in STEPS {
        let start = Instant::now();
        let has_passed = perform(step, root)?;
        let took = start.elapsed();
        rows.push(Row { step, took, outcome: Outcome::new(has_passed, took, step.budget_s) });
    }
    print!("{}", table(&rows));
    let is_strict = env::var_os("CI_STRICT").is_some_and(|value| value == "1");
    Ok(!rows.iter().any(|row| row.outcome.is_fatal(is_strict)))
}

fn perform(step: Step, root: &Path) -> io::Result<bool> {
    match step.work {
        Work::Tidy => {
            println!("\n== {}: cargo xtask tidy", step.name);
            tidy::run(root)
        }
        Work::Fuzz => {
            println!("\n== {}: cargo xtask fuzz --all", step.name);
            fuzz::run_for_ci(root)
        }
        Work::Ratchet => {
            println!("\n== {}: cargo xtask ratchet", step.name);
            ratchet::run(root, &[])
        }
        Work::Cargo(arguments) => {
            println!("\n== {}: cargo {}", step.name, arguments.join(" "));
            // Cargo says which one it is to what it starts.
            let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut command = Command::new(cargo);
            command.args(arguments).current_dir(root).env("RUSTDOCFLAGS", "-Dwarnings");
            Ok(command.status()?.success())
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
    fn the_budgets_stay_under_30_minutes() {
        assert!(STEPS.iter().map(|step| step.budget_s).sum::<u64>() < 30 * 60);
    }

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
        let text = table(&[row(STEPS[0], Outcome::Passed), row(STEPS[1], Outcome::Failed)]);
        assert_eq!(
            text,
            "\n  step     seconds   budget\n  fmt          1.5       20   ok\n  \
             tidy         1.5       10   FAILED\n  all          3.0       30\n"
        );
    }
}
