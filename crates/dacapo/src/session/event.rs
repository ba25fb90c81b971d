//! [`Event`]: what happens to a session besides what its calls say, for who asks ([`Events`]).
//!
//! ```text
//!   core -> follow -> queue (only once Session::events was called) -> Events::poll, Events::wait
//!                       an event takes the place of an unread one of the same kind and flow
//! ```
//!
//! Invariant: a queue holds at most one event of each kind and flow, so who never reads keeps a
//! bounded number; [`Event::Ended`] is the last.

use super::account::{Account, FlowAccount};
use super::entry::Entry;
use super::handle::Session;
use super::ids::{PeerId, Ticket};
use super::waiting::Waiting;
use super::wanted::Wanted;
use crate::command::Answer;
use dacapo_base::Time;
use dacapo_core::Error;
use dacapo_sys::clock;
use dacapo_wire::hub::SessionEntry;
use dacapo_wire::session::FlowOffer;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// What has happened to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// What is offered to who joins and decides itself ([`Join::decide`](super::Join::decide)):
    /// [`Endpoint::answer`](super::Endpoint::answer) is waited for.
    Offered {
        /// What people see of the session.
        title: String,
        /// Its flows.
        flows: Vec<FlowOffer>,
    },
    /// Its flows run.
    Active,
    /// Its flows pause.
    Inactive,
    /// The peer gives no sign of life; the flows wait for it.
    ContactLost,
    /// Contact is back, and the flows go on.
    ContactRestored {
        /// How long they waited.
        after: Duration,
    },
    /// The path takes longer or shorter datagrams than before.
    PathMtuChanged {
        /// The longest before, in bytes of UDP payload.
        from: usize,
        /// The longest now.
        to: usize,
    },
    /// The path does not carry what flows send that yield to nobody, so that they are held to less;
    /// or it does again.
    PathHeld {
        /// What the path has lost in ten seconds, in millionths.
        loss_ppm: u32,
        /// What they are held to together, in bit/s; `None`: to nothing but their bounds.
        rate_bps: Option<u64>,
    },
    /// A flow is carried by another transport than was agreed, which gives it as much.
    TransportReplaced {
        /// The flow's name.
        flow: String,
        /// The transport that carries it, such as `tcp`.
        transport: String,
        /// Why the one that was agreed does not.
        reason: String,
    },
    /// A flow runs by another protocol from now on.
    Changed {
        /// The flow's name.
        flow: String,
        /// The number of its epoch; the first is 0.
        epoch: u64,
    },
    /// A change of a flow was not made; it goes on as it was.
    ChangeFailed {
        /// The flow's name.
        flow: String,
        /// Why.
        error: Error,
    },
    /// A flow failed before its end.
    FlowFailed {
        /// The flow's name.
        flow: String,
        /// Why.
        error: Error,
    },
    /// A flow is over, and every unit of it accounted for.
    FlowEnded {
        /// The account.
        account: Box<FlowAccount>,
    },
    /// The session is over: in order, or why not.
    Ended {
        /// Why, when it was not in order.
        error: Option<Error>,
    },
    /// A peer that was connected to, or had a session here, is gone. Of no session.
    PeerLost {
        /// The peer.
        peer: PeerId,
        /// Why.
        error: Error,
    },
    /// Somebody wished to join a session that is served here, and does not. Of no session.
    Refused {
        /// Why.
        error: Error,
    },
    /// A command of [`Endpoint::command`](super::Endpoint::command) is done, or cannot be. Of the
    /// session that the command was for, if any.
    Done {
        /// Which.
        ticket: Ticket,
        /// What came of it, or why nothing did.
        outcome: Result<Outcome, Error>,
    },
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// What was asked for is so.
    Done,
    /// The peer answers: its sessions can be listed and joined.
    Connected(PeerId),
    /// What the peer serves.
    Listed(Vec<SessionEntry>),
    /// How the media stand.
    Answer(Answer),
    /// The flow runs by the new protocol, in the epoch of this number.
    Changed(u64),
    /// The session is closed, and this became of every unit.
    Closed(Box<Account>),
}

