//! [`State`]: what all nightly runs came to, on disk.
//!
//! ```text
//!   save   totals.json.new written and synced; totals.json -> .old; .new -> totals.json
//!   load   totals.json, else .old, else nothing yet
//! ```
//!
//! Invariant: whenever the process is killed, one of the two files is whole.

use dacapo_netlab::mixed::Totals;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Failures that are kept; more are counted.
const FAILURES_MAX: usize = 500;

/// Something that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What.
    pub what: String,
    /// The command that shows it again.
    pub repeat: String,
}

/// Seeds of mixed faults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seeds {
    /// The first that was not run.
    pub next: u64,
    /// Run.
    pub count: u64,
    /// Failed.
    pub failures: u64,
    /// Sessions that were set up.
    pub set_up: u64,
    /// Sessions that ended as usual.
    pub complete: u64,
    /// Units delivered.
    pub units: u64,
    /// Changes of epoch.
    pub changes: u64,
}

impl Seeds {
    pub(super) fn add(&mut self, next: u64, totals: &Totals, failures: u64) {
        self.next = next;
        self.count += totals.trials;
        self.failures += failures;
        self.set_up += totals.ready;
        self.complete += totals.complete;
        self.units += totals.units;
        self.changes += totals.changes;
    }
}

/// Killed processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kills {
    /// The seed of the next run.
    pub seed_next: u64,
    /// Kills.
    pub count: u64,
    /// Kills after which something was not as it must be.
    pub failures: u64,
}

impl Kills {
    /// Adds what the test printed: `kills: N, failures: M`; false when it did not.
    pub(super) fn read(&mut self, log: &str) -> bool {
        self.seed_next += 1;
        let line = log.lines().rev().find_map(|line| line.trim().strip_prefix("kills: "));
        let counts = line.and_then(|line| {
            let (kills, rest) = line.split_once(", failures: ")?;
            let failures: String = rest.chars().take_while(char::is_ascii_digit).collect();
            Some((kills.parse::<u64>().ok()?, failures.parse::<u64>().ok()?))
        });
        let (kills, failures) = counts.unwrap_or_default();
        self.count += kills;
        self.failures += failures;
        counts.is_some()
    }
}

/// Fuzzing, as its own file of totals says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fuzz {
    /// Targets.
    pub targets: u64,
    /// Executions.
    pub executions: u64,
    /// Time, seconds.
    pub seconds: f64,
    /// Crashes.
    pub crashes: u64,
}

/// All totals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// Rounds that were ended.
    pub rounds: u64,
    /// Time, seconds.
    pub seconds: f64,
    /// Seeds.
    pub seeds: Seeds,
    /// Kills.
    pub kills: Kills,
    /// Fuzzing.
    pub fuzz: Fuzz,
    /// What failed.
    pub failures: Vec<Failure>,
    /// Failures that were not kept.
    pub failures_more: u64,
}

fn paths(folder: &Path) -> [PathBuf; 3] {
    ["totals.json", "totals.json.old", "totals.json.new"].map(|name| folder.join(name))
}

impl State {
    /// The totals in a folder; none yet when there are none.
    ///
    /// # Errors
    /// Files are there and none of them is whole, or they cannot be read.
    pub fn load(folder: &Path) -> io::Result<Self> {
        let [current, old, _] = paths(folder);
        let mut unreadable = None;
        for path in [&current, &old] {
            let text = match fs::read_to_string(path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            match serde_json::from_str(&text) {
                Ok(state) => return Ok(state),
                Err(error) => unreadable = unreadable.or(Some((path, error))),
            }
        }
        match unreadable {
            None => Ok(Self::default()),
            Some((path, error)) => {
                let text = format!("{}: {error}; remove it to begin anew", path.display());
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
        }
    }

    /// Replaces the totals in a folder.
    ///
    /// # Errors
    /// The disk is full or the folder gone; the totals of before are then still there.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        let [current, old, new] = paths(folder);
        let mut file = File::create(&new)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        match fs::rename(&current, old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::rename(new, current)
    }

    /// Notes a failure once.
    pub fn fail(&mut self, failure: Failure) {
        if self.failures.contains(&failure) {
            return;
        }
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(failure);
        } else {
            self.failures_more += 1;
        }
    }

    /// Takes over what the fuzzers have counted.
    pub fn read_fuzz(&mut self, totals: &Path) {
        let text = fs::read_to_string(totals).unwrap_or_default();
        let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) else { return };
        let Some(targets) = value.get("targets").and_then(|it| it.as_object()) else { return };
        let sum =
            |name: &str| -> f64 { targets.values().filter_map(|it| it.get(name)?.as_f64()).sum() };
        self.fuzz = Fuzz {
            targets: targets.len() as u64,
            executions: sum("executions") as u64,
            seconds: sum("seconds"),
            crashes: sum("crashes") as u64,
        };
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rounds, seeds, kills, fuzz, .. } = self;
        let failed = self.failures.len() as u64 + self.failures_more;
        write!(
            f,
            "{:.0} min in {rounds} rounds: {} seeds ({} set up, {} as usual, {} failed; next {}), \
             {} kills ({} failed), {} executions of {} fuzz targets in {:.0} min ({} crashes); \
             {failed} failures",
            self.seconds / 60.0,
            seeds.count,
            seeds.set_up,
            seeds.complete,
            seeds.failures,
            seeds.next,
            kills.count,
            kills.failures,
            fuzz.executions,
            fuzz.targets,
            fuzz.seconds / 60.0,
            fuzz.crashes
        )
    }
}
