//! The arguments of programs that speak XTP: what is below, addresses, rates.

use crate::args::parse_place;
use clap::{Args, ValueEnum, ValueHint};
use dacapo::Place;
use dacapo::text;
use std::path::PathBuf;

/// The network below XTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Over {
    /// UDP, which needs no rights.
    Udp,
    /// IP, as protocol 36 (root, or CAP_NET_RAW).
    Ip,
    /// Ethernet, as frames of type 817D (root, or CAP_NET_RAW).
    Ethernet,
    /// TCP connections, which are kept while they are used, as those of ATM would be.
    Tcp,
}

/// What is below XTP, and the port above it.
#[derive(Debug, Args)]
pub struct Below {
    /// The network.
    #[arg(long, value_enum, default_value_t = Over::Udp)]
    pub over: Over,
    /// This end (IP or IP:PORT); without it a listener takes loopback, over UDP and TCP with port
    /// 4040, and others what the route gives.
    #[arg(long, visible_alias = "listen", value_name = "ADDR", value_parser = parse_place)]
    pub local: Option<Place>,
    /// The interface, over Ethernet; over UDP and IP that of groups.
    #[arg(long, value_name = "NAME", required_if_eq("over", "ethernet"))]
    pub interface: Option<String>,
    /// The port of XTP, which has nothing to do with that of UDP.
    #[arg(long, short, value_name = "N", default_value_t = 5_000)]
    pub port: u16,
    /// The longest packet in bytes; usually what fits links of 1,500 bytes, or the interface's MTU.
    #[arg(long, value_name = "BYTES")]
    pub packet_len: Option<usize>,
    /// Write this end's packets into a file for Wireshark (pcapng), over what is there.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub capture: Option<PathBuf>,
    /// Print JSON, one event per line.
    #[arg(long)]
    pub json: bool,
}

/// Reads a rate: bytes per second, from bits.
///
/// # Errors
/// It is none that XTP can be told.
pub fn parse_rate(text: &str) -> Result<u32, String> {
    let wrong = || format!("{text:?} is no rate of 8 kbit/s to 34 Gbit/s, such as 20Mbit/s");
    let bits = text::parse_rate(text).map_err(|_| wrong())?;
    let bytes = u32::try_from(bits / 8).map_err(|_| wrong())?;
    // All ones says that there is no limit.
    if (1_000..u32::MAX).contains(&bytes) { Ok(bytes) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bytes_per_second_within_bounds() {
        assert_eq!(parse_rate("20 Mbit/s"), Ok(2_500_000));
        for wrong in ["1 kbit/s", "40 Gbit/s", "fast", "20"] {
            assert!(parse_rate(wrong).unwrap_err().contains("20Mbit/s"), "{wrong}");
        }
    }
}
