//! `dacapo bench speed`: the arithmetic of modules at 1,400 bytes a packet, beside the calls that
//! it could be made of.
//!
//! ```text
//!   module    the part that computes, with the module less without it     |  in turns; of each the
//!   call      the library's function, or a plain loop, on the same bytes  |  tenth part from below
//! ```
//!
//! A call stands between two looks at the clock, as the module's part does, less what these take:
//! many in a row would run into each other, as what a packet takes of a graph does not.

pub mod call;

use crate::cli::{BenchSpeedArgs, only, or_usage};
use crate::ends::{Ends, Lost, Part, Units};
use crate::exit::{Exit, Failure};
use crate::experiments::subjects::{self, Subject};
use crate::output::{self, Table, line};
use crate::progress::Progress;
use crate::stats::undisturbed;
use call::{Call, LEN};
use dacapo_lift::Entry;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// A call is timed so many times in a round.
const CALLS_PER_ROUND: u32 = 64;

/// What was seen of a subject.
struct Measured {
    subject: &'static Subject,
    ns: f64,
    call_ns: Option<f64>,
}

/// The rows beside which something stands, or those that have a bound in time, and what they are.
pub fn names(has_call: bool) -> Vec<(String, String)> {
    let rows = subjects::ALL.iter().filter(|it| has_call != matches!(it.call, Call::Nothing));
    rows.map(|it| (it.name.to_owned(), it.what.to_owned())).collect()
}

/// Runs the command.
pub fn run(args: &BenchSpeedArgs) -> Result<Exit, Failure> {
    let mut progress = Progress::new(args.json);
    let all: Vec<&'static Subject> = subjects::ALL.iter().collect();
    let all = or_usage(only(all, args.row.as_deref(), |it| it.name, "row"));
    let mut seen = Vec::new();
    for subject in all {
        if progress.is_due() {
            progress.show(subject.name);
        }
        let measured = measure(subject, args.rounds, &args.isal);
        seen.push(measured.map_err(|text| Failure::run_time(subject.name, text))?);
    }
    progress.clear();
    match args.json {
        true => output::json(&to_json(&seen)),
        false => print(&seen),
    }
    Ok(Exit::Success)
}

fn measure(subject: &'static Subject, rounds: u32, isal: &Path) -> Result<Measured, String> {
    let modules = dacapo::Catalogue::default().modules;
    let entry = modules.iter().find(|entry| entry.spec.name == subject.module);
    let entry = entry.ok_or_else(|| format!("there is no module {}", subject.module))?;
    let mut both = [ends(subject, Some(entry)), ends(subject, None)];
    let mut call = match subject.call {
        Call::Once(make) | Call::AtEachEnd(make) => Some(make()),
        Call::Nothing | Call::Isal(_) => None,
    };
    let mut taken = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (ends, taken) in both.iter_mut().zip(&mut taken) {
            // Without the module nothing gives back what is lost.
            taken.push(ends.round(subject.part, subject.lost));
        }
        if let Some(call) = &mut call {
            taken[2].push(timed(call));
            taken[3].push(timed(&mut || {}));
        }
    }
    check(subject, ends(subject, Some(entry)))?;
    let [with, without, called, nothing] = taken.map(undisturbed);
    let each = if subject.is_per_packet { subject.packets as f64 } else { 1.0 };
    let call_ns = match subject.call {
        Call::Nothing => None,
        Call::Once(_) => Some((called - nothing) / each),
        Call::AtEachEnd(_) => Some(2.0 * (called - nothing) / each),
        Call::Isal(what) => Some(call::isal(isal, what)?),
    };
    let ns = (with - without) / each;
    Ok(Measured { subject, ns, call_ns })
}

fn ends(subject: &Subject, entry: Option<&Entry>) -> Ends {
    let modules: Vec<_> = entry.map(|entry| (entry, subject.set)).into_iter().collect();
    let Subject { packets, late, .. } = *subject;
    let says = if subject.is_of_text { crate::cost::readings(packets * LEN) } else { Vec::new() };
    Ends::new(&modules, Units { packets, len: LEN, says, late })
}

/// What is timed does what it is for: what is sent goes up.
fn check(subject: &Subject, mut ends: Ends) -> Result<(), String> {
    ends.round(Part::Both, subject.lost);
    let expected = ends.sent_per_round();
    let is_whole = ends.came == expected || matches!(subject.lost, Lost::Milli(_));
    let text = || format!("{} of {expected} packets came", ends.came);
    if is_whole && ends.came > 0 { Ok(()) } else { Err(text()) }
}

fn timed(call: &mut dyn FnMut()) -> f64 {
    let one = |_| {
        let start = Instant::now();
        call();
        start.elapsed()
    };
    let taken: Duration = (0..CALLS_PER_ROUND).map(one).sum();
    taken.as_nanos() as f64 / f64::from(CALLS_PER_ROUND)
}

fn to_json(all: &[Measured]) -> Value {
    let of = |it: &Measured| {
        let mut said = json!({ "row": it.subject.name, "ns": it.ns });
        if let Some(call_ns) = it.call_ns {
            said["call_ns"] = json!(call_ns);
            said["times"] = json!(call_ns / it.ns);
        }
        said
    };
    json!({ "rows": all.iter().map(of).collect::<Vec<_>>() })
}

fn print(all: &[Measured]) {
    let mut table = Table::new(&["row", "what", "ns", "beside, ns", "× as fast"]);
    for it in all {
        let call = it.call_ns.map_or("–".to_owned(), |ns| format!("{ns:.0}"));
        let times = it.call_ns.map_or("–".to_owned(), |ns| format!("{:.2}", ns / it.ns));
        let (name, what) = (it.subject.name.to_owned(), it.subject.what.to_owned());
        let row = [name, what, format!("{:.0}", it.ns), call, times];
        table.row(row.into_iter().map(Into::into).collect());
    }
    table.print();
    line("");
    line("A unit of packets of 1,400 B, or a packet of it where the row says so.");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_does_its_work_and_has_what_stands_beside_it() {
        for subject in &subjects::ALL {
            let measured = measure(subject, 4, Path::new("/nowhere/peer-isal"));
            match subject.call {
                Call::Isal(_) => {
                    let text = measured.err().unwrap();
                    assert!(text.contains("make eval-peers"), "{}: {text}", subject.name);
                }
                Call::Once(_) | Call::AtEachEnd(_) => {
                    // Less what looking at the clock takes, which a neighbour may have made longer.
                    assert!(measured.unwrap().call_ns.unwrap().is_finite());
                }
                Call::Nothing => assert!(measured.unwrap().call_ns.is_none()),
            }
        }
    }
}
