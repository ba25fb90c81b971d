//! What the samples of all rounds come to: medians, ratios to the control, goals met or missed.
//!
//! ```text
//!   samples --disturbed rounds out--> values --median--> figure
//!                                     value / control's of the same round --median--> ratio
//! ```
//!
//! Invariant: a ratio is a median of ratios within rounds, never a quotient of medians.

use peers::{disturbed, median, spread};
use serde_json::{Value, json};

use crate::measure::Sample;
use crate::rows::{CONTROLS, Row};

/// Fewer quiet rounds than these decide nothing.
pub const ROUNDS_MIN: usize = 3;

type Pick = fn(&Sample) -> Option<f64>;

/// A goal of the table "Network, between two namespaces over veth": a ratio to the row's control.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    pub row: &'static str,
    pub what: &'static str,
    pick: Pick,
    /// At least this, or at most.
    is_least: bool,
    pub bound: f64,
}

/// The goals that a row here measures.
pub const GOALS: [Goal; 7] = [
    Goal {
        row: "ours-udp",
        what: "goodput to bare GSO",
        pick: |it| it.gbit_per_s,
        is_least: true,
        bound: 0.9,
    },
    Goal {
        row: "ours-udp",
        what: "CPU s/GB to bare GSO",
        pick: |it| it.cpu_s_per_gb,
        is_least: false,
        bound: 1.15,
    },
    Goal {
        row: "ours-tcp",
        what: "goodput to kernel TCP",
        pick: |it| it.gbit_per_s,
        is_least: true,
        bound: 0.95,
    },
    Goal {
        row: "xtp",
        what: "goodput to kernel TCP",
        pick: |it| it.gbit_per_s,
        is_least: true,
        bound: 1.0,
    },
    Goal {
        row: "xtp",
        what: "CPU s/GB to kernel TCP",
        pick: |it| it.cpu_s_per_gb,
        is_least: false,
        bound: 1.0,
    },
    Goal {
        row: "ours-udp-64",
        what: "p50 to plain UDP, blocking",
        pick: |it| it.p50_us,
        is_least: false,
        bound: 1.05,
    },
    Goal {
        row: "ours-udp-64-spin",
        what: "p50 to plain UDP, polling",
        pick: |it| it.p50_us,
        is_least: false,
        bound: 1.05,
    },
];

/// All samples of a row, one or none a round.
#[derive(Debug)]
pub struct Series {
    pub row: &'static Row,
    /// Why it never ran, if it cannot.
    pub missing: Option<String>,
    pub samples: Vec<Result<Sample, String>>,
}

/// The samples of all rows, and which rounds count.
#[derive(Debug)]
pub struct Outcome {
    pub series: Vec<Series>,
    pub is_disturbed: Vec<bool>,
}

/// A median, and what it was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub median: f64,
    pub least: f64,
    pub greatest: f64,
    pub count: usize,
}

impl Figure {
    fn of(values: &[f64]) -> Option<Self> {
        let (least, greatest) = spread(values)?;
        Some(Self { median: median(values)?, least, greatest, count: values.len() })
    }

    pub fn json(&self) -> Value {
        let Self { median, least, greatest, count } = self;
        json!({ "median": median, "min": least, "max": greatest, "n": count })
    }
}

impl Outcome {
    /// Works out which rounds are disturbed.
    pub fn new(series: Vec<Series>) -> Self {
        let controls: Vec<Vec<Option<f64>>> = series
            .iter()
            .filter(|series| CONTROLS.contains(&series.row.name) && series.missing.is_none())
            .map(|series| series.samples.iter().map(|s| s.as_ref().ok()?.gbit_per_s).collect())
            .collect();
        let is_disturbed = disturbed(&controls);
        Self { series, is_disturbed }
    }

    /// How many rounds count.
    pub fn quiet_count(&self) -> usize {
        self.is_disturbed.iter().filter(|&&is_disturbed| !is_disturbed).count()
    }

    fn value(&self, name: &str, round: usize, pick: Pick) -> Option<f64> {
        let series = self.series.iter().find(|series| series.row.name == name)?;
        series.samples.get(round)?.as_ref().ok().and_then(pick)
    }

