//! `dacapo bench cost`: what each C-module costs, per train, packet and byte, both ends together,
//! beside what its profile says.
//!
//! Taken by difference: the same units through the same graph with the module and without it, in
//! turns. Units go down and up one by one, as a flow moves them. To a module that compresses they
//! are readings of sensors, and nothing stands below it, where fewer bytes would pass with it.
//!
//! ```text
//!   with       unit -> segment > sequence > X -> train -> X > sequence > segment -> unit
//!   without    unit -> segment > sequence     -> train ->     sequence > segment -> unit
//! ```
//!
//! Of each graph the fast rounds count (the tenth part from below): what other programs take away
//! is no cost.

mod fit;

use crate::cli::{BenchCostArgs, only, or_usage};
use crate::ends::{Ends, Lost, Part, Placed, Units};
use crate::exit::{Exit, Failure};
use crate::output::{self, Table, line};
use crate::progress::Progress;
use crate::stats::undisturbed;
use dacapo_base::Random;
use dacapo_lift::{Cost, Entry, Params, Stratum};
use fit::{Costs, SHAPES, Shape};
use serde_json::{Value, json};
use std::time::Duration;

/// What is measured: a module, and the graph that it is taken out of.
struct Trial {
    entry: Entry,
    with: Vec<Entry>,
    without: Vec<Entry>,
}

/// A trial for each C-module that there is.
fn trials() -> Vec<Trial> {
    let all = dacapo::Catalogue::default().modules;
    all.iter().map(|entry| Trial::of(entry, &all)).collect()
}

impl Trial {
    /// With the module stands the first of each other function that takes nothing away; nothing
    /// below one that does, for what is below is paid for as often as it sends.
    fn of(entry: &Entry, all: &[Entry]) -> Self {
        let takes = !entry.spec.takes.is_empty();
        let mut without: Vec<Entry> = Vec::new();
        for other in all.iter().filter(|other| other.spec.takes.is_empty()) {
            let is_same = |it: &Entry| it.spec.function == other.spec.function;
            let is_below = takes && other.spec.stratum > entry.spec.stratum;
            if !is_same(entry) && !is_below && !without.iter().any(is_same) {
                without.push(*other);
            }
        }
        let mut with = [&without[..], &[*entry]].concat();
        for graph in [&mut with, &mut without] {
            graph.sort_by_key(|it| it.spec.stratum);
        }
        Self { entry: *entry, with, without }
    }

    /// What units of so many bytes say: readings, to modules that make fewer bytes of them, and
    /// several units of them, for one over and over is learned by heart; else nothing, for it costs
    /// nobody anything.
    fn says(&self, len: usize) -> Vec<u8> {
        match self.entry.spec.stratum {
            Stratum::Compress => readings(UNITS * len),
            _ => Vec::new(),
        }
    }
}

/// How many units differ in what they say.
const UNITS: usize = 16;

/// Lines as sensors write them, the same each time.
pub fn readings(len: usize) -> Vec<u8> {
    let (mut random, mut lines) = (Random::from_number(1), Vec::with_capacity(len + 80));
    while lines.len() < len {
        let (sensor, time) = (random.below(64), random.below(86_400_000));
        let (value, state) = (random.below(10_000), ["idle", "busy", "full"]);
        let state = state[random.below(3) as usize];
        let line = format!(
            "{{\"sensor\":{sensor},\"time_ms\":{time},\"value\":{value},\"state\":\"{state}\"}}\n"
        );
        lines.extend_from_slice(line.as_bytes());
    }
    lines.truncate(len);
    lines
}

/// What a module costs.
struct Measured {
    name: &'static str,
    /// A train of each shape, in ps.
    shapes_ps: [f64; SHAPES.len()],
    fitted: Costs,
    /// What its profile says.
    profile: Costs,
}

/// Runs the command.
pub fn run(args: &BenchCostArgs) -> Result<Exit, Failure> {
    let mut progress = Progress::new(args.json);
    let mut tell = |name: &str| {
        if progress.is_due() {
            progress.show(name);
        }
    };
    let trials =
        or_usage(only(trials(), args.module.as_deref(), |it| it.entry.spec.name, "module"));
    let all: Vec<Measured> =
        trials.iter().map(|trial| measure(trial, args.rounds, &mut tell)).collect();
    progress.clear();
    match args.json {
        true => output::json(&to_json(&all)),
        false => print(&all),
    }
    Ok(Exit::Success)
}

