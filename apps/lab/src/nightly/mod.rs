//! The nightly run: fresh seeds, fuzzing and kills in turn, for as long as there is time, with
//! totals that outlive it.
//!
//! ```text
//!   round:  seeds ... seeds | cargo xtask fuzz | kills      until the time is over, or a signal
//!              |                  |                |
//!              +---- totals.json, replaced whole --+        killed at any moment: goes on there
//! ```
//!
//! Invariants: a seed is never run twice unless the run was killed before its chunk was noted; the
//! totals on disk are always whole, of now or of one step before.

mod child;
mod state;

pub use state::{Failure, State};

use crate::fault::Scale;
use crate::faults::seeds::{Mixed, one};
use crate::sweep::collect;
use child::{Child, Ended};
use dacapo_sys::signal::{Signal, Signals};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Seeds after which the totals are written.
const CHUNK: u64 = 100;

/// What a nightly run does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long, all in all.
    pub time: Duration,
    /// Where the totals are.
    pub folder: PathBuf,
    /// Where cargo is called.
    pub root: PathBuf,
    /// The time for seeds in a round; zero: none.
    pub seed_time: Duration,
    /// The time for each target of the fuzzers in a round, seconds; zero: none.
    pub fuzz_seconds: u64,
    /// How many processes are killed in a round; zero: none.
    pub kills: u64,
}

/// A nightly run.
pub struct Nightly {
    plan: Plan,
    state: State,
    signals: Signals,
    begun: Instant,
    noted: Instant,
    stopped: bool,
}

impl Nightly {
    /// Takes up the totals where they are.
    ///
    /// # Errors
    /// The folder cannot be made, its totals cannot be read, or signals cannot be caught.
    pub fn new(plan: Plan) -> io::Result<Self> {
        std::fs::create_dir_all(&plan.folder)?;
        let state = State::load(&plan.folder)?;
        let signals = Signals::catch(&[Signal::Interrupt, Signal::Terminate])?;
        let now = Instant::now();
        Ok(Self { plan, state, signals, begun: now, noted: now, stopped: false })
    }

    /// Runs rounds until the time is over or somebody stops it; the totals.
    ///
    /// # Errors
    /// The totals cannot be written, or cargo cannot be called.
    pub fn run(mut self, mut told: impl FnMut(&State)) -> io::Result<State> {
        let nothing =
            self.plan.seed_time.is_zero() && self.plan.fuzz_seconds == 0 && self.plan.kills == 0;
        while !nothing && !self.is_over() {
            self.seeds()?;
            self.fuzz()?;
            self.kills()?;
            self.state.rounds += 1;
            self.note()?;
            told(&self.state);
        }
        Ok(self.state)
    }

    fn is_over(&mut self) -> bool {
        self.stopped |= self.signals.poll().is_some();
        self.stopped || self.begun.elapsed() >= self.plan.time
    }

    /// Writes the totals.
    fn note(&mut self) -> io::Result<()> {
        self.state.seconds += self.noted.elapsed().as_secs_f64();
        self.noted = Instant::now();
        self.state.save(&self.plan.folder)
    }

    fn seeds(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < self.plan.seed_time && !self.is_over() {
            let first = self.state.seeds.next;
            let end = first.saturating_add(CHUNK);
            let scale = Scale::short();
            let (sum, failed) = collect(&scale, first..end, |seed, sum: &mut Mixed| one(seed, sum));
            self.state.seeds.add(end, &sum.0, failed.len() as u64);
            for it in failed {
                self.state.fail(Failure {
                    what: format!("seed {}: {}", it.seed, it.what),
                    repeat: format!("cargo run -p dacapo-lab -- run seeds --seed {}", it.seed),
                });
            }
            self.note()?;
        }
        Ok(())
    }

    fn fuzz(&mut self) -> io::Result<()> {
        if self.plan.fuzz_seconds == 0 || self.is_over() {
            return Ok(());
        }
        let seconds = self.plan.fuzz_seconds.to_string();
        let totals = self.plan.folder.join("fuzz.json");
        let mut command = cargo(&self.plan.root);
        command.args(["xtask", "fuzz", "--all", "--seconds", &seconds, "--totals"]).arg(&totals);
        let (ended, log) = self.call("fuzz", command)?;
        self.state.read_fuzz(&totals);
        if ended == Ended::Failed {
            self.state.fail(Failure {
                what: format!("fuzzing: {}", told_of(&log)),
                repeat: format!("cargo xtask fuzz --all --seconds {seconds}"),
            });
        }
        self.note()
    }

    fn kills(&mut self) -> io::Result<()> {
        if self.plan.kills == 0 || self.is_over() {
            return Ok(());
        }
        let (count, seed) = (self.plan.kills.to_string(), self.state.kills.seed_next.to_string());
        let mut command = cargo(&self.plan.root);
        command.args(["test", "-p", "dacapo-cli", "--test", "kills", "--", "--nocapture"]);
        command.env("DACAPO_KILLS", &count).env("DACAPO_SEED", &seed);
        let (ended, log) = self.call("kills", command)?;
        if ended == Ended::Stopped {
            return Ok(());
        }
        let counted = self.state.kills.read(&log);
        if ended == Ended::Failed || !counted {
            self.state.fail(Failure {
                what: format!("kills: {}", told_of(&log)),
                repeat: format!(
                    "DACAPO_KILLS={count} DACAPO_SEED={seed} cargo test -p dacapo-cli --test kills \
                     -- --nocapture"
                ),
            });
        }
        self.note()
    }

    /// Runs a command to its end, or ends it when somebody stops us; what it wrote.
    fn call(&mut self, name: &str, command: Command) -> io::Result<(Ended, String)> {
        let log = self.plan.folder.join(format!("{name}.log"));
        let mut child = Child::begin(command, &log)?;
        let signals = &mut self.signals;
        let ended = child.wait(|| signals.poll().is_some())?;
        self.stopped |= ended == Ended::Stopped;
        let text = std::fs::read(&log).unwrap_or_default();
        Ok((ended, String::from_utf8_lossy(&text).into_owned()))
    }
}

fn cargo(root: &Path) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root);
    command
}

/// What a log says of a failure: the lines that speak of one, else its end.
fn told_of(log: &str) -> String {
    const WORDS: [&str; 4] = ["FAILED", "crash", "error:", "failed"];
    const LINES_MAX: usize = 4;
    let lines = || log.lines().map(str::trim).filter(|line| !line.is_empty());
    let speaks = |line: &&str| WORDS.iter().any(|word| line.contains(word));
    let found: Vec<&str> = lines().filter(speaks).take(LINES_MAX).collect();
    let last = || lines().next_back().unwrap_or("without a word").to_owned();
    if found.is_empty() { last() } else { found.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_log_the_lines_that_speak_of_a_failure_are_told() {
        let log = "  Compiling a\n target x: crash in 3 s\n\nerror: test failed\nnote: b\n";
        assert_eq!(told_of(log), "target x: crash in 3 s; error: test failed");
        assert_eq!(told_of("one\ntwo\n\n"), "two");
        assert_eq!(told_of(""), "without a word");
    }
}
