//! [`Sessions`]: the sessions of a core, whose they are, and which of them have to be looked at.
//!
//! Invariant: the flows that may have something to send are those of sessions that are awake.

use super::{FlowEnd, Session};
use crate::ids::{PeerId, SessionId};
use crate::peer::Peers;
use crate::ready_table::ReadyTable;
use crate::schedule::{Asked, Turn};
use dacapo_base::Time;
use std::collections::BTreeSet;

#[derive(Default)]
pub(crate) struct Sessions {
    all: ReadyTable<SessionId, Session>,
    with: BTreeSet<(PeerId, SessionId)>,
    /// Those whose answer waits for the data path.
    unanswered: BTreeSet<(PeerId, SessionId)>,
    /// A flow may have something to send, or it was not asked since this was cleared.
    may_give: bool,
}

fn of(peer: PeerId) -> std::ops::RangeInclusive<(PeerId, SessionId)> {
    (peer, SessionId(0))..=(peer, SessionId(u64::MAX))
}

impl Sessions {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn get(&self, id: SessionId) -> Option<&Session> {
        self.all.get(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.all.iter()
    }

    pub fn insert(&mut self, session: Session) {
        self.with.insert((session.peer(), session.id));
        self.may_give = true;
        self.all.insert(session.id, session);
    }

    pub fn remove(&mut self, id: SessionId) -> Option<Session> {
        let session = self.all.remove(id)?;
        self.with.remove(&(session.peer(), id));
        self.unanswered.remove(&(session.peer(), id));
        Some(session)
    }

    /// Runs `body` over one: it is awake from now on, and may have something to send.
    pub fn with<R>(&mut self, id: SessionId, body: impl FnOnce(&mut Session) -> R) -> Option<R> {
        self.may_give = true;
        let (result, is_changed, is_unanswered) = self.all.with(id, |session| {
            let flows = session.flows().len();
            let result = body(session);
            (result, flows != session.flows().len(), session.is_unanswered())
        })?;
        if is_changed {
            self.all.set_changed();
        }
        if is_unanswered || !self.unanswered.is_empty() {
            let peer = self.all.get(id)?.peer();
            if is_unanswered {
                self.unanswered.insert((peer, id));
            } else {
                self.unanswered.remove(&(peer, id));
            }
        }
        Some(result)
    }

    /// Runs `body` over one for which data comes: it is awake from now on. `body` says whether
    /// there may be something to send.
    pub fn with_data(&mut self, id: SessionId, body: impl FnOnce(&mut Session) -> bool) {
        let may_give = self.all.with(id, body).unwrap_or(false);
        self.may_give |= may_give;
    }

    /// Runs `body` over one to which nothing happens that it would have to be looked at for.
    pub fn adjust<R>(&mut self, id: SessionId, body: impl FnOnce(&mut Session) -> R) -> Option<R> {
        self.all.adjust(id, body)
    }

    /// Asks one that is awake; it is touched when `body` says so.
    #[inline]
    pub fn ask<R>(
        &mut self,
        id: SessionId,
        body: impl FnOnce(&mut Session, &mut bool) -> R,
    ) -> Option<R> {
        self.all.ask(id, body)
    }

    /// The sessions with a peer, in order.
    pub fn with_peer(&self, peer: PeerId) -> impl Iterator<Item = SessionId> {
        self.with.range(of(peer)).map(|(_, id)| *id)
    }

    /// Those whose answer waits for the data path to a peer.
    pub fn unanswered(&self, peer: PeerId) -> Vec<SessionId> {
        self.unanswered.range(of(peer)).map(|(_, id)| *id).collect()
    }

    /// Something has changed for all sessions with a peer.
    pub fn wake_with(&mut self, peer: PeerId) {
        let ids: Vec<SessionId> = self.with_peer(peer).collect();
        self.may_give |= !ids.is_empty();
        ids.into_iter().for_each(|id| self.all.wake(id));
    }

    /// When the first session with a peer is given up that has waited since then.
    pub fn give_up_at(&self, peer: PeerId, since: Time) -> Option<Time> {
        let with = self.with_peer(peer).filter_map(|id| self.get(id));
        with.map(|session| since + session.give_up_after()).min()
    }

    /// Those that are to be looked at, in order.
    pub fn take_awake(&mut self, now: Time) -> Vec<SessionId> {
        self.wake_due(now);
        self.all.awake().collect()
    }

    /// Whether one was touched; it is not, by who only looks at it.
    pub fn take_touched(&mut self, id: SessionId) -> bool {
        self.all.take_touched(id)
    }

    pub fn set_touched(&mut self, id: SessionId, is_touched: bool) {
        self.all.set_touched(id, is_touched);
    }

    /// Wakes those whose time has come.
    pub fn wake_due(&mut self, now: Time) {
        self.may_give |= self.all.wake_due(now);
    }

    /// For tests: from now on who rests is not woken by time.
    pub fn forget_due(&mut self) {
        self.all.forget_due();
    }

    /// Wakes all, for tests.
    pub fn wake_all(&mut self) {
        self.all.wake_all();
        self.may_give = true;
    }

    /// When the first is due. Those in which nothing is under way go to rest; with `keep` not those
    /// that something has just happened to.
    pub fn next_deadline(&mut self, now: Time, keep: bool, peers: &Peers) -> Option<Time> {
        self.all.file(keep, |_, session| session.due(now, peers.get(session.peer())))
    }

    pub fn is_changed(&self) -> bool {
        self.all.is_changed()
    }

    pub fn take_changed(&mut self) -> bool {
        self.all.take_changed()
    }

    /// The flows of those that are awake, in order.
    pub fn turns(&self) -> impl Iterator<Item = Turn> {
        let awake = self.all.awake().filter_map(|id| Some((id, self.get(id)?)));
        awake.flat_map(|(id, session)| {
            let flows = session.flows().iter().enumerate();
            flows.map(move |(index, flow)| Turn { rank: flow.rank, asked: Asked::Flow(id, index) })
        })
    }

    /// Who sends a flow of one: its fan-out, where it has one.
    pub fn sending(&self, id: SessionId, index: usize) -> Asked {
        match self.get(id).and_then(|it| it.flows().get(index)).map(|flow| &flow.end) {
            Some(FlowEnd::Member(member)) => Asked::FanOut(member.fan_out()),
            _ => Asked::Flow(id, index),
        }
    }

    /// Whether a flow may have something to send that was not asked since this was cleared.
    pub fn may_give(&self) -> bool {
        self.may_give
    }

    pub fn set_may_give(&mut self, may_give: bool) {
        self.may_give = may_give;
    }
}
