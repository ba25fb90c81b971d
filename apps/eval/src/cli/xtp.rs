//! The arguments of `bench xtp`, which is `xtp bench` too.

use super::{parse_duration, parse_len, parse_place};
use clap::{Args, ValueEnum};
use dacapo::Place;
use dacapo_term::xtp::args::{Over, parse_rate};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// What the paper lets a sender give at once, bytes.
const SEND_LENS: &str = "512,1024,2048,4096,8192,16384,32768,65536";
/// The longest that can be given at once, bytes.
const SEND_LEN_MAX: u64 = 1 << 20;
/// The longest packet, bytes; what a datagram of IPv4 or IPv6 takes.
const PACKET_LEN_MAX: u64 = 65_000;
/// The longest window, bytes.
const WINDOW_MAX: u64 = 256 << 20;
/// The most that a run sends, bytes.
const BYTES_MAX: u64 = 1 << 40;

/// Arguments of `bench xtp`.
#[derive(Debug, Args)]
pub struct BenchXtpArgs {
    /// Where `dacapo bench xtp --listen` runs; without it a second process on this host is the far
    /// end. Over Ethernet the address of its card.
    #[arg(value_name = "HOST", conflicts_with = "listen")]
    pub host: Option<String>,
    /// Be the far end, at this address (IP or IP:PORT); without one at every IPv4 address.
    #[arg(long, short, value_name = "ADDR", num_args = 0..=1, default_missing_value = "0.0.0.0")]
    #[arg(value_parser = parse_place)]
    pub listen: Option<Place>,
    /// As the far end: end after so many associations, those that broke counted.
    #[arg(long, value_name = "N", requires = "listen")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// The network.
    #[arg(long, value_enum, default_value_t = Over::Udp)]
    pub over: Over,
    /// The interface, over Ethernet.
    #[arg(long, value_name = "NAME", required_if_eq("over", "ethernet"))]
    pub interface: Option<String>,
    /// The port of XTP, which has nothing to do with that of UDP.
    #[arg(long, short, value_name = "N", default_value_t = 5_001)]
    pub port: u16,
    /// How it is sent; several with commas. Usually all.
    #[arg(long, short, value_name = "MODE", value_enum, value_delimiter = ',')]
    #[arg(default_values_t = XtpMode::ALL)]
    pub mode: Vec<XtpMode>,
    /// Bytes that the sender gives at once, 1 to 1048576; several with commas.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = SEND_LENS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=SEND_LEN_MAX as i64))]
    pub send_len: Vec<u32>,
    /// The longest packet in bytes, 128 to 65000; several with commas. The longest of a far end is
    /// the longest that it is sent, too.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "2048,4096")]
    #[arg(value_parser = clap::value_parser!(u32).range(128..=PACKET_LEN_MAX as i64))]
    pub packet_len: Vec<u32>,
    /// What a run sends, up to 1024 GiB; in whole sends.
    #[arg(long, value_name = "SIZE", default_value = "100MB", value_parser = parse_bytes)]
    pub bytes: u64,
    /// Runs are repeated until they have lasted so long, with pauses: seconds, or a number with a
    /// unit.
    #[arg(long, value_name = "DURATION", default_value = "3s")]
    #[arg(value_parser = parse_duration)]
    pub seconds: Duration,
    /// A run sends no more after so long, pauses counted; what is under way is still waited for:
    /// seconds, or a number with a unit.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub run_max: Option<Duration>,
    /// The window of an end that this command starts, 64 KiB to 256 MiB.
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = parse_window)]
    pub window: u64,
    /// Without a checksum over the data (NOCHECK) where nothing may be lost, too; what may be lost
    /// has none.
    #[arg(long)]
    pub no_check: bool,
    /// Send at most so fast (RATE and BURST of XTP); without it as fast as the window lets.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub rate: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// End when standard input ends: for the command's own use.
    #[arg(long, hide = true, requires = "listen")]
    pub until_eof: bool,
}

