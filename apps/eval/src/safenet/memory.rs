//! Both ends in this process, packets handed over by a call: the work of the processor alone.

use super::row::{Level, Point, Results, Row};
use super::then::{self, Then};
use super::{LENS, TRIED, filling};
use crate::exit::Failure;
use crate::progress::Progress;
use dacapo_safenet::measure::{self, Cast, MeasureError, Run, interval, latency};
use dacapo_sys::clock;
use std::time::Duration;

/// Where the ends are.
const PLACE: &str = "all ends in one process";
/// What is measured.
const ROWS: [(&str, measure::Level, Cast, Option<Then>); 4] = [
    ("user", measure::Level::User, Cast::Unicast, Some(then::UNICAST)),
    (
        "user, group of 1",
        measure::Level::User,
        Cast::Multicast { receivers: 1 },
        Some(then::GROUP_OF_ONE),
    ),
    (
        "user, group of 2",
        measure::Level::User,
        Cast::Multicast { receivers: 2 },
        Some(then::GROUP_OF_TWO),
    ),
    ("XTP", measure::Level::Transport, Cast::Unicast, Some(then::TRANSPORT)),
];

/// Measures every level that there is without a network.
pub fn run(most: Duration, progress: &mut Progress) -> Result<Results, Failure> {
    let mut rows = Vec::new();
    for (name, at, cast, then) in ROWS {
        let level = match at {
            measure::Level::User => Level::User,
            measure::Level::Transport => Level::Transport,
        };
        let mut points = Vec::new();
        for len in LENS.into_iter().filter(|len| level == Level::User || *len > 0) {
            if progress.is_due() {
                progress.show(&format!("{name}, {len} bytes"));
            }
            let point = point(Run { level: at, cast, len, count: TRIED }, most);
            points.push(point.map_err(|error| Failure::run_time("bench safenet", error))?);
        }
        rows.push(Row { name, level, cast, place: PLACE, frames: None, then, points });
    }
    let network = ("network (FDDI)", "there is none: packets are handed over by a call".to_owned());
    Ok(Results { network: "memory", is_checked: true, rows, left_out: vec![network] })
}

fn point(run: Run, most: Duration) -> Result<Point, MeasureError> {
    let clock = &mut || clock::now();
    let one_way = latency(run, clock)?;
    let count = filling(most, one_way * 2);
    let latency_us = latency(Run { count, ..run }, clock)?.as_secs_f64() * 1e6;
    let each = interval(run, clock)?;
    let each = interval(Run { count: filling(most, each), ..run }, clock)?;
    let mbit_s = run.len as f64 * 8.0 / 1e6 / each.as_secs_f64().max(1e-9);
    Ok(Point { len: run.len, latency_us, mbit_s, arrived: 1.0 })
}
