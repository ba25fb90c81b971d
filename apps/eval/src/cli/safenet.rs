//! The arguments of `bench safenet`.

use clap::{Args, ValueEnum};
use std::time::Duration;

/// What carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MessagesOver {
    /// A call: both ends in one process.
    Memory,
    /// UDP over loopback.
    Udp,
    /// IP protocol 36 over a cable between two network namespaces; needs root.
    Ip,
    /// Frames of Ethernet over such a cable; needs root.
    Ethernet,
}

/// Arguments of `bench safenet`.
#[derive(Debug, Args)]
pub struct BenchSafenetArgs {
    /// What carries XTP's packets.
    #[arg(long, value_enum, value_name = "NETWORK", default_value_t = MessagesOver::Udp)]
    pub over: MessagesOver,
    /// Leave the bytes of messages out of XTP's checksum (NOCHECK); not over memory.
    #[arg(long)]
    pub no_check: bool,
    /// How long each point is measured: seconds, or a number with a unit.
    #[arg(long, value_name = "N", default_value = "200ms", value_parser = super::parse_duration)]
    pub seconds: Duration,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

impl BenchSafenetArgs {
    /// Whether what is asked goes together.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.no_check && self.over == MessagesOver::Memory {
            return Err(
                "--no-check is for networks: over memory nothing can be damaged, and both \
                        ends check all the same; use --over udp, ip or ethernet",
            );
        }
        Ok(())
    }
}
