//! [`Command`]: what an application asks of a core, as data, and [`Done`]: what has come of it.
//!
//! What carries code of the application is a call of its own: [`crate::Core::publish`] and
//! [`crate::Core::answer`].

use crate::error::{Code, Error};
use crate::ids::{PeerId, SessionId};
use crate::peer::DialParams;
use crate::served::JoinParams;
use dacapo_base::Address;
use dacapo_wire::graph::GraphForm;
use std::time::Duration;

/// What an application asks of a core; see [`crate::Core::handle_command`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Connects to a core, or gives the peer that is there already: two cores share one connection.
    /// [`crate::CoreEvent::PeerOpen`] or [`crate::CoreEvent::PeerLost`] follows, within 10 s when
    /// nothing else is said; with [`Code::NotListening`] as soon as that is known. Done: a peer.
    ///
    /// [`Code::TooMany`] peers, or [`Code::Unreachable`] for an address that cannot be one.
    Connect {
        /// The port of control.
        remote: Address,
        /// How long to try.
        params: DialParams,
    },
    /// Asks what a peer serves; [`crate::CoreEvent::Listing`] follows, within 10 s.
    ///
    /// [`Code::NoSuchThing`] when the peer is not open; [`Code::TooMany`] lists are waited for.
    List(PeerId),
    /// Says goodbye to a peer and ends everything with it.
    Disconnect(PeerId),
    /// Serves a session no longer; those who have joined stay.
    Unpublish(String),
    /// Asks a peer for a session; [`crate::CoreEvent::Offered`] or
    /// [`crate::CoreEvent::SessionEnded`] follows. Done: a session.
    ///
    /// [`Code::NoSuchThing`] when the peer is not open or the name is none; [`Code::ContactLost`]
    /// while it is; [`Code::TooMany`] sessions or wishes.
    Join {
        /// Who serves it.
        peer: PeerId,
        /// Its name.
        name: String,
        /// What is wanted of it.
        params: JoinParams,
    },
    /// Lets the flows of a session run; [`crate::CoreEvent::Active`] follows. Participant only.
    ///
    /// [`Code::NoSuchThing`] when the session is not set up, or this end is its Creator.
    Activate(SessionId),
    /// Lets the flows of a session pause; [`crate::CoreEvent::Inactive`] follows. Participant only.
    ///
    /// [`Code::NoSuchThing`] when the session does not run, or this end is its Creator.
    Deactivate(SessionId),
    /// Sends a command out of band to the peer's end; [`crate::CoreEvent::ControlAnswered`]
    /// follows, within 10 s. Done: a request.
    ///
    /// [`Code::NoSuchThing`] when the session is not set up, or closes; [`Code::TooMany`] when the
    /// payload exceeds 4 KiB or 256 requests wait.
    Control {
        /// The session.
        session: SessionId,
        /// The number of a flow, or of all: [`dacapo_wire::session::FLOW_ALL`].
        flow: u16,
        /// A module of the flow's graph by its place, or the access module:
        /// [`dacapo_wire::session::MODULE_ACCESS`].
        module: u16,
        /// What it is told.
        payload: Vec<u8>,
    },
    /// Changes a flow that this end sends to another graph (or an equal one) while it runs.
    /// [`crate::CoreEvent::Changed`] or [`crate::CoreEvent::ChangeFailed`] follows.
    ///
    /// [`Code::NoSuchThing`] when this end does not send such a flow, a change is going on or the
    /// flow has ended; [`Code::IllegalGraph`] with the reason.
    Change {
        /// The session.
        session: SessionId,
        /// The flow's place in it.
        flow: usize,
        /// What it is to run through.
        graph: GraphForm,
    },
    /// How long contact may be lost before this end gives a session up, whatever was offered; zero
    /// ends it as soon as contact is lost. Counts from when contact was lost, also when it is.
    ///
    /// [`Code::NoSuchThing`] when there is no such session.
    GiveUpAfter(SessionId, Duration),
    /// Closes a session: what waits is not sent, what was sent is accounted for;
    /// [`crate::CoreEvent::SessionEnded`] follows, within 10 s; at once while contact is lost, and
    /// then what was on its way is unknown.
    ///
    /// [`Code::NoSuchThing`] when there is no such session.
    Close(SessionId),
    /// Ends a session at once and tells the peer why; what is on its way is booked as unknown.
    ///
    /// [`Code::NoSuchThing`] when there is no such session.
    CloseBecause(SessionId, Error),
}

/// What has come of a [`Command`] so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It is done, or on its way.
    All,
    /// A peer is dialed, or there.
    Peer(PeerId),
    /// A session is asked for.
    Session(SessionId),
    /// A request waits for its answer, by its number.
    Request(u32),
}

impl Done {
    /// The peer of [`Command::Connect`].
    ///
    /// # Errors
    /// [`Code::Internal`]: another command was done.
    pub fn peer(self) -> Result<PeerId, Error> {
        match self {
            Self::Peer(peer) => Ok(peer),
            _ => Err(self.another()),
        }
    }

    /// The session of [`Command::Join`].
    ///
    /// # Errors
    /// [`Code::Internal`]: another command was done.
    pub fn session(self) -> Result<SessionId, Error> {
        match self {
            Self::Session(session) => Ok(session),
            _ => Err(self.another()),
        }
    }

    /// The number of the request of [`Command::Control`].
    ///
    /// # Errors
    /// [`Code::Internal`]: another command was done.
    pub fn request(self) -> Result<u32, Error> {
        match self {
            Self::Request(request) => Ok(request),
            _ => Err(self.another()),
        }
    }

    fn another(self) -> Error {
        Error::new(Code::Internal, format!("another command was done: {self:?}"))
    }
}
