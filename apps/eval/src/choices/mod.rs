//! `dacapo bench choices`: every module earns its place.
//!
//! Each cell of `docs/choices.md` is a request and a path for which a module is right: it is taken;
//! without it the request is refused, or the best other graph is dearer; and what was asked holds
//! when the flow runs, in virtual time, over what is assumed of the path.
//!
//! ```text
//!   docs/choices.md -> cell -> chosen graph ------> whole cores over a link, seed by seed: held?
//!                         \-> the same without the module -> refused, or how much dearer
//! ```

mod cell;
mod other;
mod page;
mod trial;

use crate::cli::{BenchChoicesArgs, only, or_usage};
use crate::exit::{Exit, Failure};
use crate::output::{self, Table, line};
use crate::progress::Progress;
use cell::Cell;
use other::Other;
use serde_json::{Value, json};
use trial::Seen;

/// The cells of the page, by the names of their rows, and what they are about.
pub fn names() -> Vec<(String, String)> {
    let what = |it: &Cell| format!("{}: {}", it.module, it.title);
    page::cells().into_iter().map(|it| (it.name.clone(), what(&it))).collect()
}

/// The modules that they are for, as often as there are cells.
pub fn modules() -> Vec<String> {
    page::cells().into_iter().map(|it| it.module).collect()
}

/// A cell, and what came of it.
struct Tried {
    cell: Cell,
    graph: String,
    other: Other,
    /// Of one seed each.
    seen: Vec<Seen>,
}

impl Tried {
    fn held(&self) -> usize {
        self.seen.iter().filter(|seen| seen.broken.is_empty()).count()
    }

    /// Units that were lost of all that were sent, in ppm.
    fn lost_ppm(&self) -> f64 {
        let sum = |of: fn(&Seen) -> u64| self.seen.iter().map(of).sum::<u64>() as f64;
        sum(|seen| seen.lost) * 1e6 / sum(|seen| seen.sent).max(1.0)
    }

    /// The median of the delays that 99 of 100 units did not exceed, in ms.
    fn delay_ms(&self) -> f64 {
        let mut delays: Vec<_> = self.seen.iter().map(|seen| seen.delay_p99).collect();
        delays.sort_unstable();
        delays.get(delays.len() / 2).map_or(0.0, |delay| delay.as_secs_f64() * 1e3)
    }

    /// What was broken most often.
    fn broken(&self) -> Option<&str> {
        self.seen.iter().find_map(|seen| seen.broken.first()).map(String::as_str)
    }
}

/// Runs the command.
pub fn run(args: &BenchChoicesArgs) -> Result<Exit, Failure> {
    let mut progress = Progress::new(args.json);
    let cells = or_usage(only(page::cells(), args.cell.as_deref(), |it| &it.name, "cell"));
    let mut all = Vec::new();
    for cell in cells {
        let mut tell = |seed: u64| {
            if progress.is_due() {
                progress.show(&format!("{}, seed {seed} of {}", cell.name, args.seeds));
            }
        };
        let tried = tried(&cell, args.seeds.into(), &mut tell);
        all.push(tried.map_err(|text| Failure::run_time(&cell.name, text))?);
    }
    progress.clear();
    match args.json {
        true => output::json(&to_json(&all)),
        false => print(&all, args.seeds),
    }
    Ok(Exit::Success)
}

fn tried(cell: &Cell, seeds: u64, tell: &mut impl FnMut(u64)) -> Result<Tried, String> {
    let (asked, chosen) = (cell.asked()?, cell.chosen()?);
    let seen = (1..=seeds).map(|seed| {
        tell(seed);
        trial::run(&asked, &chosen, seed)
    });
    let seen: Result<Vec<Seen>, String> = seen.collect();
    Ok(Tried {
        cell: cell.clone(),
        other: other::of(cell, &chosen),
        graph: chosen.graph,
        seen: seen?,
    })
}

fn to_json(all: &[Tried]) -> Value {
    let cell = |it: &Tried| {
        json!({
            "cell": it.cell.name,
            "module": it.cell.module,
            "graph": it.graph,
            "expected": it.cell.expected,
            "seeds": it.seen.len(),
            "held": it.held(),
            "held_share": it.held() as f64 / it.seen.len().max(1) as f64,
            "lost_ppm": it.lost_ppm(),
            "delay_p99_ms": it.delay_ms(),
            "without": it.other.text(),
            "is_needed": it.other.is_worse(),
            "without_cost": it.other.cost().unwrap_or(0.0),
        })
    };
    json!({ "cells": all.iter().map(cell).collect::<Vec<_>>() })
}

fn print(all: &[Tried], seeds: u32) {
    let mut table = Table::new(&["cell", "graph", "held", "lost", "delay p99", "without it"]);
    for it in all {
        let cells = [
            it.cell.name.clone(),
            it.graph.clone(),
            format!("{} of {seeds}", it.held()),
            format!("{:.1} ppm", it.lost_ppm()),
            format!("{:.1} ms", it.delay_ms()),
            it.other.text(),
        ];
        table.row(cells.into_iter().map(Into::into).collect());
    }
    table.print();
    for it in all.iter().filter(|it| it.held() < it.seen.len()) {
        line(format!("{}: {}", it.cell.name, it.broken().unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_module_has_two_cells_in_which_it_is_chosen_and_right() {
        let mut cells: BTreeMap<String, usize> = BTreeMap::new();
        for cell in page::cells() {
            let tried = tried(&cell, 2, &mut |_| {}).unwrap();
            assert_eq!(tried.graph, cell.expected, "{}", cell.name);
            let modules = tried.graph.split(" ! ");
            assert!(modules.clone().any(|it| it == cell.module), "{}", cell.name);
            assert!(tried.other.is_worse(), "{}: without it {}", cell.name, tried.other.text());
            assert_eq!(tried.held(), 2, "{}: {:?}", cell.name, tried.broken());
            *cells.entry(cell.module).or_default() += 1;
        }
        let only_by_name = page::only_by_name();
        for entry in dacapo::Catalogue::default().modules {
            let name = entry.spec.name;
            let has_two = cells.get(name).is_some_and(|count| *count >= 2);
            assert!(has_two != only_by_name.contains_key(name), "{name}: two cells, or why none");
        }
    }
}
