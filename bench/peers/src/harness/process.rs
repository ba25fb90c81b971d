//! [`Process`]: one end, running; ended and waited for when dropped.
//!
//! Invariant: no process outlives the harness: dropping kills it by its handle and waits, and the
//! words that start it hold [`DIES_WITH_PARENT`].

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use peers::Failure;

use crate::stopped;

/// Words before a command: the kernel kills it when the harness is gone, however that went. They
/// stand behind the entry into a namespace, which would undo it.
pub const DIES_WITH_PARENT: [&str; 4] = ["setpriv", "--pdeathsig", "KILL", "--"];

/// How often a wait looks whether the run was stopped.
const LOOK: Duration = Duration::from_millis(50);
/// No more than so much of what a process complains is kept.
const COMPLAINT_LEN_MAX: u64 = 4096;

/// A running end.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Receiver<String>,
    complaint: Option<JoinHandle<String>>,
    name: String,
}

impl Process {
    /// Starts `words`, with `folder` as `PEERS_DIR`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(words: &[String], folder: &std::path::Path) -> Result<Self, Failure> {
        let name = words.join(" ");
        let (first, rest) = words.split_first().ok_or_else(|| Failure("no command".to_owned()))?;
        let mut child = Command::new(first)
            .args(rest)
            .env("PEERS_DIR", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Failure(format!("{name}: {error}")))?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = out.into_iter().flat_map(|out| BufReader::new(out).lines());
            for line in lines.map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let complaint = std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(mut err) = err {
                let _ = err.by_ref().take(COMPLAINT_LEN_MAX).read_to_string(&mut text);
                let _ = std::io::copy(&mut err, &mut std::io::sink());
            }
            text
        });
        Ok(Self { child, lines, complaint: Some(complaint), name })
    }

    /// The next line that `is_meant`, within `patience`.
    ///
    /// # Errors
    /// It ended, nothing came in time, or the run was stopped.
    pub fn line(
        &mut self,
        patience: Duration,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<String, Failure> {
        let started = Instant::now();
        loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) if is_meant(&line) => return Ok(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) if stopped() => {
                    return Err(Failure("stopped".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) if started.elapsed() > patience => {
                    let text = format!("said nothing within {patience:?}: {}", self.name);
                    return Err(Failure(text));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Everything it says until it ends, within `patience`.
    ///
    /// # Errors
    /// It did not end in time, ended with a failure, or the run was stopped.
    pub fn all(&mut self, patience: Duration) -> Result<String, Failure> {
        let started = Instant::now();
        let mut text = String::new();
        loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => {
                    text.push_str(&line);
                    text.push('\n');
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if stopped() => {
                    return Err(Failure("stopped".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) if started.elapsed() > patience => {
                    return Err(Failure(format!("did not end within {patience:?}: {}", self.name)));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        if self.child.wait()?.success() { Ok(text) } else { Err(self.ended()) }
    }

    /// Asks it to end in order.
    ///
    /// # Errors
    /// It is gone.
    pub fn interrupt(&self) -> Result<(), Failure> {
        let id = i32::try_from(self.child.id()).map(Pid::from_raw);
        let id = id.map_err(|_| Failure("no process id".to_owned()))?;
        kill(id, Signal::SIGINT).map_err(|error| Failure(format!("{}: {error}", self.name)))
    }

    /// Why it ended, as it says itself.
    fn ended(&mut self) -> Failure {
        let _ = self.child.kill();
        let status = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
        let complaint = self.complaint.take().and_then(|thread| thread.join().ok());
        let complaint = complaint.unwrap_or_default();
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty());
        Failure(last.map_or_else(|| format!("{status}: {}", self.name), str::to_owned))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