impl BenchXtpArgs {
    /// Whether what is asked goes together.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self) -> Result<(), &'static str> {
        let is_here = self.host.is_none() && self.listen.is_none();
        if is_here && self.over == Over::Ethernet {
            return Err("over Ethernet the far end is at another interface: start `dacapo bench \
                        xtp --listen --over ethernet --interface NAME` there, and name the \
                        address of its card here, such as 02:11:22:33:44:55");
        }
        Ok(())
    }

    /// Where a far end is that this command starts: protocol 36 has no ports, so it has an address
    /// of its own.
    pub fn here(&self) -> SocketAddr {
        let last = if self.over == Over::Ip { 2 } else { 1 };
        SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0)
    }
}

/// How it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum XtpMode {
    /// Reliable; the sender waits for each send to be acknowledged (ACK-Rel).
    AckRel,
    /// Unreliable; the sender waits for each send to be acknowledged (ACK-Un).
    AckUn,
    /// Unreliable, without waiting, in bursts of 1 MB with pauses of 100 ms (Blast_Mode_Un).
    Blast,
    /// Unreliable, without waiting, without pauses.
    BlastSteady,
    /// Reliable, without waiting, bytes and not messages: not of the paper, but what one uses.
    Stream,
}

impl XtpMode {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::AckRel, Self::AckUn, Self::Blast, Self::BlastSteady, Self::Stream];

    /// Whether nothing may be lost.
    pub fn is_reliable(self) -> bool {
        matches!(self, Self::AckRel | Self::Stream)
    }

    /// Whether each send is a message.
    pub fn sends_messages(self) -> bool {
        self != Self::Stream
    }

    /// Whether the sender waits after each send.
    pub fn waits(self) -> bool {
        matches!(self, Self::AckRel | Self::AckUn)
    }
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let bytes = parse_len(text)?;
    if bytes <= BYTES_MAX { Ok(bytes) } else { Err("at most 1024 GiB".to_owned()) }
}

fn parse_window(text: &str) -> Result<u64, String> {
    let window = parse_len(text)?;
    let is_allowed = (64 << 10..=WINDOW_MAX).contains(&window);
    if is_allowed { Ok(window) } else { Err("64 KiB to 256 MiB".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        args: BenchXtpArgs,
    }

    fn read(words: &str) -> Result<BenchXtpArgs, String> {
        let words = std::iter::once("xtp").chain(words.split_whitespace());
        let args = Alone::try_parse_from(words).map_err(|error| error.to_string())?.args;
        args.check().map(|()| args).map_err(str::to_owned)
    }

    #[test]
    fn what_nobody_says_is_what_the_paper_did() {
        let args = read("").unwrap();
        assert_eq!((args.mode.len(), args.send_len.len()), (5, 8));
        assert_eq!((args.packet_len, args.bytes), (vec![2_048, 4_096], 100_000_000));
        let some = read("--mode ack-rel,stream --send-len 7 --packet-len 1452").unwrap();
        assert_eq!(some.mode, [XtpMode::AckRel, XtpMode::Stream]);
        assert_eq!((some.send_len, some.packet_len), (vec![7], vec![1_452]));
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        for (wrong, says) in [
            ("--mode fast", "blast-steady"),
            ("--send-len 0", "1..=1048576"),
            ("--packet-len 65001", "128..=65000"),
            ("--window 1", "64 KiB to 256 MiB"),
            ("--bytes 2000GiB", "at most 1024 GiB"),
            ("--over ethernet --interface lo", "address of its card"),
            ("--over ethernet --listen", "--interface"),
            ("192.0.2.7 --listen", "--listen"),
            ("--count 1", "--listen"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_far_end_here_has_an_address_of_its_own_where_there_are_no_ports() {
        assert_eq!(read("").unwrap().here().to_string(), "127.0.0.1:0");
        assert!(read("--over ethernet --interface lo --listen").is_ok());
        assert_eq!(read("--over ip").unwrap().here().to_string(), "127.0.0.2:0");
    }
}
