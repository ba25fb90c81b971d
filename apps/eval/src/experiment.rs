//! [`Experiment`]: what is measured together: its rows, what they are compared with, and its goals.
//!
//! ```text
//!   Spec: rows in groups, figures, controls, goals   -> kept with each run, so that a run can be
//!   round(row) -> Sample: figures, series, reports      judged again without this program
//! ```
//!
//! Invariant: a row is compared with its control within the same round only.

use crate::rig::Rig;
use crate::store::histogram::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One experiment.
pub trait Experiment: Sync {
    /// Its name on the command line, in the store and in documents.
    fn id(&self) -> &'static str;

    /// What it is, in one sentence.
    fn what(&self) -> &'static str;

    /// Its rows, figures, controls and goals.
    fn spec(&self) -> Spec;

    /// Where its ends are.
    fn site(&self) -> Site;

    /// Why this row cannot run here, if it cannot.
    fn missing(&self, _row: &Row, _rig: &Rig) -> Option<String> {
        None
    }

    /// The version of what this row runs.
    fn version(&self, _row: &Row, _rig: &Rig) -> Option<String> {
        None
    }

    /// Measures one row once.
    ///
    /// # Errors
    /// Why there is no figure: a program that is missing, crashed, hung or printed rubbish.
    fn round(&self, row: &Row, rig: &mut Rig) -> Result<Sample, String>;
}

/// Where the ends of an experiment are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// On this host, wherever the system puts them.
    Host,
    /// On this host, a processor each.
    Apart,
    /// In two namespaces with a veth pair between them, a processor each.
    Veth,
    /// The same with the link emulator between them, made anew for each run of a row.
    Link,
}

impl Site {
    /// What it is, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "this host",
            Self::Apart => "this host, a processor for each end",
            Self::Veth => "veth between two namespaces, MTU 1500",
            Self::Link => "link emulator between two namespaces, MTU 1500",
        }
    }
}

/// What an experiment is, as it is kept with its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// What it is, in one sentence.
    pub what: String,
    /// In the order of a round, each behind its control.
    pub rows: Vec<Row>,
    /// What is measured of rows.
    pub figures: Vec<FigureSpec>,
    /// Rows and figures whose disturbance makes a round noisy.
    pub controls: Vec<(String, String)>,
    /// What is aimed at.
    pub goals: Vec<Goal>,
    /// How often each row runs, with nothing else on the machine.
    pub rounds: u32,
    /// How often with a load that is made.
    pub loaded_rounds: u32,
    /// How long each row runs.
    pub seconds: f64,
}

/// One row of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What it is, for people.
    pub what: String,
    /// The table that it stands in; figures of one table are comparable.
    pub group: String,
    /// The row of the same group that its ratios are to.
    pub control: Option<String>,
    /// Where it is a point of a curve, which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<Point>,
}

/// A row as a point of a curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The curve: what is measured as something grows.
    pub curve: String,
    /// How much of it there is.
    pub x: f64,
    /// What grows, for people, with its unit.
    pub axis: String,
}

/// A figure of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureSpec {
    /// Its name in samples, the unit last.
    pub name: String,
    /// The groups whose rows have it.
    pub groups: Vec<String>,
    /// What stands above its column.
    pub heading: String,
    /// Whether more is better.
    pub is_more_better: bool,
    /// Whether it is compared with the control's.
    pub is_compared: bool,
}

/// A bound of the ratio of a row to its control, or of a figure itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// The row.
    pub row: String,
    /// The figure.
    pub figure: String,
    /// What it is, for people.
    pub what: String,
    /// Whether it is of the figure itself and not of its ratio.
    pub is_absolute: bool,
    /// At least this, or at most.
    pub is_least: bool,
    /// The bound.
    pub bound: f64,
}

/// Whether something else runs on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// A process that spins and one that copies memory, one on each processor.
    Loaded,
    /// Nothing that this program knows of.
    Quiet,
}

impl Load {
    /// Its word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::Quiet => "quiet",
        }
    }
}

/// Figures of one run of a row by name.
pub type Figures = BTreeMap<String, f64>;

