//! The arguments of `link`, and how links are read wherever one is asked for.

use super::{parse_duration, parse_place};
use clap::{ArgGroup, Args};
use dacapo::emulator::{self, LinkConfig};
use dacapo_sys::interface::Address;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Arguments of `link`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("where").required(true).args(["to", "between"]))]
pub struct LinkArgs {
    /// What the link does, such as "loss=5%,delay=20ms"; "perfect" does nothing.
    #[arg(value_name = "CONFIG", value_parser = parse_link)]
    pub config: LinkConfig,
    /// Relay UDP to this server, from whoever sends to --listen.
    #[arg(long, value_name = "HOST[:PORT]")]
    pub to: Option<String>,
    /// Where clients find the relay (IP or IP:PORT); without a port the system chooses one.
    #[arg(long, short, value_name = "ADDR", value_parser = parse_addr, conflicts_with = "between")]
    #[arg(default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))]
    pub listen: SocketAddr,
    /// Connect two network namespaces with TUN devices instead (root); those that do not exist are
    /// made, and removed at the end.
    #[arg(long, value_name = "NS1,NS2", value_parser = parse_namespaces)]
    pub between: Option<Namespaces>,
    /// The addresses of the devices in the two namespaces.
    #[arg(long, value_name = "A,B", value_parser = parse_addresses, requires = "between")]
    #[arg(default_value = "10.77.0.1/24,10.77.0.2/24")]
    pub addresses: Addresses,
    /// What the way back does, from the server or the second namespace; else CONFIG, too.
    #[arg(long, value_name = "CONFIG", value_parser = parse_link)]
    pub back: Option<LinkConfig>,
    /// What all chances are drawn from: the same seed and datagrams have the same fates.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// End after so long: seconds, or a number with a unit.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Print JSON, one event per line.
    #[arg(long)]
    pub json: bool,
}

/// The names of two network namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespaces(pub [String; 2]);

/// Two addresses with the lengths of their prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses(pub [Address; 2]);

/// An emulated link on the way of a session.
#[derive(Debug, Args)]
pub struct OverLink {
    /// Put an emulated link on the way, such as "loss=5%,delay=20ms", with the same effects in both
    /// directions; flows then have UDP only. `dacapo link --help` lists the effects.
    #[arg(long, value_name = "CONFIG", value_parser = parse_link)]
    pub link: Option<LinkConfig>,
    /// What the link's chances are drawn from.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "link")]
    pub link_seed: u64,
}

pub(super) fn parse_link(text: &str) -> Result<LinkConfig, String> {
    emulator::parse_link(text).map_err(|error| error.to_string())
}

fn parse_addr(text: &str) -> Result<SocketAddr, String> {
    Ok(parse_place(text)?.addr(0))
}

fn parse_namespaces(text: &str) -> Result<Namespaces, String> {
    match text.split_once(',') {
        Some((first, second)) if !first.is_empty() && !second.is_empty() && first != second => {
            Ok(Namespaces([first.to_owned(), second.to_owned()]))
        }
        _ => Err("two different names with a comma between them, such as a,b".to_owned()),
    }
}

fn parse_addresses(text: &str) -> Result<Addresses, String> {
    let wrong = || "two addresses with prefixes, such as 10.77.0.1/24,10.77.0.2/24".to_owned();
    let (first, second) = text.split_once(',').ok_or_else(wrong)?;
    let address = |text: &str| {
        let (ip, prefix_len) = text.trim().split_once('/').ok_or_else(wrong)?;
        let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
        let prefix_len: u8 = prefix_len.parse().map_err(|_| wrong())?;
        let most = if ip.is_ipv4() { 32 } else { 128 };
        if prefix_len <= most { Ok(Address { ip, prefix_len }) } else { Err(wrong()) }
    };
    Ok(Addresses([address(first)?, address(second)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_and_addresses_come_in_pairs() {
        let spaces = parse_namespaces("a,b").unwrap();
        assert_eq!(spaces.0, ["a", "b"]);
        for wrong in ["", "a", "a,", ",b", "a,a"] {
            assert!(parse_namespaces(wrong).is_err(), "{wrong:?}");
        }
        let Addresses([first, second]) = parse_addresses("10.0.0.1/8, fd00::2/64").unwrap();
        assert_eq!((first.prefix_len, second.prefix_len), (8, 64));
        for wrong in ["10.0.0.1/24", "10.0.0.1,10.0.0.2", "10.0.0.1/33,10.0.0.2/24", "a/1,b/2"] {
            assert!(parse_addresses(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_link_by_a_trace_is_read_and_one_without_a_file_says_which() {
        let link = parse_link("trace=cellular:7,aqm=dualpi2").unwrap();
        assert_eq!(link.to_string(), "trace=cellular:7,aqm=dualpi2");
        let error = parse_link("trace=none/there.trace").unwrap_err();
        assert!(error.starts_with("link: trace=none/there.trace: "), "{error}");
    }

    #[test]
    fn an_address_without_a_port_lets_the_system_choose() {
        assert_eq!(parse_addr("127.0.0.1").unwrap().to_string(), "127.0.0.1:0");
        assert_eq!(parse_addr("[::1]:7").unwrap().port(), 7);
        assert!(parse_addr("localhost").is_err());
    }
}
