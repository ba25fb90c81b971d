//! [`LiveClock`]: where a served medium is, whoever watches it.
//!
//! ```text
//!   first viewer starts          a late one starts, live
//!   0 ------------------------------> position -------------> end, then from 0 for the next one
//! ```
//!
//! Invariant: all sources that start at one instant begin at one position.

use super::timeline::{Extent, Speed};
use dacapo_base::Time;
use std::sync::{Arc, Mutex, PoisonError};

/// The clock of a served medium; copies share it. It runs from the first start on.
#[derive(Clone, Debug, Default)]
pub struct LiveClock(Arc<Mutex<Option<Time>>>);

/// Where a source begins.
#[derive(Clone, Debug)]
pub enum Begin {
    /// At the start of its medium.
    Start(LiveClock),
    /// Where the clock is.
    Live(LiveClock),
}

impl Begin {
    /// The position at which a source that starts now begins, in nanoseconds.
    pub(super) fn position_ns(&self, now: Time, extent: Extent, speed: Speed) -> u64 {
        match self {
            Self::Start(clock) => {
                clock.position_ns(now, extent, speed);
                0
            }
            Self::Live(clock) => clock.position_ns(now, extent, speed),
        }
    }
}

impl LiveClock {
    /// Where the medium is; at its end, and before anybody has started, it begins anew.
    fn position_ns(&self, now: Time, extent: Extent, speed: Speed) -> u64 {
        // A time is whole whenever it is written.
        let mut began = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = *began.get_or_insert(now);
        let passed = now.since(at).as_nanos() * u128::from(speed.permille()) / 1_000;
        let position = u64::try_from(passed).unwrap_or(u64::MAX);
        if position < extent.duration_ns {
            return position;
        }
        *began = Some(now);
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_late_begins_where_the_others_are_and_after_the_end_at_the_start() {
        let extent = Extent { duration_ns: 10_000_000_000, nominal: None };
        let at = |begin: &Begin, second: u64| {
            begin.position_ns(Time::from_millis(second * 1_000), extent, Speed::NORMAL)
        };
        let clock = LiveClock::default();
        let (first, late) = (Begin::Start(clock.clone()), Begin::Live(clock.clone()));
        assert_eq!(at(&first, 100), 0);
        assert_eq!(at(&late, 103), 3_000_000_000);
        assert_eq!(at(&late, 103), 3_000_000_000);
        assert_eq!(at(&first, 104), 0);
        assert_eq!(at(&late, 109), 9_000_000_000);
        assert_eq!(at(&late, 200), 0);
        assert_eq!(at(&late, 201), 1_000_000_000);
    }
}
