//! Why the engine does not do what a user asks.

use crate::group::GroupPolicy;
use std::fmt;

/// Why a port cannot be listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenError {
    /// Somebody does.
    Taken {
        /// The port of XTP.
        port: u16,
    },
}

/// Why an association cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// There are as many contexts as there may be.
    Full {
        /// How many.
        count: usize,
    },
    /// The numbers of a group's policy contradict each other.
    Policy(GroupPolicy),
}

/// Why a user cannot do something with a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserError {
    /// It was released.
    Released,
    /// This end, or the peer, takes nothing more to send.
    Closed,
    /// A message of a stream has at least one byte: an empty one could get lost without a trace.
    Empty,
    /// A datagram goes in one packet.
    TooLong {
        /// The most bytes.
        len_max: usize,
    },
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { port } => write!(f, "XTP port {port} is listened on already"),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { count } => {
                write!(f, "there are {count} contexts, the most there may be; release some")
            }
            Self::Policy(GroupPolicy { members_first, members_min, members_max, .. }) => write!(
                f,
                "a group needs 1 <= members_min <= members_first <= members_max, \
                 not {members_min}, {members_first}, {members_max}"
            ),
        }
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("the context was released"),
            Self::Closed => f.write_str("this end of the association sends no more"),
            Self::Empty => f.write_str("an empty message in a stream; write at least one byte"),
            Self::TooLong { len_max } => {
                write!(f, "too long for a datagram, which has at most {len_max} bytes of data")
            }
        }
    }
}

impl std::error::Error for ListenError {}
impl std::error::Error for OpenError {}
impl std::error::Error for UserError {}
