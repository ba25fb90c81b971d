//! [`Events`]: what waits to be told to the application.
//!
//! Invariants: at most [`EVENTS_MAX`] wait, and what is dropped is counted; of going on and pausing
//! a session has one event waiting.

use crate::error::Error;
use crate::ids::{PeerId, SessionId};
use crate::ledger::Ledger;
use crate::status::ModuleStatus;
use dacapo_wire::hub::SessionEntry;
use dacapo_wire::session::FlowOffer;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU16;
use std::time::Duration;

/// The most events that wait for the application; the oldest is dropped first.
const EVENTS_MAX: usize = 65_536;

/// What happened, for the application.
#[derive(Debug)]
pub enum CoreEvent {
    /// A peer answers; sessions can be joined.
    PeerOpen {
        /// The peer.
        peer: PeerId,
    },
    /// A peer is gone: it could not be reached, contact was lost for too long, or it closed.
    PeerLost {
        /// The peer.
        peer: PeerId,
        /// Why.
        error: Error,
    },
    /// What a peer serves.
    Listing {
        /// The peer.
        peer: PeerId,
        /// Its sessions, or why there is no list.
        sessions: Result<Vec<SessionEntry>, Error>,
    },
    /// Participant: the offer is here; answer it with [`crate::Core::answer`].
    Offered {
        /// The session.
        session: SessionId,
        /// For people.
        title: String,
        /// The flows.
        flows: Vec<FlowOffer>,
    },
    /// The session is set up at this end.
    Ready {
        /// The session.
        session: SessionId,
    },
    /// Flows run.
    Active {
        /// The session.
        session: SessionId,
    },
    /// Flows pause.
    Inactive {
        /// The session.
        session: SessionId,
    },
    /// Contact with the peer is lost: the flows of a session wait for it, until it is given up.
    ContactLost {
        /// The session.
        session: SessionId,
    },
    /// Contact is back: the flows of a session go on where they stopped.
    ContactRestored {
        /// The session.
        session: SessionId,
        /// How long the flows waited.
        after: Duration,
    },
    /// The path of a session takes longer or shorter datagrams than before: flows that cut units do
    /// so from their next unit on; units that do not fit, and nothing cuts, will be lost.
    PathMtuChanged {
        /// The session.
        session: SessionId,
        /// The longest datagram before, in bytes of UDP payload.
        from: usize,
        /// The longest now.
        to: usize,
    },
    /// The path of a session does not carry what flows send that yield to nobody, so that they are
    /// held to less; or it does again.
    PathHeld {
        /// The session.
        session: SessionId,
        /// What the path has lost in ten seconds, in millionths.
        loss_ppm: u32,
        /// What they are held to together, in bit/s; `None`: to nothing but their bounds.
        rate_bps: Option<u64>,
    },
    /// A flow is carried by another transport than was agreed, which gives it as much.
    Fallback {
        /// The session.
        session: SessionId,
        /// The flow's place in the session.
        flow: usize,
        /// The number of the transport that carries it.
        transport: u16,
        /// Why the one that was agreed does not.
        reason: String,
    },
    /// A flow is accounted for.
    FlowEnded {
        /// The session.
        session: SessionId,
        /// The flow's place in the session.
        flow: usize,
        /// The account.
        ledger: Box<Ledger>,
        /// Whether both ends saw the same bytes; `None` when not all units were delivered.
        hash: Option<bool>,
        /// Why this end's sink does not keep what came, where it does not
        /// ([`Sink::failure`](crate::Sink::failure)).
        failure: Option<String>,
        /// What the modules of its last epoch did at this end; none of a flow that is sent for
        /// several.
        modules: Vec<ModuleStatus>,
    },
    /// The source of a flow failed before its end; what it gave is accounted for.
    FlowFailed {
        /// The session.
        session: SessionId,
        /// The flow's place.
        flow: usize,
        /// Why.
        error: Error,
    },
    /// A flow runs in a new epoch.
    Changed {
        /// The session.
        session: SessionId,
        /// The flow's place.
        flow: usize,
        /// The epoch.
        epoch: u64,
    },
    /// A change was not made.
    ChangeFailed {
        /// The session.
        session: SessionId,
        /// The flow's place.
        flow: usize,
        /// Why.
        error: Error,
    },
    /// The answer to [`crate::Command::Control`].
    ControlAnswered {
        /// The session.
        session: SessionId,
        /// The request.
        request: u32,
        /// The answer.
        answer: Result<Vec<u8>, Error>,
    },
    /// The peer serves the session at another port of its host, and refuses it at this one.
    /// [`CoreEvent::SessionEnded`] follows.
    Redirected {
        /// The session.
        session: SessionId,
        /// The port.
        port: NonZeroU16,
    },
    /// The session is over at this end.
    SessionEnded {
        /// The session.
        session: SessionId,
        /// `None` for the usual end; else why it ended.
        error: Option<Error>,
    },
}

