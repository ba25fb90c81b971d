//! [`Deadline`]: until when a call waits.

use dacapo_base::Time;
use dacapo_sys::clock;
use std::time::{Duration, Instant};

/// Until when a call waits. One that is past looks once what there is, and does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Time);

impl Deadline {
    /// Waits for ever.
    pub const NEVER: Self = Self(Time::NEVER);

    /// Does not wait.
    pub const PAST: Self = Self(Time::ZERO);

    /// So long from now on.
    #[must_use]
    pub fn after(most: Duration) -> Self {
        Self(clock::now() + most)
    }

    /// How long it is until then; nothing when that is for ever.
    #[must_use]
    pub fn left(self) -> Option<Duration> {
        (self.0 != Time::NEVER).then(|| self.0.since(clock::now()))
    }

    pub(super) fn time(self) -> Time {
        self.0
    }
}

impl From<Time> for Deadline {
    fn from(time: Time) -> Self {
        Self(time)
    }
}

impl From<Instant> for Deadline {
    fn from(instant: Instant) -> Self {
        Self::after(instant.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_counted_from_now_and_never_less_than_nothing() {
        assert_eq!(Deadline::NEVER.left(), None);
        assert_eq!(Deadline::PAST.left(), Some(Duration::ZERO));
        let long = Duration::from_secs(3_600);
        let left = Deadline::after(long).left().unwrap();
        assert!(left <= long && left > long / 2, "{left:?}");
        assert!(Deadline::from(Instant::now() + long) > Deadline::after(long / 2));
        // Longer than the clock counts is for ever.
        assert!(Deadline::after(Duration::MAX) > Deadline::after(long));
    }
}
