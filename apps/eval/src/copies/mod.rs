//! `dacapo bench copies`: how often a unit is copied in user space on its way down and up, by the
//! bytes that callgrind sees copied, and whether memory is allocated for it.
//!
//! ```text
//!   near end, under callgrind   <- units ->   far end, as it is      32 units, and again with 96
//!                  bytes that memcpy has copied, for 64 units more
//!       copies  =  ----------------------------------------------
//!                  bytes of 64 units
//! ```
//!
//! Invariants: what is said is a difference of two runs, so neither start nor set-up is in it;
//! copies by the kernel are none of it; nothing is said where copies that are known come out wrong.

mod callgrind;
mod ends;

use crate::child::Child;
use crate::cli::{BenchCopiesArgs, UnitWay, net_word, only, or_usage};
use crate::exit::{Exit, Failure};
use crate::output::{self, Table, line};
use crate::progress::Progress;
use callgrind::{Counts, count};
use ends::{UNIT_LEN, WAYS};
pub use ends::{run_end, transports};
use serde_json::{Value, json};

const FAILED: &str = "bench copies";

/// How many units pass in the two runs of a difference.
const UNITS: [u32; 2] = [32, 96];

/// What is measured of a way.
struct Row {
    over: &'static str,
    way: UnitWay,
    copies: f64,
    /// Instructions in the allocator, for each unit.
    allocator: f64,
}

/// Runs the command.
pub fn run(args: &BenchCopiesArgs) -> Result<Exit, Failure> {
    let mut progress = Progress::new(args.json);
    let all =
        or_usage(only(transports(), args.over.as_deref(), |it| it, "transport to one other end"));
    let known = of_a_unit("", UnitWay::Bare, "-")?.copied / UNIT_LEN as f64;
    if !(0.95..1.05).contains(&known) {
        let text = "copies cannot be counted with this C library: one of each unit comes out as";
        return Err(Failure::run_time(FAILED, format!("{text} {known:.2}")));
    }
    let mut rows = Vec::new();
    for over in all {
        let far = Child::start(FAILED, &["copies-end", "--over", over])?;
        for way in WAYS {
            if progress.is_due() {
                progress.show(&format!("{over}, {}", net_word(way)));
            }
            let Counts { copied, allocator } = of_a_unit(over, way, &far.address())?;
            rows.push(Row { over, way, copies: copied / UNIT_LEN as f64, allocator });
        }
    }
    progress.clear();
    match args.json {
        true => output::json(&to_json(&rows)),
        false => print(&rows),
    }
    Ok(Exit::Success)
}

/// What a unit costs the near end.
fn of_a_unit(over: &str, way: UnitWay, address: &str) -> Result<Counts, Failure> {
    let failed = |why: String| Failure::run_time(FAILED, why);
    let way = net_word(way);
    let of = |units: u32| {
        let units = units.to_string();
        count(&["copies-end", address, "--over", over, "--way", &way, "--units", &units])
    };
    let [few, many] = [of(UNITS[0]).map_err(failed)?, of(UNITS[1]).map_err(failed)?];
    let more = f64::from(UNITS[1] - UNITS[0]);
    Ok(Counts {
        copied: (many.copied - few.copied) / more,
        allocator: (many.allocator - few.allocator) / more,
    })
}

fn to_json(rows: &[Row]) -> Value {
    let of = |row: &Row| {
        json!({
            "over": row.over,
            "way": net_word(row.way),
            "copies": row.copies,
            "allocator_instructions": row.allocator,
        })
    };
    json!({ "unit_len": UNIT_LEN, "rows": rows.iter().map(of).collect::<Vec<_>>() })
}

fn print(rows: &[Row]) {
    let mut table = Table::new(&["over", "way", "copies", "instructions of the allocator"]);
    for row in rows {
        let (copies, allocator) = (format!("{:.2}", row.copies), format!("{:.0}", row.allocator));
        table.row(vec![row.over.into(), net_word(row.way).into(), copies.into(), allocator.into()]);
    }
    table.print();
    line("");
    let kib = UNIT_LEN >> 10;
    line(format_args!(
        "For each unit of {kib} KiB at one end, by callgrind: bytes copied in user space,"
    ));
    line("heads and words among them. Copies by the kernel are none of it.");
}
