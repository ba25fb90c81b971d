//! Figures of rounds: medians, quantiles, and how they are said.

use serde_json::{Value, json};
use std::time::Duration;

/// The value in the middle of the sorted values; of two the lower one. Zero when there is none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which a share of the sorted values lies, by the nearest rank; zero when there is
/// none.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// The greatest; zero when there is none.
#[must_use]
pub fn greatest(values: &[f64]) -> f64 {
    quantile(values, 1.0)
}

/// Durations in milliseconds.
#[must_use]
pub fn in_ms(times: &[Duration]) -> Vec<f64> {
    times.iter().map(|time| time.as_secs_f64() * 1e3).collect()
}

/// Milliseconds as `p50 12 ms, max 34 ms`.
#[must_use]
pub fn p50_max(ms: &[f64]) -> String {
    format!("p50 {:.0} ms, max {:.0} ms", median(ms), greatest(ms))
}

/// The same for programs.
#[must_use]
pub fn ms_json(ms: &[f64]) -> Value {
    json!({
        "count": ms.len(), "p50_ms": median(ms), "p99_ms": quantile(ms, 0.99),
        "max_ms": greatest(ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!((median(&values), greatest(&values)), (3.0, 5.0));
        assert_eq!((quantile(&values, 0.99), quantile(&values, 0.0)), (5.0, 1.0));
        assert_eq!(median(&[2.0, 1.0]), 1.0);
        assert_eq!((median(&[]), greatest(&[])), (0.0, 0.0));
        assert_eq!(p50_max(&in_ms(&[Duration::from_millis(7)])), "p50 7 ms, max 7 ms");
    }
}
