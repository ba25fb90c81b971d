//! [`Rate`]: rate and burst control.
//!
//! ```text
//!   credit  burst |‾‾‾|_     |‾‾‾|__    |‾‾|___       set to burst, not added to it:
//!                 |     |___ |      |__ |      |      what was not used is gone
//!                 0        period       2 periods     period = burst / rate
//! ```
//!
//! XTP fills at the end of each period; a receiver that has said "burst" has that much room, once
//! per period.
//!
//! Invariants: in a period at most `burst` bytes leave, or one packet that is longer; the debt that
//! such a packet leaves is paid from the next periods, so that the mean is kept (decided here).

use dacapo_base::Time;
use std::time::Duration;

const NANOS_PER_SEC: u128 = 1_000_000_000;
/// A rate that says nothing, as 0 does (decided here).
const UNLIMITED: u32 = u32::MAX;

/// How much may leave now.
#[derive(Clone, Debug)]
pub struct Rate {
    limit: Option<Limit>,
    credit: i64,
    /// The end of the running period.
    refill: Time,
    /// When there is credit for what waits for nothing else; else `NEVER`.
    awaited: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    burst: i64,
    period: Duration,
}

impl Limit {
    fn new(rate: u32, burst: u32) -> Option<Self> {
        if rate == 0 || rate == UNLIMITED || burst == 0 {
            return None;
        }
        let nanos = u128::from(burst) * NANOS_PER_SEC / u128::from(rate);
        let period = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).max(1));
        Some(Self { burst: burst.into(), period })
    }
}

/// The smaller of two limits, where 0 and 2^32 - 1 are none.
#[must_use]
pub fn smaller(one: u32, other: u32) -> u32 {
    let value = |limit: u32| if limit == 0 { UNLIMITED } else { limit };
    value(one).min(value(other))
}

impl Rate {
    /// `rate` in bytes per second and `burst` in bytes; either may say nothing.
    #[must_use]
    pub fn new(now: Time, rate: u32, burst: u32) -> Self {
        let limit = Limit::new(rate, burst);
        let period = limit.map_or(Duration::ZERO, |limit| limit.period);
        Self { limit, credit: burst.into(), refill: now + period, awaited: Time::NEVER }
    }

    /// Replaces the limit, from the end of the running period on.
    pub fn set(&mut self, now: Time, rate: u32, burst: u32) {
        self.fill(now);
        let was_free = self.limit.is_none();
        self.limit = Limit::new(rate, burst);
        if was_free {
            *self = Self::new(now, rate, burst);
        }
    }

    /// Whether `len` bytes may leave now.
    #[must_use]
    pub fn covers(&mut self, now: Time, len: usize) -> bool {
        self.fill(now);
        let Some(limit) = self.limit else { return true };
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        if len > limit.burst { self.credit > 0 } else { self.credit >= len }
    }

