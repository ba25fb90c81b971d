//! The arguments of `bench setup`.

use clap::{Args, ValueEnum};
use std::time::Duration;

/// What is new each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fresh {
    /// The endpoint, its sockets, and the connection.
    Connection,
    /// The session.
    Session,
}

/// Arguments of `bench setup`.
#[derive(Debug, Args)]
pub struct BenchSetupArgs {
    /// Where the far end listens.
    #[arg(value_name = "ADDRESS", required_unless_present = "listen", conflicts_with = "listen")]
    pub address: Option<String>,
    /// Be the far end, until the near end is done.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// What is new each time.
    #[arg(long, value_enum, default_value_t = Fresh::Connection)]
    pub new: Fresh,
    /// How long: seconds, or a number with a unit.
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    #[arg(value_parser = super::parse_duration)]
    pub duration: Duration,
    /// One session, after which the far end goes on.
    #[arg(long, conflicts_with = "listen")]
    pub once: bool,
}

/// What stands between the commands of `starts`.
pub const THEN: &str = "--then";

/// Arguments of `starts`.
#[derive(Debug, Args)]
pub struct StartsArgs {
    /// How long: seconds, or a number with a unit.
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    #[arg(value_parser = super::parse_duration)]
    pub duration: Duration,
    /// What is started again and again, `--then`, and what is started once at the end.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    #[arg(allow_hyphen_values = true)]
    pub commands: Vec<String>,
}
