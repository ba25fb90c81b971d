//! [`Series`]: how long something took, many times: the columns of the tables of 1998.

use serde_json::{Value, json};

/// How long something took, in nanoseconds, each time.
#[derive(Clone, Debug, Default)]
pub struct Series(Vec<u64>);

/// Its columns, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Columns {
    /// How often.
    pub count: u64,
    /// The shortest.
    pub min_us: f64,
    /// The mean.
    pub average_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Of the sample, in square microseconds; 0 for a single value.
    pub variance_us2: f64,
    /// Its root.
    pub deviation_us: f64,
}

impl Series {
    /// It took this long once more.
    pub fn push(&mut self, ns: u64) {
        self.0.push(ns);
    }

    /// Everything of another one too.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// The columns.
    pub fn columns(&self) -> Columns {
        let count = self.0.len();
        if count == 0 {
            return Columns::default();
        }
        let us = |ns: u64| ns as f64 / 1_000.0;
        let average_us = self.0.iter().map(|ns| us(*ns)).sum::<f64>() / count as f64;
        let squares: f64 = self.0.iter().map(|ns| (us(*ns) - average_us).powi(2)).sum();
        let variance_us2 = squares / (count - 1).max(1) as f64;
        Columns {
            count: count as u64,
            min_us: self.0.iter().min().map_or(0.0, |ns| us(*ns)),
            average_us,
            max_us: self.0.iter().max().map_or(0.0, |ns| us(*ns)),
            variance_us2,
            deviation_us: variance_us2.sqrt(),
        }
    }
}

impl Columns {
    /// For programs.
    pub fn to_json(self) -> Value {
        json!({
            "n": self.count,
            "min_us": self.min_us,
            "average_us": self.average_us,
            "max_us": self.max_us,
            "variance_us2": self.variance_us2,
            "standard_deviation_us": self.deviation_us,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_those_of_the_tables() {
        let mut series = Series::default();
        for us in [29, 31, 36, 53] {
            series.push(us * 1_000);
        }
        let columns = series.columns();
        assert_eq!((columns.count, columns.min_us, columns.max_us), (4, 29.0, 53.0));
        assert!((columns.average_us - 37.25).abs() < 1e-9);
        assert!((columns.variance_us2 - 118.916_666).abs() < 1e-3, "{columns:?}");
        assert_eq!(Series::default().columns(), Columns::default());
    }
}
