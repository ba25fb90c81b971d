//! [`Wanted`]: what a call waits for, as data that any thread can look at.
//!
//! Invariant: what is wanted counts as met, too, once it will never come: the call then says why.

use super::entry::{Entry, Phase};
use super::flow::Flow;
use super::publish::JoinQueue;
use super::state::State;
use crate::access::messages::Ticket;
use dacapo_core::{PeerId, SessionId};
use std::mem;
use std::sync::Arc;

/// What a call waits for.
#[derive(Clone)]
pub(super) enum Wanted {
    /// A peer that is dialed answers.
    Peer(PeerId),
    /// Somebody joins the session that is served under this name.
    Guest { name: Arc<str>, join_queue: JoinQueue },
    /// A session that is joined is set up.
    Joined(SessionId),
    /// Calls can use a session otherwise than now: it leaves this phase.
    Phase(SessionId, Phase),
    /// Something of a flow, by its place in its session.
    Flow(SessionId, usize, OfFlow),
    /// The peer has answered a request.
    Answer(SessionId, u32),
    /// A flow, by its place, has changed, or has not.
    Settled(SessionId, usize),
    /// Something has happened that is to be told.
    Event(SessionId),
    /// The flows at these places are accounted for.
    Accounts(SessionId, Arc<[usize]>),
    /// What this end has sent is accounted for.
    Account(SessionId),
    /// A session is over.
    End(SessionId),
    /// It is over, or something has happened since there were so many [`State::changes`].
    Change(SessionId, u64),
}

/// What a call waits for in a flow.
#[derive(Clone, Copy)]
pub(super) enum OfFlow {
    /// A unit, or a part of a message, that has come.
    Unit,
    /// Room for a unit of so many bytes.
    Room(usize),
    /// Room for a message of so many bytes.
    MessageRoom { priority: u16, len: usize },
    /// How a message ended.
    Outcome(Ticket),
}

impl Wanted {
    /// Whether it is there, or will not come.
    pub fn is_met(&self, state: &State) -> bool {
        let is_so = |id: &SessionId, met: &dyn Fn(&Entry) -> bool| {
            state.sessions.get(id).is_none_or(|entry| entry.is_over() || met(entry))
        };
        match self {
            Self::Peer(id) => !state.peers.is_dialing(*id),
            Self::Guest { name, join_queue } => {
                let serving = state.serving.get(&**name);
                join_queue.has_of_shard() || serving.is_some_and(|it| !it.backlog.is_empty())
            }
            Self::Joined(id) => is_so(id, &|entry| entry.phase != Phase::Joining),
            Self::Phase(id, was) => {
                let is_other = |phase: &Phase| mem::discriminant(phase) != mem::discriminant(was);
                is_so(id, &|entry| entry.is_done() || is_other(&entry.phase))
            }
            Self::Flow(id, index, what) => is_so(id, &|entry| {
                entry.is_done() || entry.flows.get(*index).is_none_or(|flow| what.is_met(flow))
            }),
            Self::Answer(id, request) => is_so(id, &|entry| {
                entry.is_done() || entry.asked.as_ref().is_some_and(|it| it.is_answered(*request))
            }),
            Self::Settled(id, flow) => is_so(id, &|entry| {
                entry.is_done() || entry.asked.as_ref().is_some_and(|it| it.is_settled(*flow))
            }),
            Self::Event(id) => is_so(id, &|entry| entry.is_done() || entry.has_event()),
            Self::Accounts(id, places) => {
                is_so(id, &|entry| entry.is_done() || entry.are_accounted(places))
            }
            Self::Account(id) => is_so(id, &Entry::is_accounted),
            Self::End(id) => is_so(id, &|_| false),
            Self::Change(id, since) => is_so(id, &|_| state.changes != *since),
        }
    }
}

impl OfFlow {
    fn is_met(self, flow: &Flow) -> bool {
        match self {
            Self::Unit => flow.gives(),
            Self::Room(len) => flow.takes(len),
            Self::MessageRoom { priority, len } => flow.takes_message(priority, len),
            Self::Outcome(ticket) => {
                flow.sender().is_none_or(|sender| sender.outcome(ticket).is_some())
            }
        }
    }
}
