//! The arguments of `xtp`.
//!
//! What it is not: what is done with them (`commands/xtp`).

use super::{parse_duration, texts};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `xtp`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub struct XtpArgs {
    /// What to do.
    #[command(subcommand)]
    pub what: Xtp,
}

/// What can be done with XTP.
#[derive(Debug, Subcommand)]
pub enum Xtp {
    /// Listen: save the files that come, and answer pings.
    #[command(after_help = texts::XTP_LISTEN)]
    Listen(XtpListenArgs),
    /// Send files to a host where `dacapo xtp listen` runs.
    #[command(after_help = texts::XTP_SEND)]
    Send(XtpSendArgs),
    /// Measure round trips: transactions with a host where `dacapo xtp listen` runs.
    #[command(after_help = texts::XTP_PING)]
    Ping(XtpPingArgs),
    /// Write the packets of XTP that an interface carries into a file for Wireshark (root).
    #[command(after_help = texts::XTP_CAPTURE)]
    Capture(XtpCaptureArgs),
    /// Measure what XTP carries: the same as `dacapo bench xtp`.
    #[command(after_help = texts::BENCH_XTP)]
    Bench(super::BenchXtpArgs),
}

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

/// Arguments of `xtp listen`.
#[derive(Debug, Args)]
pub struct XtpListenArgs {
    /// What is below.
    #[command(flatten)]
    pub below: Below,
    /// Save in this folder, which is made when it is missing.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Write over files that are there.
    #[arg(long)]
    pub force: bool,
    /// Take what is sent to this group, too (a multicast address; its port is that of --listen).
    #[arg(long, value_name = "ADDR", value_parser = parse_place)]
    pub group: Option<Place>,
    /// End after the first association with files has ended.
    #[arg(long)]
    pub once: bool,
}

/// Arguments of `xtp send`.
#[derive(Debug, Args)]
pub struct XtpSendArgs {
    /// The host, over UDP and TCP with a port (usually 4040); over Ethernet its card's address. Or
    /// a group: a multicast address.
    #[arg(value_name = "HOST")]
    pub host: String,
    /// Files.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// What is below.
    #[command(flatten)]
    pub below: Below,
    /// Send at most so fast; without it as fast as the peer's window lets.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub rate: Option<u32>,
    /// Begin when so many members of the group have joined; without it with one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub members: Option<u32>,
}

/// Arguments of `xtp ping`.
#[derive(Debug, Args)]
pub struct XtpPingArgs {
    /// The host, over UDP and TCP with a port (usually 4040); over Ethernet its card's address.
    #[arg(value_name = "HOST")]
    pub host: String,
    /// What is below.
    #[command(flatten)]
    pub below: Below,
    /// How often.
    #[arg(long, short, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub count: u32,
    /// Bytes of a request and of its response.
    #[arg(long, short, value_name = "BYTES", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub size: u32,
    /// Time from one to the next: seconds, or a number with a unit.
    #[arg(long, short, value_name = "DURATION", default_value = "1s")]
    #[arg(value_parser = parse_duration)]
    pub interval: Duration,
    /// How long an answer is waited for: seconds, or a number with a unit.
    #[arg(long, short, value_name = "DURATION", default_value = "5s")]
    #[arg(value_parser = parse_duration)]
    pub wait: Duration,
}

/// Arguments of `xtp capture`.
#[derive(Debug, Args)]
pub struct XtpCaptureArgs {
    /// The interface, such as eth0 or lo.
    #[arg(value_name = "INTERFACE")]
    pub interface: String,
    /// The file (pcapng), written over; `-` is standard output.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The port of UDP that carries XTP.
    #[arg(long, value_name = "N", default_value_t = dacapo_xtp_net::UDP_PORT)]
    pub udp_port: u16,
    /// End after so many packets.
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after so long: seconds, or a number with a unit.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Print JSON, one event per line, on standard error when the packets go to standard output.
    #[arg(long)]
    pub json: bool,
}

