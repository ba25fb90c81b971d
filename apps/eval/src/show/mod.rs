//! What a run is shown as: tables for terminals, CSV, Markdown and JSON, and charts.
//!
//! ```text
//!   Run -> Outcome -> Grid (heading, rows of words) -> terminal | CSV | Markdown
//!                  -> JSON
//!                  -> SVG
//! ```

pub mod chart;
pub mod flame;
pub mod grid;
pub mod json;
pub mod number;

use crate::outcome::Outcome;
use crate::output;
use crate::store::Run;
use grid::{figures, goals};

/// Prints a run for people.
pub fn print(run: &Run) {
    let header = &run.header;
    output::line(format_args!("{}: {}", header.id, header.spec.what));
    let tree = match (header.is_clean, header.is_whole) {
        (false, _) => ", a tree with changes",
        (_, false) => ", a part of the experiment",
        _ => "",
    };
    output::line(format_args!("{} at {}{tree}; {}", header.date, header.commit, header.place));
    for outcome in Outcome::all(run) {
        output::line("");
        output::line(rounds_in_words(&outcome));
        for group in run.header.spec.groups() {
            output::line(format_args!("\n{group}"));
            figures(run, &outcome, group).print();
        }
        let goals = goals(run, &outcome);
        if !goals.rows.is_empty() {
            output::line("");
            goals.print();
        }
    }
    output::line("");
    output::line(LEGEND);
}

/// What the tables mean.
pub const LEGEND: &str = "Figures are medians over all rounds, in brackets their 95 % interval \
    (percentile bootstrap); × is the median of the ratios, within rounds, to the row named last. + \
    is ahead of it and - behind with all of the interval.";

/// Which rounds there are.
pub fn rounds_in_words(outcome: &Outcome<'_>) -> String {
    let noisy: Vec<String> =
        outcome.rounds.iter().filter(|it| it.1).map(|it| it.0.to_string()).collect();
    let count = outcome.rounds.len();
    let load = match outcome.load {
        crate::experiment::Load::Loaded => {
            "beside a process that spins and one that copies memory, on a processor each"
        }
        crate::experiment::Load::Quiet => "with nothing else on the machine that we know of",
    };
    let list = if noisy.is_empty() { "none".to_owned() } else { noisy.join(", ") };
    format!("{count} rounds {load}; noisy (a control off its median by more than 15 %): {list}")
}

/// All tables as CSV, one after the other, with an empty line between two.
pub fn csv(run: &Run) -> String {
    let mut text = String::new();
    for outcome in Outcome::all(run) {
        for group in run.header.spec.groups() {
            let mut grid = figures(run, &outcome, group);
            grid.put_first("load", outcome.load.word());
            grid.put_first("table", group);
            text += &grid.csv();
            text.push('\n');
        }
    }
    text
}
