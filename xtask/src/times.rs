//! The time of each step, kept in `target/times.jsonl`: a line with an object per step.
//!
//! ```text
//!   {"at":1760000000,"run":"check","step":"tidy","seconds":1.2,"outcome":"ok","commit":"b8cfde3"}
//! ```
//!
//! `at` is the second since 1970 in which the run began, the same for all its steps; a commit with
//! a `+` is one with changes on it.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// A run whose times are kept.
#[derive(Debug)]
pub struct Times {
    path: PathBuf,
    run: &'static str,
    at: u64,
    commit: String,
}

impl Times {
    /// A run that begins now.
    #[must_use]
    pub fn new(root: &Path, run: &'static str) -> Self {
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let at = since.map_or(0, |since| since.as_secs());
        Self { path: root.join(target).join("times.jsonl"), run, at, commit: commit(root) }
    }

    /// Keeps the time of a step.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, step: &str, took: Duration, outcome: &str) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        file.write_all(self.line(step, took, outcome).as_bytes())
    }

    fn line(&self, step: &str, took: Duration, outcome: &str) -> String {
        let Self { run, at, commit, .. } = self;
        let seconds = took.as_secs_f64();
        format!(
            "{{\"at\":{at},\"run\":\"{run}\",\"step\":\"{step}\",\"seconds\":{seconds:.1},\
             \"outcome\":\"{outcome}\",\"commit\":\"{commit}\"}}\n"
        )
    }
}

/// The commit, with a `+` where files differ from it; empty outside version control.
fn commit(root: &Path) -> String {
    let says = |words: &[&str]| {
        let output = Command::new("git").args(words).current_dir(root).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let changed = says(&["status", "--porcelain"]).is_some_and(|text| !text.is_empty());
    let commit = says(&["rev-parse", "--short", "HEAD"]).unwrap_or_default();
    format!("{commit}{}", if changed { "+" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_a_line_of_json() {
        let commit = "b8cfde3+".to_owned();
        let times = Times { path: PathBuf::new(), run: "check", at: 7, commit };
        assert_eq!(
            times.line("tidy", Duration::from_millis(1240), "ok"),
            "{\"at\":7,\"run\":\"check\",\"step\":\"tidy\",\"seconds\":1.2,\"outcome\":\"ok\",\
             \"commit\":\"b8cfde3+\"}\n"
        );
    }
}
