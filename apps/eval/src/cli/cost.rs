//! The arguments of `bench cost`.

use clap::Args;

/// Arguments of `bench cost`.
#[derive(Debug, Args)]
pub struct BenchCostArgs {
    /// This module alone.
    #[arg(long, value_name = "NAME")]
    pub module: Option<String>,
    /// How often 32 trains of each shape go through each graph.
    #[arg(long, value_name = "N", default_value_t = 2_001)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rounds: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
