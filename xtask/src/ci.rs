//! `cargo xtask ci`, `check` and `night`: what a change must pass, what is quick of it, and what is
//! too long for it, each step with a budget of time.
//!
//! Steps run in order and to the end even when one fails, so that one run shows everything that is
//! wrong; the tests come late, so that their outcome is what one sees, and after them what needs
//! the program that they have built.
//!
//! Invariants: the output of a step streams through unchanged. A step that fails fails the run. A
//! step over 1.5 times its budget is a warning, and fails the run under `CI_STRICT=1`; a budget is
//! for two cores, that of `ci` for an empty target folder and the whole of it for 30 minutes, that
//! of `check` for one that is warm. Each step's time is kept in `target/times.jsonl`. Tests that
//! could not run are counted and listed at the end ([`skips`]); a reason that `.ci/skips.toml` does
//! not list fails the run, and under `CI_STRICT=1` any does.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::skips::{self, Left, Skips};
use crate::tidy::tree::Tree;
use crate::times::Times;
use crate::{docs, features, fuzz, mutants, ratchet, tidy, touched};

/// What a step does.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Cargo with these arguments.
    Cargo(&'static [&'static str]),
    /// The rules of [`tidy`], in this process.
    Tidy,
    /// A third of the targets of [`fuzz`] for a short time, from this process.
    Fuzz,
    /// The counts of [`ratchet`], from this process.
    Ratchet,
    /// A program that the tests have built, with these arguments.
    Built(&'static str, &'static [&'static str]),
    /// The output that the documents show, beside what commands print, with these words.
    Docs(&'static [&'static str]),
    /// Who names what, in this process.
    Touched,
    /// What a user can do, beside [`features`]' list.
    Features,
    /// Whether unit tests catch mistakes.
    Mutants,
}

/// One step.
#[derive(Clone, Copy, Debug)]
struct Step {
    name: &'static str,
    budget_s: u64,
    work: Work,
}

const CLIPPY: Work =
    Work::Cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]);

/// What a change must pass.
const CI: [Step; 13] = [
    Step { name: "fmt", budget_s: 10, work: Work::Cargo(&["fmt", "--all", "--check"]) },
    Step { name: "tidy", budget_s: 5, work: Work::Tidy },
    Step { name: "touched", budget_s: 5, work: Work::Touched },
    Step { name: "clippy", budget_s: 150, work: CLIPPY },
    Step {
        name: "doc",
        budget_s: 40,
        work: Work::Cargo(&["doc", "--no-deps", "--workspace", "--locked"]),
    },
    // Our crates with counters of coverage, the others as the tests need them; then 15 s for each
    // of 14 targets, two at a time.
    Step { name: "fuzz", budget_s: 240, work: Work::Fuzz },
    // The one release build here, of what the cores need and no more; the counts take 15 s.
    Step { name: "ratchet", budget_s: 110, work: Work::Ratchet },
    // All failures in one run, not those of the first test binary only.
    Step {
        name: "test",
        budget_s: 1_040,
        work: Work::Cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]),
    },
    // By the program of the tests; the demonstration takes 30 s.
    Step { name: "docs", budget_s: 40, work: Work::Docs(&["--check", "--built"]) },
    Step { name: "features", budget_s: 10, work: Work::Features },
    // By the program of the tests, too: to ask Cargo for it would build it anew, by itself.
    Step { name: "eval", budget_s: 10, work: Work::Built("dacapo-eval", &["check"]) },
    Step { name: "faults", budget_s: 5, work: Work::Built("dacapo-lab", &["check"]) },
    // A workspace of its own: our crates once more, as somebody else's.
    Step {
        name: "exercise",
        budget_s: 120,
        work: Work::Cargo(&[
            "test",
            "--manifest-path",
            "exercise/Cargo.toml",
            "--target-dir",
            "target",
            "--locked",
        ]),
    },
];

/// What is quick of it: the tests beside the code, without those that start programs or worlds.
const CHECK: [Step; 4] = [
    Step { name: "fmt", budget_s: 10, work: Work::Cargo(&["fmt", "--all", "--check"]) },
    Step { name: "tidy", budget_s: 10, work: Work::Tidy },
    Step { name: "clippy", budget_s: 60, work: CLIPPY },
    Step {
        name: "unit",
        budget_s: 160,
        work: Work::Cargo(&[
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--locked",
            "--no-fail-fast",
        ]),
    },
];

