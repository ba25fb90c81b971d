//! [`Session`]: the handle of a session that an application has.

use super::account::{Account, Measured};
use super::driver::{Guard, Shared};
use super::endpoint::Endpoint;
use super::entry::{Entry, Handle, Phase};
use super::flow::FlowInfo;
use super::ids;
use super::state::check_works;
use super::waiting::{Wait, Waiting};
use super::wanted::Wanted;
use super::worker::Worker;
use crate::misuse::misuse;
use dacapo_base::{Address, Time};
use dacapo_core::table::Role;
use dacapo_core::{Code, Command, Error, PathKnown, SessionId};
use dacapo_security::Fingerprint;
use dacapo_sys::clock;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A close waits for what was sent to be accounted for while units go; without any, so long.
pub(super) const STALL_MAX: Duration = Duration::from_secs(10);

/// The core ends a session that closes within 10 s; a close does not give up before.
const CLOSE_MAX: Duration = Duration::from_secs(15);

/// What a session that is dropped has to close in order.
const DROP_MAX: Duration = Duration::from_secs(2);

/// A session of this application. Clones are the same session. When the last is gone, a session
/// that was not closed closes as [`Session::close`] does, in at most 2 s; what takes longer is not
/// sent.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
    how: Wait,
}

struct Inner {
    endpoint: Endpoint,
    worker: Arc<Worker>,
    id: SessionId,
    name: String,
}

impl Session {
    pub(super) fn new(endpoint: &Endpoint, worker: Arc<Worker>, id: SessionId, name: &str) -> Self {
        let inner = Inner { endpoint: endpoint.clone(), worker, id, name: name.to_owned() };
        Self { inner: Arc::new(inner), how: Wait::default() }
    }

    /// The same session, by a handle whose calls wait so for units, for room and for answers of the
    /// peer. Another handle's wait as before, at first as [`Wait::Adaptive`] says.
    #[must_use]
    pub fn waiting(&self, how: Wait) -> Self {
        Self { inner: Arc::clone(&self.inner), how }
    }

    /// Its number at its endpoint.
    #[must_use]
    pub fn id(&self) -> ids::SessionId {
        let workers = self.inner.endpoint.workers();
        let worker = workers.iter().position(|it| Arc::ptr_eq(it, &self.inner.worker));
        ids::SessionId { worker: worker.unwrap_or(usize::MAX), id: self.inner.id }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// What people see of it.
    #[must_use]
    pub fn title(&self) -> String {
        self.look(|entry| entry.title.clone()).unwrap_or_default()
    }

    /// The address of the other end's control connection.
    #[must_use]
    pub fn remote(&self) -> Address {
        let nowhere = Address::from(([0, 0, 0, 0], 0));
        self.look(|entry| entry.remote).unwrap_or(nowhere)
    }

    /// Who the other end says it is; `None` when it is gone.
    #[must_use]
    pub fn peer_fingerprint(&self) -> Option<Fingerprint> {
        let mut state = self.lock();
        let peer = state.sessions.get(&self.inner.id)?.peer;
        state.host.peer_fingerprint(peer)
    }

    /// The endpoint that it is at.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.inner.endpoint
    }

    /// Its flows, as they were agreed.
    #[must_use]
    pub fn flows(&self) -> Vec<FlowInfo> {
        let infos = |entry: &Entry| entry.flows.iter().map(|flow| flow.info.clone()).collect();
        self.look(infos).unwrap_or_default()
    }

