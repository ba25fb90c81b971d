//! What a UDP transport is asked for, and why it could not start.

use dacapo_sys::udp;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// The most addresses that one transport listens at.
pub const LISTEN_ADDRS_MAX: usize = 16;

/// What a UDP transport is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Send trains in one call where the kernel can; false forces a call per datagram.
    pub gso: bool,
    /// Receive trains in one call where the kernel can; false forces a call per datagram.
    pub gro: bool,
    /// Bytes of receive buffer to ask for per socket; the kernel may give less.
    pub recv_buffer_bytes: usize,
    /// Bytes of send buffer to ask for per socket; the kernel may give less.
    pub send_buffer_bytes: usize,
    /// The most data lanes and memberships of groups, up to [`crate::DATA_LANES_MAX`].
    pub data_lanes_max: usize,
    /// How groups are reached.
    pub groups: Groups,
}

/// How groups are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The number of the interface by which groups are joined and sent to; `None` takes the one by
    /// which the source is reached, or that has the address that is listened at.
    pub interface: Option<u32>,
    /// How many hops what is sent to a group goes; 1 stays on the link.
    pub hops: u8,
    /// Receivers on this host get what is sent to a group, too.
    pub loops: bool,
}

impl Default for Groups {
    fn default() -> Self {
        Self { interface: None, hops: 1, loops: true }
    }
}

impl Default for Config {
    fn default() -> Self {
        let socket = udp::Config::default();
        Self {
            gso: socket.gso,
            gro: socket.gro,
            recv_buffer_bytes: socket.recv_buffer_bytes,
            send_buffer_bytes: socket.send_buffer_bytes,
            data_lanes_max: crate::DATA_LANES_MAX,
            groups: Groups::default(),
        }
    }
}

impl Config {
    /// For a protocol that reads the congestion marks of what arrives.
    pub(crate) fn socket_with_marks(&self) -> udp::Config {
        udp::Config { marks: true, ..self.socket(false) }
    }

    pub(crate) fn socket(&self, reuse: bool) -> udp::Config {
        udp::Config {
            gso: self.gso,
            gro: self.gro,
            recv_buffer_bytes: self.recv_buffer_bytes,
            send_buffer_bytes: self.send_buffer_bytes,
            reuse,
            marks: false,
        }
    }
}

/// Why a transport could not listen.
#[derive(Debug)]
#[non_exhaustive]
pub enum BindError {
    /// There was no address.
    NoAddress,
    /// There were more than [`LISTEN_ADDRS_MAX`] addresses.
    TooManyAddresses {
        /// How many there were.
        count: usize,
    },
    /// Another socket has the port.
    InUse {
        /// Where.
        address: SocketAddr,
    },
    /// The address is not one of this host.
    NotLocal {
        /// Which.
        address: SocketAddr,
    },
    /// The user may not listen at this port.
    Forbidden {
        /// Where.
        address: SocketAddr,
    },
    /// Another error of the system.
    Other {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

impl BindError {
    pub(crate) fn of(address: SocketAddr, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { address },
            io::ErrorKind::AddrNotAvailable => Self::NotLocal { address },
            io::ErrorKind::PermissionDenied => Self::Forbidden { address },
            _ => Self::Other { address, error },
        }
    }

    /// The same words for a protocol that is not UDP, with its name before them.
    pub(crate) fn of_protocol(&self, name: &str) -> io::Error {
        let kind = match self {
            Self::NoAddress | Self::TooManyAddresses { .. } => io::ErrorKind::InvalidInput,
            Self::InUse { .. } => io::ErrorKind::AddrInUse,
            Self::NotLocal { .. } => io::ErrorKind::AddrNotAvailable,
            Self::Forbidden { .. } => io::ErrorKind::PermissionDenied,
            Self::Other { error, .. } => error.kind(),
        };
        io::Error::new(kind, format!("{name}: {self}"))
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAddress => f.write_str("no address to listen at: name one with --listen"),
            Self::TooManyAddresses { count } => {
                write!(f, "{count} addresses to listen at: name at most {LISTEN_ADDRS_MAX}")
            }
            Self::InUse { address } => write!(
                f,
                "cannot listen at {address}: port {} is in use: choose another with --port, or \
                 stop the program that has it",
                address.port()
            ),
            Self::NotLocal { address } => write!(
                f,
                "cannot listen at {address}: {} is not an address of this host: choose one that \
                 is with --listen",
                address.ip()
            ),
            Self::Forbidden { address } => write!(
                f,
                "cannot listen at {address}: port {} needs privileges: choose one from 1024 up \
                 with --port",
                address.port()
            ),
            Self::Other { address, error } => write!(f, "cannot listen at {address}: {error}"),
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Other { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Why a transport could not be made for a remote address.
#[derive(Debug)]
#[non_exhaustive]
pub enum DialError {
    /// There is no way to the address from here.
    Unreachable {
        /// Which.
        remote: SocketAddr,
    },
    /// Another error of the system.
    Other {
        /// Where to.
        remote: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

impl DialError {
    pub(crate) fn of(remote: SocketAddr, error: io::Error) -> Self {
        use io::ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable, Unsupported};
        match error.kind() {
            // A host without IPv6 answers that it does not support the family.
            HostUnreachable | NetworkUnreachable | NetworkDown | Unsupported => {
                Self::Unreachable { remote }
            }
            _ => Self::Other { remote, error },
        }
    }

    /// The same words for a protocol that is not UDP, with its name before them.
    pub(crate) fn of_protocol(name: &str, remote: SocketAddr, error: io::Error) -> io::Error {
        let kind = error.kind();
        io::Error::new(kind, format!("{name}: {}", Self::of(remote, error)))
    }
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { remote } => {
                write!(
                    f,
                    "there is no way to {remote} from here: check the address and the network"
                )
            }
            Self::Other { remote, error } => write!(f, "cannot reach {remote}: {error}"),
        }
    }
}

impl std::error::Error for DialError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Other { error, .. } => Some(error),
            Self::Unreachable { .. } => None,
        }
    }
}