/// One run of one row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// What its tables and goals are about.
    pub figures: Figures,
    /// Values of which there are many, such as round trips.
    pub series: BTreeMap<String, Histogram>,
    /// The commands that ran.
    pub commands: Vec<String>,
    /// What they said.
    pub reports: Value,
}

impl Sample {
    /// With this figure too.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.figures.insert(name.to_owned(), value);
        self
    }
}

impl Goal {
    /// The bound, with its sign.
    pub fn bound_text(&self) -> String {
        format!("{} {}", if self.is_least { "≥" } else { "≤" }, self.bound)
    }
}

/// Figures of `groups`: name, heading, whether more is better, whether it is compared.
pub fn figures(of: &[(&str, &str, bool, bool)], groups: &[&str]) -> Vec<FigureSpec> {
    let figure = |&(name, heading, is_more_better, is_compared): &(&str, &str, bool, bool)| {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        let (name, heading) = (name.to_owned(), heading.to_owned());
        FigureSpec { name, groups, heading, is_more_better, is_compared }
    };
    of.iter().map(figure).collect()
}

/// Goals that are ratios: row, figure, what, at least, bound.
pub fn goals(of: &[(&str, &str, &str, bool, f64)]) -> Vec<Goal> {
    let goal = |&(row, figure, what, is_least, bound): &(&str, &str, &str, bool, f64)| {
        let (row, figure, what) = (row.to_owned(), figure.to_owned(), what.to_owned());
        Goal { row, figure, what, is_absolute: false, is_least, bound }
    };
    of.iter().map(goal).collect()
}

impl Spec {
    /// The row of that name.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The groups, in their order.
    pub fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !groups.contains(&row.group.as_str()) {
                groups.push(&row.group);
            }
        }
        groups
    }

    /// The figures of a group.
    pub fn figures_of(&self, group: &str) -> impl Iterator<Item = &FigureSpec> {
        self.figures.iter().filter(move |figure| figure.groups.iter().any(|it| it == group))
    }

    /// Leaves the rows of these names, with their controls and those of the rounds.
    ///
    /// # Errors
    /// The name that no row has.
    pub fn select(&mut self, only: &[String]) -> Result<(), String> {
        if let Some(name) = only.iter().find(|name| self.row(name).is_none()) {
            return Err(format!("`{name}` is no row; `dacapo eval list` shows them"));
        }
        if only.is_empty() {
            return Ok(());
        }
        let mut wanted: Vec<String> = only.to_vec();
        wanted.extend(self.controls.iter().map(|(row, _)| row.clone()));
        let mut at = 0;
        while let Some(name) = wanted.get(at).cloned() {
            let control = self.row(&name).and_then(|row| row.control.clone());
            wanted.extend(control.filter(|control| !wanted.contains(control)));
            at += 1;
        }
        self.rows.retain(|row| wanted.contains(&row.name));
        self.goals.retain(|goal| wanted.contains(&goal.row));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, control: Option<&str>) -> Row {
        let control = control.map(str::to_owned);
        Row { name: name.to_owned(), control, group: "bulk".to_owned(), ..Row::default() }
    }

    #[test]
    fn a_row_alone_brings_its_control_that_of_it_and_those_of_the_rounds() {
        let rows =
            [("gso", "gso"), ("tcp", "tcp"), ("quinn", "tcp"), ("ours", "quinn"), ("zmq", "tcp")];
        let spec = Spec {
            rows: rows.iter().map(|(name, control)| row(name, Some(control))).collect(),
            controls: vec![("gso".to_owned(), "gbit_per_s".to_owned())],
            ..Spec::default()
        };
        let names = |only: &[&str]| {
            let mut spec = spec.clone();
            let only: Vec<String> = only.iter().map(|&it| it.to_owned()).collect();
            spec.select(&only)
                .map(|()| spec.rows.iter().map(|it| it.name.clone()).collect::<Vec<_>>())
        };
        assert_eq!(names(&["ours"]).unwrap(), ["gso", "tcp", "quinn", "ours"]);
        assert_eq!(names(&[]).unwrap().len(), 5);
        assert!(names(&["none"]).unwrap_err().contains("`none` is no row"));
    }
}
