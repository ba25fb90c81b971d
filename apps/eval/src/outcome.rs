//! [`Outcome`]: what the samples of a run come to: figures, ratios to controls, goals.
//!
//! ```text
//!   samples of one load -> values -----------------------------> figure  (median, interval)
//!                          value / control's of the same round -> ratio   (median, interval)
//!   all rounds, and the quiet ones of them; noisy rounds are listed, and left in
//! ```
//!
//! Invariant: a ratio is a median of ratios within rounds, never a quotient of medians.

use crate::experiment::{FigureSpec, Goal, Load, Row};
use crate::stats::{Estimate, noisy};
use crate::store::Run;
use std::collections::BTreeMap;

/// Fewer rounds than these decide nothing.
pub const ROUNDS_MIN: usize = 3;

/// How far beyond the goal the worse end of the interval may be.
const BEYOND_MAX: f64 = 0.05;

/// The rounds of one load.
pub struct Outcome<'a> {
    run: &'a Run,
    /// What else ran.
    pub load: Load,
    /// Rounds, in order, and whether each is noisy.
    pub rounds: Vec<(u32, bool)>,
    /// Values by row and round.
    values: BTreeMap<(&'a str, u32), &'a BTreeMap<String, f64>>,
}

/// What became of a goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The median is, and the interval's worse end is within a twentieth of it.
    Met(Estimate),
    /// The median is, but the interval reaches too far.
    Unsure(Estimate),
    /// It is not.
    Missed(Estimate),
    /// Fewer than [`ROUNDS_MIN`] rounds.
    NotMeasured,
}

impl Verdict {
    /// Its word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Met(_) => "met",
            Self::Unsure(_) => "not sure",
            Self::Missed(_) => "missed",
            Self::NotMeasured => "not measured",
        }
    }

    /// What was seen.
    pub fn estimate(&self) -> Option<Estimate> {
        match self {
            Self::Met(it) | Self::Unsure(it) | Self::Missed(it) => Some(*it),
            Self::NotMeasured => None,
        }
    }
}

/// Which rounds are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// All: what goals are judged by.
    All,
    /// Those that are not noisy.
    Quiet,
}

