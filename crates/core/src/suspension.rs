//! [`Suspension`]: time in which this end did not run: it does not count for what is waited for.
//!
//! ```text
//!   next_deadline said            handle_timeout is called
//!     --------------> due |------------ stopped -----------> now    all deadlines move so far
//! ```
//!
//! A process that was stopped, or whose host slept, finds at once that every deadline has passed:
//! before the other end, which may have been stopped with it, could answer.
//!
//! Invariant: who is called when it has asked to be has not been stopped, however long that was.

use dacapo_base::Time;
use std::time::Duration;

/// Who is called later than this after its time did not run.
const STOPPED_AFTER: Duration = Duration::from_secs(1);

/// When a core is to be looked at, as far as who drives it has asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Suspension {
    due: Option<Time>,
    /// What was noticed when it was asked again.
    stopped: Duration,
}

impl Suspension {
    /// Who drives the core asks at `now` when it is due.
    pub fn tell(&mut self, now: Time, due: Option<Time>) {
        self.notice(now);
        self.due = due.map(|due| due.max(now));
    }

    /// It is looked at; for how long it was stopped before that.
    pub fn look(&mut self, now: Time) -> Option<Duration> {
        self.notice(now);
        // Who drives it asks at once, or looks again.
        self.due = Some(now);
        let stopped = std::mem::take(&mut self.stopped);
        (!stopped.is_zero()).then_some(stopped)
    }

    fn notice(&mut self, now: Time) {
        let late = self.due.take().map_or(Duration::ZERO, |due| now.since(due));
        if late > STOPPED_AFTER {
            self.stopped += late;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_called_when_it_is_due_has_not_been_stopped() {
        let at = Time::from_millis;
        let mut it = Suspension::default();
        assert_eq!(it.look(at(70_000)), None, "it begins");
        it.tell(at(70_000), Some(at(100_000)));
        assert_eq!(it.look(at(100_900)), None, "that is no stop");
        it.tell(at(100_900), None);
        assert_eq!(it.look(at(500_000)), None, "nothing was due");
        it.tell(at(500_000), Some(at(1_000)));
        assert_eq!(it.look(at(560_000)), Some(Duration::from_secs(60)), "it was overdue");
        assert_eq!(it.look(at(640_000)), Some(Duration::from_secs(80)), "before it was asked");
        it.tell(at(640_000), Some(at(900_000)));
        assert_eq!(it.look(at(700_000)), None, "something came before");
        it.tell(at(700_000), Some(at(700_500)));
        it.tell(at(708_500), Some(at(709_000)));
        assert_eq!(it.look(at(709_000)), Some(Duration::from_secs(8)), "asked again first");
    }
}
