//! [`Clock`]: the time of an engine that did not always run.
//!
//! ```text
//!   time     ----|----|----------------|----|---->
//!   engine   ----|----|                |----|---->     the pause is no silence of the other end
//! ```
//!
//! Invariant: the engine's time never goes back, and is never later than the time.

use dacapo_base::Time;
use std::time::Duration;

/// Who is called so much later than it asked to be did not run.
const LATE: Duration = Duration::from_secs(1);

/// The time of an engine.
#[derive(Debug, Default)]
pub(super) struct Clock {
    skipped: Duration,
    /// The time of the last call.
    called: Time,
    /// The engine's time, which stands still while nobody calls.
    now: Time,
    /// When the engine asked to be called, until a pause was seen.
    asked: Option<Time>,
    /// The same, for who calls: it holds until something else is asked for.
    due: Option<Time>,
}

impl Clock {
    /// The engine's time at `now`.
    pub(super) fn read(&mut self, now: Time) -> Time {
        let now = now.max(self.called);
        // What it was called in was no pause, however long ago it had asked.
        let idle_since = self.asked.map(|due| due.max(self.called));
        if let Some(since) = idle_since.filter(|since| now > *since + LATE) {
            self.skipped += now.since(since);
            self.asked = None;
        }
        self.called = now;
        self.now = Time::ZERO + now.since(Time::ZERO).saturating_sub(self.skipped);
        self.now
    }

    /// The time of the last call, by which labels are good or not.
    pub(super) const fn called(&self) -> Time {
        self.called
    }

    /// The engine's time.
    pub(super) const fn now(&self) -> Time {
        self.now
    }

    /// When the engine is to be called, by the caller's time.
    pub(super) const fn due(&self) -> Option<Time> {
        self.due
    }

    /// The engine asks to be called then, by its own time.
    pub(super) fn set_due(&mut self, at: Time) {
        self.due = (at != Time::NEVER).then(|| at + self.skipped);
        self.asked = self.due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_no_time_for_the_engine() {
        let at = Time::from_millis;
        let mut clock = Clock::default();
        let set_due = |clock: &mut Clock, at| {
            clock.set_due(at);
            clock.due()
        };
        assert_eq!(clock.read(at(500)), at(500));
        assert_eq!(set_due(&mut clock, at(600)), Some(at(600)));
        assert_eq!(clock.read(at(1_600)), at(1_600), "late, and no pause");
        assert_eq!(set_due(&mut clock, at(1_700)), Some(at(1_700)));
        assert_eq!(clock.read(at(61_700)), at(1_700), "it was stopped for a minute");
        assert_eq!(
            (clock.called(), clock.now(), clock.due()),
            (at(61_700), at(1_700), Some(at(1_700)))
        );
        assert_eq!(clock.read(at(61_800)), at(1_800));
        assert_eq!(set_due(&mut clock, at(2_000)), Some(at(62_000)));
        assert_eq!(set_due(&mut clock, Time::NEVER), None);
        assert_eq!(clock.read(at(3_600_000)), at(3_540_000), "nothing was asked for");
    }
    #[test]
    fn a_pause_lies_between_two_calls_even_where_nothing_is_asked_between() {
        let at = Time::from_millis;
        let mut clock = Clock::default();
        clock.set_due(at(600));
        assert_eq!(clock.read(at(1_500)), at(1_500));
        assert_eq!(clock.read(at(1_700)), at(1_700), "0.2 s after the last call");
        assert_eq!(clock.read(at(9_700)), at(1_700), "it was stopped for eight seconds");
        assert_eq!(clock.read(at(9_800)), at(1_800));
        assert_eq!(clock.read(at(9_000)), at(1_800), "never back");
    }
}
