//! [`Progress`]: one line on standard error that says how far a run is.
//!
//! Where standard error is no terminal nothing is written.
//!
//! Invariant: the line is shown only after two seconds, and taken away at the end.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const FIRST_AFTER: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_millis(500);

/// Where progress is shown, if anywhere.
#[derive(Clone, Debug)]
pub struct Progress {
    is_shown: bool,
}

impl Progress {
    /// Nothing is shown.
    #[must_use]
    pub fn silent() -> Self {
        Self { is_shown: false }
    }

    /// It is shown where standard error is a terminal.
    #[must_use]
    pub fn on_terminal() -> Self {
        Self { is_shown: io::stderr().is_terminal() }
    }

    /// Begins a run of `count` parts.
    #[must_use]
    pub fn begin(&self, count: u64) -> Line {
        Line { is_shown: self.is_shown, count, begun: Instant::now(), last: None }
    }
}

/// The line of one run.
#[derive(Debug)]
pub struct Line {
    is_shown: bool,
    count: u64,
    begun: Instant,
    last: Option<Instant>,
}

impl Line {
    /// So many parts are done.
    pub fn show(&mut self, done: u64) {
        let wait = if self.last.is_none() { FIRST_AFTER } else { EVERY };
        if !self.is_shown || self.last.unwrap_or(self.begun).elapsed() < wait {
            return;
        }
        self.last = Some(Instant::now());
        let (seconds, count) = (self.begun.elapsed().as_secs(), self.count);
        let share = done * 100 / count.max(1);
        let mut out = io::stderr().lock();
        // A terminal that is gone needs no progress.
        let _ = write!(out, "\r\x1b[K{done} of {count} ({share} %), {seconds} s");
        let _ = out.flush();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.last.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
