//! The `dacapo` command: serve, list, play, control and check sessions of media.
//!
//! ```text
//!   cli (arguments) -> commands/* -> app (core, signals, descriptors) -> dacapo, the library
//!                          |
//!                     account, describe, local; of `dacapo-term`: output, progress, folder, exit
//! ```
//!
//! The edge of the world: files, terminals, environment and signals are here and nowhere below.

mod account;
mod cli;
mod closing;
mod commands;
mod contact;
mod describe;
mod local;

use clap::CommandFactory;
use cli::{Cli, Command};
// What both programs have stands for the commands where what is theirs alone does.
use dacapo_term::{app, completions, exit, folder, manual, output, program, progress, words};
use std::process::ExitCode;

fn main() -> ExitCode {
    program::run(|| match Cli::read().command {
        Command::Serve(args) => commands::serve::run(&args),
        Command::Ls(args) => commands::ls::run(&args),
        Command::Play(args) => commands::play::run(&args),
        Command::Send(args) => commands::transfer::send::run(&args),
        Command::Recv(args) => commands::transfer::recv::run(&args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Modules(args) => commands::modules::run(&args),
        Command::Link(args) => commands::link::run(&args),
        Command::Xtp(args) => commands::xtp::run(&args),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Eval(args) => commands::bench::run_eval(&args),
        Command::Control(args) => commands::control::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Testmovie(args) => commands::testmovie::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::Demo(args) => commands::demo::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Completions(args) => completions::run(Cli::command(), &args),
        Command::Man(args) => manual::run(Cli::command(), &args),
    })
}
