//! [`Closing`]: how long a session may take to close in order.

use dacapo::{Code, Error};
use std::time::{Duration, Instant};

/// Where somebody wants to leave.
const INTERRUPTED_MAX: Duration = Duration::from_secs(2);

/// Where it has come to its end: losses that last a quarter of a second may take what both ends say
/// a few times.
const ENDED_MAX: Duration = Duration::from_secs(6);

/// Until when a session is to be closed, once it is being closed.
#[derive(Debug, Default)]
pub struct Closing(Option<Instant>);

impl Closing {
    /// It is being closed from now on, if it was not; who interrupts that does not wait longer for
    /// it. Whether it was not.
    pub fn begin(&mut self, is_interrupted: bool) -> bool {
        let most = if is_interrupted { INTERRUPTED_MAX } else { ENDED_MAX };
        let until = Instant::now() + most;
        let before = self.0.replace(self.0.map_or(until, |at| at.min(until)));
        before.is_none()
    }

    /// Until when.
    pub fn until(&self) -> Option<Instant> {
        self.0
    }

    /// Whether the peer has taken too long.
    pub fn is_over(&self) -> bool {
        self.0.is_some_and(|at| Instant::now() >= at)
    }

    /// What is said then.
    pub fn error() -> Error {
        Error::new(Code::NoAnswer, "the peer did not close the session in time")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_interrupts_what_is_being_closed_waits_no_longer_than_who_interrupts_first() {
        let mut it = Closing::default();
        assert!(it.until().is_none() && !it.is_over());
        let left = |it: &Closing| it.until().unwrap() - Instant::now();
        assert!(it.begin(false));
        assert!(left(&it) > INTERRUPTED_MAX);
        assert!(!it.begin(true), "once");
        assert!(left(&it) <= INTERRUPTED_MAX);
        assert!(!it.begin(false));
        assert!(left(&it) <= INTERRUPTED_MAX, "nothing makes it longer");
    }
}