/// The events that wait.
#[derive(Debug, Default)]
pub(crate) struct Events {
    waiting: VecDeque<CoreEvent>,
    /// How many were read or dropped before those.
    read: u64,
    dropped: u64,
    /// Which of all events told last that the flows of a session run or pause.
    activity: BTreeMap<SessionId, u64>,
}

impl Events {
    pub fn poll(&mut self) -> Option<CoreEvent> {
        let event = self.waiting.pop_front()?;
        self.read += 1;
        Some(event)
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many were dropped because nobody read them.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub fn push(&mut self, event: CoreEvent) {
        match &event {
            CoreEvent::Active { session } | CoreEvent::Inactive { session } => {
                let session = *session;
                if let Some(unread) = self.unread_activity(session) {
                    *unread = event;
                    return;
                }
            }
            CoreEvent::SessionEnded { session, .. } => _ = self.activity.remove(session),
            _ => {}
        }
        if self.waiting.len() >= EVENTS_MAX {
            self.waiting.pop_front();
            self.read += 1;
            self.dropped += 1;
        }
        self.waiting.push_back(event);
    }

    /// Of going on and pausing only the newest is kept while nobody reads events, so that a peer
    /// that does nothing else pushes out nothing of others.
    fn unread_activity(&mut self, id: SessionId) -> Option<&mut CoreEvent> {
        let next = self.read + self.waiting.len() as u64;
        let told = self.activity.insert(id, next).filter(|told| *told >= self.read)?;
        self.activity.insert(id, told);
        self.waiting.get_mut(usize::try_from(told - self.read).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(peer: u64) -> CoreEvent {
        CoreEvent::ContactLost { session: SessionId(peer) }
    }

    #[test]
    fn the_oldest_is_dropped_and_counted_when_nobody_reads() {
        let mut events = Events::default();
        (0..EVENTS_MAX as u64 + 3).for_each(|number| events.push(lost(number)));
        assert_eq!(events.dropped(), 3);
        assert!(matches!(events.poll(), Some(CoreEvent::ContactLost { session: SessionId(3) })));
        assert_eq!(std::iter::from_fn(|| events.poll()).count(), EVENTS_MAX - 1);
        assert!(events.is_empty());
    }

    #[test]
    fn of_going_on_and_pausing_the_newest_waits_in_the_place_of_the_first() {
        let mut events = Events::default();
        let (one, other) = (SessionId(1), SessionId(2));
        events.push(CoreEvent::Active { session: one });
        events.push(lost(1));
        events.push(CoreEvent::Active { session: other });
        for _ in 0..100 {
            events.push(CoreEvent::Inactive { session: one });
        }
        let read = std::iter::from_fn(|| events.poll());
        let read: Vec<String> = read.map(|event| format!("{event:?}")).collect();
        assert_eq!(read.len(), 3);
        assert!(read[0].starts_with("Inactive") && read[2].starts_with("Active"), "{read:?}");
        events.push(CoreEvent::Active { session: one });
        assert!(
            matches!(events.poll(), Some(CoreEvent::Active { .. })),
            "what was read is told anew"
        );
    }

    #[test]
    fn nothing_is_kept_of_a_session_that_is_over() {
        let mut events = Events::default();
        events.push(CoreEvent::Active { session: SessionId(1) });
        events.push(CoreEvent::SessionEnded { session: SessionId(1), error: None });
        assert!(events.activity.is_empty());
    }
}
