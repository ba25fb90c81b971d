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
    /// The pass and the position in it, in nanoseconds, at which a source that starts now begins.
    pub(super) fn place(&self, now: Time, extent: Extent, speed: Speed) -> (u32, u64) {
        match self {
            Self::Start(clock) => {
                clock.place(now, extent, speed);
                (0, 0)
            }
            Self::Live(clock) => clock.place(now, extent, speed),
        }
    }
}

impl LiveClock {
    /// Where the medium is; after its last pass, and before anybody has started, it begins anew.
    fn place(&self, now: Time, extent: Extent, speed: Speed) -> (u32, u64) {
        // A time is whole whenever it is written.
        let mut began = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = *began.get_or_insert(now);
        let passed = now.since(at).as_nanos() * u128::from(speed.permille()) / 1_000;
        let position = u64::try_from(passed).unwrap_or(u64::MAX);
        let pass = position.checked_div(extent.duration_ns).and_then(|it| u32::try_from(it).ok());
        match pass {
            Some(0) => (0, position),
            Some(pass) if extent.passes.go_on_after(pass - 1) => {
                (pass, position % extent.duration_ns)
            }
            _ => {
                *began = Some(now);
                (0, 0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_qos::Passes;

    #[test]
    fn whoever_comes_late_begins_where_the_others_are_and_after_the_end_at_the_start() {
        let extent = Extent { duration_ns: 10_000_000_000, nominal: None, passes: Passes::ONCE };
        let at = |begin: &Begin, second: u64| {
            begin.place(Time::from_millis(second * 1_000), extent, Speed::NORMAL).1
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

    #[test]
    fn whoever_comes_late_to_a_medium_that_is_repeated_is_in_the_pass_of_the_others() {
        let at = |clock: &LiveClock, passes: Passes, second: u64| {
            let extent = Extent { duration_ns: 10_000_000_000, nominal: None, passes };
            let late = Begin::Live(clock.clone());
            late.place(Time::from_millis(second * 1_000), extent, Speed::NORMAL)
        };
        let clock = LiveClock::default();
        assert_eq!(at(&clock, Passes::Forever, 100), (0, 0));
        assert_eq!(at(&clock, Passes::Forever, 123), (2, 3_000_000_000));
        assert_eq!(at(&clock, Passes::Forever, 100_101), (10_000, 1_000_000_000));
        let clock = LiveClock::default();
        assert_eq!(at(&clock, Passes::Times(3), 100), (0, 0));
        assert_eq!(at(&clock, Passes::Times(3), 129), (2, 9_000_000_000));
        assert_eq!(at(&clock, Passes::Times(3), 130), (0, 0), "it was over, and begins anew");
        assert_eq!(at(&clock, Passes::Times(3), 131), (0, 1_000_000_000));
    }
}
