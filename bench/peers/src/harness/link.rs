//! `--link`: the reliable ones over the link emulator, without loss and with it.
//!
//! ```text
//!   rounds x losses x rows: namespaces, `dacapo link`, process pair -> sample, emulator's totals
//!                                                             the emulator was late? not counted
//! ```
//!
//! Invariant: a run counts only when the emulator itself lost nothing and 99 of 100 packets were at
//! most [`LATE_MAX_US`] late.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;

use peers::{Failure, median, spread};
use serde_json::{Value, json};

use crate::judge::ROUNDS_MIN;
use crate::measure::{Run, Sample};
use crate::options::Options;
use crate::place::Place;
use crate::rows::{Measure, Program, Row, Wait, row};
use crate::{Scratch, bench, date, facts, out_folder, stopped, write};

/// What the link carries, Mbit/s of IP packets.
const RATE_MBIT_S: f64 = 500.0;
/// The link without its loss: one round trip is 1.25 MB.
const CONFIG: &str = "rate=500Mbit/s,delay=10ms,queue=5000,queue-bytes=2500kB";
/// The 99th percentile of what the emulator may be late.
const LATE_MAX_US: f64 = 1_000.0;

/// A loss, how it is said to the emulator, what XTP is told of the rate, and the goal for XTP: how
/// much of what the link can carry.
struct Loss {
    name: &'static str,
    config: &'static str,
    xtp: Program,
    goal: f64,
}

/// The payload of XTP's full packets (1440 of 1500 bytes) at 500 Mbit/s is 480 Mbit/s; it is told
/// to send as much more as is lost before the queue, and 0.2 % less.
const LOSSES: [Loss; 3] = [
    Loss { name: "0 %", config: "", xtp: xtp(&XTP_0), goal: 0.99 },
    Loss { name: "1 %", config: ",loss=1%", xtp: xtp(&XTP_1), goal: 0.98 },
    Loss { name: "5 %", config: ",loss=5%", xtp: xtp(&XTP_5), goal: 0.98 },
];
const XTP_0: [&str; 4] = ["--mode", "stream", "--rate", "479000kbit/s"];
const XTP_1: [&str; 4] = ["--mode", "stream", "--rate", "483800kbit/s"];
const XTP_5: [&str; 4] = ["--mode", "stream", "--rate", "504200kbit/s"];

/// With a window of six round trips: what lacks holds it up for one or two.
const fn xtp(options: &'static [&'static str]) -> Program {
    Program::Xtp("8MiB", options)
}

/// A row over the link.
struct LinkRow {
    name: &'static str,
    what: &'static str,
    /// The row over veth whose program it is.
    like: &'static str,
    congestion_control: &'static str,
    /// Payload of its full packets by their length as IP packets; `None` where that varies.
    share: Option<f64>,
}

const ROWS: [LinkRow; 5] = [
    LinkRow {
        name: "tcp",
        what: "kernel TCP, CUBIC",
        like: "tcp",
        congestion_control: "cubic",
        share: Some(1448.0 / 1500.0),
    },
    LinkRow {
        name: "tcp-bbr",
        what: "kernel TCP, BBR",
        like: "tcp",
        congestion_control: "bbr",
        share: Some(1448.0 / 1500.0),
    },
    LinkRow {
        name: "quinn",
        what: "quinn, one stream (TLS), CUBIC",
        like: "quinn",
        congestion_control: "cubic",
        share: None,
    },
    LinkRow {
        name: "srt-file",
        what: "SRT, file mode",
        like: "srt-file",
        congestion_control: "cubic",
        share: Some(1456.0 / 1500.0),
    },
    LinkRow {
        name: "xtp",
        what: "XTP over udp, RATE of the link",
        like: "xtp",
        congestion_control: "cubic",
        share: Some(1440.0 / 1500.0),
    },
];

/// All runs of a row at a loss.
struct Cell {
    loss: usize,
    row: &'static LinkRow,
    samples: Vec<Sample>,
    /// Runs in which the emulator was late, or lost packets itself.
    late: usize,
    failures: Vec<String>,
}

