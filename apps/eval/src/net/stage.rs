//! [`Stage`]: where the near end serves what is sent once for several far ends.
//!
//! An address of this host that all of them reach, a group, and fresh names.
//!
//! Invariant: the address is the one from which all far ends are reached: a group has one source,
//! and who joins it takes nothing from any other.
//!
//! Source: RFC 2365, section 6.1 (239.255.0.0/16, the local scope); RFC 4291, section 2.7 (ff15::,
//! transient, of a site).

use super::ask::Ask;
use super::asked::Asked;
use super::session::Audience;
use crate::exit::{Exit, Failure};
use dacapo::Random;
use dacapo::{Creator, Endpoint};
use dacapo_base::Address;
use dacapo_io::address::ip;
use dacapo_sys::udp::{Config, Socket};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Ports that are for nothing in particular (RFC 6335, section 6).
const FREE_PORTS: u16 = 49_152;

/// Where what is sent once is served.
pub struct Stage {
    /// Where it listens; the port is 0 until it does.
    at: SocketAddr,
    audience: Audience,
    names: Random,
}

impl Stage {
    /// A stage that all far ends reach.
    ///
    /// # Errors
    /// Some are reached from another address of this host than others; a group of another family.
    pub fn new(asked: &[Asked], ask: &Ask, group: Option<SocketAddr>) -> Result<Self, Failure> {
        let at = source(asked)?;
        let mut names = super::random()?;
        let is_group = ask.transport.has_group();
        let group = is_group.then(|| group.unwrap_or_else(|| any_group(at, &mut names)));
        if let Some(group) = group.filter(|group| group.is_ipv4() != at.is_ipv4()) {
            let text = format!("{group} and {}, the source, are not of one family", at.ip());
            return Err(Failure::new(Exit::Invalid, "bench net --group", text));
        }
        Ok(Self { at, audience: Audience { participants: asked.len(), group }, names })
    }

    /// Where it is served.
    pub fn port(&self) -> u16 {
        self.at.port()
    }

    /// Serves the session of a run, under a fresh name.
    ///
    /// # Errors
    /// It cannot be, and why.
    pub fn serve(&mut self, endpoint: &Endpoint, ask: &Ask) -> Result<(Creator, String), Failure> {
        let name = super::session_name(&mut self.names);
        let invalid = |text: String| Failure::new(Exit::Invalid, "bench net", text);
        let text = ask.session_file(&name, &self.audience).map_err(invalid)?;
        let failed = |error| Failure::core("bench net", &error);
        let creator = endpoint.create(&text).map_err(failed)?;
        creator.listen(&self.at.to_string()).map_err(failed)?;
        if let Some(at) = endpoint.listening().first().and_then(Address::ip) {
            self.at = at;
        }
        Ok((creator, name))
    }
}

/// The address of this host from which all far ends are reached.
fn source(asked: &[Asked]) -> Result<SocketAddr, Failure> {
    let mut found: Option<(&Asked, SocketAddr)> = None;
    for far in asked {
        let failed = |error: io::Error| Failure::run_time(&far.what(), error);
        let local = local_towards(far.remote()).map_err(failed)?;
        match found {
            Some((other, at)) if at != local => {
                let (other, host) = (other.host(), far.host());
                let text = format!(
                    "{other} is reached from {}, and {host} from {}: what is sent once has one \
                     source; name the far ends by addresses of one network",
                    at.ip(),
                    local.ip()
                );
                return Err(Failure::run_time("bench net", text));
            }
            _ => found = Some((far, local)),
        }
    }
    found.map(|(_, at)| at).ok_or_else(|| Failure::run_time("bench net", "no far end"))
}

/// The address from which a remote is reached, with port 0. Nothing is sent.
fn local_towards(remote: Address) -> io::Result<SocketAddr> {
    let remote = ip(remote)?;
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = Socket::bind(SocketAddr::new(any, 0), &Config::default())?;
    socket.connect(remote)?;
    let mut local = socket.local_addr()?;
    local.set_port(0);
    Ok(local)
}

/// A group that hardly anybody else is in.
fn any_group(source: SocketAddr, random: &mut Random) -> SocketAddr {
    let [a, b, c, d, ..] = random.next_u64().to_be_bytes();
    let group: IpAddr = match source {
        SocketAddr::V4(_) => Ipv4Addr::new(239, 255, a, b).into(),
        SocketAddr::V6(_) => {
            Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, u16::from_be_bytes([a, b]), 0xdaca).into()
        }
    };
    SocketAddr::new(group, FREE_PORTS | u16::from_be_bytes([c, d]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_one_of_a_site_and_of_the_family_of_its_source() {
        let mut random = Random::from_seed([7; 32]);
        for source in ["127.0.0.1:0", "[::1]:0"] {
            let source: SocketAddr = source.parse().unwrap();
            for _ in 0..100 {
                let group = any_group(source, &mut random);
                assert!(group.ip().is_multicast() && group.port() >= FREE_PORTS, "{group}");
                assert_eq!(group.is_ipv4(), source.is_ipv4());
            }
        }
    }

    #[test]
    fn this_host_reaches_itself_from_loopback() {
        let local = local_towards("127.0.0.1:9".parse().unwrap()).unwrap();
        assert_eq!(local, "127.0.0.1:0".parse().unwrap());
    }
}
