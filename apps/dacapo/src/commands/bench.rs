//! `dacapo bench`, `dacapo eval` and `dacapo xtp bench`: this process becomes the program that
//! measures.

use crate::cli::{BenchArgs, XtpBenchArgs};
use crate::exit::{Exit, Failure};
use crate::program::EVAL;
use std::ffi::OsStr;

/// How errors of usage call it: as it was typed.
const CALLED: &str = "dacapo bench";

/// Runs the command; returns when the program cannot be started.
pub fn run(args: &BenchArgs) -> Result<Exit, Failure> {
    Err(EVAL.become_it(CALLED, &args.words))
}

/// Runs `eval`, likewise.
pub fn run_eval(args: &BenchArgs) -> Result<Exit, Failure> {
    Err(EVAL.become_it("dacapo eval", &args.words))
}

/// Runs `xtp bench`, likewise.
pub fn run_xtp(args: &XtpBenchArgs) -> Result<Exit, Failure> {
    let words = args.words.iter().map(AsRef::as_ref);
    Err(EVAL.become_it(CALLED, [OsStr::new("xtp")].into_iter().chain(words)))
}
