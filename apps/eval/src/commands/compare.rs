//! `compare`: two runs, row by row.
//!
//! Both may be of other hours and machines, so figures themselves say little; ratios to the
//! controls of each run say more, and are what is compared where a row has one.

use super::find;
use crate::cli::CompareArgs;
use crate::exit::{Exit, Failure};
use crate::experiment::{FigureSpec, Load, Row};
use crate::outcome::{Outcome, ROUNDS_MIN, Rounds};
use crate::output;
use crate::show::grid::Grid;
use crate::show::number::{three, with_interval};
use crate::stats::Estimate;
use crate::store::Run;
use serde_json::json;

/// Compares.
///
/// # Errors
/// One of them is not there or damaged, or they have no row in common.
pub fn compare(args: &CompareArgs) -> Result<Exit, Failure> {
    let (_, before) = find("eval compare", &args.before)?;
    let (_, after) = find("eval compare", &args.after)?;
    let mut rows = Vec::new();
    for load in [Load::Loaded, Load::Quiet] {
        let both = Outcome::new(&before, load).zip(Outcome::new(&after, load));
        rows.extend(both.iter().flat_map(|(a, b)| changes(&before, &after, a, b)));
    }
    if rows.is_empty() {
        let text = "the two runs have no row and figure in common";
        return Err(Failure::run_time("eval compare", text));
    }
    if args.json {
        output::json(&json!(rows.iter().map(Change::json).collect::<Vec<_>>()));
        return Ok(Exit::Success);
    }
    let heading = ["row", "load", "figure", "of", "before", "after", "after / before", ""];
    let heading = heading.map(str::to_owned).to_vec();
    Grid { heading, rows: rows.iter().map(Change::words).collect() }.print();
    output::line(
        "Better and worse are those whose 95 % intervals do not meet; of figures themselves \
         nothing is said when the two ran on different processors.",
    );
    Ok(Exit::Success)
}

/// A figure of a row in both.
struct Change {
    row: String,
    load: Load,
    figure: FigureSpec,
    is_ratio: bool,
    before: Estimate,
    after: Estimate,
    /// Figures of two machines are not comparable; ratios are.
    is_comparable: bool,
}

fn changes(before: &Run, after: &Run, a: &Outcome<'_>, b: &Outcome<'_>) -> Vec<Change> {
    let mut all = Vec::new();
    let is_same = before.header.machine["processor"] == after.header.machine["processor"];
    for row in &after.header.spec.rows {
        let Some(other) = before.header.spec.row(&row.name) else { continue };
        for figure in after.header.spec.figures_of(&row.group) {
            let of = |row: &Row, it: &Outcome<'_>, is_ratio: bool| match is_ratio {
                true => it.ratio(row, &figure.name, Rounds::All),
                false => it.figure(&row.name, &figure.name, Rounds::All),
            };
            let is_control = row.control.as_ref().is_none_or(|control| *control == row.name);
            let is_ratio = figure.is_compared && !is_control;
            if let Some((before, after)) = of(other, a, is_ratio).zip(of(row, b, is_ratio)) {
                let (row, figure) = (row.name.clone(), figure.clone());
                let is_enough = before.count.min(after.count) >= ROUNDS_MIN;
                let is_comparable = is_enough && (is_ratio || is_same);
                let load = a.load;
                all.push(Change { row, load, figure, is_ratio, before, after, is_comparable });
            }
        }
    }
    all
}

impl Change {
    /// Whether it is better or worse for sure.
    fn word(&self) -> &'static str {
        if !self.is_comparable {
            return "";
        }
        let is_more = self.after.is_above(self.before.high);
        let is_less = self.after.is_below(self.before.low);
        match (is_more, is_less, self.figure.is_more_better) {
            (true, _, true) | (_, true, false) => "better",
            (true, _, false) | (_, true, true) => "worse",
            _ => "",
        }
    }

    fn of(&self) -> &'static str {
        if self.is_ratio { "× control" } else { "itself" }
    }

    fn words(&self) -> Vec<String> {
        vec![
            self.row.clone(),
            self.load.word().to_owned(),
            self.figure.heading.clone(),
            self.of().to_owned(),
            with_interval(&self.before),
            with_interval(&self.after),
            three(self.after.median / self.before.median),
            self.word().to_owned(),
        ]
    }

    fn json(&self) -> serde_json::Value {
        let estimate = crate::show::json::estimate;
        json!({ "row": self.row, "load": self.load.word(), "figure": self.figure.name,
            "of": self.of(), "before": estimate(self.before), "after": estimate(self.after),
            "change": self.word() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::run;

    #[test]
    fn a_change_is_better_when_the_intervals_do_not_meet() {
        let (before, mut after) = (run(), run());
        for entry in after.entries.iter_mut().filter(|entry| entry.row == "ours") {
            if let Some(rate) = entry.figures.as_mut().and_then(|it| it.get_mut("gbit_per_s")) {
                *rate *= 1.5;
            }
        }
        let of = |a: &Run, b: &Run| {
            let outcomes = [a, b].map(|run| Outcome::new(run, Load::Quiet).unwrap());
            let all = changes(a, b, &outcomes[0], &outcomes[1]);
            all.iter().map(|it| (it.row.clone(), it.of(), it.word())).collect::<Vec<_>>()
        };
        let words = [("gso".to_owned(), "itself", ""), ("ours".to_owned(), "× control", "better")];
        assert_eq!(of(&before, &after), words);
        assert_eq!(of(&after, &before)[1].2, "worse");
        assert_eq!(of(&before, &before)[1].2, "");
        let rounds = |entry: &crate::store::Entry| entry.round <= 2;
        after.entries.retain(rounds);
        assert_eq!(of(&before, &after)[1].2, "", "two rounds say nothing");
    }
}
