//! `dacapo bench`: figures of this host, beside those of 1998 or of a plain program.
//!
//! What it is not: a test; nothing here decides whether something works.

mod child;
mod control;
mod figures_1998;
mod lift;
mod line;
mod link;
mod net;
mod plain;
mod safenet;
mod scale;
mod series;
mod timed;
mod transfer;
pub mod xtp;

use crate::cli::{Bench, BenchArgs};
use crate::exit::{Exit, Failure};

/// Runs the command.
pub fn run(args: &BenchArgs) -> Result<Exit, Failure> {
    match &args.what {
        Bench::Control(args) => control::run(args),
        Bench::Lift(args) => lift::run(args),
        Bench::Link(args) => link::run(args),
        Bench::Net(args) => net::run(args),
        Bench::Safenet(args) => safenet::run(args),
        Bench::Scale(args) => scale::run(args),
        Bench::Transfer(args) => transfer::run(args),
        Bench::Xtp(args) => xtp::run(args),
    }
}
