//! `dacapo bench lift`: what it costs to carry a packet through modules, beside the same modules
//! without a runner, and beside 1998.
//!
//! ```text
//!   cost of a packet = fixed (allocate, run, free) + modules x marginal
//! ```

mod gstreamer;
mod measure;
mod modules;
mod rounds;
mod show;
mod stats;
mod then;

use crate::cli::BenchLiftArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use rounds::Samples;
use show::Shown;
use std::cell::RefCell;

/// Runs the command.
pub fn run(args: &BenchLiftArgs) -> Result<Exit, Failure> {
    let progress = RefCell::new(Progress::new(args.json));
    let tell = |text: &str| {
        let mut progress = progress.borrow_mut();
        if progress.is_due() {
            progress.show(text);
        }
    };
    let samples = Samples::take(args.seconds, |round| tell(&format!("round {round}")));
    let samples = samples.map_err(|error| Failure::run_time("bench lift", error))?;
    let gstreamer = gstreamer::measure(|round| tell(&format!("GStreamer, round {round}")));
    progress.borrow_mut().clear();
    let shown = Shown { samples: &samples, gstreamer: &gstreamer };
    match args.json {
        true => output::json(&shown.to_json(args.seconds.as_secs_f64())),
        false => shown.print(),
    }
    Ok(Exit::Success)
}
