//! [`TokenBucket`]: paces a flow to its bound.
//!
//! Tokens are bits; they fill at the bound up to the burst. A packet may be taken while there are
//! tokens, and may leave a debt, so that no packet is ever too large for the bucket.
//!
//! Invariant: over any time t the bits taken are at most bound × t + burst + one packet.

use dacapo_base::Time;
use std::time::Duration;

const NANOS_PER_SEC: i128 = 1_000_000_000;

/// Tokens that fill at a rate.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate_bps: u64,
    burst_bits: i128,
    /// Bits, scaled by 10^9 so that filling loses nothing.
    tokens: i128,
    filled: Time,
}

impl TokenBucket {
    /// A full bucket. The burst is what the rate gives in `depth`, and at least one full datagram.
    #[must_use]
    pub fn new(now: Time, rate_bps: u64, depth: Duration) -> Self {
        let burst_bits = burst(rate_bps, depth);
        Self { rate_bps, burst_bits, tokens: burst_bits * NANOS_PER_SEC, filled: now }
    }

    /// The rate is this from now on, and the burst what it gives in `depth`.
    pub fn set_rate(&mut self, now: Time, rate_bps: u64, depth: Duration) {
        self.fill(now);
        (self.rate_bps, self.burst_bits) = (rate_bps, burst(rate_bps, depth));
        self.tokens = self.tokens.min(self.burst_bits * NANOS_PER_SEC);
    }

    /// The rate in bit/s.
    #[must_use]
    pub fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    /// How many bytes may be taken now without debt; 0 while there is a debt.
    #[must_use]
    pub fn available(&mut self, now: Time) -> usize {
        self.fill(now);
        usize::try_from(self.tokens.max(0) / NANOS_PER_SEC / 8).unwrap_or(usize::MAX)
    }

    /// Whether `bytes` may be taken now without debt.
    #[must_use]
    #[inline]
    pub fn covers(&mut self, now: Time, bytes: usize) -> bool {
        self.fill(now);
        self.tokens >= bytes as i128 * 8 * NANOS_PER_SEC
    }

    /// Takes `bytes`; the bucket may be left in debt.
    #[inline]
    pub fn take(&mut self, now: Time, bytes: usize) {
        self.fill(now);
        self.tokens -= bytes as i128 * 8 * NANOS_PER_SEC;
    }

    /// Whether [`TokenBucket::ready_at`] is now.
    #[must_use]
    #[inline]
    pub fn is_ready(&mut self, now: Time, bytes: usize) -> bool {
        self.fill(now);
        self.tokens >= self.wanted(bytes)
    }

    /// The tokens that are waited for before `bytes` are taken.
    #[inline]
    fn wanted(&self, bytes: usize) -> i128 {
        (bytes as i128 * 8).min(self.burst_bits).max(8) * NANOS_PER_SEC
    }

    /// When `bytes` may be taken without debt: now or later; of more than the bucket holds, when it
    /// is full.
    #[must_use]
    pub fn ready_at(&self, now: Time, bytes: usize) -> Time {
        let missing = self.wanted(bytes) - self.tokens;
        if missing <= 0 {
            return now;
        }
        let wait = missing / i128::from(self.rate_bps.max(1)) + 1;
        self.filled + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    #[inline]
    fn fill(&mut self, now: Time) {
        if now <= self.filled {
            return;
        }
        let passed = now.since(self.filled).as_nanos() as i128;
        let full = self.burst_bits * NANOS_PER_SEC;
        self.tokens = (self.tokens + passed * i128::from(self.rate_bps)).min(full);
        self.filled = now;
    }
}

/// What a rate gives in `depth`, in bits, and at least one full datagram.
fn burst(rate_bps: u64, depth: Duration) -> i128 {
    let bits = i128::from(rate_bps) * depth.as_nanos() as i128 / NANOS_PER_SEC;
    bits.max(1_500 * 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn never_more_than_the_bound_over_any_time() {
        for seed in 0..50 {
            let mut random = Random::from_number(seed);
            let rate = 100_000 + random.below(50_000_000);
            let mut bucket = TokenBucket::new(Time::ZERO, rate, Duration::from_millis(5));
            let (mut now, mut taken) = (Time::ZERO, 0_u64);
            for _ in 0..2_000 {
                now += Duration::from_nanos(random.below(3_000_000));
                while bucket.available(now) > 0 {
                    bucket.take(now, 1_452);
                    taken += 1_452 * 8;
                }
                let bound = rate as f64 * now.as_secs_f64() + (rate as f64 * 0.005).max(12_000.0);
                assert!(taken as f64 <= bound + 1_452.0 * 8.0 + 1.0, "seed {seed}");
            }
        }
    }

    #[test]
    fn ready_at_is_when_the_bytes_are_there() {
        for (bytes, there) in [(0, 1), (1, 1), (700, 700), (1_000_000, 1_500)] {
            let mut bucket = TokenBucket::new(Time::ZERO, 1_000_000, Duration::from_millis(1));
            bucket.take(Time::ZERO, 10_000);
            let at = bucket.ready_at(Time::ZERO, bytes);
            assert!(bucket.available(at - Duration::from_micros(10)) < there, "{bytes}");
            assert!(!bucket.covers(at - Duration::from_micros(10), there), "{bytes}");
            assert!(!bucket.is_ready(at - Duration::from_micros(10), bytes), "{bytes}");
            assert!(bucket.is_ready(at, bytes), "{bytes}");
            assert!(bucket.available(at) >= there, "{bytes}: {at:?}");
            assert!(bucket.covers(at, there), "{bytes}: {at:?}");
        }
    }
}
