//! [`Sessions`]: the sessions of a core, and which of them have to be looked at.
//!
//! What it is: a session is *awake* from when something touches it until nothing more can come of
//! it without a further touch or the passing of time; then it *rests*, with its deadline in an
//! ordered set. A turn looks at those that are awake, however many rest.
//!
//! ```text
//!             get_mut, insert, touch_with, due
//!   resting ------------------------------------> awake
//!      ^   deadline in `due`, or none               | looked at in every turn
//!      '--------------- rest(deadline) -------------'
//! ```
//!
//! What it is not: the judgement whether a session may rest; that is the engine's (`watch`). And
//! no timing wheel (Varghese and Lauck, 1987): deadlines are exact to the nanosecond, few sessions
//! have one while they rest, and an ordered set says the first of them without rounding.
//!
//! Invariants: a session that is not awake has been found at rest since it was touched last; `due`
//! holds the deadline of each resting session that has one, and nothing else.

use super::Session;
use crate::engine::SessionId;
use crate::peer::PeerId;
use crate::session::table::Role;
use dacapo_base::Time;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(crate) struct Sessions {
    all: BTreeMap<SessionId, Session>,
    with: BTreeSet<(PeerId, SessionId)>,
    awake: BTreeSet<SessionId>,
    due: BTreeSet<(Time, SessionId)>,
    /// Participants of the sessions that are served here, by name.
    joined: BTreeMap<String, usize>,
    /// Which sessions are awake has changed since this was cleared.
    pub is_changed: bool,
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

    /// A session that something happens to: it is awake from now on.
    pub fn get_mut(&mut self, id: &SessionId) -> Option<&mut Session> {
        let session = self.all.get_mut(id)?;
        if !std::mem::replace(&mut session.is_awake, true) {
            self.awake.insert(*id);
            self.is_changed = true;
            session.rests_until.take().map(|at| self.due.remove(&(at, *id)));
        }
        Some(session)
    }

    /// A session to which nothing happens that it would have to be looked at for.
    pub fn get_resting_mut(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.all.get_mut(id)
    }

    pub fn insert(&mut self, id: SessionId, mut session: Session) {
        session.is_awake = true;
        self.with.insert((session.peer, id));
        self.awake.insert(id);
        self.is_changed = true;
        self.all.insert(id, session);
    }

    pub fn remove(&mut self, id: &SessionId) {
        let Some(session) = self.all.remove(id) else { return };
        self.with.remove(&(session.peer, *id));
        self.awake.remove(id);
        self.is_changed = true;
        session.rests_until.map(|at| self.due.remove(&(at, *id)));
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
        self.awake.iter().copied()
    }

    /// Wakes those whose time has come.
    pub fn wake_due(&mut self, now: Time) {
        while let Some((_, id)) = self.due.first().filter(|(at, _)| *at <= now).copied() {
            self.get_mut(&id);
        }
    }

    /// A session rests until it is touched, or until a time.
    pub fn rest(&mut self, id: SessionId, until: Option<Time>) {
        let Some(session) = self.all.get_mut(&id) else { return };
        if std::mem::take(&mut session.is_awake) {
            self.awake.remove(&id);
            self.is_changed = true;
            session.rests_until = until;
            self.due.extend(until.map(|at| (at, id)));
        }
    }

    /// When the first that rests is due.
    pub fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
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
