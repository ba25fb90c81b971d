//! The arguments of `xtp`.

use super::{parse_duration, parse_place, texts};
use clap::{Args, Subcommand, ValueHint};
use dacapo::Place;
use dacapo::xtp_net::UDP_PORT;
use dacapo_term::xtp::args::{Below, parse_rate};
use std::ffi::OsString;
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
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Bench(XtpBenchArgs),
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
    #[arg(long, value_name = "N", default_value_t = UDP_PORT)]
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

/// Arguments of `xtp bench`.
#[derive(Debug, Args)]
pub struct XtpBenchArgs {
    /// Options of the measurement.
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}
