//! `dacapo bench drawn`: how often each module is chosen, for requests that nobody has picked.
//!
//! ```text
//!   number -> session file -> choose -> granted: its modules are counted
//!                                    \-> refused
//! ```
//!
//! A module that is not in one of 200 choices has its place to show elsewhere, or none.

mod request;

use crate::cli::{BenchDrawnArgs, or_usage};
use crate::exit::{Exit, Failure};
use crate::output::{self, Table, line};
use crate::progress::Progress;
use dacapo::Plan;
use dacapo::plan::Assumptions;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What was chosen.
#[derive(Default)]
struct Counted {
    granted: u64,
    refused: u64,
    modules: BTreeMap<&'static str, u64>,
    transports: BTreeMap<String, u64>,
}

/// The modules that docs/choices.md has requests for, by the names of their rows.
pub fn names() -> Vec<(String, String)> {
    let modules: BTreeSet<String> = crate::choices::modules().into_iter().collect();
    let row = |name: String| (name.clone(), format!("what is granted by a graph with {name}"));
    modules.into_iter().map(row).collect()
}

/// Runs the command.
pub fn run(args: &BenchDrawnArgs) -> Result<Exit, Failure> {
    if let Some(number) = args.show {
        line(request::session(number.into()).trim_end());
        return Ok(Exit::Success);
    }
    let mut progress = Progress::new(args.json);
    let requests = args.requests.get();
    let counted = count(requests, |number| {
        if progress.is_due() {
            progress.show(&format!("request {number} of {requests}"));
        }
    });
    progress.clear();
    let counted = or_usage(of_module(counted, args.module.as_deref()));
    match args.json {
        true => output::json(&to_json(&counted)),
        false => print(&counted),
    }
    Ok(Exit::Success)
}

/// What was chosen, of this module alone where one is named.
fn of_module(mut counted: Counted, name: Option<&str>) -> Result<Counted, String> {
    let Some(name) = name else { return Ok(counted) };
    let names: Vec<&str> = counted.modules.keys().copied().collect();
    if !names.contains(&name) {
        return Err(format!("`{name}` is no module; there are {}", names.join(", ")));
    }
    counted.modules.retain(|it, _| *it == name);
    counted.transports.clear();
    Ok(counted)
}

fn count(requests: u32, mut tell: impl FnMut(u32)) -> Counted {
    let mut counted = Counted::default();
    for entry in dacapo::Catalogue::default().modules {
        counted.modules.insert(entry.spec.name, 0);
    }
    for number in 0..requests {
        tell(number);
        let text = request::session(number.into());
        match Plan::parse(&text, "drawn", &Assumptions::default()) {
            Ok(plan) => take(&mut counted, &plan),
            Err(_) => counted.refused += 1,
        }
    }
    counted
}

fn take(counted: &mut Counted, plan: &Plan) {
    counted.granted += 1;
    for flow in plan.explain() {
        let graph = flow.explanation.graph;
        let (modules, transport) = graph.rsplit_once(" ! ").unwrap_or(("", &graph));
        *counted.transports.entry(transport.to_owned()).or_default() += 1;
        for module in modules.split(" ! ") {
            let name = module.split(['(', ' ']).next().unwrap_or_default();
            if let Some(count) = counted.modules.get_mut(name) {
                *count += 1;
            }
        }
    }
}

/// A share of the requests that were granted.
fn share(counted: &Counted, count: u64) -> f64 {
    count as f64 / counted.granted.max(1) as f64
}

fn to_json(counted: &Counted) -> Value {
    let of = |name: &str, count: u64| {
        let share = share(counted, count);
        json!({ "name": name, "chosen": count, "share": share })
    };
    let modules = counted.modules.iter().map(|(name, count)| of(name, *count));
    let transports = counted.transports.iter().map(|(name, count)| of(name, *count));
    json!({
        "granted": counted.granted,
        "refused": counted.refused,
        "modules": modules.collect::<Vec<_>>(),
        "transports": transports.collect::<Vec<_>>(),
    })
}

fn print(counted: &Counted) {
    let mut table = Table::new(&["chosen", "times", "% of what is granted"]);
    let transports = counted.transports.iter().map(|(name, count)| (name.as_str(), *count));
    let modules = counted.modules.iter().map(|(name, count)| (*name, *count));
    for (name, count) in modules.chain(transports) {
        let percent = share(counted, count) * 100.0;
        let row = [name.to_owned(), count.to_string(), format!("{percent:.2}")];
        table.row(row.into_iter().map(Into::into).collect());
    }
    table.print();
    line("");
    line(format!("{} requests were granted and {} refused.", counted.granted, counted.refused));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_granted_and_refused_and_what_is_chosen_is_counted() {
        let counted = count(300, |_| {});
        assert_eq!(counted.granted + counted.refused, 300);
        assert!(counted.granted > 150 && counted.refused > 5, "{}", to_json(&counted));
        assert_eq!(counted.transports.values().sum::<u64>(), counted.granted);
        let chosen = counted.modules.values().filter(|count| **count > 0).count();
        assert!(chosen >= 5, "{}", to_json(&counted));
    }
}
