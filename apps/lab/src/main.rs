//! `dacapo-lab`: faults by the thousand, and the table of what was seen.

use clap::Parser;
use dacapo_lab::cli::Cli;
use dacapo_lab::commands;
use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(&Cli::parse())
}
