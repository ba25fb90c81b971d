//! The arguments of `bench choices`.

use clap::Args;

/// Arguments of `bench choices`.
#[derive(Debug, Args)]
pub struct BenchChoicesArgs {
    /// This cell alone.
    #[arg(long, value_name = "NAME")]
    pub cell: Option<String>,
    /// How often each flow runs, in virtual time.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