    /// Whether its flows run.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.look(|entry| entry.phase == Phase::Active).unwrap_or(false)
    }

    /// Whether the peer gives signs of life. Without contact the flows of the session wait: calls
    /// that send or receive wait with them, until contact is back or the session is given up.
    #[must_use]
    pub fn has_contact(&self) -> bool {
        self.look(|entry| entry.has_contact).unwrap_or(false)
    }

    /// The longest datagrams that the path takes, in bytes of UDP payload, as far as this end has
    /// found out; it changes with the path while flows run.
    #[must_use]
    pub fn path_mtu(&self) -> Option<usize> {
        self.lock().core().path_mtu(self.inner.id)
    }

    /// What is known of the path to the other end by now: by this, as far as it was known then, a
    /// creator chooses protocols for who joins.
    #[must_use]
    pub fn path_known(&self) -> Option<PathKnown> {
        let mut state = self.lock();
        let peer = state.sessions.get(&self.inner.id)?.peer;
        state.core().path(peer).map(|path| path.known)
    }

    /// How long contact may be lost before this end gives the session up, whatever its creator said
    /// (five minutes, if nothing); zero ends it as soon as contact is lost.
    ///
    /// # Errors
    /// [`dacapo_core::Code::NoSuchThing`] when the session is over.
    pub fn set_give_up(&self, after: Duration) -> Result<(), Error> {
        let mut state = self.lock();
        check_works(&state)?;
        let now = clock::now();
        state.core().handle_command(now, Command::GiveUpAfter(self.inner.id, after)).map(drop)
    }

    /// What became of every unit, so far or, after the end, for good.
    #[must_use]
    pub fn account(&self) -> Account {
        let empty = || Account { session: self.inner.name.clone(), flows: Vec::new() };
        self.lock().account(self.inner.id).unwrap_or_else(empty)
    }

    /// What was measured of a flow at this end so far; `None` when the session is over, or has no
    /// flow of that name.
    #[must_use]
    pub fn measured(&self, flow: &str) -> Option<Measured> {
        let mut state = self.lock();
        let all = state.host.reactor().status(self.inner.id);
        let core = state.core();
        let peer = core.sessions().find(|(id, ..)| *id == self.inner.id)?.2;
        Measured::of(all, flow, core.path(peer))
    }

    fn look<T>(&self, look: impl FnOnce(&Entry) -> T) -> Option<T> {
        self.lock().sessions.get(&self.inner.id).map(look)
    }

    pub(super) fn lock(&self) -> Guard<'_> {
        self.shared().lock()
    }

    /// What its endpoint's calls share.
    pub(super) fn shared(&self) -> &Shared {
        &self.inner.worker.shared
    }

    pub(super) fn core_id(&self) -> SessionId {
        self.inner.id
    }

    /// Waits as this handle does.
    pub(super) fn wait<'a>(
        &'a self,
        state: Guard<'a>,
        until: Time,
        wanted: &Wanted,
    ) -> (Guard<'a>, Result<bool, Error>) {
        self.shared().wait(state, until, self.how, wanted)
    }

    /// Lets the flows run, at the Participant's end; waits until they do. At the Creator's end it
    /// waits until the Participant lets them, or finds that it has: a session may be over by then,
    /// and what came is there to be received. Nothing happens to flows that run.
    ///
    /// # Errors
    /// Misuse when the session is closed; why it ended before; [`Code::NoAnswer`] within 10 s.
    pub fn activate(&self) -> Result<(), Error> {
        self.switch(Phase::Ready, Phase::Activating, Phase::Active)
    }

    /// Lets the flows pause, at the Participant's end; waits until they do. Nothing is lost: what
    /// is on its way arrives, what is handed over waits for [`Session::activate`].
    ///
    /// # Errors
    /// Misuse at the Creator's end and when the session is closed or has never been active; why it
    /// ended; [`Code::NoAnswer`] within 10 s.
    pub fn deactivate(&self) -> Result<(), Error> {
        let mut state = self.lock();
        let entry = state.open_entry(self.inner.id)?;
        if entry.role == Role::Creator {
            return Err(misuse("only the participant pauses a session; close() ends it"));
        }
        entry.check_begun()?;
        drop(state);
        self.switch(Phase::Active, Phase::Pausing, Phase::Ready)
    }

    /// Brings the session from a phase to another, by way of a third while the peer is asked.
    fn switch(&self, from: Phase, by: Phase, to: Phase) -> Result<(), Error> {
        let mut state = self.lock();
        // Of what was before, a Participant has to know that it is over, and a Creator does not.
        let entry = state.open_entry(self.inner.id)?;
        let was_active = entry.was_active && entry.role == Role::Participant;
        loop {
            let entry = state.open_entry(self.inner.id)?;
            if let Phase::Over(error) = &entry.phase {
                if to == Phase::Active && entry.was_active && !was_active {
                    return Ok(());
                }
                return Err(error.clone().unwrap_or_else(|| closed(entry)));
            }
            if entry.phase == to {
                return Ok(());
            }
            let mut refused = None;
            if entry.phase == from && entry.role == Role::Participant {
                refused = state.switch(self.inner.id, by == Phase::Activating).err();
                self.inner.worker.shared.act(&mut state);
            }
            let was = state.open_entry(self.inner.id)?.phase.clone();
            // Refused is who asks when the peer has just closed: then the end follows.
            let until = refused.as_ref().map_or(Time::NEVER, |_| clock::now() + CLOSE_MAX);
            let (locked, outcome) = self.wait(state, until, &Wanted::Phase(self.inner.id, was));
            state = locked;
            if let (false, Some(error)) = (outcome?, refused) {
                return Err(error);
            }
        }
    }

    /// Closes the session in order and says what became of every unit. While the session is active,
    /// what this end has handed over goes out first, as long as units go; calls that wait at other
    /// threads end. Of a flow that others are sent too, what waits goes out, and they go on. What
    /// the peer still sends is not waited for. When the session is paused, or has
    /// never been active, what waits is not sent. It takes at most 10 s after the last unit went.
    ///
    /// # Errors
    /// Misuse when it is closed; why it ended, if that was before and not in order:
    /// [`Session::account`] then has the account.
    pub fn close(&self) -> Result<Account, Error> {
        self.inner.close(Time::NEVER, self.how)
    }
}

