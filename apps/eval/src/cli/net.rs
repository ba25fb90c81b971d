//! The arguments of `bench net`.

use super::{parse_duration, parse_len, parse_place};
use clap::builder::PossibleValue;
use clap::{ArgGroup, Args, ValueEnum};
use dacapo::Place;
use dacapo::spec::{Property, TransportSpec};
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

/// Far ends of a run at most.
const RECEIVERS_MAX: usize = 64;

/// Arguments of `bench net`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("end").args(["hosts", "listen", "receivers"]))]
pub struct BenchNetArgs {
    /// Where `dacapo bench net --listen` runs, several for a flow that is sent once for all of
    /// them; without any a second process on this host is the far end. IPv6 addresses in brackets.
    #[arg(value_name = "HOST[:PORT]", num_args = 0..=RECEIVERS_MAX)]
    pub hosts: Vec<String>,
    /// Keep trying for so long when nothing listens at a HOST yet, 1 ms to 24 h.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub dial_wait: Option<Duration>,
    /// Be the far end, at this address (IP or IP:PORT); without one at every IPv4 address.
    #[arg(long, short, value_name = "ADDR", num_args = 0..=1, default_missing_value = "0.0.0.0")]
    #[arg(value_parser = parse_place)]
    pub listen: Option<Place>,
    /// Without HOST: so many far ends, each a process on this host, for a flow that is sent once
    /// for all of them.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=RECEIVERS_MAX as i64))]
    pub receivers: Option<u16>,
    /// As the far end: end when the first who has measured has left.
    #[arg(long, requires = "listen")]
    pub once: bool,
    /// What is measured.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = NetWhat::All)]
    pub what: NetWhat,
    /// What is below the graph.
    #[arg(long, short, value_name = "T", value_enum, default_value_t = NetTransport::usual())]
    pub transport: NetTransport,
    /// The group and the port that are sent to over udp-multicast. Usually a transient one of
    /// 239.255.0.0/16 or ff15::/16.
    #[arg(long, value_name = "GROUP:PORT")]
    pub group: Option<SocketAddr>,
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
    /// What a flow sends at most; over UDP it is 100 Gbit/s when nothing is said, over
    /// tcp-multicast 200 Mbit/s, as who falls 1 MiB behind is cut off.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub rate: Option<u64>,
    /// Send for so long: seconds, or a number with a unit, up to an hour. Usually 5s, with --bytes
    /// 1min.
    #[arg(long, value_name = "DURATION", value_parser = parse_run)]
    duration: Option<Duration>,
    /// Send so much each way at most, in whole units.
    #[arg(long, value_name = "SIZE", value_parser = parse_len)]
    pub bytes: Option<u64>,
    /// How both ends wait for what comes: asleep, or awake and looking.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = NetWait::Adaptive)]
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
    /// In JSON, how long each unit took there and back, halved: all values, or beyond 100,000 of
    /// them how many there are of each, to three digits.
    #[arg(long, requires = "json")]
    pub samples: bool,
    /// End when standard input ends: for the command's own use.
    #[arg(long, hide = true, requires = "listen")]
    pub until_eof: bool,
}

impl BenchNetArgs {
    /// How many far ends there are.
    pub fn far_ends(&self) -> usize {
        self.hosts.len().max(self.receivers.map_or(1, usize::from))
    }

    /// Whether the far ends are processes of this command.
    pub fn are_far_ends_here(&self) -> bool {
        self.hosts.is_empty()
    }

    /// What a far end that is started is to do without.
    pub fn without(&self) -> impl Iterator<Item = &'static str> {
        let words = [(self.no_gso, "--no-gso"), (self.no_gro, "--no-gro")];
        words.into_iter().filter_map(|(is_without, word)| is_without.then_some(word))
    }

    /// Whether what is asked goes together: several far ends are sent to once for all, one way.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self) -> Result<(), &'static str> {
        let is_shared = self.transport.is_shared();
        let is_wrong = |group: SocketAddr| !group.ip().is_multicast() || group.port() == 0;
        if self.far_ends() > 1 && !is_shared {
            return Err("several far ends need --transport udp-multicast or tcp-multicast");
        }
        if self.group.is_some() && !self.transport.has_group() {
            return Err("--group needs --transport udp-multicast");
        }
        if self.group.is_some_and(is_wrong) {
            return Err("--group is the address of a group and a port, such as 239.1.2.3:5004");
        }
        if is_shared && self.direction != NetDirection::Up {
            return Err("what is sent once for all far ends goes up only: leave --direction out");
        }
        if is_shared && self.what == NetWhat::Latency {
            return Err("nothing comes back of what is sent once for all far ends: measure its \
                        bulk, or latency over another transport");
        }
        Ok(())
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

