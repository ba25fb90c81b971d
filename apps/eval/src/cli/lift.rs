//! The arguments of `bench lift`.

use clap::Args;
use std::time::Duration;

/// Arguments of `bench lift`.
#[derive(Debug, Args)]
pub struct BenchLiftArgs {
    /// How long it measures: seconds, or a number with a unit.
    #[arg(long, value_name = "N", default_value = "5", value_parser = super::parse_duration)]
    pub seconds: Duration,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
