//! [`Histogram`]: times in bounded memory, percentiles to 1/32.
//!
//! ```text
//!   |ns|   0 1 2 … 31 | 32 33 … 63 | 64 66 … 126 | 128 132 …      32 buckets per octave
//! ```
//!
//! Invariant: at most 2 × 32 × 60 buckets exist, and only those with samples.

use serde::Serialize;
use std::collections::BTreeMap;

const SUB_BITS: u32 = 5;

/// A histogram of signed times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    buckets: BTreeMap<i32, u64>,
    count: u64,
    ns_min: i64,
    ns_max: i64,
}

/// What a histogram says; all 0 when it has no samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Samples.
    pub count: u64,
    /// The least, in nanoseconds.
    pub ns_min: i64,
    /// Half of the samples are at most this, in nanoseconds (to 1/32).
    pub ns_p50: i64,
    /// 99 of 100 samples are at most this, in nanoseconds (to 1/32).
    pub ns_p99: i64,
    /// The greatest, in nanoseconds.
    pub ns_max: i64,
}

impl Histogram {
    /// Adds a sample, in nanoseconds.
    pub fn record(&mut self, ns: i64) {
        if self.count == 0 {
            (self.ns_min, self.ns_max) = (ns, ns);
        }
        (self.ns_min, self.ns_max) = (self.ns_min.min(ns), self.ns_max.max(ns));
        self.count += 1;
        *self.buckets.entry(bucket_of(ns)).or_default() += 1;
    }

    /// What the samples so far say.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            count: self.count,
            ns_min: self.ns_min,
            ns_p50: self.percentile(50),
            ns_p99: self.percentile(99),
            ns_max: self.ns_max,
        }
    }

    /// The samples so far; none are left.
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    fn percentile(&self, percent: u128) -> i64 {
        let wanted = (u128::from(self.count) * percent).div_ceil(100);
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += u128::from(*count);
            if seen >= wanted {
                return middle_ns(*bucket).clamp(self.ns_min, self.ns_max);
            }
        }
        self.ns_max
    }
}

/// The bucket of a time; those of negative times mirror those of positive ones, from -1 down.
fn bucket_of(ns: i64) -> i32 {
    let magnitude = ns.unsigned_abs();
    let octave = (magnitude | 31).ilog2() - (SUB_BITS - 1);
    let within = if octave == 0 { magnitude } else { (magnitude >> (octave - 1)) & 31 };
    let bucket = (octave * 32) as i32 + within as i32;
    if ns < 0 { -1 - bucket } else { bucket }
}

fn middle_ns(bucket: i32) -> i64 {
    let magnitude = if bucket < 0 { -1 - bucket } else { bucket };
    let (octave, within) = (magnitude / 32, i64::from(magnitude % 32));
    let ns = match octave {
        0 => within,
        _ => {
            let width = 1_i64 << (octave - 1).min(57);
            (32 + within).saturating_mul(width).saturating_add(width / 2)
        }
    };
    if bucket < 0 { -ns } else { ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn percentiles_are_within_a_32nd_of_the_exact_ones() {
        for seed in 0..20 {
            let mut random = Random::from_number(seed);
            let mut histogram = Histogram::default();
            let spread = 1 << (4 + random.below(36));
            let mut exact: Vec<i64> =
                (0..1_001).map(|_| random.below(spread) as i64 - (spread / 3) as i64).collect();
            exact.iter().for_each(|ns| histogram.record(*ns));
            exact.sort_unstable();
            let summary = histogram.summary();
            assert_eq!((summary.ns_min, summary.ns_max), (exact[0], exact[1_000]));
            for (found, exact) in [(summary.ns_p50, exact[500]), (summary.ns_p99, exact[990])] {
                assert!(
                    (found - exact).abs() <= exact.abs() / 32 + 1,
                    "seed {seed}: {found} {exact}"
                );
            }
        }
    }

    #[test]
    fn extremes_and_nothing_are_no_special_case() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.summary(), Summary::default());
        for ns in [i64::MIN, i64::MAX, 0, -1] {
            histogram.record(ns);
        }
        let summary = histogram.take().summary();
        assert_eq!((summary.count, summary.ns_min, summary.ns_max), (4, i64::MIN, i64::MAX));
        assert_eq!(histogram.summary().count, 0);
    }
}
