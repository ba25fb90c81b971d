//! The steps of `cargo xtask ci`, `check` and `night`: what each does, and how long it may take.

/// What a step does.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Cargo with these arguments.
    Cargo(&'static [&'static str]),
    /// The tests that these words of `cargo test` select.
    Tests(&'static [&'static str]),
    /// The rules of [`crate::tidy`], in this process.
    Tidy,
    /// A third of the targets of [`crate::fuzz`] for a short time, from this process.
    Fuzz,
    /// The counts of [`crate::ratchet`], from this process.
    Ratchet,
    /// A program that the tests have built, with these arguments.
    Built(&'static str, &'static [&'static str]),
    /// The output that the documents show, beside what commands print, with these words.
    Docs(&'static [&'static str]),
    /// Who names what, in this process.
    Touched,
    /// What a user can do, beside [`crate::features`]' list.
    Features,
    /// Whether unit tests catch mistakes.
    Mutants,
}

/// One step.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub name: &'static str,
    pub budget_s: u64,
    pub work: Work,
}

const CLIPPY: Work =
    Work::Cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]);

/// What a change must pass.
pub const CI: [Step; 13] = [
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
    Step { name: "test", budget_s: 1_040, work: Work::Tests(&["--workspace", "--locked"]) },
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
        work: Work::Tests(&[
            "--manifest-path",
            "exercise/Cargo.toml",
            "--target-dir",
            "target",
            "--locked",
        ]),
    },
];

/// What is quick of it: the tests beside the code, without those that start programs or worlds.
pub const CHECK: [Step; 4] = [
    Step { name: "fmt", budget_s: 10, work: Work::Cargo(&["fmt", "--all", "--check"]) },
    Step { name: "tidy", budget_s: 10, work: Work::Tidy },
    Step { name: "clippy", budget_s: 60, work: CLIPPY },
    Step {
        name: "unit",
        budget_s: 160,
        work: Work::Tests(&["--workspace", "--lib", "--bins", "--locked"]),
    },
];

/// What takes minutes each, or needs root: every ignored test that writes no gigabytes.
pub const NIGHT: [Step; 10] = [
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
        budget_s: 9_000,
        work: Work::Cargo(&[
            "test",
            "--locked",
            "-p",
            "dacapo-netlab",
            "--test",
            "repair",
            "--test",
            "deadline",
            "--test",
            "slow_reader",
            "--test",
            "bond",
            "--",
            "--ignored",
        ]),
    },
    // The worlds of `ci`, in which everything is looked at besides what is ready at each step.
    Step {
        name: "visits",
        budget_s: 1_500,
        work: Work::Cargo(&[
            "test",
            "--locked",
            "--config",
            "env.DACAPO_VISIT_EVERY='1'",
            "-p",
            "dacapo-netlab",
        ]),
    },
    Step {
        name: "groups",
        budget_s: 240,
        work: Work::Cargo(&[
            "test",
            "--locked",
            "-p",
            "dacapo-modules",
            "--test",
            "nak_group",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budgets_stay_under_33_minutes_and_those_of_check_under_4() {
        let sum = |steps: &[Step]| steps.iter().map(|step| step.budget_s).sum::<u64>();
        assert!(sum(&CI) < 33 * 60);
        assert!(sum(&CHECK) <= 4 * 60);
    }
}