impl<'a> Outcome<'a> {
    /// Of the rounds of `run` with this load; `None` when there are none.
    pub fn new(run: &'a Run, load: Load) -> Option<Self> {
        let mut numbers: Vec<u32> = run.of(load).map(|entry| entry.round).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let of = |entry: &'a crate::store::Entry| {
            Some(((entry.row.as_str(), entry.round), entry.figures.as_ref()?))
        };
        let values: BTreeMap<_, _> = run.of(load).filter_map(of).collect();
        let controls = run.header.spec.controls.iter().map(|(row, figure)| {
            let at = |round: &u32| values.get(&(row.as_str(), *round))?.get(figure).copied();
            numbers.iter().map(at).collect::<Vec<_>>()
        });
        let is_noisy = noisy(&controls.collect::<Vec<_>>());
        let flag = |at: usize| is_noisy.get(at).copied().unwrap_or(false);
        let rounds: Vec<_> = numbers.iter().enumerate().map(|(at, &it)| (it, flag(at))).collect();
        (!rounds.is_empty()).then_some(Self { run, load, rounds, values })
    }

    /// Those of a run: the loaded rounds first, as goals are judged by them first.
    pub fn all(run: &'a Run) -> Vec<Self> {
        [Load::Loaded, Load::Quiet].into_iter().filter_map(|load| Self::new(run, load)).collect()
    }

    fn value(&self, row: &str, round: u32, figure: &str) -> Option<f64> {
        self.values.get(&(row, round))?.get(figure).copied()
    }

    fn rounds_of(&self, which: Rounds) -> impl Iterator<Item = u32> {
        let is_meant = move |is_noisy: bool| which == Rounds::All || !is_noisy;
        self.rounds.iter().filter(move |it| is_meant(it.1)).map(|it| it.0)
    }

    /// A figure of a row.
    pub fn figure(&self, row: &str, figure: &str, which: Rounds) -> Option<Estimate> {
        let values = self.rounds_of(which).filter_map(|round| self.value(row, round, figure));
        Estimate::of(&values.collect::<Vec<_>>())
    }

    /// The ratio of a row to its control.
    pub fn ratio(&self, row: &Row, figure: &str, which: Rounds) -> Option<Estimate> {
        let control = row.control.as_deref()?;
        let values = self.rounds_of(which).filter_map(|round| {
            let below = self.value(control, round, figure).filter(|&value| value > 0.0)?;
            Some(self.value(&row.name, round, figure)? / below)
        });
        Estimate::of(&values.collect::<Vec<_>>())
    }

    /// How often a row failed, and why the last time.
    pub fn failures(&self, row: &str) -> (usize, Option<&'a str>) {
        let entries = self.run.of(self.load).filter(|entry| entry.row == row);
        let all: Vec<&str> = entries.filter_map(|entry| entry.failure.as_deref()).collect();
        (all.len(), all.last().copied())
    }

    /// What became of a goal, over all rounds.
    pub fn judge(&self, goal: &Goal) -> Verdict {
        let row = self.run.header.spec.row(&goal.row);
        let seen = match goal.is_absolute {
            true => self.figure(&goal.row, &goal.figure, Rounds::All),
            false => row.and_then(|row| self.ratio(row, &goal.figure, Rounds::All)),
        };
        // What is counted is the same in every round: one is all that there is.
        let enough = ROUNDS_MIN.min(self.run.header.spec.rounds as usize);
        match seen.filter(|seen| seen.count >= enough.max(1)) {
            Some(seen) => verdict(goal, seen),
            None => Verdict::NotMeasured,
        }
    }

    /// Whether a row is ahead of its control, behind it, or neither, with all of the interval.
    pub fn is_ahead(&self, row: &Row, figure: &FigureSpec) -> Option<bool> {
        let ratio = self.ratio(row, &figure.name, Rounds::All)?;
        let is_enough = ratio.count >= ROUNDS_MIN && row.control.as_ref() != Some(&row.name);
        match (ratio.is_above(1.0), ratio.is_below(1.0)) {
            (true, _) if is_enough => Some(figure.is_more_better),
            (_, true) if is_enough => Some(!figure.is_more_better),
            _ => None,
        }
    }
}

