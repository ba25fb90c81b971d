//! Runs the programs of tests in two lanes beside each other.
//!
//! ```text
//!   of the clock: sockets, processes, terminals; wait most of the time  --> one after the other
//!   patient:      worlds in virtual time; compute all of the time      --> one after the other,
//!                                                                          at the lowest priority
//! ```
//!
//! What computes then runs while the others wait, and does not disturb them.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use super::failures::Failures;
use super::programs::{Ended, Program};
use crate::skips::Skips;

/// Packages whose tests never look at a clock.
const PATIENT: [&str; 13] = [
    "dacapo-base",
    "dacapo-core",
    "dacapo-fuzz",
    "dacapo-lift",
    "dacapo-link",
    "dacapo-modules",
    "dacapo-netlab",
    "dacapo-packet",
    "dacapo-path",
    "dacapo-qos",
    "dacapo-wire",
    "dacapo-xtp",
    "xtask",
];

/// How many of the slowest programs are told.
const SLOWEST: usize = 8;

/// Builds the tests that `words`, as of `cargo test`, select and runs them; true when all passed.
///
/// # Errors
/// Cargo or a program cannot be run, or a log not be written.
pub fn run(
    words: &[&str],
    root: &Path,
    skipped: &Skips,
    failures: &mut Failures,
) -> io::Result<bool> {
    let start = Instant::now();
    let Some(mut programs) = Program::build(words, root)? else {
        return Ok(false);
    };
    println!("built in {:.0} s; running {}", start.elapsed().as_secs_f64(), programs.len());
    // Who selects parts of the packages leaves out what stands in their documentation.
    if words.contains(&"--workspace") && !words.contains(&"--lib") {
        programs.push(Program::documentation(root));
    }
    let logs = skipped.path().with_file_name("tests");
    fs::create_dir_all(&logs)?;
    let (patient, clock): (Vec<_>, Vec<_>) = programs.into_iter().partition(is_patient);
    let failures = Mutex::new(failures);
    let lane = |programs: &[Program], is_patient| -> io::Result<Vec<Ended>> {
        let run = |program: &Program| program.run(is_patient, &logs, skipped.path());
        programs.iter().map(|program| Ok(tell(run(program)?, &failures))).collect()
    };
    let all = thread::scope(|scope| -> io::Result<Vec<Ended>> {
        let other = scope.spawn(|| lane(&patient, true));
        let mut all = lane(&clock, false)?;
        let died = |_| io::Error::other("the lane of what is patient died");
        all.extend(other.join().map_err(died)??);
        Ok(all)
    })?;
    println!("{}", slowest(all.iter().collect()));
    Ok(all.iter().all(|ended| ended.is_passed))
}

fn is_patient(program: &Program) -> bool {
    PATIENT.contains(&program.package.as_str())
}

/// Prints how a program went, and all of what it printed if it failed.
fn tell(ended: Ended, failures: &Mutex<&mut Failures>) -> Ended {
    if let Ok(mut failures) = failures.lock() {
        println!("{}", line(&ended));
        if !ended.is_passed {
            println!("{}", ended.output);
            failures.add(&ended.words, &ended.output);
        }
    }
    ended
}

/// A program in a line: how long it took, what repeats it, and the counts of its tests.
fn line(ended: &Ended) -> String {
    let label = if ended.is_passed { "ok" } else { "FAILED" };
    let (seconds, words) = (ended.took.as_secs_f64(), &ended.words);
    format!("{seconds:>7.1} s  {words}: {label}, {} passed", passed(&ended.output))
}

/// How many tests passed, by the lines at the end of what programs print.
fn passed(output: &str) -> u64 {
    let results = output.lines().filter_map(|line| line.strip_prefix("test result: "));
    let counts = results.filter_map(|result| result.split_once(". ")?.1.split(' ').next());
    counts.filter_map(|count| count.parse::<u64>().ok()).sum()
}

/// The slowest programs: who adds a slow test looks here what to speed up for it.
fn slowest(mut all: Vec<&Ended>) -> String {
    let count: u64 = all.iter().map(|ended| passed(&ended.output)).sum();
    let mut out = format!("\n{count} tests of {} programs passed; the slowest:\n", all.len());
    all.sort_by_key(|ended| std::cmp::Reverse(ended.took));
    for Ended { words, took, .. } in all.into_iter().take(SLOWEST) {
        out.push_str(&format!("{:>7.1} s  {words}\n", took.as_secs_f64()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn ended(words: &str, seconds: u64, count: u64) -> Ended {
        let result = format!("\ntest result: ok. {count} passed; 0 failed; 0 ignored\n");
        Ended {
            words: words.to_owned(),
            is_passed: true,
            took: Duration::from_secs(seconds),
            output: result,
        }
    }

    #[test]
    fn a_program_is_a_line_with_the_count_of_its_tests() {
        let two = Ended { is_passed: false, ..ended("-p a --lib", 3, 7) };
        assert_eq!(line(&two), "    3.0 s  -p a --lib: FAILED, 7 passed");
        let several = format!("{0}{0}", ended("", 0, 4).output);
        assert_eq!(passed(&several), 8, "the documentation of several crates");
    }

    #[test]
    fn the_slowest_come_first() {
        let (a, b) = (ended("-p a", 1, 2), ended("-p b", 5, 3));
        let text =
            "\n5 tests of 2 programs passed; the slowest:\n    5.0 s  -p b\n    1.0 s  -p a\n";
        assert_eq!(slowest(vec![&a, &b]), text);
    }

    #[test]
    fn what_fails_is_kept() {
        let mut failures = Failures::default();
        tell(ended("-p a", 1, 2), &Mutex::new(&mut failures));
        assert_eq!(failures.text(), "");
        tell(Ended { is_passed: false, ..ended("-p b", 1, 2) }, &Mutex::new(&mut failures));
        assert!(failures.text().contains("cargo test -p b\n"));
    }
}
