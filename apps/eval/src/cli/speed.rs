//! The arguments of `bench speed`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Arguments of `bench speed`.
#[derive(Debug, Args)]
pub struct BenchSpeedArgs {
    /// This row alone.
    #[arg(long, value_name = "NAME")]
    pub row: Option<String>,
    /// How often each is measured, in turns.
    #[arg(long, value_name = "N", default_value_t = 400)]
    #[arg(value_parser = clap::value_parser!(u32).range(4..=100_000))]
    pub rounds: u32,
    /// The program that calls ISA-L.
    #[arg(long, value_name = "FILE", default_value = "eval/peers/target/release/peer-isal")]
    #[arg(value_hint = ValueHint::FilePath)]
    pub isal: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
