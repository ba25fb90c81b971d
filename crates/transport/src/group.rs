//! [`Membership`]: whose datagrams to which group a transport is to hand up.
//!
//! What it is: what [`crate::Transport::join`] is asked for, and why it could not. What it is not:
//! the choice of a group; that is of who owns the session.
//!
//! Source: RFC 4607 (source-specific multicast), section 1 for the addresses that are for nothing
//! else.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Whose datagrams to which group are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Membership {
    /// The group, and the port that its datagrams go to.
    pub group: SocketAddr,
    /// Where they come from; what anybody else sends to the group is not handed up.
    pub source: SocketAddr,
    /// The network is asked to bring those of the source and no other's. Of a group that
    /// [`is_source_specific`] nothing else can be asked.
    pub source_specific: bool,
}

/// Whether a group exists for each source by itself: 232.0.0.0/8 and ff3x::/32.
#[must_use]
pub fn is_source_specific(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[0] == 232,
        IpAddr::V6(group) => {
            let [first, second, ..] = group.segments();
            first & 0xFFF0 == 0xFF30 && second == 0
        }
    }
}

/// Why a group could not be joined.
#[derive(Debug)]
#[non_exhaustive]
pub enum JoinError {
    /// The transport knows no groups.
    Unsupported {
        /// Its name.
        transport: &'static str,
    },
    /// The address is not one of a group.
    NotGroup {
        /// Which.
        group: SocketAddr,
    },
    /// Group and source are not of one family, or there is no way to the source.
    NoWay {
        /// The group.
        group: SocketAddr,
        /// The source.
        source: SocketAddr,
    },
    /// Another program has the port of the group for itself.
    InUse {
        /// The group.
        group: SocketAddr,
    },
    /// This transport, or the host, joins no more groups.
    TooMany {
        /// The group.
        group: SocketAddr,
    },
    /// Another error of the system.
    Other {
        /// The group.
        group: SocketAddr,
        /// The number of the interface; 0 when the routes were to choose.
        interface: u32,
        /// What the system said.
        error: io::Error,
    },
}

impl JoinError {
    pub(crate) fn of(wanted: &Membership, interface: u32, error: io::Error) -> Self {
        use io::ErrorKind::{AddrInUse, HostUnreachable, NetworkUnreachable, QuotaExceeded};
        let Membership { group, source, .. } = *wanted;
        match error.kind() {
            AddrInUse => Self::InUse { group },
            QuotaExceeded => Self::TooMany { group },
            HostUnreachable | NetworkUnreachable => Self::NoWay { group, source },
            _ if dacapo_sys::udp::is_no_buffers(&error) => Self::TooMany { group },
            _ => Self::Other { group, interface, error },
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { transport } => {
                write!(f, "{transport} knows no groups: use one that does, such as udp")
            }
            Self::NotGroup { group } => write!(
                f,
                "{} is not the address of a group: take one of 224.0.0.0/4 or ff00::/8",
                group.ip()
            ),
            Self::NoWay { group, source } => write!(
                f,
                "cannot join group {group}: there is no way to its source {source} from here: \
                 check the network, and that both are of one family"
            ),
            Self::InUse { group } => write!(
                f,
                "cannot join group {group}: another program has port {} for itself: choose \
                 another port for the group, or stop that program",
                group.port()
            ),
            Self::TooMany { group } => write!(
                f,
                "cannot join group {group}: this host is in too many groups: leave some, or raise \
                 net.ipv4.igmp_max_memberships"
            ),
            Self::Other { group, interface: 0, error } => write!(
                f,
                "cannot join group {group}: {error}: is there a route to it? (ip route add \
                 {}/32 dev INTERFACE)",
                group.ip()
            ),
            Self::Other { group, interface, error } => write!(
                f,
                "cannot join group {group} on interface {interface}: {error}: is it up, and does \
                 it take multicast? (ip link shows it)"
            ),
        }
    }
}

impl std::error::Error for JoinError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Other { error, .. } => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_one_source_are_known_by_their_addresses() {
        let is = |ip: &str| is_source_specific(ip.parse().unwrap());
        assert!(is("232.1.2.3") && is("ff3e::1") && is("ff35::abcd:1"));
        assert!(
            !is("239.1.2.3") && !is("ff15::1") && !is("ff3e:40:2001:db8::1") && !is("10.0.0.1")
        );
    }
}
