//! [`Sessions`]: the sessions of a core, and which of them have to be looked at.
//!
//! A table in which whatever gets at a session to change it wakes it (see [`ReadySet`]).
//!
//! Invariants: a session that is not awake has been found at rest since it was touched last; the
//! flows that may have something to send are those of sessions that are awake.

use super::Session;
use crate::engine::SessionId;
use crate::peer::PeerId;
use crate::ready_set::ReadySet;
use crate::session::table::Role;
use dacapo_base::Time;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(crate) struct Sessions {
    all: BTreeMap<SessionId, Session>,
    with: BTreeSet<(PeerId, SessionId)>,
    ready: ReadySet<SessionId>,
    /// Participants of the sessions that are served here, by name.
    joined: BTreeMap<String, usize>,
    /// Which sessions are awake has changed since this was cleared.
    pub is_changed: bool,
    /// A flow may have something to send, or it was not asked since this was cleared.
    pub may_give: bool,
}

impl Sessions {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn contains_key(&self, id: &SessionId) -> bool {
        self.all.contains_key(id)
    }

    pub fn get(&self, id: &SessionId) -> Option<&Session> {
        self.all.get(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&SessionId, &Session)> {
        self.all.iter()
    }

    /// A session that something happens to: it is awake from now on, and may have something to
    /// send.
    pub fn get_mut(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.may_give = true;
        self.get_data_mut(id)
    }

    /// A session for which data comes or goes: it is awake from now on. Whether that gives
    /// something to send is for the caller to say.
    pub fn get_data_mut(&mut self, id: &SessionId) -> Option<&mut Session> {
        let session = self.all.get_mut(id)?;
        session.is_touched = true;
        self.is_changed |= self.ready.wake(*id, &mut session.idle);
        Some(session)
    }

    /// A session to which nothing happens that it would have to be looked at for.
    pub fn get_resting_mut(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.all.get_mut(id)
    }

    pub fn insert(&mut self, id: SessionId, mut session: Session) {
        self.ready.wake(id, &mut session.idle);
        self.with.insert((session.peer, id));
        (self.is_changed, self.may_give) = (true, true);
        self.all.insert(id, session);
    }

    pub fn remove(&mut self, id: &SessionId) {
        let Some(session) = self.all.remove(id) else { return };
        self.with.remove(&(session.peer, *id));
        self.ready.remove(*id, session.idle);
        self.is_changed = true;
    }

    /// The sessions with a peer, in order.
    pub fn with(&self, peer: PeerId) -> impl Iterator<Item = SessionId> {
        let range = (peer, SessionId(0))..=(peer, SessionId(u64::MAX));
        self.with.range(range).map(|(_, id)| *id)
    }

    /// Something has changed for all sessions with a peer.
    pub fn touch_with(&mut self, peer: PeerId) {
        let ids: Vec<SessionId> = self.with(peer).collect();
        ids.iter().for_each(|id| _ = self.get_mut(id));
    }

    /// Those that are awake, in order.
    pub fn awake(&self) -> impl Iterator<Item = SessionId> {
        self.ready.awake()
    }

    /// Wakes those whose time has come.
    pub fn wake_due(&mut self, now: Time) {
        while let Some(id) = self.ready.first_due(now) {
            self.get_mut(&id);
        }
    }

    /// Wakes all, for tests.
    pub fn wake_all(&mut self) {
        let all: Vec<SessionId> = self.all.keys().copied().collect();
        all.iter().for_each(|id| _ = self.get_mut(id));
    }

    /// A session rests until it is touched, or until a time.
    pub fn rest(&mut self, id: SessionId, until: Option<Time>) {
        let Some(session) = self.all.get_mut(&id) else { return };
        self.is_changed |= self.ready.rest(id, &mut session.idle, until);
    }

    /// Whether a session was touched since this was asked.
    pub fn take_touched(&mut self, id: SessionId) -> bool {
        self.all.get_mut(&id).is_some_and(|session| std::mem::take(&mut session.is_touched))
    }

    /// What that gave, for who has only looked at a session since.
    pub fn set_touched(&mut self, id: SessionId, is_touched: bool) {
        if let Some(session) = self.all.get_mut(&id) {
            session.is_touched = is_touched;
        }
    }

    /// When the first that rests is due.
    pub fn next_due(&self) -> Option<Time> {
        self.ready.next_due()
    }

    /// A participant has joined a session that is served here under this name.
    pub fn note_joined(&mut self, id: SessionId, name: String) {
        let Some(session) = self.get_mut(&id) else { return };
        session.name.clone_from(&name);
        if session.role == Role::Creator && !session.told {
            *self.joined.entry(name).or_default() += 1;
        }
    }

    /// The application is told that a session is over: true the first time.
    pub fn note_told(&mut self, id: SessionId) -> bool {
        let Some(session) = self.get_mut(&id) else { return false };
        if std::mem::replace(&mut session.told, true) {
            return false;
        }
        if session.role == Role::Creator {
            let name = session.name.clone();
            if let Some(count) = self.joined.get_mut(&name) {
                *count -= 1;
                if *count == 0 {
                    self.joined.remove(&name);
                }
            }
        }
        true
    }

    /// How many participants a session that is served here has.
    pub fn joined(&self, name: &str) -> usize {
        self.joined.get(name).copied().unwrap_or(0)
    }
}
