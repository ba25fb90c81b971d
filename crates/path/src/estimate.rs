//! [`RttEstimate`] and [`ClockOffset`]: what probes measured of a path.
//!
//! Round trip as in RFC 6298, section 2 (smoothed mean and deviation), and the least of the last
//! measurements; offset as in RFC 5905, section 8, from the exchange with the least round trip,
//! whose error is at most half of it.

use std::time::Duration;

/// How many exchanges an offset estimate lives, so that drifting clocks are followed.
const OFFSET_LIFE: u32 = 256;

/// Round-trip time of a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct RttEstimate {
    smoothed: Option<Duration>,
    deviation: Duration,
    min: Option<Duration>,
}

impl RttEstimate {
    /// Takes a measurement.
    pub fn handle_sample(&mut self, rtt: Duration) {
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(rtt);
            self.deviation = rtt / 2;
            return;
        };
        self.deviation = (self.deviation * 3 + smoothed.abs_diff(rtt)) / 4;
        self.smoothed = Some((smoothed * 7 + rtt) / 8);
    }

    /// The smoothed mean; `None` before the first measurement.
    #[must_use]
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The mean deviation: what is used for jitter.
    #[must_use]
    pub fn deviation(&self) -> Duration {
        self.deviation
    }

    /// The least measurement.
    #[must_use]
    pub fn min(&self) -> Option<Duration> {
        self.min
    }
}

/// How far the peer's clock is ahead of ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// Nanoseconds to add to our clock to get the peer's.
    pub ahead_ns: i64,
    /// The most by which `ahead_ns` may be wrong; 0 when both clocks are one.
    pub error_ns: u64,
    age: u32,
    known: bool,
}

impl ClockOffset {
    /// Both ends read the same clock: same boot, same time namespace.
    #[must_use]
    pub fn exact() -> Self {
        Self { ahead_ns: 0, error_ns: 0, age: 0, known: true }
    }

    /// True when there is an estimate.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// True when both clocks are one.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.known && self.error_ns == 0
    }

    /// Takes an exchange: asked and heard on our clock, received and answered on the peer's.
    pub fn handle_exchange(&mut self, asked: u64, received: u64, answered: u64, heard: u64) {
        if self.is_exact() {
            return;
        }
        let there = i128::from(received) - i128::from(asked);
        let back = i128::from(answered) - i128::from(heard);
        let trip =
            (i128::from(heard) - i128::from(asked)) - (i128::from(answered) - i128::from(received));
        // An error of 0 is kept for clocks that are one.
        let error = u64::try_from(trip.max(2) / 2).unwrap_or(u64::MAX);
        self.age += 1;
        if !self.known || error <= self.error_ns || self.age >= OFFSET_LIFE {
            let ahead = ((there + back) / 2).clamp(i128::from(i64::MIN), i128::from(i64::MAX));
            *self = Self { ahead_ns: ahead as i64, error_ns: error, age: 0, known: true };
        }
    }

    /// What our clock showed when the peer's showed `peer_ns`.
    #[must_use]
    pub fn to_local(&self, peer_ns: u64) -> i128 {
        i128::from(peer_ns) - i128::from(self.ahead_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn the_offset_is_within_its_stated_error() {
        for seed in 0..100 {
            let mut random = Random::from_number(seed);
            let truth = random.next_u32().cast_signed();
            let mut offset = ClockOffset::default();
            let mut ours = 10_u64.pow(12);
            for _ in 0..20 {
                let (there, back) = (random.below(20_000_000), random.below(20_000_000));
                let received = (ours + there).wrapping_add_signed(i64::from(truth));
                let heard = ours + there + 1_000 + back;
                offset.handle_exchange(ours, received, received + 1_000, heard);
                ours += 10_u64.pow(9);
                let wrong = (offset.ahead_ns - i64::from(truth)).unsigned_abs();
                assert!(wrong <= offset.error_ns + 1, "seed {seed}: {wrong} {offset:?}");
            }
        }
    }

    #[test]
    fn one_clock_stays_exact() {
        let mut offset = ClockOffset::exact();
        offset.handle_exchange(0, 500, 500, 900);
        assert_eq!(offset, ClockOffset::exact());
    }

    #[test]
    fn the_round_trip_follows_rfc_6298() {
        let mut rtt = RttEstimate::default();
        rtt.handle_sample(Duration::from_millis(80));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(80)));
        assert_eq!(rtt.deviation(), Duration::from_millis(40));
        rtt.handle_sample(Duration::from_millis(40));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(75)));
        assert_eq!(rtt.min(), Some(Duration::from_millis(40)));
    }
}
