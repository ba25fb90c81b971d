//! [`Bound`]: keeps a flow to the rate that was agreed, on average and at its peak.
//!
//! ```text
//!   bits that left  |              .-'      bound: what was not sent lately may still be
//!                   |          .--'
//!                   |       ../  peak: twice the bound, no burst above 2 ms of it
//!                   |  ...-'
//!                   +------------------- time
//! ```
//!
//! A live flow that takes nine tenths of its bound would wait for it whenever something is sent
//! again or follows a late timer: at 5 of 5.5 Mbit/s some ms on average, and tens of them one time
//! in a hundred, which a deadline of 200 ms does not have.
//!
//! Invariant: over any time t the bits taken are at most bound × t + saved + one packet, and at
//! most 2 × bound × t + 2 ms of that + one packet; what is saved, and the 2 ms, are at least a full
//! datagram.

use crate::TokenBucket;
use dacapo_base::Time;
use std::time::Duration;

/// What the bound gives in this time is saved at most, of what was not sent.
const SAVED: Duration = Duration::from_millis(50);

/// And no more bytes than this: a fast flow would fill a queue with it.
const SAVED_BYTES: u64 = 64 << 10;

/// What goes out together at most, as time at the peak.
const BURST: Duration = Duration::from_millis(2);

/// How much faster than the bound what was saved goes out.
const PEAK: u64 = 2;

/// A rate that a flow is held to.
#[derive(Clone, Debug)]
pub struct Bound {
    average: TokenBucket,
    /// `None`: no more is saved than may go out together.
    peak: Option<TokenBucket>,
}

impl Bound {
    /// One of so many bit/s; at first nothing is saved but what goes out together.
    #[must_use]
    pub fn new(now: Time, bound_bps: u64) -> Self {
        let saved = SAVED.min(time_of(SAVED_BYTES, bound_bps));
        if saved <= BURST {
            return Self { average: TokenBucket::new(now, bound_bps, BURST), peak: None };
        }
        let peak = TokenBucket::new(now, bound_bps.saturating_mul(PEAK), BURST);
        let mut average = TokenBucket::new(now, bound_bps, BURST);
        average.set_rate(now, bound_bps, saved);
        Self { average, peak: Some(peak) }
    }

    /// How many bytes may be taken now without debt.
    #[must_use]
    pub fn available(&mut self, now: Time) -> usize {
        let peak = self.peak.as_mut().map_or(usize::MAX, |peak| peak.available(now));
        self.average.available(now).min(peak)
    }

    /// Whether `bytes` may be taken now without debt.
    #[must_use]
    #[inline]
    pub fn covers(&mut self, now: Time, bytes: usize) -> bool {
        self.average.covers(now, bytes)
            && self.peak.as_mut().is_none_or(|peak| peak.covers(now, bytes))
    }

    /// Takes `bytes`, at once or as a debt.
    #[inline]
    pub fn take(&mut self, now: Time, bytes: usize) {
        self.average.take(now, bytes);
        if let Some(peak) = &mut self.peak {
            peak.take(now, bytes);
        }
    }

    /// Whether [`Bound::ready_at`] is now.
    #[must_use]
    #[inline]
    pub fn is_ready(&mut self, now: Time, bytes: usize) -> bool {
        self.average.is_ready(now, bytes)
            && self.peak.as_mut().is_none_or(|peak| peak.is_ready(now, bytes))
    }

    /// When `bytes` may be taken without debt: now or later; of more than go out together, when as
    /// many do.
    #[must_use]
    pub fn ready_at(&self, now: Time, bytes: usize) -> Time {
        let peak = self.peak.as_ref().map_or(now, |peak| peak.ready_at(now, bytes));
        self.average.ready_at(now, bytes).max(peak)
    }
}

/// How long `bytes` take at a rate.
fn time_of(bytes: u64, rate_bps: u64) -> Duration {
    let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(rate_bps.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    const PACKET: usize = 1_452;

    /// Takes packets whenever it may, from `from` to `until`; their times.
    fn taken(bound: &mut Bound, from: Time, until: Time) -> Vec<Time> {
        let (mut now, mut times) = (from, Vec::new());
        while now < until {
            if bound.is_ready(now, PACKET) {
                bound.take(now, PACKET);
                times.push(now);
            }
            now = bound.ready_at(now, PACKET).max(now + Duration::from_nanos(1));
        }
        times
    }

    #[test]
    fn after_a_pause_what_was_saved_goes_at_the_peak_and_then_the_average_holds() {
        let rate = 5_500_000;
        let mut bound = Bound::new(Time::ZERO, rate);
        let second = taken(&mut bound, Time::ZERO, Time::from_millis(1_000)).len();
        let expected = (rate as f64 / 8.0 / PACKET as f64) as usize;
        assert!(second.abs_diff(expected) <= 2, "{second} of {expected}");
        let later = Time::from_millis(5_000);
        let times = taken(&mut bound, later, later + Duration::from_millis(200));
        let within =
            |ms| times.iter().filter(|it| **it < later + Duration::from_millis(ms)).count();
        let at = |ms: f64, times: f64| (rate as f64 * times * ms / 8e3 / PACKET as f64) as usize;
        assert!(within(40).abs_diff(at(40.0, 2.0)) <= 2, "{} at the peak", within(40));
        assert!(times.len().abs_diff(at(250.0, 1.0)) <= 2, "{} in all", times.len());
    }

    #[test]
    fn neither_bound_is_exceeded_whatever_is_taken_and_when() {
        for seed in 0..50 {
            let mut random = Random::from_number(seed);
            let rate = 100_000 + random.below(2_000_000_000);
            let mut bound = Bound::new(Time::ZERO, rate);
            let saved = (rate as f64 * 0.05).min(65_536.0 * 8.0).max(rate as f64 * 0.002);
            let (mut now, mut taken) = (Time::ZERO, 0_u64);
            let mut lately: Vec<(Time, u64)> = Vec::new();
            for _ in 0..1_000 {
                now += Duration::from_nanos(random.below(3_000_000));
                while bound.available(now) > 0 {
                    bound.take(now, PACKET);
                    taken += PACKET as u64 * 8;
                    lately.push((now, PACKET as u64 * 8));
                }
                let (one, seconds) = (PACKET as f64 * 8.0 + 1.0, now.as_secs_f64());
                let most = rate as f64 * seconds + saved.max(12_000.0) + one;
                assert!(taken as f64 <= most, "seed {seed}: {taken} of {most}");
                let since = Time::ZERO.max(now - Duration::from_millis(10));
                lately.retain(|(at, _)| *at >= since);
                let bits: u64 = lately.iter().map(|(_, bits)| bits).sum();
                let most = 2.0 * rate as f64 * 0.012 + 12_000.0 + one;
                assert!(bits as f64 <= most, "seed {seed}: {bits} of {most} in 10 ms");
            }
        }
    }
}
