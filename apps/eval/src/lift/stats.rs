//! What is made of samples: medians and quartiles.

use crate::stats::median_or_0;
use serde_json::{Value, json};

/// The middle and the quartiles of some samples, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The middle.
    pub median_ns: f64,
    /// A quarter of the samples is below.
    pub low_ns: f64,
    /// A quarter is above.
    pub high_ns: f64,
}

impl Spread {
    /// Of these samples.
    pub fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |quarter: usize| sorted.get(sorted.len() * quarter / 4).copied().unwrap_or(0.0);
        Self { median_ns: median_or_0(samples), low_ns: at(1), high_ns: at(3) }
    }

    /// For programs.
    pub fn to_json(self) -> Value {
        json!({ "median_ns": self.median_ns, "q1_ns": self.low_ns, "q3_ns": self.high_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_of_the_samples() {
        let samples: Vec<f64> = (0..100).rev().map(f64::from).collect();
        let spread = Spread { median_ns: 49.5, low_ns: 25.0, high_ns: 75.0 };
        assert_eq!(Spread::of(&samples), spread);
        assert_eq!(Spread::of(&[]), Spread::default());
    }
}
