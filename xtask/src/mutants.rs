//! `cargo xtask mutants`: changed by a mistake, is the code of an owner caught by its unit tests?
//!
//! ```text
//!   cargo mutants --list -> so many in all -> the commit draws one share of about 100
//!        -> each: change one expression, build, run the unit tests -> caught, missed, …
//!        -> of those that build, 85 of 100 must be caught
//! ```
//!
//! Invariants: a commit draws the same mutants wherever it is; what does not build does not count;
//! a mutant under which tests never end is caught.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Whose unit tests are judged, and by mutants of which files.
const PACKAGE: &str = "dacapo-core";
const FILES: [&str; 4] = [
    "crates/core/src/flow/**",
    "crates/core/src/session/**",
    "crates/core/src/peer/**",
    "crates/core/src/fanout/**",
];

/// How many are drawn, about.
const DRAWN: usize = 100;

/// Of 100 that build, so many must be caught.
const CAUGHT_MIN: usize = 85;

/// What `cargo mutants` writes, below its output.
const OUT: &str = "target/mutants";

const HELP: &str = "\
Changes code of owners (flow, session, peer, fanout in crates/core/src) by one mistake at a time and
runs their unit tests: about 100 mistakes, drawn by the commit. Fewer than 85 of 100 caught fails.

  cargo xtask mutants           those that the commit draws; 20 minutes and more on two cores
  cargo xtask mutants K/N       share K of N instead: 0/1 is all of them

What was missed is listed; target/mutants/mutants.out has the change and the output of each.
It needs cargo-mutants: cargo install cargo-mutants --version 27.1.0 --locked
Exit code: 0, 1 when too few are caught, 2 when a word was wrong or nothing could be run.
";

/// Runs the command with the words after `mutants`; true when enough are caught.
///
/// # Errors
/// A word that is none; cargo-mutants is missing, or could not begin.
pub fn run(root: &Path, words: &[&str]) -> io::Result<bool> {
    let share = match words {
        [] => drawn(&commit(root)?, list(root)?),
        ["--help" | "-h" | "help"] => {
            print!("{HELP}");
            return Ok(true);
        }
        [share] if share.split_once('/').is_some_and(|(k, n)| is_share(k, n)) => {
            (*share).to_owned()
        }
        _ => {
            eprint!("unknown words `{}`\n\n{HELP}", words.join(" "));
            return Err(io::Error::other("no such option"));
        }
    };
    println!("share {share} of the mutants of {}", FILES.join(" "));
    fs::create_dir_all(root.join(OUT))?;
    let mut command = mutants(root);
    command.args(["--output", OUT, "--shard", &share, "--sharding", "round-robin"]);
    command.args(["--no-shuffle", "--cap-lints=true", "--timeout", "60"]);
    let status = command.args(["--cargo-test-arg=--lib"]).status()?;
    // 2: some were missed, 3: under some the tests never ended.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        return Err(io::Error::other(format!("cargo-mutants ended with {status}")));
    }
    let count = Count::read(&root.join(OUT).join("mutants.out"))?;
    print!("{}", count.text());
    Ok(count.is_enough())
}

fn is_share(k: &str, n: &str) -> bool {
    matches!((k.parse::<usize>(), n.parse::<usize>()), (Ok(k), Ok(n)) if k < n)
}

fn mutants(root: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(["mutants", "--package", PACKAGE]);
    command.args(FILES.iter().flat_map(|files| ["--file", files]));
    command
}

/// How many mutants there are.
fn list(root: &Path) -> io::Result<usize> {
    let output = mutants(root).arg("--list").output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or_default();
        let how = "is it there? cargo install cargo-mutants --version 27.1.0 --locked";
        return Err(io::Error::other(format!("cargo mutants: {said}; {how}")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().count())
}

fn commit(root: &Path) -> io::Result<String> {
    let output = Command::new("git").current_dir(root).args(["rev-parse", "HEAD"]).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("git names no commit: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The share of `total` mutants that a commit draws.
fn drawn(commit: &str, total: usize) -> String {
    let shares = total.div_ceil(DRAWN).max(1);
    let number = commit.get(..8).and_then(|hex| usize::from_str_radix(hex, 16).ok());
    format!("{}/{shares}", number.unwrap_or_default() % shares)
}

/// What became of the mutants.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    caught: usize,
    missed: Vec<String>,
    unviable: usize,
}

impl Count {
    fn read(out: &Path) -> io::Result<Self> {
        let lines = |name: &str| -> io::Result<Vec<String>> {
            Ok(fs::read_to_string(out.join(name))?.lines().map(str::to_owned).collect())
        };
        Ok(Self {
            caught: lines("caught.txt")?.len() + lines("timeout.txt")?.len(),
            missed: lines("missed.txt")?,
            unviable: lines("unviable.txt")?.len(),
        })
    }

    fn built(&self) -> usize {
        self.caught + self.missed.len()
    }

    /// Nothing tried proves nothing.
    fn is_enough(&self) -> bool {
        self.built() > 0 && self.caught * 100 >= self.built() * CAUGHT_MIN
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{} of {} caught, at least {CAUGHT_MIN} of 100 are to be; {} did not build\n",
            self.caught,
            self.built(),
            self.unviable,
        );
        self.missed.iter().for_each(|line| text.push_str(&format!("  missed: {line}\n")));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_draws_one_share_of_about_a_hundred() {
        assert_eq!(drawn("0000000af1", 935), "0/10");
        assert_eq!(drawn("00000017f1", 935), "3/10");
        assert_eq!(drawn("ffffffffff", 40), "0/1");
        assert_eq!(drawn("", 0), "0/1");
        assert!(is_share("0", "1") && !is_share("1", "1") && !is_share("a", "2"));
    }

    #[test]
    fn eighty_five_of_a_hundred_are_enough_and_none_is_not() {
        let count = |caught, missed| Count {
            caught,
            missed: vec!["a.rs:1:2: replace + with -".to_owned(); missed],
            unviable: 7,
        };
        assert!(count(85, 15).is_enough() && !count(84, 15).is_enough());
        assert!(!count(0, 0).is_enough());
        let text = count(3, 1).text();
        assert!(text.starts_with("3 of 4 caught,") && text.contains("7 did not build"), "{text}");
        assert!(text.ends_with("  missed: a.rs:1:2: replace + with -\n"), "{text}");
    }
}
