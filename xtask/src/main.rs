//! Chores of the repository: `cargo xtask <command>`.
//!
//! The checks that a change must pass, in one place for a developer and for automation. It depends
//! on none of our crates, so that it builds in seconds and no check hangs on what it checks.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

mod allowances;
mod ci;
mod code;
mod docs;
mod features;
mod fuzz;
mod limits;
mod lines;
mod mutants;
mod ratchet;
mod skips;
mod tidy;
mod times;
mod touched;

const HELP: &str = "\
Chores of the repository.

  cargo xtask tidy      the rules of the house; exit code 1 and a list where they are broken
  cargo xtask check     fmt, tidy, clippy and unit tests, with a table of times
  cargo xtask ci        fmt, tidy, touched, clippy, doc, fuzz, ratchet, docs, test, features and
                        exercise, with a table of times and a list of skipped tests
                        (CI_STRICT=1: one of them, or a step over 1.5 times its budget, fails)
  cargo xtask night     the tests that take minutes or root, and the documents' long output
  cargo xtask features  what a user can do, beside docs/features.txt: --help says how
  cargo xtask fuzz      runs fuzz targets for a time: --help says how
  cargo xtask limits    sizes of types, functions, files and circles, the worst first
  cargo xtask lines     lines of Rust without blanks, comments and tests, beside their goals
  cargo xtask mutants   mistakes put into the owners of flows: do their unit tests catch them?
  cargo xtask ratchet   counts instructions of fixed work; over 3 % more than recorded fails
  cargo xtask touched   the files outside its folder that name a transport, module, …
  cargo xtask docs      writes the output that README.md and docs/ show; --check compares
  cargo xtask help      this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["tidy"] => tidy::run(&root()),
        ["ci"] => ci::run(&root()),
        ["check"] => ci::run_quick(&root()),
        ["night"] => ci::run_night(&root()),
        ["features", words @ ..] => features::run(&root(), words),
        ["fuzz", words @ ..] => fuzz::run(&root(), words),
        ["lines"] => lines::run(&root()),
        ["mutants", words @ ..] => mutants::run(&root(), words),
        ["limits", words @ ..] => limits::run(&root(), words),
        ["touched", words @ ..] => touched::run(&root(), words),
        ["docs", words @ ..] => docs::run(&root(), words),
        ["ratchet", words @ ..] => ratchet::run(&root(), words),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("unknown command `{}`\n\n{HELP}", arguments.join(" "));
            return ExitCode::from(2);
        }
    };
    exit_code(outcome)
}

fn exit_code(outcome: io::Result<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask could not finish: {error}; run it through cargo, in the checkout");
            ExitCode::from(2)
        }
    }
}

/// The root of the repository: the parent of this package, wherever the checkout is now.
fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    package.parent().map(PathBuf::from).unwrap_or(package)
}
