//! The arguments of `bench drawn`.

use clap::Args;
use std::num::NonZeroU32;

/// Arguments of `bench drawn`.
#[derive(Debug, Args)]
pub struct BenchDrawnArgs {
    /// How many requests are drawn and answered.
    #[arg(long, value_name = "N", default_value = "10000")]
    pub requests: NonZeroU32,
    /// Print the session file of this request, and choose nothing.
    #[arg(long, value_name = "NUMBER")]
    pub show: Option<u32>,
    /// How often this module is chosen, alone.
    #[arg(long, value_name = "NAME", conflicts_with = "show")]
    pub module: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
