//! `dacapo bench xtp`: XTP from process to process, as a paper of 1995 measured SandiaXTP.
//!
//! ```text
//!   near (`near.rs`)                                      far (`far.rs`: --listen, or a process)
//!     per packet length, send length and mode:
//!       open, then runs of --bytes until --seconds are over
//!       send | send | …    messages, some with DREQ  -->  reads, counts; of stream bytes
//!       <-- answers to DREQ
//!       WCLOSE -->                                    <-- what it has counted, as JSON; closes
//!   course.rs: how far the far end was when
//!   show.rs, derived.rs: tables, costs, and what the paper has (`then.rs`)
//! ```
//!
//! Source: G. Mapp, "Preliminary Performance Evaluation of SandiaXTP on ATM at ORL", PROMS '95,
//! section "Testing".

mod course;
mod derived;
mod far;
mod near;
mod show;
mod then;

use super::child::Child;
use crate::cli::{Below, BenchXtpArgs, XtpMode, net_word, or_usage};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use dacapo::Place;
use near::{Near, Run};

const WHAT: &str = "bench xtp";

/// What is measured at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// How it is sent.
    pub mode: XtpMode,
    /// The longest packet, bytes.
    pub packet_len: u32,
    /// Bytes that the sender gives at once.
    pub send_len: u32,
}

impl Point {
    fn in_words(self) -> String {
        let Self { mode, packet_len, send_len } = self;
        format!("{}, packets of {packet_len} bytes, sends of {send_len}", net_word(mode))
    }
}

/// A point with all its runs.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What was measured.
    pub point: Point,
    /// How many runs.
    pub runs: u32,
    /// Their sum.
    pub sum: Run,
}

/// Runs the command.
pub fn run(args: &BenchXtpArgs) -> Result<Exit, Failure> {
    or_usage(args.check().map_err(str::to_owned));
    if let Some(place) = args.listen {
        return far::serve(args, place);
    }
    let child = match &args.host {
        Some(_) => None,
        None => Some(start_far_end(args)?),
    };
    let host = args.host.clone().or(child.as_ref().map(Child::address)).unwrap_or_default();
    let mut progress = Progress::new(args.json);
    let measured = measure_all(args, &host, &mut progress);
    progress.clear();
    let measured = measured?;
    match args.json {
        true => output::json(&show::to_json(args, &measured)),
        false => show::print(args, &measured),
    }
    // Both ends count for themselves: what neither has is nowhere.
    let closes = measured.iter().all(|measured| measured.sum.closes());
    Ok(if closes { Exit::Success } else { Exit::Mismatch })
}

fn measure_all(
    args: &BenchXtpArgs,
    host: &str,
    progress: &mut Progress,
) -> Result<Vec<Measured>, Failure> {
    let mut all = Vec::new();
    for packet_len in args.packet_len.iter().copied() {
        let mut near = Near::open(args, host, packet_len)?;
        for send_len in args.send_len.iter().copied() {
            for mode in args.mode.iter().copied() {
                let point = Point { mode, packet_len, send_len };
                all.push(measure(args, &mut near, point, progress)?);
            }
        }
    }
    Ok(all)
}

fn measure(
    args: &BenchXtpArgs,
    near: &mut Near<'_>,
    point: Point,
    progress: &mut Progress,
) -> Result<Measured, Failure> {
    let mut measured = Measured { point, runs: 0, sum: Run::default() };
    loop {
        measured.sum.add(&near.run(point, progress)?);
        measured.runs += 1;
        // With the pauses: of a blast they are most of it.
        if measured.sum.seconds + measured.sum.paused_seconds >= args.seconds.as_secs_f64() {
            return Ok(measured);
        }
    }
}

/// The far end on this host, with the same window and network.
fn start_far_end(args: &BenchXtpArgs) -> Result<Child, Failure> {
    let (at, port) = (args.here().to_string(), args.port.to_string());
    let (window, over) = (args.window.to_string(), net_word(args.over));
    let longest = args.packet_len.iter().max().map_or_else(String::new, u32::to_string);
    let words = ["xtp", "--listen", &at, "--port", &port, "--window", &window];
    let rest = ["--over", &over, "--packet-len", &longest, "--until-eof", "--json"];
    Child::start(WHAT, &[&words[..], &rest[..]].concat())
}

/// What is below an end with packets of this length.
fn below(args: &BenchXtpArgs, local: Option<Place>, packet_len: Option<usize>) -> Below {
    Below {
        over: args.over,
        local,
        interface: args.interface.clone(),
        port: args.port,
        packet_len,
        capture: None,
        json: args.json,
    }
}

fn window(args: &BenchXtpArgs) -> usize {
    usize::try_from(args.window).unwrap_or(usize::MAX)
}
