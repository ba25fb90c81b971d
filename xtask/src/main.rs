//! Chores of the repository: `cargo xtask <command>`.
//!
//! What it is: the checks that a change must pass, in one place for a developer and for automation.
//! What it is not: part of the product; it depends on the standard library only, so that it builds
//! in a second and no check hangs on a crate that it checks.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

mod ci;
mod fuzz;
mod ratchet;
mod tidy;

const HELP: &str = "\
Chores of the repository.

  cargo xtask tidy      the rules of the house; exit code 1 and a list where they are broken
  cargo xtask ci        fmt, tidy, clippy, doc, fuzz, ratchet and test, with a table of times
                        (CI_STRICT=1: a step over 1.5 times its budget fails)
  cargo xtask fuzz      runs fuzz targets for a time: --help says how
  cargo xtask ratchet   counts instructions of fixed work; over 3 % more than recorded fails
  cargo xtask help      this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["tidy"] => tidy::run(&root()),
        ["ci"] => ci::run(&root()),
        ["fuzz", words @ ..] => fuzz::run(&root(), words),
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
