//! Contact with a peer: lost, back, given up, and what the flows do meanwhile.
//!
//! ```text
//!            no answer for 2.8 s                 a probe is answered
//!   contact ---------------------> contact lost ---------------------> contact
//!      |  no session is set up          |  longer than a session waits: it is given up
//!      v                                |  the peer was started anew: all are
//!    the peer is lost <-----------------'  when none is left
//! ```
//!
//! While contact is lost sources are paused and nothing of a flow is sent; what was fed waits, what
//! comes all the same is taken, and the watchdogs of commands stand still. The dialer tries further
//! connections meanwhile: the first WELCOME says whether the peer was started anew.
//!
//! Invariants: each session hears of lost contact and of its return in turn; a peer without contact
//! has at least one session that is set up, and none that closes.

use super::{Core, CoreEvent, SessionId, StreamState, no_session};
use crate::control::ConnId;
use crate::error::{Code, Error};
use crate::peer::PeerId;
use crate::session::FlowEnd;
use crate::session::table::{HubRole, State};
use dacapo_base::{Time, earlier};
use dacapo_wire::message::Message;
use std::time::Duration;

/// While contact is lost the dialer begins a further connection after this time, and lets so many
/// go on.
const RETRY_EVERY: Duration = Duration::from_secs(1);
const RETRIES_MAX: usize = 3;

/// When contact is back a stream may take so long until something is acknowledged.
const CALM_AFTER: Duration = Duration::from_secs(5);

impl Core {
    /// The connection of a peer, if sessions and lists may be asked for over it now.
    pub(super) fn open_conn(&self, id: PeerId) -> Result<ConnId, Error> {
        let peer = self.peers.get(&id).filter(|peer| peer.is_open());
        let conn = peer.and_then(|peer| Some((peer, peer.conn?)));
        match conn {
            None => Err(Error::new(Code::NoSuchThing, "the peer is not open")),
            Some((peer, _)) if peer.suspended.is_some() => {
                Err(Error::new(Code::ContactLost, format!("{}: for the moment", peer.remote)))
            }
            Some((_, conn)) => Ok(conn),
        }
    }

    /// How long contact may be lost before this end gives a session up, whatever was offered; zero
    /// ends it as soon as contact is lost. Counts from when contact was lost, also when it is.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when there is no such session.
    pub fn set_give_up_after(&mut self, id: SessionId, after: Duration) -> Result<(), Error> {
        let session = self.sessions.get_mut(&id).ok_or_else(|| no_session(id))?;
        session.give_up_wish = Some(after);
        session.give_up_after = after;
        Ok(())
    }

    pub(super) fn sessions_with(&self, id: PeerId) -> Vec<SessionId> {
        self.sessions.with(id).collect()
    }