/// What takes minutes each, or needs root: every ignored test that writes no gigabytes.
const NIGHT: [Step; 8] = [
    // The demonstration of a scene is to play, not to build.
    Step {
        name: "build",
        budget_s: 300,
        work: Work::Cargo(&["build", "--release", "--locked", "-p", "dacapo-cli"]),
    },
    Step {
        name: "waits",
        budget_s: 420,
        work: Work::Cargo(&[
            "test",
            "--locked",
            "-p",
            "dacapo",
            "--lib",
            "--test",
            "session",
            "--",
            "--ignored",
        ]),
    },
    Step {
        name: "repair",
        budget_s: 1_800,
        work: Work::Cargo(&[
            "test",
            "--locked",
            "-p",
            "dacapo-netlab",
            "--test",
            "repair",
            "--",
            "--ignored",
        ]),
    },
    Step {
        name: "scenes",
        budget_s: 600,
        work: Work::Cargo(&[
            "test",
            "--locked",
            "-p",
            "dacapo-cli",
            "--test",
            "terminal",
            "--",
            "--ignored",
        ]),
    },
    Step { name: "docs", budget_s: 900, work: Work::Docs(&["--check", "--night"]) },
    // A run that is old fails here and not in `ci`: age is no commit's fault.
    Step {
        name: "eval",
        budget_s: 60,
        work: Work::Cargo(&[
            "run",
            "-q",
            "--locked",
            "-p",
            "dacapo-eval",
            "--",
            "check",
            "--night",
        ]),
    },
    Step {
        name: "faults",
        budget_s: 60,
        work: Work::Cargo(&["run", "-q", "--locked", "-p", "dacapo-lab", "--", "check", "--night"]),
    },
    Step { name: "mutants", budget_s: 2_400, work: Work::Mutants },
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
    let mut rows = Vec::new();
    for &step in steps {
        let start = Instant::now();
        let has_passed = perform(step, root, &skipped)?;
        let took = start.elapsed();
        let outcome = Outcome::new(has_passed, took, step.budget_s);
        times.keep(step.name, took, outcome.label())?;
        rows.push(Row { step, took, outcome });
    }
    let skipped = skipped.text()?;
    let others = skips::Allowed::read(root)?.others(&skipped);
    print!("{}{}", skips::list(&skipped, &Left::of(&Tree::read(root)?)), table(&rows));
    let is_strict = env::var_os("CI_STRICT").is_some_and(|value| value == "1");
    let has_skipped = is_strict && skips::count(&skipped) > 0;
    if !others.is_empty() {
        println!("\n  left out for a reason that .ci/skips.toml does not list:");
        others.iter().for_each(|test| println!("    {test}"));
    }
    Ok(others.is_empty() && !has_skipped && !rows.iter().any(|row| row.outcome.is_fatal(is_strict)))
}

fn perform(step: Step, root: &Path, skipped: &Skips) -> io::Result<bool> {
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
            run_child(root.join(target).join("debug").join(program), words, root, skipped)
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
        Work::Cargo(arguments) => {
            println!("\n== {}: cargo {}", step.name, arguments.join(" "));
            // Cargo says which one it is to what it starts.
            let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            run_child(cargo.into(), arguments, root, skipped)
        }
    }
}

/// Runs a program whose tests and checks say what they leave out; true when it succeeded.
fn run_child(program: PathBuf, words: &[&str], root: &Path, skipped: &Skips) -> io::Result<bool> {
    let mut command = Command::new(&program);
    command.args(words).current_dir(root).env("RUSTDOCFLAGS", "-Dwarnings");
    let status = command.env(skips::VARIABLE, skipped.path()).status();
    let named = |error| io::Error::other(format!("{}: {error}", program.display()));
    Ok(status.map_err(named)?.success())
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
    fn what_a_program_of_a_step_leaves_out_is_counted() {
        let root = env::temp_dir();
        let path = root.join(format!("dacapo-ci-{}", std::process::id()));
        let skipped = Skips::at(path.clone());
        let says = "printf 'a.rs:1\tcheck\tno history\n' >> \"$DACAPO_SKIPPED\"";
        assert!(run_child("sh".into(), &["-c", says], &root, &skipped).unwrap());
        let counted = skips::count(&skipped.text().unwrap());
        assert!(!run_child("false".into(), &[], &root, &skipped).unwrap());
        std::fs::remove_file(path).unwrap();
        assert_eq!(counted, 1);
    }

    #[test]
    fn the_budgets_stay_under_33_minutes_and_those_of_check_under_4() {
        let sum = |steps: &[Step]| steps.iter().map(|step| step.budget_s).sum::<u64>();
        assert!(sum(&CI) < 33 * 60);
        assert!(sum(&CHECK) <= 4 * 60);
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
        let text = table(&[row(CI[0], Outcome::Passed), row(CI[1], Outcome::Failed)]);
        assert_eq!(
            text,
            "\n  step     seconds   budget\n  fmt          1.5       10   ok\n  \
             tidy         1.5        5   FAILED\n  all          3.0       15\n"
        );
    }
}
