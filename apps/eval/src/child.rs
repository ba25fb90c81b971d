//! [`Child`]: a far end on this host, as a process of its own, so that each end's processor time
//! and memory are its own.
//!
//! Invariant: it does not outlive this process: it ends when its standard input does, and is ended
//! by its handle when it does not.

use crate::exit::Failure;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{self, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// What it has to end by itself.
const END_MAX: Duration = Duration::from_secs(3);

/// A far end that this process has started.
pub struct Child {
    child: process::Child,
    out: Option<BufReader<ChildStdout>>,
    /// The measurement, for errors.
    what: &'static str,
    /// Where it listens.
    pub addresses: Vec<String>,
}

impl Child {
    /// Starts this program with these arguments, and waits until it listens.
    ///
    /// # Errors
    /// It cannot be started, or does not listen; it has said why.
    pub fn start(what: &'static str, args: &[&str]) -> Result<Self, Failure> {
        let failed =
            |error: std::io::Error| Failure::run_time(&format!("{what}: the far end"), error);
        let own = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(own);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let out = child.stdout.take().map(BufReader::new);
        let mut child = Self { child, out, what, addresses: Vec::new() };
        let said = child.read().unwrap_or_default();
        let addresses = said.get("addresses").and_then(Value::as_array);
        let addresses = addresses.into_iter().flatten().filter_map(Value::as_str);
        child.addresses = addresses.map(str::to_owned).collect();
        if child.addresses.is_empty() {
            let text = "the far end, a second process, does not listen";
            return Err(Failure::run_time(what, text));
        }
        Ok(child)
    }

    /// The address where it listens first.
    pub fn address(&self) -> String {
        self.addresses.first().cloned().unwrap_or_default()
    }

    /// Says a word to it, and waits for its answer.
    ///
    /// # Errors
    /// It is gone, or has answered nonsense.
    pub fn ask(&mut self, word: &str) -> Result<Value, Failure> {
        let input = self.child.stdin.as_mut();
        let written = input.map(|input| writeln!(input, "{word}").and_then(|()| input.flush()));
        let answer = written.and_then(Result::ok).and_then(|()| self.read());
        answer.ok_or_else(|| {
            let text = "the far end, a second process, has ended before its time";
            Failure::run_time(self.what, text)
        })
    }

    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.out.as_mut()?.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The end of its input is what it waits for.
        drop(self.child.stdin.take());
        let began = Instant::now();
        while self.is_running() && began.elapsed() < END_MAX {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
