//! The command line of `dacapo-lab`.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Faults by the thousand: what is put in, what is expected, and what was seen.
#[derive(Debug, Parser)]
#[command(name = "dacapo-lab", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  dacapo-lab list                          every fault, with what must happen
  dacapo-lab run setup                     100,000 set-ups at 30 % loss
  dacapo-lab run seeds --seeds 500         500 seeds of everything at once
  dacapo-lab run seeds --seed 4711 --json  one seed of it
  dacapo-lab faults --write docs/faults.md all rows, as a page
  dacapo-lab check                         whether that page is what was seen
  dacapo-lab nightly --minutes 60          an hour of seeds, fuzzing and kills

Exit status: 0 all is as expected, 1 something is not, 2 the command is wrong.";

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Every fault, with what must happen.
    List(ListArgs),
    /// Runs faults by their names and says what was seen.
    Run(RunArgs),
    /// Runs all faults and makes the table of what was seen.
    Faults(FaultsArgs),
    /// Whether docs/faults.md is what docs/faults.jsonl gives, and its rows are of this history.
    Check(CheckArgs),
    /// Seeds, fuzzing and kills in turn for some time; goes on from where it was.
    Nightly(NightlyArgs),
}

/// What `list` takes.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// How much is run.
#[derive(Args, Clone, Copy, Debug)]
pub struct ScaleArgs {
    /// The short form of each row, as the tests run it.
    #[arg(long)]
    pub short: bool,
    /// How many seeds (set-ups, paths) of each row.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,
    /// The first seed; alone: only this one.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// What `run` takes.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The names of the faults; `dacapo-lab list` has them.
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// How much is run.
    #[command(flatten)]
    pub scale: ScaleArgs,
    /// Adds what was seen to this file, for `faults --records`.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// What `faults` takes.
#[derive(Args, Debug)]
pub struct FaultsArgs {
    /// Writes the table here, whole or not at all; else it goes to standard output.
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Takes rows from this file that have a record there, and adds those that it runs.
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,
    /// Runs nothing: rows without a record are left out, and the page names them.
    #[arg(long, requires = "records")]
    pub recorded: bool,
    /// How much is run.
    #[command(flatten)]
    pub scale: ScaleArgs,
    /// For programs, on standard output.
    #[arg(long)]
    pub json: bool,
}

/// What `check` takes.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Rows that are older than 200 commits fail it too.
    #[arg(long)]
    pub night: bool,
}

/// What `nightly` takes.
#[derive(Args, Debug)]
pub struct NightlyArgs {
    /// How long, all in all.
    #[arg(long, value_name = "N")]
    pub minutes: f64,
    /// Where the totals are kept [default: target/nightly].
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Seconds of seeds in a round; 0: none.
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    pub seed_seconds: f64,
    /// Seconds for each target of the fuzzers in a round; 0: none.
    #[arg(long, value_name = "S", default_value_t = 10)]
    pub fuzz_seconds: u64,
    /// Processes killed in a round; 0: none.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub kills: u64,
    /// The totals for programs, at the end.
    #[arg(long)]
    pub json: bool,
}