    /// Whether the watchdogs of a session stand still.
    pub(super) fn is_suspended(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|session| self.is_without_contact(session.peer))
    }

    /// No sign of life for too long: sessions that are set up wait, the others end.
    pub(super) fn lose_contact(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let error = Error::new(
            Code::ContactLost,
            format!("{}: no sign of life for three seconds", peer.remote),
        );
        (peer.suspended, peer.calm_at) = (Some(now), None);
        peer.next_attempt = now;
        for session in self.sessions_with(id) {
            let waits = self.sessions.get(&session).is_some_and(|it| {
                let may_wait = it.was_ready && it.state != State::Closing;
                may_wait && !it.give_up_after.is_zero() && it.has_live_flow()
            });
            if !waits {
                self.break_session(now, session, error.clone());
                continue;
            }
            self.suspend_flows(now, session, true);
            self.update_casts(now, session);
            let limit = self.sessions.get(&session).map_or(Duration::ZERO, |it| it.give_up_after);
            self.lengthen_stream_patience(session, limit);
            self.event(CoreEvent::ContactLost { session });
        }
        self.lose_peer_if_unused(now, id, &error);
    }

    /// While contact is lost nothing is waited for when the last way of a session is gone too.
    pub(super) fn end_if_nothing_waits(&mut self, now: Time, id: SessionId, error: &Error) {
        let lives = self.sessions.get(&id).is_none_or(|session| session.has_live_flow());
        if self.is_suspended(id) && !lives {
            // It is there: it has just been looked at.
            let _ = self.close_because(now, id, error.clone());
        }
    }

    pub(super) fn is_without_contact(&self, id: PeerId) -> bool {
        self.peers.get(&id).is_some_and(|peer| peer.suspended.is_some())
    }

    pub(super) fn lose_peer_if_unused(&mut self, now: Time, id: PeerId, error: &Error) {
        if self.sessions.with(id).next().is_none() {
            self.lose_peer(now, id, error);
        }
    }

    fn suspend_flows(&mut self, now: Time, id: SessionId, suspended: bool) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        for flow in &mut session.flows {
            match &mut flow.end {
                FlowEnd::Sender(sender) => sender.set_suspended(now, suspended),
                FlowEnd::Receiver(receiver) if !suspended => receiver.go_on(now),
                FlowEnd::Receiver(_) | FlowEnd::Member(_) | FlowEnd::None => {}
            }
        }
    }

    /// A probe was answered: everything goes on where it stopped.
    pub(super) fn restore_contact(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(since) = peer.suspended.take() else { return };
        let after = now.since(since);
        peer.calm_at = Some(now + CALM_AFTER);
        peer.hurry(now);
        peer.ping_at = now;
        if let Some(prober) = &mut peer.prober {
            prober.handle_path_change(now);
        }
        let attempts = std::mem::take(&mut peer.attempts);
        if std::mem::take(&mut peer.is_asked_for) {
            self.event(CoreEvent::PeerOpen { peer: id });
        }
        for attempt in attempts {
            self.drop_attempt(now, attempt, "contact is back");
        }
        for session in self.sessions_with(id) {
            self.shift_watchdogs(session, after);
            self.suspend_flows(now, session, false);
            self.update_casts(now, session);
            self.event(CoreEvent::ContactRestored { session, after });
        }
    }

    /// The time without contact, or in which this end did not run, does not count for what is
    /// waited for.
    pub(super) fn shift_watchdogs(&mut self, id: SessionId, by: Duration) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.awaited.iter_mut().for_each(|(deadline, _)| *deadline += by);
        for stream in session.flows.iter_mut().filter_map(|flow| flow.stream.as_mut()) {
            if let StreamState::Opening(until) = &mut stream.state {
                *until += by;
            }
        }
    }

    /// While contact is lost: sessions that have waited long enough are given up, and the dialer
    /// tries again.
    pub(super) fn watch_contact(&mut self, now: Time, id: PeerId) {
        self.watch_calm(now, id);
        let Some(peer) = self.peers.get(&id) else { return };
        let Some(since) = peer.suspended else { return };
        let (remote, retries) = (peer.remote, peer.role == HubRole::Dialer);
        let waited = now.since(since);
        let mut reason = Error::new(Code::GivenUp, remote.to_string());
        for session in self.sessions_with(id) {
            let Some(limit) = self.sessions.get(&session).map(|it| it.give_up_after) else {
                continue;
            };
            if waited >= limit {
                let text = format!("{remote}: in {} s", limit.as_secs_f64());
                reason = Error::new(Code::GivenUp, text);
                self.break_session(now, session, reason.clone());
            }
        }
        self.lose_peer_if_unused(now, id, &reason);
        if retries {
            self.retry(now, id);
        }
    }

    /// Some time after contact is back streams are what they were before.
    fn watch_calm(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.suspended.is_none() && peer.calm_at.is_some_and(|at| at <= now) {
            peer.calm_at = None;
            for session in self.sessions_with(id) {
                self.lengthen_stream_patience(session, Duration::ZERO);
            }
        }
    }

    fn retry(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id).filter(|peer| peer.next_attempt <= now) else {
            return;
        };
        let oldest = (peer.attempts.len() >= RETRIES_MAX).then(|| peer.attempts.remove(0));
        if let Some(oldest) = oldest {
            self.drop_attempt(now, oldest, "another attempt follows");
        }
        // What cannot be begun now is begun later.
        let _ = self.begin_attempt(now, id);
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.next_attempt = now + RETRY_EVERY;
        }
    }

    pub(super) fn drop_attempt(&mut self, now: Time, conn: ConnId, why: &str) {
        self.conns.remove(&conn);
        self.streams.retain(|(known, _), _| *known != conn);
        self.control.close(now, conn, Code::Closed, why);
    }

    /// Something has come on a connection besides the one in use.
    pub(super) fn handle_second_hub(
        &mut self,
        now: Time,
        id: PeerId,
        conn: ConnId,
        message: &Message,
    ) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.attempts.retain(|attempt| *attempt != conn);
        let (known, remote) = (peer.instance, peer.remote);
        self.drop_attempt(now, conn, "the connection before is still in use");
        if let Message::Welcome(welcome) = message
            && welcome.instance != known
        {
            let text = format!("{remote}: its sessions are gone");
            self.lose_peer(now, id, &Error::new(Code::PeerRestarted, text));
        }
    }

    /// When something of lost contact is due.
    pub(super) fn contact_deadline(&self, id: PeerId) -> Option<Time> {
        let peer = self.peers.get(&id)?;
        let Some(since) = peer.suspended else { return peer.calm_at };
        let with = self.sessions.with(id).filter_map(|session| self.sessions.get(&session));
        let given_up = with.map(|session| since + session.give_up_after).min();
        let retry = (peer.role == HubRole::Dialer).then_some(peer.next_attempt);
        earlier(given_up, retry)
    }
}
