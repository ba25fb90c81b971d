//! The `dacapo` command: serve, list, play, control and check sessions of media.
//!
//! ```text
//!   cli (arguments) -> commands/* -> edge (core, signals, descriptors) -> dacapo, the library
//!                          |
//!                     output, progress, account, describe, folder, local, exit
//! ```
//!
//! What it is: the edge of the world: files, terminals, environment and signals are here and
//! nowhere below. What it is not: a place for protocol logic.

mod account;
mod cli;
mod commands;
mod contact;
mod describe;
mod edge;
mod exit;
#[cfg(debug_assertions)]
mod faults;
mod folder;
mod local;
mod output;
mod progress;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(debug_assertions)]
    if let Err(text) = faults::arm(|name| std::env::var_os(name)) {
        output::note(format_args!("dacapo: {text}"));
        return ExitCode::from(exit::USAGE.0);
    }
    dacapo_sys::signal::ignore_file_size_limit();
    let result = match Cli::parse().command {
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
        Command::Control(args) => commands::control::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Testmovie(args) => commands::testmovie::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::Demo(args) => commands::demo::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // A signal needs no words.
            if !failure.text.is_empty() {
                output::note(&failure);
            }
            failure.exit.into()
        }
    }
}
