//! `dacapo bench safenet`: messages over XTP, at two of the levels of the SAFENET document, with
//! the lines through the latencies, beside its own.
//!
//! What it is not: a network. Both ends are in this process, and a packet is handed over by a call:
//! what is measured is the work of the processor at all ends.

mod show;
mod then;

use super::line::{line_through, residuals};
use crate::cli::BenchSafenetArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use dacapo_safenet::measure::{Cast, Level, MeasureError, Run, interval, latency};
use dacapo_sys::clock;
use std::time::Duration;
use then::Then;

/// Lengths of messages, bytes; the first at the level of users only.
const LENS: [usize; 7] = [0, 64, 256, 1_000, 4_000, 16_000, 65_536];
/// Round trips, or messages, with which it is found out how many fill the time.
const TRIED: u32 = 10;
/// The most of one point.
const COUNT_MAX: u32 = 1_000_000;

/// A length of messages.
pub struct Point {
    /// Bytes.
    pub len: usize,
    /// Half of the mean round trip, µs.
    pub latency_us: f64,
    /// From the first message sent to the last, Mbit/s of users' bytes.
    pub mbit_s: f64,
}

/// The points of one level and cast.
pub struct Row {
    /// What it is called.
    pub name: &'static str,
    /// Where.
    pub level: Level,
    /// To whom.
    pub cast: Cast,
    /// What the document has of it.
    pub then: Option<Then>,
    /// By length.
    pub points: Vec<Point>,
}

impl Row {
    fn latencies(&self) -> Vec<(f64, f64)> {
        self.points.iter().map(|point| (point.len as f64, point.latency_us)).collect()
    }

    /// The line through the latencies: µs without bytes, and per byte.
    pub fn fit(&self) -> Option<(f64, f64)> {
        line_through(&self.latencies())
    }

    /// How far each latency is above the line, µs.
    pub fn residuals(&self) -> Vec<f64> {
        self.fit().map_or_else(Vec::new, |fit| residuals(&self.latencies(), fit))
    }
}

/// What is measured.
const ROWS: [(&str, Level, Cast, Option<Then>); 4] = [
    ("user", Level::User, Cast::Unicast, Some(then::UNICAST)),
    ("user, group of 1", Level::User, Cast::Multicast { receivers: 1 }, Some(then::MULTICAST)),
    ("user, group of 2", Level::User, Cast::Multicast { receivers: 2 }, None),
    ("XTP", Level::Transport, Cast::Unicast, Some(then::TRANSPORT)),
];

/// Runs the command.
pub fn run(args: &BenchSafenetArgs) -> Result<Exit, Failure> {
    let mut progress = Progress::new(args.json);
    let mut rows = Vec::new();
    for (name, level, cast, then) in ROWS {
        let mut points = Vec::new();
        for len in LENS.into_iter().filter(|len| level == Level::User || *len > 0) {
            if progress.is_due() {
                progress.show(&format!("{name}, {len} bytes"));
            }
            let run = Run { level, cast, len, count: TRIED };
            let point = point(run, args.seconds);
            points.push(point.map_err(|error| Failure::run_time("bench safenet", error))?);
        }
        rows.push(Row { name, level, cast, then, points });
    }
    progress.clear();
    match args.json {
        true => output::json(&show::to_json(&rows)),
        false => show::print(&rows),
    }
    Ok(Exit::Success)
}

fn point(run: Run, most: Duration) -> Result<Point, MeasureError> {
    let clock = &mut || clock::now();
    let one_way = latency(run, clock)?;
    let count = filling(most, one_way * 2);
    let latency_us = latency(Run { count, ..run }, clock)?.as_secs_f64() * 1e6;
    let each = interval(run, clock)?;
    let each = interval(Run { count: filling(most, each), ..run }, clock)?;
    let mbit_s = run.len as f64 * 8.0 / 1e6 / each.as_secs_f64().max(1e-9);
    Ok(Point { len: run.len, latency_us, mbit_s })
}

/// How many of them fill the time.
fn filling(most: Duration, each: Duration) -> u32 {
    let count = most.as_nanos() / each.as_nanos().max(1);
    u32::try_from(count).unwrap_or(COUNT_MAX).clamp(TRIED, COUNT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_filled_and_never_for_ever() {
        let ms = Duration::from_millis;
        assert_eq!(filling(ms(100), ms(1)), 100);
        assert_eq!(filling(ms(1), ms(100)), TRIED);
        assert_eq!(filling(Duration::MAX, Duration::ZERO), COUNT_MAX);
    }
}
