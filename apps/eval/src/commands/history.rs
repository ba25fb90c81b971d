//! `history`: a row over all runs that have it.

use super::root;
use super::show::write_charts;
use crate::cli::HistoryArgs;
use crate::exit::{Exit, Failure};
use crate::outcome::{Outcome, Rounds};
use crate::output;
use crate::pages;
use crate::show::grid::Grid;
use crate::show::number::with_interval;
use crate::store::{self, KEPT, Run, short};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Shows it.
///
/// # Errors
/// No run that is kept has that row.
pub fn history(args: &HistoryArgs) -> Result<Exit, Failure> {
    let what = "eval history";
    let folders = store::folders(&root(what)?.join(KEPT));
    let folders = folders.map_err(|error| Failure::run_time(what, error))?;
    let mut is_damaged = false;
    let mut grid = Grid::default();
    let mut values: Vec<Value> = Vec::new();
    let mut runs = Vec::new();
    for folder in folders {
        match Run::read(&folder) {
            Ok(run) => {
                add(&run, &short(&folder), &args.row, &mut grid, &mut values);
                runs.push(run);
            }
            Err(error) => {
                is_damaged = true;
                output::note(format_args!("dacapo: {what}: left out: {error}"));
            }
        }
    }
    if values.is_empty() {
        let text = format!("no run that is kept has a row `{}`; `dacapo eval list`", args.row);
        return Err(Failure::run_time(what, text));
    }
    if let Some(folder) = &args.charts {
        charts(&runs, &args.row, folder).map_err(|text| Failure::run_time(what, text))?;
    }
    if args.json {
        output::json(&json!(values))
    } else {
        grid.print()
    }
    Ok(if is_damaged { Exit::Failure } else { Exit::Success })
}

/// Draws every figure that the row has.
fn charts(runs: &[Run], row: &str, folder: &Path) -> Result<(), String> {
    let specs = runs.iter().map(|run| &run.header.spec);
    let figures = specs.filter_map(|spec| Some(spec.figures_of(&spec.row(row)?.group)));
    let names: BTreeSet<&str> = figures.flatten().map(|it| it.name.as_str()).collect();
    let runs: Vec<&Run> = runs.iter().collect();
    let all = names.into_iter().map(|figure| pages::history(&runs, row, figure, 1));
    let all = all.collect::<Result<Vec<_>, String>>()?;
    write_charts(folder, all.into_iter().flatten())
}

fn add(run: &Run, name: &str, row: &str, grid: &mut Grid, values: &mut Vec<Value>) {
    let Some(row) = run.header.spec.row(row) else { return };
    let figures: Vec<_> = run.header.spec.figures_of(&row.group).collect();
    for outcome in Outcome::all(run) {
        let ratio = |name: &str| outcome.ratio(row, name, Rounds::All);
        let mut words = vec![name.to_owned(), outcome.load.word().to_owned()];
        let mut value = json!({ "run": name, "load": outcome.load.word() });
        let mut heading = vec!["run".to_owned(), "load".to_owned()];
        for figure in &figures {
            let own = outcome.figure(&row.name, &figure.name, Rounds::All);
            words.push(own.as_ref().map_or_else(|| "–".to_owned(), with_interval));
            heading.push(figure.heading.clone());
            if figure.is_compared {
                let ratio = ratio(&figure.name);
                words.push(ratio.as_ref().map_or_else(|| "–".to_owned(), with_interval));
                heading.push("×".to_owned());
            }
            value[&figure.name] = json!({ "itself": own.map(crate::show::json::estimate),
                "ratio": ratio(&figure.name).map(crate::show::json::estimate) });
        }
        // Tables of several years may have other columns: those of the last run are shown.
        grid.heading = heading;
        grid.rows.push(words);
        values.push(value);
    }
}
