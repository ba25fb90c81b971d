//! [`Child`]: a far end on this host, as a process of its own, so that each end's processor time is
//! its own.
//!
//! What it is not: the far end itself (`far`), which is the same program.
//!
//! Invariant: it does not outlive this process: it ends when its standard input does, and is ended
//! by its handle when it does not.

use crate::cli::BenchNetArgs;
use crate::exit::Failure;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{self, Command, Stdio};
use std::time::{Duration, Instant};

/// What it has to end by itself.
const END_MAX: Duration = Duration::from_secs(3);

/// A far end that this process has started.
pub struct Child {
    child: process::Child,
    /// Where it listens.
    pub address: String,
}

impl Child {
    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    /// It cannot be started, or does not listen; it has said why.
    pub fn start(args: &BenchNetArgs) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::run_time("bench net: the far end", error);
        let own = std::env::current_exe().map_err(failed)?;
        let listen = ["bench", "net", "--listen", "127.0.0.1:0", "--until-eof", "--json"];
        let mut command = Command::new(own);
        command.args(listen).args(args.without()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Self { child: command.spawn().map_err(failed)?, address: String::new() };
        let mut line = String::new();
        if let Some(out) = child.child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(failed)?;
        }
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        let address = said.pointer("/addresses/0").and_then(Value::as_str);
        let address = address.ok_or_else(|| {
            Failure::run_time("bench net", "the far end, a second process, does not listen")
        })?;
        child.address = address.to_owned();
        Ok(child)
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
