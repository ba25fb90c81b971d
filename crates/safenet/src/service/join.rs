//! Members that join a group with repair late: [`Messages::join_group`].
//!
//! ```text
//!   join_group -> XTP asks the group -> Opened: an inflow like that of every member, Event::Joined
//!                                    -> Ended:  Event::NotJoined
//! ```
//!
//! Invariant: every call that was accepted is answered by one of the two events, unless the service
//! is closed before.

use super::{Event, Messages};
use crate::config::Reach;
use crate::inflow::Inflow;
use dacapo_base::Time;
use dacapo_xtp::{ContextId, End, Engine, Join, Mode, OpenError};
use std::fmt;
use std::net::SocketAddr;

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

impl Messages {
    /// Joins a group with repair whose association may have been made already, as the network below
    /// knows it, at a port that is listened on. From [`Event::Joined`] on every message that begins
    /// comes, and nothing older; [`Event::NotJoined`] says that nobody sends to the group, or does
    /// not want this member, or that it hears the group already because it was invited.
    ///
    /// # Errors
    /// [`JoinError`]; no event follows.
    pub fn join_group(
        &mut self,
        now: Time,
        engine: &mut Engine,
        group: SocketAddr,
        port: u16,
    ) -> Result<(), JoinError> {
        if self.is_closed {
            return Err(JoinError::Closed);
        }
        if !self.ports.contains(&port) {
            return Err(JoinError::NotListening { port });
        }
        if self.joined.values().any(|joined| (joined.group, joined.port) == (group, port)) {
            return Err(JoinError::There { group, port });
        }
        if !self.has_place(now, engine, Reach::ReliableGroup) {
            return Err(JoinError::Full { count: self.incoming.len() });
        }
        let without_check = self.config.without_check;
        let mode = Mode { fast_report: true, sort: Some(0), without_check, ..Mode::default() };
        let join = Join { mode, ..Join::group(group, port, self.config.source) };
        let id = engine.join(now, &join).map_err(JoinError::NotOpened)?;
        self.incoming.insert(id, Inflow::new(id, port, group, Reach::ReliableGroup));
        self.joined.insert(id, Joined { group, port, is_member: false });
        Ok(())
    }

    /// The transmitter has let this member in.
    pub(super) fn handle_opened(&mut self, engine: &mut Engine, id: ContextId) {
        let Some(joined) = self.joined.get_mut(&id) else { return };
        joined.is_member = true;
        let Joined { group, port, .. } = *joined;
        // Only now is it known who sends.
        if let (Some(inflow), Ok(status)) = (self.incoming.get_mut(&id), engine.status(id)) {
            inflow.peer = status.peer;
        }
        self.tidings.push_back(Event::Joined { group, port });
    }

    /// The association is over; one that has never begun was not joined.
    pub(super) fn handle_not_joined(&mut self, id: ContextId, end: End) {
        let waiting = self.joined.get(&id).filter(|joined| !joined.is_member);
        if let Some(Joined { group, port, .. }) = waiting.copied() {
            self.tidings.push_back(Event::NotJoined { group, port, end });
        }
    }
}

/// A group that was asked.
#[derive(Clone, Copy, Debug)]
pub struct Joined {
    group: SocketAddr,
    port: u16,
    /// Whether this end was let in.
    is_member: bool,
}

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
