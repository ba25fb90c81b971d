//! The arguments of `bench scale`.

use clap::Args;
use std::time::Duration;

/// Arguments of `bench scale`.
#[derive(Debug, Args)]
pub struct BenchScaleArgs {
    /// Sessions at a time.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=16_000))]
    pub sessions: u32,
    /// Connections that the sessions share; usually one for every 770 sessions, and at least 4.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    connections: Option<u32>,
    /// Sessions that are opened and closed, one after the other, many on their way.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=190_000))]
    pub opens: u32,
    /// How long both ends do nothing: seconds, or a number with a unit.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    #[arg(value_parser = super::parse_duration)]
    pub idle: Duration,
    /// Send so many units of 1000 bytes a second, in turns over all sessions, for as long as --idle
    /// says, after a tenth of a second for each 1,000 sessions; nothing is opened and closed then.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub send: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Be the far end with so many ports, until standard input ends: for the command's own use.
    #[arg(long, hide = true, value_name = "PORTS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub far: Option<u32>,
}

impl BenchScaleArgs {
    /// Connections that the sessions share.
    pub fn connections(&self) -> u32 {
        self.connections.unwrap_or_else(|| self.sessions.div_ceil(770).max(4))
    }
}
