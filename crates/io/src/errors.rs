//! Why a socket could not be bound or made for a remote address, with what to do about it.

use crate::LISTEN_ADDRS_MAX;
use std::fmt;
use std::io;
use std::net::SocketAddr;

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
    /// Refuses no addresses, and more than [`LISTEN_ADDRS_MAX`].
    ///
    /// # Errors
    /// [`BindError::NoAddress`], [`BindError::TooManyAddresses`].
    pub fn check_count(addrs: &[SocketAddr]) -> Result<(), Self> {
        match addrs.len() {
            0 => Err(Self::NoAddress),
            1..=LISTEN_ADDRS_MAX => Ok(()),
            count => Err(Self::TooManyAddresses { count }),
        }
    }

    /// What the system's answer to binding `address` means.
    #[must_use]
    pub fn of(address: SocketAddr, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { address },
            io::ErrorKind::AddrNotAvailable => Self::NotLocal { address },
            io::ErrorKind::PermissionDenied => Self::Forbidden { address },
            _ => Self::Other { address, error },
        }
    }

    /// The same words for a protocol that is not UDP, with its name before them.
    #[must_use]
    pub fn of_protocol(&self, name: &str) -> io::Error {
        io::Error::new(self.kind(), format!("{name}: {self}"))
    }

    fn kind(&self) -> io::ErrorKind {
        match self {
            Self::NoAddress | Self::TooManyAddresses { .. } => io::ErrorKind::InvalidInput,
            Self::InUse { .. } => io::ErrorKind::AddrInUse,
            Self::NotLocal { .. } => io::ErrorKind::AddrNotAvailable,
            Self::Forbidden { .. } => io::ErrorKind::PermissionDenied,
            Self::Other { error, .. } => error.kind(),
        }
    }
}

impl From<BindError> for io::Error {
    fn from(error: BindError) -> Self {
        Self::new(error.kind(), error)
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
    /// What the system's answer to a socket for `remote` means.
    #[must_use]
    pub fn of(remote: SocketAddr, error: io::Error) -> Self {
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
    #[must_use]
    pub fn of_protocol(name: &str, remote: SocketAddr, error: io::Error) -> io::Error {
        let kind = error.kind();
        io::Error::new(kind, format!("{name}: {}", Self::of(remote, error)))
    }
}

impl From<DialError> for io::Error {
    fn from(error: DialError) -> Self {
        let kind = match &error {
            DialError::Unreachable { .. } => io::ErrorKind::HostUnreachable,
            DialError::Other { error, .. } => error.kind(),
        };
        Self::new(kind, error)
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
