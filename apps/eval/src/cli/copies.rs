//! The arguments of `bench copies`.

use clap::{Args, ValueEnum};

/// What an end does with each unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitWay {
    /// Sends it.
    Send,
    /// Is lent it, and looks at its pieces where they lie.
    Pieces,
    /// Is lent it, and looks at it as one slice.
    Slice,
    /// Has it put into memory of its own.
    Into,
    /// Is given it.
    Recv,
    /// Copies it once, without a flow.
    Bare,
}

/// Arguments of `bench copies`.
#[derive(Debug, Args)]
pub struct BenchCopiesArgs {
    /// Only over this transport.
    #[arg(long, value_name = "TRANSPORT")]
    pub over: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `copies-end`.
#[derive(Debug, Args)]
pub struct CopiesEndArgs {
    /// The transport of the units.
    #[arg(long, value_name = "TRANSPORT", default_value = "")]
    pub over: String,
    /// The far end's address; without one it is the far end, until standard input ends.
    #[arg(value_name = "ADDRESS", requires = "units")]
    pub address: Option<String>,
    /// What the near end does with each unit.
    #[arg(long, value_enum, default_value_t = UnitWay::Send)]
    pub way: UnitWay,
    /// How many units.
    #[arg(long, value_name = "N")]
    pub units: Option<u32>,
}
