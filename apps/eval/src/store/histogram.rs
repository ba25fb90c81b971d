//! [`Histogram`]: many values of one run in little room: all of them while they are few, else how
//! many there are of each, to three digits, and the largest as they were.
//!
//! Invariants: the count is that of the values; what is kept of a value is off by at most half of
//! its third digit.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// So many are kept each by itself.
pub const VALUES_MAX: usize = 100_000;

/// So many of the largest are kept whole when there are more.
const LARGEST_KEPT: usize = 1_000;

/// Values by how often they were seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Thousandths of the unit, so that values are whole numbers; ascending.
    counts: BTreeMap<u64, u64>,
    /// The largest, descending; empty while all are kept whole.
    largest: Vec<u64>,
}

impl Histogram {
    /// Of these values; what is no number or below 0 is left out.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut whole: Vec<u64> = values
            .iter()
            .filter(|value| value.is_finite() && **value >= 0.0)
            .map(|value| (value * 1_000.0).round() as u64)
            .collect();
        whole.sort_unstable();
        let is_many = whole.len() > VALUES_MAX;
        let mut counts = BTreeMap::new();
        for &value in &whole {
            *counts.entry(if is_many { three_digits(value) } else { value }).or_insert(0) += 1;
        }
        let largest = whole.iter().rev().take(if is_many { LARGEST_KEPT } else { 0 });
        Self { counts, largest: largest.copied().collect() }
    }

    /// As it is written: `[value, count, value, count, …]`, and the largest.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let counts: Vec<u64> = self.counts.iter().flat_map(|(&value, &n)| [value, n]).collect();
        json!({ "thousandths": counts, "largest": self.largest })
    }

    /// As it was written; `None` when it is something else.
    #[must_use]
    pub fn from_json(value: &Value) -> Option<Self> {
        let numbers = |name: &str| -> Option<Vec<u64>> {
            value.get(name)?.as_array()?.iter().map(Value::as_u64).collect()
        };
        let flat = numbers("thousandths")?;
        if flat.len() % 2 != 0 {
            return None;
        }
        let counts = flat.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        Some(Self { counts, largest: numbers("largest")? })
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The value below which a share (0 to 1) of all lies, by the nearest rank.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let count = self.count();
        let rank = ((share * count as f64).ceil() as u64).clamp(1, count.max(1));
        // The largest are known exactly.
        let from_top = usize::try_from(count.checked_sub(rank)?).ok()?;
        if let Some(&value) = self.largest.get(from_top) {
            return Some(value as f64 / 1_000.0);
        }
        let mut seen = 0;
        for (&value, &n) in &self.counts {
            seen += n;
            if seen >= rank {
                return Some(value as f64 / 1_000.0);
            }
        }
        None
    }
}

/// The nearest number of three digits.
fn three_digits(value: u64) -> u64 {
    let step = 10_u64.pow(value.checked_ilog10().unwrap_or(0).saturating_sub(2));
    (value + step / 2) / step * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_kept_as_they_are() {
        let it = Histogram::of(&[1.2345, 0.001, 7.0, 7.0, f64::NAN, -1.0]);
        assert_eq!(it.count(), 4);
        assert_eq!(it.percentile(0.5), Some(1.235));
        assert_eq!(it.percentile(1.0), Some(7.0));
        assert_eq!(it.percentile(0.0), Some(0.001));
        assert_eq!(Histogram::default().percentile(0.5), None);
    }

    #[test]
    fn many_values_are_kept_to_three_digits_and_the_largest_whole() {
        let values: Vec<f64> = (0..150_000).map(|n| 10.0 + f64::from(n) / 1_000.0).collect();
        let it = Histogram::of(&values);
        assert_eq!(it.count(), 150_000);
        let half = it.percentile(0.5).unwrap();
        assert!((half - 85.0).abs() <= 0.05, "{half}");
        assert_eq!(it.percentile(1.0), Some(159.999), "the largest is exact");
        assert_eq!(it.percentile(0.9999), Some(159.984));
        assert!(it.to_json().to_string().len() < 20_000);
    }

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_not() {
        let it = Histogram::of(&[1.0, 2.0, 2.0]);
        assert_eq!(Histogram::from_json(&it.to_json()), Some(it));
        for bad in [json!({}), json!({ "thousandths": [1], "largest": [] }), json!(7)] {
            assert_eq!(Histogram::from_json(&bad), None, "{bad}");
        }
    }

    #[test]
    fn three_digits_are_the_nearest() {
        assert_eq!(
            [0, 7, 999, 1_004, 1_005, 99_951].map(three_digits),
            [0, 7, 999, 1_000, 1_010, 100_000]
        );
    }
}
