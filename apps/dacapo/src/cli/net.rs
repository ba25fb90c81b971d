//! The arguments of `bench net`.

use super::{Listen, parse_duration, parse_listen};
use clap::{ArgGroup, Args, ValueEnum};
use std::time::Duration;

/// Arguments of `bench net`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("end").args(["host", "listen"]))]
pub struct BenchNetArgs {
    /// Where `dacapo bench net --listen` runs; without it a second process on this host is the far
    /// end. IPv6 addresses in brackets.
    #[arg(value_name = "HOST[:PORT]")]
    pub host: Option<String>,
    /// Be the far end, at this address (IP or IP:PORT); without one at every IPv4 address.
    #[arg(long, short, value_name = "ADDR", num_args = 0..=1, default_missing_value = "0.0.0.0")]
    #[arg(value_parser = parse_listen)]
    pub listen: Option<Listen>,
    /// As the far end: end when the first who has measured has left.
    #[arg(long, requires = "listen")]
    pub once: bool,
    /// What is measured.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = NetWhat::All)]
    pub what: NetWhat,
    /// What is below the graph.
    #[arg(long, short, value_name = "T", value_enum, default_value_t = NetTransport::Udp)]
    pub transport: NetTransport,
    /// The modules from the application to the network, such as "segment,sequence", or as in a
    /// session file: '["segment", { module = "sequence", hold = "60 ms" }]'; "" is none. Usually
    /// "segment,sequence"; over TCP none, or "segment" for units that need it.
    #[arg(long, short, value_name = "G")]
    pub graph: Option<String>,
    /// Who sends.
    #[arg(long, value_name = "WAY", value_enum, default_value_t = NetDirection::Up)]
    pub direction: NetDirection,
    /// Flows each way, at the same time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=16))]
    pub flows: u16,
    /// Bytes of a unit, 16 B to 1 MiB; what is usual fits one train of datagrams, and one record of
    /// TCP.
    #[arg(long, value_name = "SIZE", default_value = "60 KiB", value_parser = parse_unit_len)]
    pub unit_len: u32,
    /// What a flow sends at most; over UDP it is 100 Gbit/s when nothing is said.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub rate: Option<u64>,
    /// Send for so long: seconds, or a number with a unit, up to an hour. Usually 5s, with --bytes
    /// 1min.
    #[arg(long, value_name = "DURATION", value_parser = parse_run)]
    duration: Option<Duration>,
    /// Send so much each way at most, in whole units.
    #[arg(long, value_name = "SIZE", value_parser = super::transfer::parse_len)]
    pub bytes: Option<u64>,
    /// How both ends wait for what comes: asleep, or awake and looking.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = NetWait::Block)]
    pub wait: NetWait,
    /// Send each datagram over UDP in a call of its own, at the ends that this command starts.
    #[arg(long)]
    pub no_gso: bool,
    /// Receive each datagram over UDP in a call of its own, at the ends that this command starts.
    #[arg(long)]
    pub no_gro: bool,
    /// How often everything is measured; the medians are shown.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// End when standard input ends: for the command's own use.
    #[arg(long, hide = true, requires = "listen")]
    pub until_eof: bool,
}

impl BenchNetArgs {
    /// What a far end that is started is to do without.
    pub fn without(&self) -> impl Iterator<Item = &'static str> {
        let words = [(self.no_gso, "--no-gso"), (self.no_gro, "--no-gro")];
        words.into_iter().filter_map(|(is_without, word)| is_without.then_some(word))
    }

    /// The longest that a run sends.
    pub fn duration(&self) -> Duration {
        let usual = if self.bytes.is_some() { 60 } else { 5 };
        self.duration.unwrap_or(Duration::from_secs(usual))
    }
}

/// What `bench net` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NetWhat {
    /// Both, one after the other.
    All,
    /// How much goes through.
    Bulk,
    /// How long a small unit takes there and back.
    Latency,
}

/// What can be below a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NetTransport {
    /// Datagrams.
    Udp,
    /// A byte stream for each flow.
    Tcp,
    /// Shared memory for each flow, on one host.
    Shm,
    /// An encrypted stream for each flow.
    Quic,
    /// Encrypted datagrams.
    QuicDatagram,
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NetDirection {
    /// This end.
    Up,
    /// The far end.
    Down,
    /// Both at the same time.
    Both,
}

/// How an end waits for what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NetWait {
    /// Asleep until the system wakes it.
    Block,
    /// Looking again and again.
    Spin,
}

/// Every choice has the word that is written for it.
pub fn word(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn parse_unit_len(text: &str) -> Result<u32, String> {
    let len = super::transfer::parse_len(text)?;
    let len = u32::try_from(len).ok().filter(|len| (16..=1 << 20).contains(len));
    len.ok_or_else(|| "16 B to 1 MiB".to_owned())
}

fn parse_rate(text: &str) -> Result<u64, String> {
    let rate = dacapo_qos::parse_rate(text).map_err(|error| error.to_string())?;
    let is_allowed = (1_000..=1_000_000_000_000).contains(&rate);
    if is_allowed { Ok(rate) } else { Err("1 kbit/s to 1000 Gbit/s".to_owned()) }
}

fn parse_run(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text)?;
    let is_allowed = duration <= Duration::from_secs(3_600);
    if is_allowed { Ok(duration) } else { Err("at most an hour".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_rates_and_durations_have_bounds() {
        assert_eq!(parse_unit_len("64KiB"), Ok(65_536));
        assert_eq!(parse_unit_len("1400"), Ok(1_400));
        for wrong in ["15", "0", "2 MiB", "x", "99999999999"] {
            assert!(parse_unit_len(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(parse_rate("10 Mbit/s"), Ok(10_000_000));
        assert!(parse_rate("1 bit/s").is_err() && parse_rate("2000 Gbit/s").is_err());
        assert_eq!(parse_run("2s"), Ok(Duration::from_secs(2)));
        assert!(parse_run("2h").is_err() && parse_run("7200").is_err());
        assert_eq!(word(NetDirection::Both), "both");
    }
}
