//! What can go wrong below XTP, typed, with what to do about it.

use dacapo_sys::icmp::Why;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Why a packet was not sent, did not arrive, or could not be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The host says that nobody listens there, or that it does not know the protocol.
    Refused,
    /// There is no way to the peer.
    Unreachable,
    /// A packet is longer than the way takes.
    TooLong {
        /// The longest IP packet, bytes, where it is known.
        mtu: Option<u32>,
    },
    /// A filter of this host or on the way forbids it.
    Denied,
    /// A packet came that is longer than any that is sent; it was dropped.
    Truncated,
    /// A queue of this end is full; the packet was dropped.
    Overrun,
    /// Another error of the system, by its number.
    Other(i32),
}

impl Fault {
    /// How many kinds there are.
    pub const COUNT: usize = 7;

    /// The place of its kind in a table.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Refused => 0,
            Self::Unreachable => 1,
            Self::TooLong { .. } => 2,
            Self::Denied => 3,
            Self::Truncated => 4,
            Self::Overrun => 5,
            Self::Other(_) => 6,
        }
    }

    /// The names of the kinds, in the order of [`Fault::index`].
    pub const NAMES: [&'static str; Self::COUNT] =
        ["refused", "unreachable", "too_long", "denied", "truncated", "overrun", "other"];

    /// What an error of the system means that is none of those with a name.
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Other(error.raw_os_error().unwrap_or(0)),
        }
    }
}

impl From<Why> for Fault {
    fn from(why: Why) -> Self {
        match why {
            Why::Refused => Self::Refused,
            Why::Unreachable => Self::Unreachable,
            Why::TooLong { mtu } => Self::TooLong { mtu: (mtu > 0).then_some(mtu) },
            Why::Denied => Self::Denied,
            Why::Other(errno) => Self::Other(errno),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("the host says that nobody takes XTP there"),
            Self::Unreachable => f.write_str("there is no way to the host"),
            Self::TooLong { mtu: Some(mtu) } => write!(
                f,
                "packets are too long for the way, which takes {mtu} bytes with the IP header; \
                 choose shorter ones"
            ),
            Self::TooLong { mtu: None } => {
                f.write_str("packets are too long for the way; choose shorter ones")
            }
            Self::Denied => f.write_str("a filter of packets forbids it; look at the firewall"),
            Self::Truncated => f.write_str("a packet was longer than any that is sent"),
            Self::Overrun => f.write_str("a queue is full, packets are dropped"),
            Self::Other(errno) => write!(f, "{}", io::Error::from_raw_os_error(*errno)),
        }
    }
}

/// Why nothing can be sent to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// This end is of the other family.
    Family {
        /// The address.
        peer: SocketAddr,
        /// This end's.
        local: SocketAddr,
    },
    /// A port is needed, and it is 0.
    NoPort(SocketAddr),
    /// An address of one link says not of which.
    NoInterface(SocketAddr),
    /// It is not the form that an Ethernet address has here.
    NotEthernet(SocketAddr),
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Family { peer, local } => write!(
                f,
                "{} cannot be reached from {}: one is IPv4, the other IPv6; listen at an address \
                 of the same family",
                peer.ip(),
                local.ip()
            ),
            Self::NoPort(peer) => write!(f, "{} needs a port, such as 4040", peer.ip()),
            Self::NoInterface(peer) => write!(
                f,
                "{} is of one link; say of which, by its number: [{}%2]",
                peer.ip(),
                peer.ip()
            ),
            Self::NotEthernet(peer) => write!(
                f,
                "{} is no address of Ethernet: those are fe80::/64 with ff:fe in the middle, made \
                 of the address of the card",
                peer.ip()
            ),
        }
    }
}

/// The first port that everybody may bind, where the host says nothing else (ip(7),
/// `ip_unprivileged_port_start`).
const LOW_PORTS_END: u16 = 1_024;

