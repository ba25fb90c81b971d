//! [`Report`]: what a verification found, figure by figure, and the statistics behind it.
//!
//! Tolerance of a share: five standard errors plus the second term of Bernstein's inequality,
//! without which the first few rare events would already be too many.

use crate::model::Moments;
use std::fmt;

/// How many standard errors an observed figure may be off.
pub(crate) const SIGMAS: f64 = 5.0;

/// One figure of the comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// What is compared.
    pub name: &'static str,
    /// In what unit; empty for a probability or a count.
    pub unit: &'static str,
    /// What the configuration promises.
    pub configured: f64,
    /// What was seen.
    pub observed: f64,
    /// How far the two may be apart.
    pub tolerance: f64,
    /// Whether they are not further apart.
    pub ok: bool,
}

/// The outcome of [`crate::verify()`].
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The seed that repeats it.
    pub seed: u64,
    /// How many items the longest run had.
    pub count: usize,
    /// The figures that the configuration gives rise to.
    pub figures: Vec<Figure>,
}

impl Report {
    /// Whether every figure is within its tolerance.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.figures.iter().all(|figure| figure.ok)
    }

    /// The figure of that name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    pub(crate) fn add(
        &mut self,
        name: &'static str,
        unit: &'static str,
        values: (f64, f64),
        tolerance: f64,
    ) {
        let (configured, observed) = values;
        // An infinite tolerance would make everything right.
        let within = tolerance.is_finite() && (configured - observed).abs() <= tolerance;
        let ok = within || configured == observed;
        self.figures.push(Figure { name, unit, configured, observed, tolerance, ok });
    }

    pub(crate) fn add_exact(&mut self, name: &'static str, configured: f64, observed: f64) {
        self.add(name, "", (configured, observed), 0.0);
    }

    /// Adds a share of `count` items.
    pub(crate) fn add_share(
        &mut self,
        name: &'static str,
        expected: Moments,
        events: usize,
        count: usize,
    ) {
        if count > 0 {
            let observed = events as f64 / count as f64;
            let tolerance = share_tolerance(expected.variance, count, 1.0);
            self.add(name, "", (expected.mean, observed), tolerance);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, {} items", self.seed, self.count)?;
        writeln!(
            f,
            "{:<28} {:>14} {:>14} {:>12}",
            "figure", "configured", "observed", "tolerance"
        )?;
        for Figure { name, unit, configured, observed, tolerance, ok } in &self.figures {
            let verdict = if *ok { "ok" } else { "WRONG" };
            let name = if unit.is_empty() { (*name).into() } else { format!("{name} ({unit})") };
            writeln!(
                f,
                "{name:<28} {configured:>14.7} {observed:>14.7} {tolerance:>12.7} {verdict}"
            )?;
        }
        Ok(())
    }
}

/// How far the observed share may be off: `variance` is that of one item, `stretch` the number of
/// items that count as one independent item.
pub(crate) fn share_tolerance(variance: f64, count: usize, stretch: f64) -> f64 {
    let rare = if variance > 0.0 { SIGMAS * stretch / count as f64 } else { 0.0 };
    SIGMAS * (variance / count as f64).sqrt() + rare
}

/// The central moments of a sample.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    count: f64,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
    fourth: f64,
}

impl Sample {
    pub(crate) fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let central = |power| values.iter().map(|v| (v - mean).powi(power)).sum::<f64>() / count;
        Self { count, mean, variance: central(2), fourth: central(4) }
    }

    /// The standard error of the standard deviation.
    pub(crate) fn deviation_error(&self) -> f64 {
        if self.variance <= 0.0 {
            return 0.0;
        }
        let variance_error = ((self.fourth - self.variance.powi(2)).max(0.0) / self.count).sqrt();
        variance_error / (2.0 * self.variance.sqrt())
    }
}