fn measure(trial: &Trial, rounds: u32, tell: &mut impl FnMut(&str)) -> Measured {
    let spec = trial.entry.spec;
    let shapes_ps = SHAPES.map(|shape| {
        tell(spec.name);
        difference(trial, shape, rounds)
    });
    let Cost { train_ps, packet_ps, byte_ps, .. } = spec.profile.cost(&Params::new());
    let profile = [train_ps, packet_ps, byte_ps].map(|ps| ps as f64);
    Measured { name: spec.name, shapes_ps, fitted: fit::fit(&shapes_ps), profile }
}

/// What one train of this shape costs more with the module, in ps.
fn difference(trial: &Trial, shape: Shape, rounds: u32) -> f64 {
    let says = trial.says(shape.packets * shape.len);
    let Shape { packets, len } = shape;
    let graphs = [&trial.with, &trial.without];
    let mut both = graphs.map(|graph| {
        let modules: Vec<Placed<'_>> = graph.iter().map(|entry| (entry, &[][..])).collect();
        Ends::new(&modules, Units { packets, len, says: says.clone(), late: Duration::ZERO })
    });
    let mut taken = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (ends, taken) in both.iter_mut().zip(&mut taken) {
            taken.push(ends.round(Part::Both, Lost::Nothing) * 1e3);
        }
    }
    let [with, without] = taken.map(undisturbed);
    with - without
}

fn costs([train, packet, byte]: Costs) -> Value {
    json!({ "train_ps": train, "packet_ps": packet, "byte_ps": byte })
}

fn to_json(all: &[Measured]) -> Value {
    let of = |it: &Measured| {
        let shapes = SHAPES.iter().zip(it.shapes_ps).map(|(shape, ps)| {
            let by_profile = fit::predicted(&it.profile, *shape);
            json!({
                "packets": shape.packets,
                "bytes": shape.len,
                "ns": ps / 1e3,
                "fitted_ns": fit::predicted(&it.fitted, *shape) / 1e3,
                "profile_ns": by_profile / 1e3,
            })
        });
        json!({
            "module": it.name,
            "shapes": shapes.collect::<Vec<_>>(),
            "fitted": costs(it.fitted),
            "profile": costs(it.profile),
        })
    };
    json!({ "modules": all.iter().map(of).collect::<Vec<_>>() })
}

fn print(all: &[Measured]) {
    line("A train, both ends, in ns: measured (of its profile)");
    let heads = SHAPES.map(|it| format!("{} x {} B", it.packets, it.len));
    let heads: Vec<&str> = ["module"].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let mut table = Table::new(&heads);
    for it in all {
        let cell = |(shape, ps): (&Shape, f64)| {
            format!("{:.0} ({:.0})", ps / 1e3, fit::predicted(&it.profile, *shape) / 1e3).into()
        };
        let cells = SHAPES.iter().zip(it.shapes_ps).map(cell);
        table.row([it.name.into()].into_iter().chain(cells).collect());
    }
    table.print();
    line("");
    line("Fitted to these, in ps (of its profile)");
    let mut table = Table::new(&["module", "per train", "per packet", "per byte"]);
    for it in all {
        let cells =
            it.fitted.iter().zip(&it.profile).map(|(is, says)| format!("{is:.0} ({says:.0})"));
        table.row([it.name.into()].into_iter().chain(cells.map(Into::into)).collect());
    }
    table.print();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_module_of_the_catalogue_is_measured_beside_its_profile() {
        let trials = trials();
        let all: Vec<Measured> = trials.iter().map(|it| measure(it, 3, &mut |_| {})).collect();
        let modules = dacapo::Catalogue::default().modules;
        assert_eq!(all.len(), modules.len());
        for (trial, it) in trials.iter().zip(&all) {
            assert_eq!(trial.with.len(), trial.without.len() + 1, "{}", it.name);
            assert!(trial.without.iter().all(|other| other.spec.name != it.name));
            assert!(it.fitted.iter().all(|cost| *cost >= 0.0), "{}", it.name);
            assert!(it.profile.iter().any(|cost| *cost > 0.0), "{} has no cost", it.name);
        }
        let said = to_json(&all);
        assert_eq!(said["modules"][0]["shapes"].as_array().unwrap().len(), SHAPES.len());
    }
}
