//! [`RttEstimate`] and [`ClockOffset`]: what probes measured of a path.
//!
//! Round trip as in RFC 6298, section 2 (smoothed mean and deviation), the least of all
//! measurements, and by how much the last ones differed: a mean forgets within seconds of calm what
//! a path can do. Offset as in RFC 5905, section 8, from the exchange with the least round trip,
//! whose error is at most half of it.

use std::time::Duration;

/// How many exchanges an offset estimate lives, so that drifting clocks are followed.
const OFFSET_LIFE: u32 = 256;

/// So many measurements are remembered at least, and twice as many at most, for how much they
/// differ: 16 to 32 s of probes.
const SPAN_SAMPLES: u32 = 32;

/// The least and the most of some measurements.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    count: u32,
    least: Duration,
    most: Duration,
}

impl Span {
    fn take(&mut self, rtt: Duration) {
        let (least, most) = if self.count == 0 { (rtt, rtt) } else { (self.least, self.most) };
        *self = Self { count: self.count + 1, least: least.min(rtt), most: most.max(rtt) };
    }

    /// Both together.
    fn with(self, other: Self) -> Self {
        match (self.count, other.count) {
            (_, 0) => self,
            (0, _) => other,
            (count, more) => Self {
                count: count + more,
                least: self.least.min(other.least),
                most: self.most.max(other.most),
            },
        }
    }
}

/// Round-trip time of a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct RttEstimate {
    smoothed: Option<Duration>,
    deviation: Duration,
    min: Option<Duration>,
    /// The last measurements, and those before them.
    spans: [Span; 2],
}

impl RttEstimate {
    /// Takes a measurement.
    pub fn handle_sample(&mut self, rtt: Duration) {
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        if self.spans[0].count >= SPAN_SAMPLES {
            self.spans = [Span::default(), self.spans[0]];
        }
        self.spans[0].take(rtt);
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

    /// The mean deviation.
    #[must_use]
    pub fn deviation(&self) -> Duration {
        self.deviation
    }

    /// The largest of the last measurements less the least of them.
    #[must_use]
    pub fn variation(&self) -> Duration {
        let span = self.spans[0].with(self.spans[1]);
        span.most - span.least
    }

    /// How many measurements it goes by, of the last ones.
    #[must_use]
    pub fn samples(&self) -> u32 {
        self.spans[0].count + self.spans[1].count
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

    /// What the peer's clock shows when ours shows `local_ns`; 0 where that is before it began.
    #[must_use]
    pub fn to_peer(&self, local_ns: u64) -> u64 {
        local_ns.saturating_add_signed(self.ahead_ns)
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

    #[test]
    fn the_variation_is_forgotten_after_the_measurements_that_are_remembered() {
        let mut rtt = RttEstimate::default();
        assert_eq!(rtt.variation(), Duration::ZERO);
        let ms = Duration::from_millis;
        [40, 47, 42].into_iter().for_each(|it| rtt.handle_sample(ms(it)));
        assert_eq!(rtt.variation(), ms(7));
        for at in 0..2 * SPAN_SAMPLES {
            let expected = if at + 3 <= SPAN_SAMPLES { [ms(7); 2] } else { [ms(7), ms(0)] };
            assert!(expected.contains(&rtt.variation()), "{at}: {:?}", rtt.variation());
            rtt.handle_sample(ms(42));
        }
        assert_eq!(rtt.variation(), ms(0));
    }
}
