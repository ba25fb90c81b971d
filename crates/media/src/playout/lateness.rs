//! How late media frames are, in bounded memory: exact extremes and mean, percentiles to 1/8.
//!
//! ```text
//!   |lateness| in µs   0 1 2 … 7 | 8 9 … 15 | 16 18 … 30 | 32 36 … 60 | …      8 buckets per octave
//!   one such row for early arrivals (negative), one for late ones
//! ```
//!
//! Invariants: no allocation after the beginning, and every sample is in exactly one bucket.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

/// Buckets of one sign: 8 for below 8 µs and 8 for each octave up to 2^63 ns.
const BUCKET_COUNT: usize = 8 * 52;

/// A histogram of lateness.
#[derive(Clone, Debug)]
pub struct Lateness {
    /// Those before their time, by how much.
    early: Box<[u64; BUCKET_COUNT]>,
    /// Those after their time, by how much.
    late: Box<[u64; BUCKET_COUNT]>,
    count: u64,
    sum_ns: i128,
    ns_min: i64,
    ns_max: i64,
}

/// What a histogram says; all 0 when it has no samples. Negative is before the time of showing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LatenessStats {
    /// Samples.
    pub count: u64,
    /// The earliest, in nanoseconds.
    pub ns_min: i64,
    /// The mean, in nanoseconds.
    pub ns_mean: i64,
    /// Half of the samples are at most this late, in nanoseconds (to 1/8).
    pub ns_p50: i64,
    /// 99 of 100 samples are at most this late, in nanoseconds (to 1/8).
    pub ns_p99: i64,
    /// The latest, in nanoseconds.
    pub ns_max: i64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self {
            early: Box::new([0; BUCKET_COUNT]),
            late: Box::new([0; BUCKET_COUNT]),
            count: 0,
            sum_ns: 0,
            ns_min: i64::MAX,
            ns_max: i64::MIN,
        }
    }
}

impl Lateness {
    /// Adds a sample, in nanoseconds.
    pub fn record(&mut self, lateness_ns: i64) {
        let row = if lateness_ns < 0 { &mut self.early } else { &mut self.late };
        if let Some(bucket) = row.get_mut(bucket_of(lateness_ns.unsigned_abs())) {
            *bucket = bucket.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.sum_ns = self.sum_ns.saturating_add(i128::from(lateness_ns));
        self.ns_min = self.ns_min.min(lateness_ns);
        self.ns_max = self.ns_max.max(lateness_ns);
    }

    /// What the samples so far say.
    #[must_use]
    pub fn stats(&self) -> LatenessStats {
        let Some(mean) = self.sum_ns.checked_div(i128::from(self.count)) else {
            return LatenessStats::default();
        };
        LatenessStats {
            count: self.count,
            ns_min: self.ns_min,
            ns_mean: i64::try_from(mean).unwrap_or(0),
            ns_p50: self.percentile_ns(50),
            ns_p99: self.percentile_ns(99),
            ns_max: self.ns_max,
        }
    }

    /// The upper end of the bucket in which that percentile lies, within the extremes.
    fn percentile_ns(&self, percent: u64) -> i64 {
        let wanted = u128::from(self.count).saturating_mul(u128::from(percent)).div_ceil(100);
        let early = self.early.iter().enumerate().rev();
        let late = self.late.iter().enumerate();
        // Of an early bucket the upper end is the lower magnitude.
        let early = early.map(|(bucket, count)| (signed(lower_ns(bucket)).saturating_neg(), count));
        let late = late.map(|(bucket, count)| (signed(lower_ns(bucket.saturating_add(1))), count));
        let mut seen = 0_u128;
        for (ns, count) in early.chain(late) {
            seen = seen.saturating_add(u128::from(*count));
            if seen >= wanted {
                return ns.clamp(self.ns_min, self.ns_max);
            }
        }
        self.ns_max
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

fn bucket_of(ns: u64) -> usize {
    let us = ns / 1_000;
    let octave = (us | 7).ilog2().saturating_sub(2);
    let within =
        if octave == 0 { us } else { us.checked_shr(octave.saturating_sub(1)).unwrap_or(0) & 7 };
    usize::try_from(u64::from(octave).saturating_mul(8).saturating_add(within)).unwrap_or(0)
}

/// The smallest magnitude of a bucket, in nanoseconds.
fn lower_ns(bucket: usize) -> u64 {
    let (octave, within) = (bucket / 8, (bucket % 8) as u64);
    let us = match u32::try_from(octave).unwrap_or(u32::MAX).checked_sub(1) {
        None => within,
        Some(shift) => within.saturating_add(8).checked_shl(shift).unwrap_or(u64::MAX),
    };
    us.saturating_mul(1_000)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn every_magnitude_is_in_the_bucket_that_holds_it() {
        let mut random = Random::from_number(5);
        for shift in 0..63 {
            for _ in 0..50 {
                let ns = random.below(1 << shift);
                let bucket = bucket_of(ns);
                assert!(bucket < BUCKET_COUNT, "{ns}");
                assert!(lower_ns(bucket) <= ns && ns < lower_ns(bucket + 1), "{ns} in {bucket}");
            }
        }
        assert!(bucket_of(u64::MAX) < BUCKET_COUNT + 8 && bucket_of(1 << 63) < BUCKET_COUNT);
    }

    #[test]
    fn percentiles_are_within_an_eighth_of_the_exact_ones() {
        let mut random = Random::from_number(6);
        let mut lateness = Lateness::default();
        let mut exact: Vec<i64> =
            (0..10_001).map(|_| random.below(200_000_000) as i64 - 150_000_000).collect();
        exact.iter().for_each(|ns| lateness.record(*ns));
        exact.sort_unstable();
        let stats = lateness.stats();
        assert_eq!((stats.count, stats.ns_min, stats.ns_max), (10_001, exact[0], exact[10_000]));
        for (found, exact) in [(stats.ns_p50, exact[5_000]), (stats.ns_p99, exact[9_900])] {
            assert!((found - exact).abs() <= exact.abs() / 8 + 1_000, "{found} {exact}");
        }
    }

    #[test]
    fn no_samples_give_zeros_and_extremes_do_not_overflow() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.stats(), LatenessStats::default());
        lateness.record(i64::MIN);
        lateness.record(i64::MAX);
        let stats = lateness.stats();
        assert_eq!((stats.ns_min, stats.ns_mean, stats.ns_max), (i64::MIN, 0, i64::MAX));
    }
}