    fn quiet_rounds(&self) -> impl Iterator<Item = usize> {
        let flags = self.is_disturbed.iter().enumerate();
        flags.filter(|&(_, &is_disturbed)| !is_disturbed).map(|(round, _)| round)
    }

    /// The median of what `pick` sees of a row, over quiet rounds.
    pub fn figure(&self, name: &str, pick: Pick) -> Option<Figure> {
        let values = self.quiet_rounds().filter_map(|round| self.value(name, round, pick));
        Figure::of(&values.collect::<Vec<_>>())
    }

    /// The median of the ratios of a row to its control, over quiet rounds.
    pub fn ratio(&self, row: &Row, pick: Pick) -> Option<Figure> {
        let control = row.control?;
        let values = self.quiet_rounds().filter_map(|round| {
            let below = self.value(control, round, pick).filter(|&value| value > 0.0)?;
            Some(self.value(row.name, round, pick)? / below)
        });
        Figure::of(&values.collect::<Vec<_>>())
    }

    /// What `goal` comes to: its ratio, and whether it is met; none when it was not measured.
    pub fn judge(&self, goal: &Goal) -> Option<(Figure, bool)> {
        let row = crate::rows::row(goal.row)?;
        let ratio = self.ratio(row, goal.pick).filter(|ratio| ratio.count >= ROUNDS_MIN)?;
        let is_met =
            if goal.is_least { ratio.median >= goal.bound } else { ratio.median <= goal.bound };
        Some((ratio, is_met))
    }
}

impl Goal {
    /// The bound, with its sign.
    pub fn bound_text(&self) -> String {
        format!("{} {}", if self.is_least { "≥" } else { "≤" }, self.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::row;

    fn bulk(gbit_per_s: f64, cpu_s_per_gb: f64) -> Result<Sample, String> {
        let (gbit_per_s, cpu_s_per_gb) = (Some(gbit_per_s), Some(cpu_s_per_gb));
        Ok(Sample { gbit_per_s, cpu_s_per_gb, ..Sample::default() })
    }

    fn series(name: &str, samples: Vec<Result<Sample, String>>) -> Series {
        Series { row: row(name).unwrap(), missing: None, samples }
    }

    /// Round 3 is disturbed (gso), in round 4 ours failed.
    fn outcome() -> Outcome {
        let gso = [40.0, 40.0, 40.0, 20.0, 40.0].map(|rate| bulk(rate, 0.25)).to_vec();
        let tcp = [20.0; 5].map(|rate| bulk(rate, 0.5)).to_vec();
        let mut ours = [38.0, 36.0, 34.0, 40.0, 1.0].map(|rate| bulk(rate, 0.3)).to_vec();
        ours[4] = Err("refused".to_owned());
        Outcome::new(vec![series("gso", gso), series("ours-udp", ours), series("tcp", tcp)])
    }

    #[test]
    fn disturbed_and_failed_rounds_are_in_no_figure() {
        let outcome = outcome();
        assert_eq!(outcome.is_disturbed, [false, false, false, true, false]);
        let figure = outcome.figure("ours-udp", |it| it.gbit_per_s).unwrap();
        assert_eq!(figure, Figure { median: 36.0, least: 34.0, greatest: 38.0, count: 3 });
        let ratio = outcome.ratio(row("ours-udp").unwrap(), |it| it.gbit_per_s).unwrap();
        assert!((ratio.median - 0.9).abs() < 1e-12);
    }

    #[test]
    fn goals_are_met_at_their_bound_and_undecided_without_three_rounds() {
        let mut outcome = outcome();
        let (ratio, is_met) = outcome.judge(&GOALS[0]).unwrap();
        assert!(ratio.median >= 0.9 && is_met, "{ratio:?}");
        let (ratio, is_met) = outcome.judge(&GOALS[1]).unwrap();
        assert!((ratio.median - 1.2).abs() < 1e-12 && !is_met);
        assert!(outcome.judge(&GOALS[3]).is_none(), "latency was not measured");
        outcome.series[1].samples[0] = Err("refused".to_owned());
        assert!(outcome.judge(&GOALS[0]).is_none(), "two rounds are not enough");
    }

    #[test]
    fn every_goal_is_of_a_row_with_a_control() {
        for goal in GOALS {
            assert!(row(goal.row).is_some_and(|row| row.control.is_some()), "{}", goal.row);
        }
    }
}
