//! [`Stop`]: whether somebody wants the run to end.

use dacapo_sys::signal::{Signal, Signals};
use std::sync::{Arc, Mutex};

/// The signals that end a run, once caught; shared by all who wait.
#[derive(Clone, Debug, Default)]
pub struct Stop(Option<Arc<Mutex<Caught>>>);

#[derive(Debug)]
struct Caught {
    signals: Signals,
    seen: Option<Signal>,
}

impl Stop {
    /// Catches SIGINT, SIGTERM and SIGHUP from here on.
    ///
    /// # Errors
    /// The system refuses.
    pub fn catch() -> std::io::Result<Self> {
        let signals = Signals::catch(&[Signal::Interrupt, Signal::Terminate, Signal::HangUp])?;
        Ok(Self(Some(Arc::new(Mutex::new(Caught { signals, seen: None })))))
    }

    /// One that nobody can want.
    #[cfg(test)]
    pub fn never() -> Self {
        Self(None)
    }

    /// The signal that came, if one did.
    pub fn wanted(&self) -> Option<Signal> {
        let mut caught = self.0.as_ref()?.lock().ok()?;
        if caught.seen.is_none() {
            caught.seen = caught.signals.poll();
        }
        caught.seen
    }

    /// Whether one did.
    pub fn is_wanted(&self) -> bool {
        self.wanted().is_some()
    }
}