/// An address of a host, and a port when it is said: `192.0.2.7`, `[2001:db8::7]:4040`, and of one
/// link with its interface, by number or name: `fe80::7%eth0`, `[fe80::7%2]:4040`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    at: SocketAddr,
    has_port: bool,
}

impl Place {
    /// The whole address, with this port where none was given.
    pub fn addr(self, port: u16) -> SocketAddr {
        let mut at = self.at;
        if !self.has_port {
            at.set_port(port);
        }
        at
    }

    /// Reads one; `None` when it is none, such as a name.
    pub fn parse(text: &str) -> Option<Self> {
        let with = |ip: IpAddr| Self { at: SocketAddr::new(ip, 0), has_port: false };
        if let Ok(at) = text.parse() {
            return Some(Self { at, has_port: true });
        }
        let (bare, port) = match text.strip_prefix('[')?.split_once(']') {
            Some((bare, "")) => (bare, None),
            Some((bare, rest)) => (bare, Some(rest.strip_prefix(':')?.parse::<u16>().ok()?)),
            None => return None,
        };
        let (ip, interface) = bare.split_once('%').unwrap_or((bare, ""));
        if interface.is_empty() && port.is_none() {
            return ip.parse().ok().map(with);
        }
        let ip: Ipv6Addr = ip.parse().ok()?;
        let number = interface.parse().ok();
        let number = number.or_else(|| dacapo_sys::interface::index(interface).ok())?;
        let at = SocketAddrV6::new(ip, port.unwrap_or(0), 0, number).into();
        Some(Self { at, has_port: port.is_some() })
    }

    /// The same without the brackets that only a port needs.
    pub fn parse_bare(text: &str) -> Option<Self> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Some(Self { at: SocketAddr::new(ip, 0), has_port: false });
        }
        Self::parse(text).or_else(|| Self::parse(&format!("[{text}]")))
    }
}

pub(super) fn parse_place(text: &str) -> Result<Place, String> {
    let wrong = "an IP address, such as 0.0.0.0, ::1, 10.0.0.7:4040 or fe80::7%eth0";
    Place::parse_bare(text).ok_or_else(|| wrong.to_owned())
}

/// Bytes per second, from bits.
pub(super) fn parse_rate(text: &str) -> Result<u32, String> {
    let wrong = || format!("{text:?} is no rate of 8 kbit/s to 34 Gbit/s, such as 20Mbit/s");
    let bits = dacapo_qos::parse_rate(text).map_err(|_| wrong())?;
    let bytes = u32::try_from(bits / 8).map_err(|_| wrong())?;
    // All ones says that there is no limit.
    if (1_000..u32::MAX).contains(&bytes) { Ok(bytes) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_ports_and_interfaces_where_they_are_said() {
        let text = |text: &str| Place::parse_bare(text).map(|it| it.addr(9).to_string());
        for (typed, is) in [
            ("192.0.2.7", "192.0.2.7:9"),
            ("192.0.2.7:0", "192.0.2.7:0"),
            ("2001:db8::7", "[2001:db8::7]:9"),
            ("[2001:db8::7]", "[2001:db8::7]:9"),
            ("[2001:db8::7]:4040", "[2001:db8::7]:4040"),
            ("fe80::7%2", "[fe80::7%2]:9"),
            ("fe80::7%lo", "[fe80::7%1]:9"),
            ("[fe80::7%lo]:4040", "[fe80::7%1]:4040"),
        ] {
            assert_eq!(text(typed), Some(is.to_owned()), "{typed}");
        }
        for wrong in ["", "host", "host:1", "[::1]x", "[::1]:", "fe80::7%no-such", "1.2.3.4%lo"] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn rates_are_bytes_per_second_within_bounds() {
        assert_eq!(parse_rate("20 Mbit/s"), Ok(2_500_000));
        for wrong in ["1 kbit/s", "40 Gbit/s", "fast", "20"] {
            assert!(parse_rate(wrong).unwrap_err().contains("20Mbit/s"), "{wrong}");
        }
    }
}
