//! The arguments of `bench safenet`.
//!
//! What it is not: the measurement (`commands/bench/safenet.rs`).

use clap::Args;
use std::time::Duration;

/// Arguments of `bench safenet`.
#[derive(Debug, Args)]
pub struct BenchSafenetArgs {
    /// How long each point is measured: seconds, or a number with a unit.
    #[arg(long, value_name = "N", default_value = "200ms", value_parser = super::parse_duration)]
    pub seconds: Duration,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
