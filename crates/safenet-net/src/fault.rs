//! [`CallError`]: why a call did not do what it was to do, and [`Awaited`]: how far it had come.
//!
//! Invariant: a call that ends while its message is under way says its ticket
//! ([`CallError::ticket`]); any other has sent nothing that nobody can ask for.

use dacapo_safenet::{JoinError, Route, SendError, Ticket};
use dacapo_xtp_net::{AddressError, Fault, HostError};
use std::fmt;
use std::net::SocketAddr;

/// What a call has waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Room on a route, so that the message could be accepted. It was not, and has no ticket.
    Capacity(Route),
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
    /// A group was not asked.
    Join {
        /// The group, as it was named.
        group: SocketAddr,
        /// The port of XTP.
        port: u16,
        /// Why not.
        error: JoinError,
    },
    /// So many answers of groups that were asked wait to be heard; no other one is asked.
    Unheard {
        /// How many.
        count: usize,
    },
    /// Nothing can be sent to this address.
    Address(AddressError),
    /// The end of this message was told already, or never was to be.
    NotOpen(Ticket),
    /// A descriptor that is watched is ready.
    Interrupted {
        /// Its token.
        token: u16,
        /// What has not come yet.
        awaited: Awaited,
    },
    /// The host cannot go on.
    Host {
        /// Why.
        error: HostError,
        /// What has not come; a turn awaits nothing.
        awaited: Option<Awaited>,
    },
}

impl CallError {
    /// The message that is under way still: [`crate::MessageHost::wait`] goes on with it. Without
    /// one nothing was accepted.
    #[must_use]
    pub const fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::TimedOut { awaited: Awaited::End(ticket, _), .. }
            | Self::Interrupted { awaited: Awaited::End(ticket, _), .. }
            | Self::Host { awaited: Some(Awaited::End(ticket, _)), .. } => Some(*ticket),
            _ => None,
        }
    }
}

impl Awaited {
    /// Where the message of the call goes.
    #[must_use]
    pub const fn route(&self) -> Option<Route> {
        match self {
            Self::Capacity(route) | Self::End(_, route) => Some(*route),
            Self::Message { .. } | Self::Close => None,
        }
    }

    /// What has become of what the call was to do.
    fn state(&self) -> &'static str {
        match self {
            Self::Capacity(_) => "it was not accepted; send it again later",
            Self::End(..) => {
                "it is under way still: wait for its ticket, or abandon the route; who sends it \
                 again sends it twice"
            }
            Self::Message { .. } => "nothing was taken",
            Self::Close => {
                "who goes now leaves it open whether the peers have heard what was taken of \
                 theirs last, and such messages end there as unknown"
            }
        }
    }

    /// What it is that has not come.
    fn write_name(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity(Route { peer, port, .. }) => {
                write!(f, "room for a message to port {port} of {peer}")
            }
            Self::End(_, Route { peer, port, .. }) => {
                write!(f, "the end of a message to port {port} of {peer}")
            }
            Self::Message { port } => write!(f, "a message to port {port}"),
            Self::Close => f.write_str("the end of all associations"),
        }
    }
}

/// What has not come in time, and what to look at.
impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_name(f)?;
        let hint = match self {
            Self::Capacity(_) => "those before it are not taken; is its user there?",
            Self::End(..) => "is it there, and takes its user messages?",
            Self::Message { .. } => "is this the port they send to?",
            Self::Close => "their peers are gone, or hear nothing",
        };
        write!(f, " has not come in time: {hint}; {}", self.state())
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
            Self::Join { group, port, error } => {
                write!(f, "port {port} of the group {group} was not joined: {error}")
            }
            Self::Unheard { count } => write!(
                f,
                "{count} groups were asked, and nobody has heard their answers; poll the events"
            ),
            Self::Address(error) => write!(f, "{error}"),
            Self::NotOpen(_) => f.write_str(
                "the end of this message was told already, or it is another host's ticket; a \
                 ticket ends once",
            ),
            Self::Interrupted { token, awaited } => {
                write!(f, "what is watched under {token} is ready, and ended the wait for ")?;
                awaited.write_name(f)?;
                write!(f, "; {}", awaited.state())
            }
            Self::Host { error, awaited: None } => write!(f, "{error}"),
            Self::Host { error, awaited: Some(awaited) } => {
                write!(f, "{error}; it ended the wait for ")?;
                awaited.write_name(f)?;
                write!(f, "; {}", awaited.state())
            }
        }
    }
}

impl std::error::Error for CallError {}

/// Of a turn.
impl From<HostError> for CallError {
    fn from(error: HostError) -> Self {
        Self::Host { error, awaited: None }
    }
}
