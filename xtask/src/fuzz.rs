//! `cargo xtask fuzz`: builds the fuzzer of `fuzz/` and runs targets for a time.
//!
//! ```text
//!   build (coverage counters in our crates) -> target/debug/dacapo-fuzz
//!   for each target, some at a time:  fuzz/corpus/NAME (read) + target/fuzz/work/NAME (grows)
//!        -> table, --json, --totals
//!        a crash -> fuzz/corpus/NAME/crash-…, and the command that repeats it
//! ```
//!
//! It needs stable Rust and g++.
//!
//! Invariants: a target that crashes does not stop the others; any crash fails the run.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

mod binary;
mod merge;
mod options;
mod table;
mod totals;

pub use binary::{Binary, Found};
use options::Options;

const HELP: &str = "\
Runs fuzz targets with libFuzzer, on stable Rust.

  cargo xtask fuzz wire_record                  one target for 15 s
  cargo xtask fuzz --all                        all targets, 15 s each, two at a time
  cargo xtask fuzz --all --turn 7               every third target, from the seventh on
  cargo xtask fuzz core_quic --seconds 600      longer
  cargo xtask fuzz --all --jobs 1 --json        for programs
  cargo xtask fuzz --all --totals out/fuzz.json adds to what was run before
  cargo xtask fuzz wire_record --merge          puts the best of what was found into fuzz/corpus
  cargo xtask fuzz --list                       the names

Options: --seconds N (15), --jobs N (2), --seed N (fresh), --turn N, --json, --totals FILE, --merge,
--list, --help.
Exit code: 0, 1 when a target crashed, 2 when a word was wrong or nothing could be run.
A crash is a file fuzz/corpus/NAME/crash-…; cargo test repeats it without the fuzzer:
  cargo test -p dacapo-fuzz --test replay -- --exact NAME
";

/// Where what grows is kept.
fn work_folder(target_dir: &Path, name: &str) -> PathBuf {
    target_dir.join("work").join(name)
}

/// Runs the command with the words after `fuzz`; true when no target crashed.
///
/// # Errors
/// A word that is none, or a build or run that cannot be begun.
pub fn run(root: &Path, words: &[&str]) -> io::Result<bool> {
    if words.iter().any(|word| matches!(*word, "--help" | "-h" | "help")) {
        print!("{HELP}");
        return Ok(true);
    }
    let options = Options::read(words)?;
    let binary = Binary::build(root)?;
    let known = binary.targets()?;
    if options.is_list {
        known.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(true);
    }
    let chosen = options.choose(&known)?;
    if options.is_merge {
        return merge::all(&binary, &chosen);
    }
    let found = run_all(&binary, &chosen, &options)?;
    if let Some(path) = &options.totals {
        totals::add(path, &found)?;
    }
    if options.is_json {
        println!("{}", table::json(&found));
    } else {
        print!("{}", table::text(&found));
    }
    Ok(found.iter().all(Found::is_passed))
}

/// A third of the targets, for the step of `ci`: which, turns with every commit. The corpora of all
/// are run by the tests.
///
/// # Errors
/// As [`run`].
pub fn run_for_ci(root: &Path) -> io::Result<bool> {
    let turn = (commits(root) % options::TURNS + 1).to_string();
    println!("a third of the targets, turn {turn} of {}", options::TURNS);
    // The same chances for every change, and few: what is fresh and long is for the nightly run.
    run(root, &["--all", "--turn", &turn, "--seed", "1998", "--seconds", "15"])
}

/// How many commits there are; 0 where nobody says it.
fn commits(root: &Path) -> u64 {
    let mut git = Command::new("git");
    let output = git.args(["rev-list", "--count", "HEAD"]).current_dir(root).output().ok();
    let count = output.and_then(|output| String::from_utf8(output.stdout).ok());
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

fn run_all(
    binary: &Binary,
    chosen: &[(String, usize)],
    options: &Options,
) -> io::Result<Vec<Found>> {
    let queue: Mutex<VecDeque<_>> = Mutex::new(chosen.iter().enumerate().collect());
    let results = Mutex::new(Vec::new());
    let lock_results = || results.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((place, (name, len_max))) = next else { break };
            let found = binary.fuzz(name, *len_max, options.seconds, options.seed);
            lock_results().push((place, found));
            if io::stderr().is_terminal() {
                eprintln!("[{}/{}] {name}", lock_results().len(), chosen.len());
            }
        }
    };
    thread::scope(|scope| {
        (0..options.jobs).for_each(|_| drop(scope.spawn(work)));
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, found)| found).collect()
}