fn verdict(goal: &Goal, seen: Estimate) -> Verdict {
    let (is_met, is_sure) = match goal.is_least {
        true => (seen.median >= goal.bound, seen.low >= goal.bound * (1.0 - BEYOND_MAX)),
        false => (seen.median <= goal.bound, seen.high <= goal.bound * (1.0 + BEYOND_MAX)),
    };
    match (is_met, is_sure) {
        (true, true) => Verdict::Met(seen),
        (true, false) => Verdict::Unsure(seen),
        (false, _) => Verdict::Missed(seen),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::experiment::{Sample, Spec};
    use crate::store::{Entry, Header};

    /// Seven rounds of gso and ours; round 4 is noisy, in round 5 ours failed.
    pub fn run() -> Run {
        let row = |name: &str| Row {
            name: name.to_owned(),
            what: format!("what {name} is"),
            group: "bulk".to_owned(),
            control: Some("gso".to_owned()),
            point: None,
        };
        let figure = FigureSpec {
            name: "gbit_per_s".to_owned(),
            groups: vec!["bulk".to_owned()],
            heading: "Gbit/s".to_owned(),
            is_more_better: true,
            is_compared: true,
        };
        let goal = Goal {
            row: "ours".to_owned(),
            figure: "gbit_per_s".to_owned(),
            what: "goodput to bare GSO".to_owned(),
            is_absolute: false,
            is_least: true,
            bound: 0.9,
        };
        let spec = Spec {
            what: "a test".to_owned(),
            rows: vec![row("gso"), row("ours")],
            figures: vec![figure],
            controls: vec![("gso".to_owned(), "gbit_per_s".to_owned())],
            goals: vec![goal],
            rounds: 7,
            loaded_rounds: 0,
            seconds: 1.0,
        };
        let rates = [
            (40.0, 38.0),
            (40.0, 37.0),
            (40.0, 36.0),
            (20.0, 16.0),
            (40.0, 1.0),
            (40.0, 38.0),
            (40.0, 37.0),
        ];
        let mut entries = Vec::new();
        for (at, (gso, ours)) in (1..).zip(rates) {
            let of = |rate: f64| Ok(Sample::default().with("gbit_per_s", rate));
            let ours = if at == 5 { Err("it hung".to_owned()) } else { of(ours) };
            entries.push(Entry::of(at, Load::Quiet, "gso", of(gso)));
            entries.push(Entry::of(at, Load::Quiet, "ours", ours));
        }
        let header = Header {
            id: "test".to_owned(),
            date: "2026-01-01".to_owned(),
            commit: "abc1234".to_owned(),
            commit_count: 10,
            is_clean: true,
            is_whole: true,
            place: "this host".to_owned(),
            spec,
            ..Header::default()
        };
        Run { header, entries }
    }

    #[test]
    fn noisy_rounds_are_in_all_and_not_in_the_quiet_ones() {
        let run = run();
        let [outcome] = Outcome::all(&run).try_into().unwrap_or_else(|_| panic!("quiet only"));
        let flags: Vec<bool> = outcome.rounds.iter().map(|it| it.1).collect();
        assert_eq!(flags, [false, false, false, true, false, false, false]);
        let count = |which| outcome.figure("ours", "gbit_per_s", which).unwrap().count;
        assert_eq!((count(Rounds::All), count(Rounds::Quiet)), (6, 5));
        assert_eq!(outcome.failures("ours"), (1, Some("it hung")));
    }

    #[test]
    fn a_ratio_is_the_median_of_ratios_within_rounds() {
        let run = run();
        let outcome = Outcome::new(&run, Load::Quiet).unwrap();
        let ratio = outcome.ratio(&run.header.spec.rows[1], "gbit_per_s", Rounds::All).unwrap();
        // 0.95, 0.925, 0.9, 0.8, 0.95, 0.925.
        assert!((ratio.median - 0.925).abs() < 1e-12, "{ratio:?}");
        let (row, figure) = (&run.header.spec.rows[1], &run.header.spec.figures[0]);
        assert_eq!(outcome.is_ahead(row, figure), Some(false), "behind with all of the interval");
        assert_eq!(outcome.is_ahead(&run.header.spec.rows[0], figure), None, "of itself");
    }

    #[test]
    fn goals_are_met_by_the_median_with_the_interval_near() {
        let goal = |is_least, bound| Goal { is_least, bound, ..Goal::default() };
        let seen = |low, median, high| Estimate {
            low,
            median,
            high,
            least: low,
            greatest: high,
            count: 7,
        };
        assert_eq!(verdict(&goal(true, 1.0), seen(0.96, 1.0, 1.1)).word(), "met");
        assert_eq!(verdict(&goal(true, 1.0), seen(0.90, 1.0, 1.1)).word(), "not sure");
        assert_eq!(verdict(&goal(true, 1.0), seen(0.98, 0.99, 1.1)).word(), "missed");
        assert_eq!(verdict(&goal(false, 1.0), seen(0.5, 1.0, 1.04)).word(), "met");
        assert_eq!(verdict(&goal(false, 1.0), seen(0.5, 0.9, 1.2)).word(), "not sure");
        let mut run = run();
        run.entries.truncate(4);
        let outcome = Outcome::new(&run, Load::Quiet).unwrap();
        let verdict = outcome.judge(&run.header.spec.goals[0]);
        assert_eq!(verdict, Verdict::NotMeasured, "two rounds are not enough");
    }
}
