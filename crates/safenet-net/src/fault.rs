//! [`CallError`]: why a call did not do what it was to do.

use dacapo_safenet::{Route, SendError, Ticket};
use dacapo_xtp_net::{AddressError, Fault, HostError};
use std::fmt;

/// What a call has waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Room on a route, so that the message could be accepted. It was not, and has no ticket.
    Room(Route),
    /// The end of a message, which is under way still.
    End(Ticket, Route),
    /// A message at a port of XTP.
    Message {
        /// The port.
        port: u16,
    },
    /// The end of all associations, to close in order.
    Close,
}

/// Why a call did not do what it was to do.
#[derive(Debug)]
pub enum CallError {
    /// Its time is over.
    TimedOut {
        /// What has not come.
        awaited: Awaited,
        /// What the network said last of the way to the peer.
        fault: Option<Fault>,
    },
    /// The message was not accepted, and waiting does not help.
    Send {
        /// Where it was to go.
        route: Route,
        /// Why it does not.
        error: SendError,
    },
    /// BURST and RATE of a route are what they were.
    Traffic {
        /// Of which route.
        route: Route,
        /// Why they stay.
        error: SendError,
    },
    /// Nothing can be sent to this address.
    Address(AddressError),
    /// The end of this message was told already, or never was to be.
    NotOpen(Ticket),
    /// A descriptor that is watched is ready: its token.
    Interrupted(u16),
    /// The host cannot go on.
    Host(HostError),
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Room(Route { peer, port, .. }) => write!(
                f,
                "no room in time for a message to port {port} of {peer}: those before it are not \
                 taken; is its user there? It was not accepted; send it again later"
            ),
            Self::End(_, Route { peer, port, .. }) => write!(
                f,
                "no end in time of a message to port {port} of {peer}; is it there, and takes its \
                 user messages? It is under way still: wait for its ticket, or abandon the route"
            ),
            Self::Message { port } => {
                write!(f, "no message came to port {port} in time; is this the port they send to?")
            }
            Self::Close => f.write_str(
                "not all associations closed in time: their peers are gone, or hear nothing; who \
                 goes now leaves it open whether they have heard what was taken of theirs last, \
                 and such messages end there as unknown",
            ),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut { awaited, fault: None } => write!(f, "{awaited}"),
            Self::TimedOut { awaited, fault: Some(fault) } => {
                write!(f, "{awaited}; of the way was said: {fault}")
            }
            Self::Send { route: Route { peer, port, .. }, error } => {
                write!(f, "the message to port {port} of {peer} was not accepted: {error}")
            }
            Self::Traffic { route: Route { peer, port, .. }, error } => {
                write!(f, "BURST and RATE to port {port} of {peer} were not set: ")?;
                match error {
                    SendError::Routes { count } => write!(
                        f,
                        "{count} routes have some, which is as many as may; lift those of another \
                         with Traffic::default()"
                    ),
                    other => write!(f, "{other}"),
                }
            }
            Self::Address(error) => write!(f, "{error}"),
            Self::NotOpen(_) => f.write_str(
                "the end of this message was told already, or it is another host's ticket; a \
                 ticket ends once",
            ),
            Self::Interrupted(token) => {
                write!(f, "interrupted: what is watched under {token} is ready")
            }
            Self::Host(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for CallError {}

impl From<HostError> for CallError {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}