impl Inner {
    fn close(&self, until: Time, how: Wait) -> Result<Account, Error> {
        let (id, shared) = (self.id, &self.worker.shared);
        let mut state = shared.lock();
        let entry = state.open_entry(id)?;
        entry.is_closed = true;
        let is_active = entry.phase == Phase::Active;
        if is_active {
            state.leave_all(id);
        }
        // Calls that wait learn that it is closed.
        shared.act(&mut state);
        if is_active {
            state = shared.send_waiting(state, id, until, how);
            state = self.linger(state, until, how);
        }
        let end = Wanted::End(id);
        if !end.is_met(&state) {
            state.close(id);
            shared.act(&mut state);
            let until = until.min(clock::now() + CLOSE_MAX);
            (state, _) = shared.wait(state, until, how, &end);
        }
        let account = state.account(id).ok_or_else(|| misuse("the session is closed"))?;
        match state.sessions.get(&id).and_then(Entry::disorder) {
            Some(error) => Err(error.clone()),
            None => Ok(account),
        }
    }

    /// Waits until what was sent is accounted for, as long as units go.
    fn linger<'a>(&'a self, mut state: Guard<'a>, until: Time, how: Wait) -> Guard<'a> {
        let (id, shared) = (self.id, &self.worker.shared);
        loop {
            let sent = state.sent(id);
            let stalled = clock::now() + STALL_MAX;
            let account = Wanted::Account(id);
            let (locked, outcome) = shared.wait(state, until.min(stalled), how, &account);
            state = locked;
            let goes_on = outcome == Ok(false) && clock::now() < until && state.sent(id) > sent;
            if !goes_on {
                return state;
            }
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.worker.shared.is_here() {
            return;
        }
        // One that is closed is refused, and that is all there is to do.
        let _ = self.close(clock::now() + DROP_MAX, Wait::Block);
        let mut state = self.worker.shared.lock();
        if let Some(entry) = state.sessions.get_mut(&self.id) {
            entry.handle = Handle::Gone;
            if entry.is_over() {
                state.sessions.remove(&self.id);
            }
        }
    }
}

fn closed(entry: &Entry) -> Error {
    Error::new(Code::Closed, format!("the peer has closed the session \"{}\"", entry.name))
}
