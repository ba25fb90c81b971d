//! The arguments of `bench choice`.

use clap::Args;
use std::num::NonZeroU32;

/// Arguments of `bench choice`.
#[derive(Debug, Args)]
pub struct BenchChoiceArgs {
    /// How many requests are made up and answered.
    #[arg(long, value_name = "N", default_value = "10000")]
    pub requests: NonZeroU32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
