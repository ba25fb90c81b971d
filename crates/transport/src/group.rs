//! [`JoinError`]: why a transport could not join a group.

use dacapo_lift::Membership;
use std::fmt;
use std::io;
use std::net::SocketAddr;

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
