//! [`Binary`]: the fuzzer: how it is built, how a target runs, and what its log says.
//!
//! Source: <https://llvm.org/docs/LibFuzzer.html>

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What libFuzzer puts before the name of an input that failed.
const FAILURES: [&str; 4] = ["crash-", "timeout-", "oom-", "leak-"];

/// The profile: that of the tests, with every assertion, overflow checks and lines in backtraces;
/// our crates are optimised more.
const PROFILE: &str = "profile.dev.opt-level=2";

/// The fuzzer, and the folders it works in.
#[derive(Clone, Debug)]
pub struct Binary {
    path: PathBuf,
    /// `fuzz/corpus` of the checkout.
    pub corpora: PathBuf,
    /// What is found, and logs.
    pub target_dir: PathBuf,
}

/// What came of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// How often it was run.
    pub executions: u64,
    /// For how long it ran, in seconds.
    pub seconds: u64,
    /// Edges of the code that were reached.
    pub coverage: u64,
    /// Inputs that reached something new.
    pub new_inputs: u64,
    /// The files of inputs that failed.
    pub crashes: Vec<PathBuf>,
    /// The fuzzer ended by itself and well.
    pub has_ended: bool,
}

impl Found {
    /// Whether nothing failed.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        self.has_ended && self.crashes.is_empty()
    }
}

impl Binary {
    /// Builds the fuzzer of the checkout at `root`.
    ///
    /// # Errors
    /// Cargo cannot be run, or does not build it.
    pub fn build(root: &Path) -> io::Result<Self> {
        let outer = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let built = outer.map_or_else(|| root.join("target"), |dir| root.join(dir));
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // With the features of the whole workspace, in its folder: crates from outside are then the
        // ones that the tests are linked with, and built once for both.
        command.args(["build", "--quiet", "--locked", "--workspace", "--bin", "dacapo-fuzz"]);
        command.args(["--features", "dacapo-fuzz/libfuzzer", "--config", PROFILE, "--target-dir"]);
        command.arg(&built).current_dir(root);
        // A crate with counters is built in one piece, so nothing of it could be kept.
        command.env("CARGO_INCREMENTAL", "0");
        command.env("RUSTC_WORKSPACE_WRAPPER", root.join("fuzz/coverage.sh"));
        if !command.status()?.success() {
            let text = "the fuzzer could not be built: it needs g++ (apt install g++)";
            return Err(io::Error::other(text));
        }
        let path = built.join("debug/dacapo-fuzz");
        Ok(Self { path, corpora: root.join("fuzz/corpus"), target_dir: built.join("fuzz") })
    }

    /// The names of the targets, and the longest input of each.
    ///
    /// # Errors
    /// The fuzzer cannot be run, or says something else.
    pub fn targets(&self) -> io::Result<Vec<(String, usize)>> {
        let output = Command::new(&self.path).env_remove("FUZZ_TARGET").output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = |line: &str| {
            let (name, len_max) = line.split_once(' ')?;
            Some((name.to_owned(), len_max.parse().ok()?))
        };
        let targets: Option<Vec<_>> = text.lines().map(line).collect();
        targets.filter(|it| !it.is_empty()).ok_or_else(|| io::Error::other("no list of targets"))
    }

    /// A run of a target, with its corpora.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.env("FUZZ_TARGET", name).env("RUST_BACKTRACE", "1");
        command
    }

    /// Runs a target for some seconds.
    ///
    /// # Errors
    /// A folder cannot be made, or the fuzzer cannot be run.
    pub fn fuzz(
        &self,
        name: &str,
        len_max: usize,
        seconds: u64,
        seed: Option<u64>,
    ) -> io::Result<Found> {
        let (corpus, work) = (self.corpora.join(name), super::work_folder(&self.target_dir, name));
        let logs = self.target_dir.join("logs");
        [&corpus, &work, &logs].into_iter().try_for_each(fs::create_dir_all)?;
        let log = logs.join(format!("{name}.log"));
        let (out, err) = (File::create(&log)?, File::options().append(true).open(&log)?);
        let before = failures(&corpus)?;
        let mut command = self.command(name);
        command.arg(&work).arg(&corpus).stdout(out).stderr(err).args([
            format!("-max_total_time={seconds}"),
            format!("-max_len={len_max}"),
            // 0 is what the fuzzer takes for none.
            format!("-seed={}", seed.unwrap_or(0)),
            format!("-artifact_prefix={}/", corpus.display()),
            "-rss_limit_mb=256".into(),
            "-timeout=10".into(),
            "-print_final_stats=1".into(),
        ]);
        let begun = Instant::now();
        let status = command.status()?;
        let took = begun.elapsed();
        let mut found = read_log(&String::from_utf8_lossy(&fs::read(&log)?));
        found.crashes = failures(&corpus)?;
        // One that was there and still fails counts; one that was mended does not.
        if status.success() {
            found.crashes.retain(|path| !before.contains(path));
        }
        found.has_ended = status.success();
        if !found.is_passed() {
            eprintln!("{name} failed; see {}", log.display());
        }
        (found.name, found.seconds) = (name.to_owned(), took.as_secs());
        Ok(found)
    }
}

/// The inputs of a corpus that have failed.
fn failures(corpus: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(corpus)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if FAILURES.iter().any(|prefix| name.starts_with(prefix)) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// What libFuzzer says of a run.
fn read_log(log: &str) -> Found {
    let stat = |name: &str| {
        let line = log.lines().rev().find_map(|line| line.trim().strip_prefix(name));
        line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
    };
    let coverage = log.lines().rev().find_map(|line| word_after(line, "cov:")).unwrap_or(0);
    let counted = log.lines().rev().find_map(|line| {
        line.strip_prefix('#')?.split_whitespace().next()?.trim_end_matches(':').parse().ok()
    });
    Found {
        // A run that crashes says no figures at its end; the last line before it does.
        executions: Some(stat("stat::number_of_executed_units:"))
            .filter(|count| *count > 0)
            .or(counted)
            .unwrap_or(0),
        coverage,
        new_inputs: stat("stat::new_units_added:"),
        ..Found::default()
    }
}

/// The number after a word.
fn word_after(line: &str, word: &str) -> Option<u64> {
    let mut words = line.split_whitespace();
    words.find(|one| *one == word)?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_log_are_read() {
        let log = "INFO: Seed: 1\n#2\tINITED cov: 3 ft: 4 corp: 1/1b exec/s: 0 rss: 30Mb\n\
            #65536\tpulse  cov: 90 ft: 4 corp: 1/1b\n#70000\tDONE   cov: 91 ft: 4 corp: 1/1b\n\
            Done 70000 runs in 2 second(s)\nstat::number_of_executed_units: 70000\n\
            stat::average_exec_per_sec:     35000\nstat::new_units_added:          12\n";
        let found = read_log(log);
        assert_eq!((found.executions, found.coverage, found.new_inputs), (70_000, 91, 12));
        let crashed =
            "#2\tINITED cov: 3 ft: 4\n#4096\tpulse  cov: 9 ft: 4\n==7== ERROR: libFuzzer\n";
        let found = read_log(crashed);
        assert_eq!((found.executions, found.coverage, found.is_passed()), (4_096, 9, false));
        assert_eq!(read_log(""), Found::default());
    }
}
