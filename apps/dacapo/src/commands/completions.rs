//! `dacapo completions`: a script with which a shell completes this command.
//!
//! What it is not: an installation; the script goes to standard output, and the help says where
//! each shell looks for it.

use crate::cli::{Cli, CompletionsArgs};
use crate::exit::{Exit, Failure};
use crate::output;
use clap::CommandFactory;

/// Runs the command.
pub fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "dacapo", &mut script);
    let script = String::from_utf8_lossy(&script);
    let printed = output::document(&script);
    printed.map_err(|error| Failure::run_time("completions", error))?;
    Ok(Exit::Success)
}
