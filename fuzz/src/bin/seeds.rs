//! Writes the seeds of every target into the corpora of this checkout, in place of those that are
//! there.

use dacapo_fuzz::{TARGETS, corpus};
use std::process::ExitCode;

const HELP: &str = "\
Writes the seeds of every fuzz target to fuzz/corpus/NAME/seed-NN.

  cargo run -p dacapo-fuzz --bin dacapo-fuzz-seeds            all targets
  cargo run -p dacapo-fuzz --bin dacapo-fuzz-seeds -- NAME    one of them
";

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    if names.iter().any(|name| name == "--help" || name == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    if let Some(name) = names.iter().find(|name| dacapo_fuzz::find(name).is_none()) {
        eprintln!("no target is called `{name}`; `cargo xtask fuzz --list` shows them");
        return ExitCode::from(2);
    }
    let is_chosen = |name: &str| names.is_empty() || names.iter().any(|chosen| chosen == name);
    for target in TARGETS.iter().filter(|target| is_chosen(target.name)) {
        match corpus::write_seeds(target) {
            Ok(count) => println!("{:<18} {count:>3} seeds", target.name),
            Err(error) => {
                eprintln!("{}: {error}; is the checkout writable?", target.name);
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
