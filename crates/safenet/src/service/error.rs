//! Why the service does not do what a user asks.

use dacapo_xtp::OpenError;
use std::fmt;
use std::net::SocketAddr;

/// Why a message was not accepted. It has no ticket, and is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// As much waits on this route as may; [`crate::Event::Capacity`] says when it does not.
    Full {
        /// The most messages that have not ended.
        messages: usize,
        /// The most bytes that wait.
        bytes: usize,
    },
    /// As many routes are in use as there may be, and none rests.
    Routes {
        /// How many.
        count: usize,
    },
    /// As many ends of messages have not been heard as messages a route may have.
    Unheard {
        /// How many.
        count: usize,
    },
    /// The service was closed.
    Closed,
}

/// Why a group is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// Nobody listens at this port here, who could take what comes.
    NotListening {
        /// The port of XTP.
        port: u16,
    },
    /// The group was asked already, or is heard since.
    There {
        /// The group.
        group: SocketAddr,
        /// The port of XTP.
        port: u16,
    },
    /// As many associations are open here as may be, and none rests.
    Full {
        /// How many.
        count: usize,
    },
    /// XTP has no room.
    NotOpened(OpenError),
    /// The service was closed.
    Closed,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { messages, bytes } => write!(
                f,
                "{messages} messages or {bytes} bytes of this route wait; send again after Capacity"
            ),
            Self::Routes { count } => {
                write!(f, "{count} routes are in use and none rests; wait for messages to end")
            }
            Self::Unheard { count } => {
                write!(f, "{count} messages have ended and nobody has heard; poll the events")
            }
            Self::Closed => f.write_str("the service was closed"),
        }
    }
}

impl std::error::Error for SendError {}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotListening { port } => {
                write!(f, "nobody takes messages at port {port} here; listen there, then join")
            }
            Self::There { group, port } => {
                write!(f, "port {port} of the group {} was joined already", group.ip())
            }
            Self::Full { count } => write!(
                f,
                "{count} associations are open here and none rests; wait for one to end, or allow \
                 more"
            ),
            Self::NotOpened(error) => write!(f, "the group cannot be asked: {error}"),
            Self::Closed => f.write_str("the service was closed"),
        }
    }
}

impl std::error::Error for JoinError {}