/// What can be below a graph: a transport of the catalogue. Usually the first, which goes beside
/// control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetTransport(pub &'static TransportSpec);

/// All of the catalogue.
static TRANSPORTS: LazyLock<Vec<NetTransport>> = LazyLock::new(|| {
    dacapo::catalogue().transports().iter().map(|spec| NetTransport(spec)).collect()
});

impl ValueEnum for NetTransport {
    fn value_variants<'a>() -> &'a [Self] {
        &TRANSPORTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name).help(self.0.summary))
    }
}

impl NetTransport {
    fn usual() -> Self {
        TRANSPORTS[0]
    }

    /// Whether a flow over it is sent once for all far ends.
    pub fn is_shared(self) -> bool {
        self.0.groups
    }

    /// Whether it sends to a group that has an address.
    pub fn has_group(self) -> bool {
        self.0.groups && !self.0.streams
    }

    /// Whether it gives this to a graph.
    pub fn gives(self, property: Property) -> bool {
        self.0.properties.contains(&property)
    }
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
    /// Asleep, after a look of 50 µs at most where the last wait was short and a processor is free.
    Adaptive,
    /// Looking again and again.
    Spin,
}

impl From<NetWait> for dacapo::Wait {
    fn from(how: NetWait) -> Self {
        match how {
            NetWait::Block => Self::Block,
            NetWait::Adaptive => Self::Adaptive,
            NetWait::Spin => Self::Spin,
        }
    }
}

fn parse_unit_len(text: &str) -> Result<u32, String> {
    let len = parse_len(text)?;
    let len = u32::try_from(len).ok().filter(|len| (16..=1 << 20).contains(len));
    len.ok_or_else(|| "16 B to 1 MiB".to_owned())
}

fn parse_rate(text: &str) -> Result<u64, String> {
    let rate = dacapo::text::parse_rate(text).map_err(|error| error.to_string())?;
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
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        args: BenchNetArgs,
    }

    fn check(words: &str) -> Result<usize, String> {
        let words = std::iter::once("net").chain(words.split_whitespace());
        let args = Alone::try_parse_from(words).map_err(|error| error.to_string())?.args;
        args.check().map(|()| args.far_ends()).map_err(str::to_owned)
    }

    #[test]
    fn several_far_ends_are_sent_to_once_for_all_and_one_way() {
        assert_eq!((check(""), check("a"), check("--listen 127.0.0.1")), (Ok(1), Ok(1), Ok(1)));
        assert_eq!(check("a b --transport udp-multicast"), Ok(2));
        assert_eq!(check("--receivers 3 --transport tcp-multicast --what bulk"), Ok(3));
        assert_eq!(check("a -t udp-multicast --group [ff15::1]:5004"), Ok(1));
        let group = "--group 239.1.2.3:5004";
        let most = " a".repeat(64);
        assert_eq!(check(&format!("{most} -t tcp-multicast")), Ok(64));
        for wrong in [
            "a b",
            "--receivers 2 -t tcp",
            "--receivers 0 -t tcp-multicast",
            "--receivers 65 -t tcp-multicast",
            &format!("{most} a -t tcp-multicast"),
            "a --receivers 2 -t tcp-multicast",
            "a --listen 127.0.0.1",
            "-t udp-multicast --direction both",
            "-t tcp-multicast --direction down",
            "-t tcp-multicast --what latency",
            "-t udp-multicast --group 10.1.2.3:5004",
            "-t udp-multicast --group 239.1.2.3:0",
            &format!("-t tcp-multicast {group}"),
            &format!("-t udp {group}"),
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

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
        assert_eq!(crate::cli::net_word(NetDirection::Both), "both");
    }
}
