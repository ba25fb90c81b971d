//! What is made of samples: medians, quartiles, and the line through chains of several lengths.
//!
//! What it is not: a measurement.

use super::super::series::median;
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
        Self { median_ns: median(samples), low_ns: at(1), high_ns: at(3) }
    }

    /// For programs.
    pub fn to_json(self) -> Value {
        json!({ "median_ns": self.median_ns, "q1_ns": self.low_ns, "q3_ns": self.high_ns })
    }
}

/// The line through points by least squares: value at 0, and rise per 1. Nothing for fewer than two
/// places.
pub fn line_through(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (x, y) = (x / count, y / count);
    let square: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    if square <= 0.0 {
        return None;
    }
    let product: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let slope = product / square;
    Some((y - slope * x, slope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_and_none_through_one_place() {
        let (at_0, slope) = line_through(&[(3.0, 13.0), (5.0, 17.0), (10.0, 27.0)]).unwrap();
        assert!((at_0 - 7.0).abs() < 1e-9 && (slope - 2.0).abs() < 1e-9);
        assert_eq!(line_through(&[(3.0, 1.0), (3.0, 2.0)]), None);
        assert_eq!(line_through(&[]), None);
    }

    #[test]
    fn quartiles_are_of_the_samples() {
        let samples: Vec<f64> = (0..100).rev().map(f64::from).collect();
        let spread = Spread { median_ns: 49.5, low_ns: 25.0, high_ns: 75.0 };
        assert_eq!(Spread::of(&samples), spread);
        assert_eq!(Spread::of(&[]), Spread::default());
    }
}
