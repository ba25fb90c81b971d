//! The arithmetic of a report: percentiles, and values in little room.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// So many of the largest values are kept whole.
const LARGEST_KEPT: usize = 1_000;

/// The value below which `share` (0 to 1) of `sorted` lies, by the nearest rank. None of nothing.
#[must_use]
pub fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Values as a report has them, of which `sorted` is ascending: how many there are of each, in
/// thousandths to three digits, and the largest as they are.
#[must_use]
pub fn histogram(sorted: &[f64]) -> Value {
    let thousandths = |value: &f64| (value.max(0.0) * 1_000.0).round() as u64;
    let mut counts = BTreeMap::new();
    for value in sorted.iter().map(thousandths) {
        let step = 10_u64.pow(value.checked_ilog10().unwrap_or(0).saturating_sub(2));
        *counts.entry((value + step / 2) / step * step).or_insert(0_u64) += 1;
    }
    let largest: Vec<u64> = sorted.iter().rev().take(LARGEST_KEPT).map(thousandths).collect();
    let flat: Vec<u64> = counts.into_iter().flat_map(|(value, count)| [value, count]).collect();
    json!({ "thousandths": flat, "largest": largest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&values, 0.5), Some(50.0));
        assert_eq!(percentile(&values, 0.99), Some(99.0));
        assert_eq!(percentile(&values, 1.0), Some(100.0));
        assert_eq!(percentile(&values, 0.0), Some(1.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn values_are_counted_to_three_digits_and_the_largest_are_whole() {
        let it = histogram(&[1.0, 1.0, 12.346, 1_234.567]);
        assert_eq!(it["thousandths"], json!([1_000, 2, 12_300, 1, 1_230_000, 1]));
        assert_eq!(it["largest"], json!([1_234_567, 12_346, 1_000, 1_000]));
    }
}