impl Event {
    /// Of its kind and flow only the newest is kept unread.
    fn key(&self) -> (u8, &str) {
        match self {
            Self::Active | Self::Inactive => (0, ""),
            Self::ContactLost | Self::ContactRestored { .. } => (1, ""),
            Self::PathMtuChanged { .. } => (2, ""),
            Self::TransportReplaced { flow, .. } => (3, flow),
            Self::Changed { flow, .. } | Self::ChangeFailed { flow, .. } => (4, flow),
            Self::FlowFailed { flow, .. } => (5, flow),
            Self::FlowEnded { account } => (6, &account.flow),
            Self::Ended { .. } => (7, ""),
            Self::Done { .. } => (8, ""),
            Self::PeerLost { .. } | Self::Refused { .. } => (9, ""),
            Self::Offered { .. } => (10, ""),
            Self::PathHeld { .. } => (11, ""),
        }
    }

    /// The same, when it takes the place of one that nobody has read.
    fn after(self, unread: &Self) -> Self {
        match (self, unread) {
            (Self::PathMtuChanged { to, .. }, &Self::PathMtuChanged { from, .. }) => {
                Self::PathMtuChanged { from, to }
            }
            (newer, _) => newer,
        }
    }
}

/// Events that nobody has read.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    events: VecDeque<Event>,
    merged: u64,
}

impl EventQueue {
    pub fn push(&mut self, event: Event) {
        let at = self.events.iter().position(|it| it.key() == event.key());
        let unread = at.and_then(|at| self.events.remove(at));
        self.merged += u64::from(unread.is_some());
        let event = match unread {
            Some(unread) => event.after(&unread),
            None => event,
        };
        self.events.push_back(event);
    }

    pub fn pop(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

/// The events of a session, from [`Session::events`] on. It keeps the session open like any handle
/// of it. Two of one session share what comes: each event is read once.
#[derive(Clone)]
pub struct Events(Session);

impl Session {
    /// What happens to this session from now on. Before the first call nothing is kept.
    #[must_use]
    pub fn events(&self) -> Events {
        if let Some(entry) = self.lock().sessions.get_mut(&self.core_id()) {
            entry.events.get_or_insert_default();
        }
        Events(self.clone())
    }
}

impl Events {
    /// The next event that has happened by now.
    pub fn poll(&mut self) -> Option<Event> {
        let shared = self.0.shared();
        let mut state = shared.lock();
        let queued = state.sessions.get_mut(&self.0.core_id()).and_then(Entry::pop_event);
        if queued.is_some() || !shared.look(&mut state) {
            return queued;
        }
        state.sessions.get_mut(&self.0.core_id()).and_then(Entry::pop_event)
    }

    /// The next event; waits for one. `None` when the session is over, or was closed here, and
    /// everything was read.
    ///
    /// # Errors
    /// What the system said when nothing works any more.
    pub fn wait(&mut self) -> Result<Option<Event>, Error> {
        self.wait_until(Time::NEVER)
    }

    /// The same, for at most so long.
    ///
    /// # Errors
    /// As [`Events::wait`].
    pub fn wait_timeout(&mut self, most: Duration) -> Result<Option<Event>, Error> {
        self.wait_until(clock::now() + most)
    }

    fn wait_until(&mut self, until: Time) -> Result<Option<Event>, Error> {
        let state = self.0.lock();
        let (mut state, outcome) = self.0.wait(state, until, &Wanted::Event(self.0.core_id()));
        outcome?;
        Ok(state.sessions.get_mut(&self.0.core_id()).and_then(Entry::pop_event))
    }

    /// How many events took the place of one that nobody had read.
    #[must_use]
    pub fn merged(&self) -> u64 {
        let state = self.0.lock();
        let entry = state.sessions.get(&self.0.core_id());
        entry.and_then(|entry| entry.events.as_ref()).map_or(0, |events| events.merged)
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("session", &self.0.name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(flow: &str, epoch: u64) -> Event {
        Event::Changed { flow: flow.to_owned(), epoch }
    }

    #[test]
    fn of_each_kind_and_flow_only_the_newest_waits() {
        let mut queue = EventQueue::default();
        for _ in 0..1_000 {
            queue.push(Event::Active);
            queue.push(changed("a", 1));
            queue.push(changed("b", 7));
            queue.push(Event::Inactive);
            queue.push(changed("a", 2));
        }
        let read: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(read, [changed("b", 7), Event::Inactive, changed("a", 2)]);
        assert_eq!(queue.merged, 5_000 - 3);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_length_that_changes_twice_unread_is_one_change() {
        let mut queue = EventQueue::default();
        queue.push(Event::PathMtuChanged { from: 1_452, to: 1_200 });
        queue.push(Event::PathMtuChanged { from: 1_200, to: 9_000 });
        assert_eq!(queue.pop(), Some(Event::PathMtuChanged { from: 1_452, to: 9_000 }));
    }
}
