//! [`Place`]: an address of a host as people write it, with a port where one is said.
//!
//! ```text
//!   192.0.2.7    192.0.2.7:4040    2001:db8::7    [2001:db8::7]:4040
//!   fe80::7%eth0    [fe80::7%eth0]:4040    [fe80::7%2]        of one link: with its interface
//! ```
//!
//! Invariant: an address of one link has its interface, for without it nothing can be reached.
//!
//! Decoder: of text from a user.
//!
//! Source: RFC 4007, section 11 (the interface behind the address).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use dacapo_sys::interface;
use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;

/// An address, and a port where one was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// With port 0 where none was said.
    at: SocketAddr,
    has_port: bool,
}

impl Place {
    /// The whole address, with this port where none was given.
    #[must_use]
    pub fn addr(self, port: u16) -> SocketAddr {
        let mut at = self.at;
        if !self.has_port {
            // One of one link keeps its interface.
            at.set_port(port);
        }
        at
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        if let Ok(at) = text.parse::<SocketAddr>() {
            return Ok(Self { at: with_interface(at, None)?, has_port: true });
        }
        let (host, port) = match text.strip_prefix('[') {
            None => (text, None),
            Some(rest) => match rest.split_once(']').ok_or(PlaceError::NotAddress)? {
                (host, "") => (host, None),
                (host, port) => (host, Some(port)),
            },
        };
        let (ip, name) = host.split_once('%').map_or((host, None), |(ip, name)| (ip, Some(name)));
        let ip: IpAddr = ip.parse().map_err(|_| PlaceError::NotAddress)?;
        let number = port.map(|port| port.strip_prefix(':').and_then(|port| port.parse().ok()));
        // Only an address of IPv6 has brackets before a port.
        let port = number.map(|port| port.filter(|_| ip.is_ipv6()).ok_or(PlaceError::NotAddress));
        let port = port.transpose()?;
        let at = with_interface(SocketAddr::new(ip, port.unwrap_or(0)), name)?;
        Ok(Self { at, has_port: port.is_some() })
    }
}

/// The address with the interface of this name or number, or the one that it has.
fn with_interface(at: SocketAddr, name: Option<&str>) -> Result<SocketAddr, PlaceError> {
    let at = match at {
        SocketAddr::V4(_) if name.is_some() => return Err(PlaceError::NotAddress),
        SocketAddr::V4(_) => return Ok(at),
        SocketAddr::V6(at) => at,
    };
    let number = match name {
        Some(name) => number_of(name)?,
        None if at.scope_id() != 0 => number_of(&at.scope_id().to_string())?,
        None if is_of_link(at.ip()) => return Err(PlaceError::NeedsInterface { ip: *at.ip() }),
        None => 0,
    };
    Ok(SocketAddrV6::new(*at.ip(), at.port(), 0, number).into())
}

fn is_of_link(ip: &Ipv6Addr) -> bool {
    ip.is_unicast_link_local()
}

fn number_of(name: &str) -> Result<u32, PlaceError> {
    let unknown = || PlaceError::NoInterface { name: name.chars().take(40).collect() };
    match name.parse() {
        Ok(number) => interface::name(number).map(|_| number).map_err(|_| unknown()),
        Err(_) => interface::index(name).map_err(|_| unknown()),
    }
}

/// Why a text is no [`Place`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// It is no address; it may be a name.
    NotAddress,
    /// This host has no interface of this name or number.
    NoInterface {
        /// As it was written.
        name: String,
    },
    /// The address is of one link, and there may be several.
    NeedsInterface {
        /// Which.
        ip: Ipv6Addr,
    },
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAddress => f.write_str(
                "no IP address, such as 0.0.0.0, ::1, 10.0.0.7:19980 or [fe80::7%eth0]:19980",
            ),
            Self::NoInterface { name } => write!(
                f,
                "this host has no interface {name:?}: name one of those that `ip link` shows"
            ),
            Self::NeedsInterface { ip } => {
                write!(f, "{ip} is of one link: name its interface, as in {ip}%eth0")
            }
        }
    }
}

impl Error for PlaceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_ports_and_interfaces_where_they_are_said() {
        let text = |text: &str| text.parse().map(|it: Place| it.addr(9).to_string());
        for (typed, is) in [
            ("192.0.2.7", "192.0.2.7:9"),
            ("192.0.2.7:0", "192.0.2.7:0"),
            ("2001:db8::7", "[2001:db8::7]:9"),
            ("[2001:db8::7]", "[2001:db8::7]:9"),
            ("[2001:db8::7]:4040", "[2001:db8::7]:4040"),
            ("fe80::7%1", "[fe80::7%1]:9"),
            ("fe80::7%lo", "[fe80::7%1]:9"),
            ("[fe80::7%lo]", "[fe80::7%1]:9"),
            ("[fe80::7%lo]:4040", "[fe80::7%1]:4040"),
            ("[fe80::7%1]:4040", "[fe80::7%1]:4040"),
        ] {
            assert_eq!(text(typed), Ok(is.to_owned()), "{typed}");
        }
        for wrong in [
            "",
            "host",
            "host:1",
            "[::1]x",
            "[::1]:",
            "[::1]:x",
            "[::1",
            "::1]",
            "1.2.3.4%lo",
            "%lo",
            "[1.2.3.4]:5",
            "fe80::7%lo:4040%lo",
        ] {
            let error = text(wrong).unwrap_err();
            let is_wrong = matches!(error, PlaceError::NotAddress | PlaceError::NoInterface { .. });
            assert!(is_wrong, "{wrong}");
        }
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        for wrong in ["fe80::7%no-such", "[fe80::7%no-such]:4040", "[fe80::7%no-such]"] {
            let error = wrong.parse::<Place>().unwrap_err();
            assert_eq!(error, PlaceError::NoInterface { name: "no-such".into() }, "{wrong}");
            assert!(error.to_string().contains("\"no-such\""), "{error}");
        }
        for wrong in ["fe80::7%4000000", "[fe80::7%4000000]:4040"] {
            let error = wrong.parse::<Place>().unwrap_err();
            assert_eq!(error, PlaceError::NoInterface { name: "4000000".into() }, "{wrong}");
        }
        assert!(matches!("fe80::7%".parse::<Place>(), Err(PlaceError::NoInterface { .. })));
    }

    #[test]
    fn an_address_of_one_link_needs_its_interface() {
        for wrong in ["fe80::7", "[fe80::7]", "[fe80::7]:4040"] {
            let error = wrong.parse::<Place>().unwrap_err();
            assert_eq!(
                error.to_string(),
                "fe80::7 is of one link: name its interface, as in \
                                           fe80::7%eth0",
                "{wrong}"
            );
        }
        assert!("ff02::1".parse::<Place>().is_ok(), "a group may be reached by any");
    }
}