/// Measures all, and prints and keeps what came of it.
///
/// # Errors
/// Nothing could be measured at all.
pub fn measure_all(options: &Options) -> Result<ExitCode, Failure> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Failure("--link makes network namespaces, which needs root".to_owned()));
    }
    let (scratch, out, before) = (Scratch::new()?, out_folder(options)?, facts::load());
    let mut raw = File::create(out.join("raw.jsonl"))?;
    let mut cells: Vec<Cell> = (0..LOSSES.len())
        .flat_map(|loss| ROWS.iter().map(move |row| (loss, row)))
        .map(|(loss, row)| Cell { loss, row, samples: vec![], late: 0, failures: vec![] })
        .collect();
    for round in 1..=options.rounds {
        for cell in cells.iter_mut().filter(|cell| is_meant(options, cell.row)) {
            let line = cell.run(options, &scratch)?;
            if stopped() {
                return Err(Failure("stopped".to_owned()));
            }
            eprintln!(
                "round {round}/{}  loss {}  {:<9} {}",
                options.rounds, LOSSES[cell.loss].name, cell.row.name, line["said"]
            );
            writeln!(raw, "{}", json!({ "round": round, "run": line }))?;
        }
    }
    let is_idle = facts::is_idle(&before);
    let mut text = table(&cells);
    text += &format!("load of the machine: {before} before, {} after\n", facts::load());
    if !is_idle {
        text += "the machine had other work when the run began: these figures are no results\n";
    }
    let summary = json!({
        "place": "link emulator between two namespaces, MTU 1500", "link": CONFIG,
        "seconds": options.seconds, "rounds": options.rounds, "date": date(),
        "commit": facts::commit(), "load_before": before, "was_idle": is_idle,
        "load_after": facts::load(), "machine": facts::machine(),
        "command": std::env::args().collect::<Vec<_>>(),
        "cells": cells.iter().map(Cell::json).collect::<Vec<_>>(),
    });
    write(&out.join("summary.json"), &format!("{summary:#}\n"))?;
    write(&out.join("table.txt"), &text)?;
    match options.is_json {
        true => println!("{summary:#}"),
        false => print!("{text}"),
    }
    eprintln!("peers: raw data, machine and commands are in {}", out.display());
    let has_any = cells.iter().any(|cell| !cell.samples.is_empty());
    Ok(if has_any { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether these are rows over the link.
///
/// # Errors
/// The name that none has.
pub fn check(only: &[String]) -> Result<(), Failure> {
    match only.iter().find(|name| ROWS.iter().all(|row| row.name != **name)) {
        Some(name) => Err(Failure(format!("`{name}` is no row; `--link --list` shows them"))),
        None => Ok(()),
    }
}

/// Prints the rows.
pub fn list() {
    ROWS.iter().for_each(|row| println!("{:<18} {}", row.name, row.what));
}

fn is_meant(options: &Options, row: &LinkRow) -> bool {
    options.only.is_empty() || options.only.iter().any(|name| name == row.name)
}

impl Cell {
    /// One run, as it is kept.
    fn run(&mut self, options: &Options, scratch: &Scratch) -> Result<Value, Failure> {
        let loss = &LOSSES[self.loss];
        let config = format!("{CONFIG}{}", loss.config);
        let cc = self.row.congestion_control;
        let place = Place::link(&options.dacapo, &config, cc, &scratch.0)?;
        let mut bench = bench(options, place, scratch)?;
        let like = row(self.row.like).ok_or_else(|| Failure("no such row".to_owned()))?;
        let program = if like.program.is_ours() { loss.xtp } else { like.program };
        let row = Row { program, measure: Measure::Bulk, wait: Wait::Block, ..*like };
        let run = match bench.missing(&row) {
            Some(why) => {
                let (commands, reports) = (Default::default(), Value::Null);
                Run { commands, reports, outcome: Err(Failure(why)) }
            }
            None => bench.run(&row),
        };
        let totals = bench.place.end_link()?;
        let said = self.take(&run, &totals);
        Ok(json!({
            "loss": loss.name, "row": self.row.name, "link": config, "said": said,
            "near": run.commands[0], "far": run.commands[1], "reports": run.reports,
            "emulator": totals,
        }))
    }

    /// Counts a run; what is said of it.
    fn take(&mut self, run: &Run, totals: &Value) -> String {
        match &run.outcome {
            Err(failure) => {
                self.failures.push(failure.to_string());
                format!("failed: {failure}")
            }
            Ok(_) if !was_exact(totals) => {
                self.late += 1;
                "not counted: the emulator was late, or lost packets itself".to_owned()
            }
            Ok(sample) => {
                self.samples.push(sample.clone());
                let mbit_s = sample.gbit_per_s.unwrap_or(f64::NAN) * 1e3;
                format!("{mbit_s:.1} Mbit/s")
            }
        }
    }

    fn values(&self, pick: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
        self.samples.iter().filter_map(pick).collect()
    }

    fn mbit_s(&self) -> Vec<f64> {
        self.values(|sample| sample.gbit_per_s.map(|rate| rate * 1e3))
    }

    /// How much of what its full packets can carry.
    fn of_link(&self) -> Option<f64> {
        Some(median(&self.mbit_s())? / (RATE_MBIT_S * self.row.share?))
    }

    fn goal(&self) -> Option<f64> {
        (self.row.name == "xtp").then_some(LOSSES[self.loss].goal)
    }

    /// Whether the goal is met; fewer runs than these say nothing.
    fn is_met(&self) -> Option<bool> {
        let is_judged = self.samples.len() >= ROUNDS_MIN;
        Some(self.of_link().filter(|_| is_judged)? >= self.goal()?)
    }

    fn json(&self) -> Value {
        let goal = self.goal();
        json!({
            "loss": LOSSES[self.loss].name, "row": self.row.name, "what": self.row.what,
            "mbit_per_s": { "median": median(&self.mbit_s()), "all": self.mbit_s() },
            "cpu_s_per_gb": median(&self.values(|sample| sample.cpu_s_per_gb)),
            "of_link": self.of_link(), "goal": goal,
            "met": self.is_met(),
            "not_counted": self.late, "failures": self.failures,
        })
    }
}

/// Whether what came of a run is the link's doing and nobody else's.
fn was_exact(totals: &Value) -> bool {
    let none = |name: &str| totals[name].as_u64() == Some(0);
    let late = totals["lateness_us"]["p99"].as_f64().unwrap_or(f64::INFINITY);
    late <= LATE_MAX_US && ["kernel_drops", "unsent", "refused"].into_iter().all(none)
}

fn table(cells: &[Cell]) -> String {
    let mut text = String::from(
        "Reliable bulk over the link emulator: 500 Mbit/s, 10 ms each way, MTU 1500, loss before \
         the queue, both ways\n\n",
    );
    let heading = ["loss", "row", "", "Mbit/s", "× link", "CPU s/GB", "goal"];
    text += &line(&heading.map(str::to_owned));
    for cell in cells.iter().filter(|cell| cell.samples.len() + cell.late > 0 || cell.failed()) {
        let number = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
        };
        let range =
            spread(&cell.mbit_s()).map(|(least, most)| format!(" ({least:.1} … {most:.1})"));
        let mbit_s = number(median(&cell.mbit_s()), 1) + &range.unwrap_or_default();
        let cpu = median(&cell.values(|sample| sample.cpu_s_per_gb));
        text += &line(&[
            LOSSES[cell.loss].name.to_owned(),
            cell.row.name.to_owned(),
            cell.row.what.to_owned(),
            mbit_s,
            number(cell.of_link(), 3),
            number(cpu, 2),
            cell.verdict(),
        ]);
    }
    text += "\nMedians (least … greatest) of the runs that count. × link: of the payload that full \
             packets of the row can carry.\n";
    let (late, all) = cells
        .iter()
        .fold((0, 0), |(late, all), cell| (late + cell.late, all + cell.late + cell.samples.len()));
    text += &format!("not counted, as the emulator was late or lost packets: {late} of {all}\n");
    text
}

impl Cell {
    fn failed(&self) -> bool {
        !self.failures.is_empty()
    }

    fn verdict(&self) -> String {
        if let (true, Some(why)) = (self.samples.is_empty(), self.failures.first()) {
            return format!("failed: {why}");
        }
        let goal = match (self.goal(), self.is_met()) {
            (Some(goal), Some(true)) => format!("≥ {goal}: met"),
            (Some(goal), Some(false)) => format!("≥ {goal}: missed"),
            (Some(goal), None) => format!("≥ {goal}: not judged: fewer than {ROUNDS_MIN} runs"),
            (None, _) => String::new(),
        };
        match self.failures.len() {
            0 => goal,
            count => format!("{goal} ({count} failed)").trim_start().to_owned(),
        }
    }
}

fn line(cells: &[String; 7]) -> String {
    let [loss, row, what, mbit_s, share, cpu, goal] = cells;
    let line = format!("{loss:<5} {row:<9} {what:<31} {mbit_s:<24} {share:>6}  {cpu:>8}  {goal}");
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(late_us: f64, drops: u64) -> Value {
        json!({ "lateness_us": { "p99": late_us }, "kernel_drops": drops, "unsent": 0,
            "refused": 0 })
    }

    #[test]
    fn runs_count_when_the_emulator_was_exact_and_shares_are_of_the_payload() {
        let row = ROWS.iter().find(|row| row.name == "xtp").unwrap();
        let mut cell = Cell { loss: 0, row, samples: vec![], late: 0, failures: vec![] };
        let sample = Sample { gbit_per_s: Some(0.4752), ..Sample::default() };
        let run = |outcome| Run { commands: Default::default(), reports: Value::Null, outcome };
        cell.take(&run(Ok(sample.clone())), &totals(20.0, 0));
        cell.take(&run(Ok(sample.clone())), &totals(5_000.0, 0));
        cell.take(&run(Ok(sample)), &totals(20.0, 1));
        cell.take(&run(Err(Failure("gone".to_owned()))), &totals(20.0, 0));
        assert_eq!((cell.samples.len(), cell.late, cell.failures.len()), (1, 2, 1));
        assert!((cell.of_link().unwrap() - 0.99).abs() < 1e-4);
        assert_eq!(cell.is_met(), None, "one run says nothing");
        assert!(cell.verdict().ends_with("fewer than 3 runs (1 failed)"), "{}", cell.verdict());
        let one = cell.samples.clone();
        cell.samples.extend([one.clone(), one].concat());
        assert_eq!(cell.is_met(), Some(true));
        assert!(table(&[cell]).contains("475.2 (475.2 … 475.2)"));
    }

    #[test]
    fn every_row_is_like_one_over_veth_and_nothing_is_exact_without_totals() {
        assert!(ROWS.iter().all(|it| row(it.like).is_some()));
        assert!(check(&["xtp".to_owned()]).is_ok() && check(&["zmq".to_owned()]).is_err());
        assert!(!was_exact(&Value::Null) && was_exact(&totals(0.0, 0)));
    }
}
