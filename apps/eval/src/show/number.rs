//! Numbers as tables show them: three digits that count.

use crate::stats::Estimate;

/// A number with three digits that count.
pub fn three(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return "–".to_owned();
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    // What rounds up to the next power of ten has one digit less behind the point.
    let rounded = (value * 10_f64.powi(digits)).round() / 10_f64.powi(digits);
    let digits = 2 - rounded.abs().log10().floor() as i32;
    match usize::try_from(digits) {
        Ok(digits) => format!("{rounded:.digits$}"),
        Err(_) => format!("{rounded:.0}"),
    }
}

/// A median with its interval.
pub fn with_interval(it: &Estimate) -> String {
    if it.count < 2 || it.low == it.high {
        return three(it.median);
    }
    format!("{} [{}, {}]", three(it.median), three(it.low), three(it.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count() {
        let shown = [0.0, 0.001_234, 0.999_9, 1.0, 9.999, 12.34, 123.4, 1_234.0, 99_950.0, -0.5];
        let words =
            ["0", "0.00123", "1.00", "1.00", "10.0", "12.3", "123", "1230", "100000", "-0.500"];
        assert_eq!(shown.map(three), words.map(str::to_owned));
        assert_eq!(three(f64::NAN), "–");
    }

    #[test]
    fn an_interval_stands_behind_its_median() {
        let it =
            Estimate { median: 0.95, low: 0.9, high: 1.0, least: 0.8, greatest: 1.1, count: 7 };
        assert_eq!(with_interval(&it), "0.950 [0.900, 1.00]");
        assert_eq!(with_interval(&Estimate { count: 1, ..it }), "0.950");
    }
}