    /// How many bytes may still leave in this period; without a limit all.
    #[must_use]
    pub fn left(&mut self, now: Time) -> usize {
        self.fill(now);
        let left = self.limit.map_or(i64::MAX, |_| self.credit.max(0));
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Notes that `len` bytes leave.
    pub fn take(&mut self, now: Time, len: usize) {
        self.fill(now);
        if self.limit.is_some() {
            self.credit = self.credit.saturating_sub(i64::try_from(len).unwrap_or(i64::MAX));
        }
    }

    /// Something waits for credit, or, when not, nothing does any more.
    pub fn wait(&mut self, is_one: bool) {
        self.awaited = if is_one { self.next_credit() } else { Time::NEVER };
    }

    /// When there is credit for what waits for nothing else; else `NEVER`.
    #[must_use]
    pub const fn awaited(&self) -> Time {
        self.awaited
    }

    /// When credit comes next; `NEVER` without a limit.
    fn next_credit(&self) -> Time {
        self.limit.map_or(Time::NEVER, |_| self.refill)
    }

    /// How long so many bytes take; zero without a limit.
    #[must_use]
    pub fn time_of(&self, len: usize) -> Duration {
        let Some(limit) = self.limit else { return Duration::ZERO };
        let burst = usize::try_from(limit.burst).unwrap_or(usize::MAX).max(1);
        limit.period.saturating_mul(u32::try_from(len.div_ceil(burst)).unwrap_or(u32::MAX))
    }

    fn fill(&mut self, now: Time) {
        let Some(limit) = self.limit else { return };
        if now < self.refill {
            return;
        }
        let period = limit.period.as_nanos();
        let count = u64::try_from(now.since(self.refill).as_nanos() / period).unwrap_or(u64::MAX);
        let count = count.saturating_add(1);
        let earned = limit.burst.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX));
        self.credit = self.credit.min(0).saturating_add(earned).min(limit.burst);
        let passed = u64::try_from(period).unwrap_or(u64::MAX).saturating_mul(count);
        self.refill += Duration::from_nanos(passed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When the last of `total` bytes leaves, in seconds, and the most of any period.
    fn run(rate: u32, burst: u32, len: usize, total: usize) -> (f64, usize) {
        let mut control = Rate::new(Time::ZERO, rate, burst);
        let (mut now, mut left, mut in_period, mut most) = (Time::ZERO, total, 0, 0);
        while left > 0 {
            let piece = len.min(left);
            if control.covers(now, piece) {
                control.take(now, piece);
                left -= piece;
                in_period += piece;
                most = most.max(in_period);
            } else {
                (now, in_period) = (control.next_credit(), 0);
            }
        }
        (now.as_secs_f64(), most)
    }

    #[test]
    fn at_most_a_burst_leaves_in_a_period() {
        let (end, most) = run(1_500_000, 10_000, 1_400, 1_000_000);
        assert!((0.655..0.690).contains(&end) && most == 9_800, "{end} {most}");
    }

    #[test]
    fn packets_longer_than_the_burst_do_not_stall_and_keep_the_mean() {
        let (end, most) = run(100_000, 500, 1_400, 140_000);
        assert!((1.35..1.45).contains(&end) && most == 1_400, "{end} {most}");
    }

    #[test]
    fn credit_that_was_not_used_is_gone() {
        let mut rate = Rate::new(Time::ZERO, 1_000, 100);
        assert!(rate.covers(Time::from_millis(5_000), 100));
        rate.take(Time::from_millis(5_000), 40);
        assert_eq!(rate.left(Time::from_millis(5_000)), 60);
        rate.take(Time::from_millis(5_000), 60);
        assert!(!rate.covers(Time::from_millis(5_050), 1));
        assert!(rate.covers(Time::from_millis(5_100), 100));
    }

    #[test]
    fn a_new_limit_holds_from_the_next_period_on() {
        let mut rate = Rate::new(Time::ZERO, 1_000, 100);
        rate.set(Time::from_millis(10), 500, 100);
        assert!(rate.covers(Time::from_millis(10), 100));
        rate.take(Time::from_millis(10), 100);
        assert_eq!(rate.next_credit(), Time::from_millis(100));
        assert!(rate.covers(Time::from_millis(100), 100));
        rate.take(Time::from_millis(100), 100);
        assert_eq!(rate.next_credit(), Time::from_millis(300));
    }

    #[test]
    fn bytes_take_as_many_periods_as_bursts() {
        let rate = Rate::new(Time::ZERO, 1_000, 100);
        assert_eq!(rate.time_of(1_000), Duration::from_secs(1));
        assert_eq!(rate.time_of(1), Duration::from_millis(100));
        assert_eq!(Rate::new(Time::ZERO, 0, 0).time_of(1_000), Duration::ZERO);
    }

    #[test]
    fn credit_is_awaited_until_it_is_not() {
        let mut rate = Rate::new(Time::ZERO, 1_000, 100);
        assert_eq!(rate.awaited(), Time::NEVER);
        rate.wait(true);
        assert_eq!(rate.awaited(), Time::from_millis(100));
        rate.wait(false);
        assert_eq!(rate.awaited(), Time::NEVER);
    }

    #[test]
    fn zero_and_all_ones_are_no_limit() {
        for (rate, burst) in [(0, 10), (u32::MAX, 10), (10, 0)] {
            assert!(Rate::new(Time::ZERO, rate, burst).covers(Time::ZERO, usize::MAX));
        }
        assert_eq!(smaller(0, 5), 5);
        assert_eq!(smaller(0, 0), u32::MAX);
    }
}
