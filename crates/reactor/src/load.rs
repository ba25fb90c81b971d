//! [`Load`]: which share of its time a reactor works.
//!
//! ```text
//!   turn, push  ...  every 16th is timed and counts for 16  ...  a window of a second -> permille
//! ```
//!
//! Invariants: 15 of 16 calls read no clock for it; a share is of a whole window, and never more
//! than 1,000.

use dacapo_base::Time;
use std::time::Duration;

/// One call in so many is timed.
const SAMPLE: u32 = 16;

/// A share is measured for so long.
const WINDOW: Duration = Duration::from_secs(1);

/// From this share on, in permille, a reactor is full: who drives it has work of its own besides.
pub const FULL_PERMILLE: u16 = 750;

#[derive(Debug, Default)]
pub(super) struct Load {
    calls: u32,
    /// The window that goes on: from when, and how much of it was work.
    since: Time,
    busy: Duration,
    /// The share of the last whole window.
    permille: u16,
}

impl Load {
    /// Whether this call is to be timed.
    pub fn is_timed(&mut self) -> bool {
        self.calls = self.calls.wrapping_add(1);
        self.calls.is_multiple_of(SAMPLE)
    }

    /// A call that was timed has worked.
    pub fn worked(&mut self, from: Time, to: Time) {
        self.busy += to.since(from) * SAMPLE;
        if to.since(self.since) >= WINDOW {
            self.permille = self.share(to);
            (self.since, self.busy) = (to, Duration::ZERO);
        }
    }

    /// The share of the last whole window.
    pub fn permille(&self, now: Time) -> u16 {
        // Nothing was timed since the window was over: it was a long one.
        if now.since(self.since) >= WINDOW { self.share(now) } else { self.permille }
    }

    fn share(&self, now: Time) -> u16 {
        let all = now.since(self.since).as_nanos().max(1);
        let share = self.busy.as_nanos().saturating_mul(1_000) / all;
        u16::try_from(share).unwrap_or(1_000).min(1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_secs(60) + Duration::from_millis(ms)
    }

    /// Works for `busy_us` of every millisecond, from `from` for so many.
    fn run(load: &mut Load, from: u64, count: u64, busy_us: u64) {
        for at in (from..from + count).map(ms) {
            if load.is_timed() {
                load.worked(at, at + Duration::from_micros(busy_us));
            }
        }
    }

    #[test]
    fn the_share_is_that_of_the_last_second() {
        let mut load = Load { since: ms(0), ..Load::default() };
        run(&mut load, 0, 1_100, 250);
        assert!((240..=260).contains(&load.permille(ms(1_100))), "{load:?}");
        // The next window has a little of both, the one after it has not.
        run(&mut load, 1_100, 2_100, 900);
        assert!((890..=910).contains(&load.permille(ms(3_200))), "{load:?}");
    }

    #[test]
    fn who_does_nothing_any_more_is_not_full() {
        let mut load = Load { since: ms(0), ..Load::default() };
        run(&mut load, 0, 2_000, 1_000);
        assert!(load.permille(ms(2_000)) >= FULL_PERMILLE, "{load:?}");
        assert!(load.permille(ms(60_000)) < 20, "{load:?}");
    }

    #[test]
    fn a_share_is_never_more_than_the_whole() {
        let mut load = Load { since: ms(0), ..Load::default() };
        load.worked(ms(0), ms(500));
        assert_eq!(load.permille(ms(1_000)), 1_000);
    }
}
