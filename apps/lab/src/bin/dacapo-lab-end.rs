//! `dacapo-lab-end`: one end of a session in a process of its own, for faults of processes.

use dacapo_lab::wire::process::run_program;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    run_program(&args)
}
