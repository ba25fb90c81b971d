//! `dacapo-eval`: figures of this host, beside those of 1998 or of a plain program. `dacapo bench`
//! becomes this program.
//!
//! ```text
//!   cli (arguments) -> choice choices control copies cost lift link net safenet scale … -> dacapo
//!                          |                                          \-> crates below, by themselves
//!                     child (a far end as a process), series, line; what both programs share: term
//! ```

mod child;
mod choice;
mod choices;
mod cli;
mod collect;
mod commands;
mod control;
mod copies;
mod core_app;
mod cost;
mod drawn;
mod ends;
mod experiment;
mod experiments;
mod figures_1998;
mod lift;
mod line;
mod link;
mod net;
mod outcome;
mod pace;
mod pages;
mod peers;
mod plain;
mod rig;
mod run;
mod safenet;
mod scale;
mod series;
mod setup;
mod show;
mod speed;
mod starts;
mod stats;
mod store;
mod timed;
mod transfer;
mod xtp;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use dacapo_term::{app, completions, exit, folder, manual, output, program, progress, words};
use std::process::ExitCode;

fn main() -> ExitCode {
    program::run(|| match Cli::parse().command {
        Command::List(args) => Ok(commands::list(&args)),
        Command::Run(args) => commands::run(&args),
        Command::Show(args) => commands::show(&args),
        Command::Profile(args) => commands::profile(&args),
        Command::Compare(args) => commands::compare(&args),
        Command::History(args) => commands::history(&args),
        Command::Check(args) => commands::check(&args),
        Command::Burden(args) => {
            run::burden::carry(args.kind, args.seconds);
            Ok(exit::Exit::Success)
        }
        Command::Pace(args) => pace::run(&args),
        Command::Collect(args) => collect::run(&args),
        Command::Choice(args) => choice::run(&args),
        Command::Control(args) => control::run(&args),
        Command::Copies(args) => copies::run(&args),
        Command::CopiesEnd(args) => copies::run_end(&args),
        Command::Choices(args) => choices::run(&args),
        Command::Drawn(args) => drawn::run(&args),
        Command::Cost(args) => cost::run(&args),
        Command::Lift(args) => lift::run(&args),
        Command::Link(args) => link::run(&args),
        Command::Net(args) => net::run(&args),
        Command::Safenet(args) => safenet::run(&args),
        Command::Scale(args) => scale::run(&args),
        Command::Setup(args) => setup::run(&args),
        Command::Speed(args) => speed::run(&args),
        Command::Starts(args) => starts::run(&args),
        Command::Transfer(args) => transfer::run(&args),
        Command::Xtp(args) => xtp::run(&args),
        Command::Completions(args) => completions::run(Cli::command(), &args),
        Command::Man(args) => manual::run(Cli::command(), &args),
    })
}