/// Why a network cannot be used.
#[derive(Debug)]
pub enum BindError {
    /// Another program has the port.
    InUse(SocketAddr),
    /// The address is not one of this host.
    NotHere(SocketAddr),
    /// It needs a right that this process lacks.
    NoRight {
        /// What needs it.
        what: &'static str,
    },
    /// A low port needs a right that this process lacks.
    LowPort(SocketAddr),
    /// There is no interface of this name.
    NoInterface(String),
    /// The interface is not Ethernet.
    NotEthernet(String),
    /// The longest packet that is asked for cannot be.
    PacketLen {
        /// What was asked.
        len: usize,
        /// What can be.
        most: usize,
    },
    /// Another error of the system.
    Other(io::Error),
}

impl BindError {
    /// What the system's answer to binding `at` means; `raw` is what needs CAP_NET_RAW, `None`
    /// where nothing does.
    pub(crate) fn of(error: io::Error, raw: Option<&'static str>, at: SocketAddr) -> Self {
        match error.kind() {
            io::ErrorKind::AddrInUse => Self::InUse(at),
            io::ErrorKind::AddrNotAvailable => Self::NotHere(at),
            io::ErrorKind::PermissionDenied => match raw {
                Some(what) => Self::NoRight { what },
                None if (1..LOW_PORTS_END).contains(&at.port()) => Self::LowPort(at),
                None => Self::Other(error),
            },
            _ => Self::Other(error),
        }
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(at) => {
                write!(f, "{at} is in use by another program; stop it or choose another port")
            }
            Self::NotHere(at) => {
                write!(f, "{} is no address of this host; `ip address` lists them", at.ip())
            }
            Self::NoRight { what } => write!(
                f,
                "{what} needs the right CAP_NET_RAW: run it as root, give the program the right \
                 (setcap cap_net_raw+ep PROGRAM), or use UDP, which needs none"
            ),
            Self::LowPort(at) => write!(
                f,
                "port {} of {} needs the right CAP_NET_BIND_SERVICE: choose a port from \
                 {LOW_PORTS_END} on, run it as root, or give the program the right (setcap \
                 cap_net_bind_service+ep PROGRAM)",
                at.port(),
                at.ip()
            ),
            Self::NoInterface(name) => {
                write!(f, "there is no interface {name:?}; `ip link` lists them")
            }
            Self::NotEthernet(name) => {
                write!(f, "the interface {name:?} is not Ethernet; choose another, or IP or UDP")
            }
            Self::PacketLen { len, most } => {
                write!(f, "packets of {len} bytes cannot be; choose 128 to {most}")
            }
            Self::Other(error) => write!(f, "{error}"),
        }
    }
}

/// Why a group cannot be joined.
#[derive(Debug)]
pub enum JoinError {
    /// It is no address of a group, or of another family, or port.
    NotGroup {
        /// The address.
        group: SocketAddr,
        /// This end's.
        local: SocketAddr,
    },
    /// As many groups as there may be are joined.
    Full {
        /// How many.
        count: usize,
    },
    /// This network has no groups.
    Unsupported,
    /// An error of the system.
    System(io::Error),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGroup { group, local } => write!(
                f,
                "{group} is no group that {local} can join: it is to be a multicast address of \
                 the same family and, over UDP, the same port"
            ),
            Self::Full { count } => write!(f, "{count} groups are joined, the most there may be"),
            Self::Unsupported => f.write_str("this network has no groups"),
            Self::System(error) => {
                write!(f, "the system does not join it: {error}; is there a route to groups?")
            }
        }
    }
}

impl std::error::Error for Fault {}
impl std::error::Error for AddressError {}
impl std::error::Error for BindError {}
impl std::error::Error for JoinError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_that_lacks_is_the_one_that_is_needed() {
        let of = |raw, at: &str| {
            let denied = io::ErrorKind::PermissionDenied.into();
            BindError::of(denied, raw, at.parse().unwrap_or(([0; 4], 0).into())).to_string()
        };
        let low = of(None, "127.0.0.1:80");
        assert!(low.contains("CAP_NET_BIND_SERVICE") && low.contains("from 1024 on"), "{low}");
        let raw = of(Some("IP protocol 36"), "127.0.0.1:80");
        assert!(raw.contains("IP protocol 36 needs the right CAP_NET_RAW"), "{raw}");
        let other = of(None, "127.0.0.1:1024");
        assert!(!other.contains("CAP_"), "{other}");
    }
}
