//! The arguments of the harness: `list`, `run`, `show`, `profile`, `compare`, `history`, `check`.

use super::parse_duration;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// The rows of this experiment.
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Experiments, or `all`.
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// These rows alone, with their controls.
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    pub only: Vec<String>,
    /// How many rounds with nothing else on the machine.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub rounds: Option<u32>,
    /// How many beside a process that spins and one that copies memory.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub loaded_rounds: Option<u32>,
    /// How long each row is measured: seconds, or a number with a unit.
    #[arg(long, value_name = "N", value_parser = parse_duration)]
    pub seconds: Option<Duration>,
    /// Leave it to the system on which processors both ends run.
    #[arg(long)]
    pub no_pin: bool,
    /// The command that is measured; usually the one beside this program. Its `bench` is the
    /// dacapo-eval beside it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub dacapo: Option<PathBuf>,
    /// Where the programs of peers are, which `make eval-peers` builds.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(default_value = "eval/peers/target/release")]
    pub programs: PathBuf,
    /// Nothing but the result.
    #[arg(long, short)]
    pub quiet: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// An experiment, for its last run that is kept, or ID/DATE-COMMIT, or a folder.
    #[arg(value_name = "RUN")]
    pub run: String,
    /// As what it is printed.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    pub format: Format,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Write its charts into this folder, too.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub charts: Option<PathBuf>,
}

/// Arguments of `profile`.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// An experiment, for its last run that is kept, or ID/DATE-COMMIT.
    #[arg(value_name = "RUN")]
    pub run: String,
    /// These rows; usually those that miss a goal.
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Where they are put; usually beside the run.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Where the programs of peers are.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(default_value = "eval/peers/target/release")]
    pub programs: PathBuf,
}

/// As what a run is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// Comma-separated, a table after the other.
    Csv,
    /// For programs.
    Json,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The run before.
    #[arg(value_name = "RUN")]
    pub before: String,
    /// The run after.
    #[arg(value_name = "RUN")]
    pub after: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// The row.
    #[arg(value_name = "ROW")]
    pub row: String,
    /// Draw each of its figures over the commits into this folder, too.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub charts: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Write what differs, and remove runs that nothing cites where the store is too large.
    #[arg(long)]
    pub write: bool,
    /// A run older than 200 commits fails, too.
    #[arg(long)]
    pub night: bool,
}
