//! Deadlines: attempts, greetings, life signs, watchdogs of commands, and the timers of flows.

use super::hub::not_listening;
use super::{Core, CoreEvent, FlowStream, SessionId, StreamState};
use crate::error::{Code, Error};
use crate::flow::FlowOut;
use crate::peer::{HURRY_EVERY, Peer, PeerId};
use crate::session::table::State;
use crate::session::{Awaited, FlowEnd, Session};
use dacapo_base::{Time, earlier};
use dacapo_path::Life;
use std::time::Duration;

/// When a peer without a data path is asked for life, how often, and when contact with it is lost.
const UNPROBED_ASK: Duration = Duration::from_secs(10);
const UNPROBED_EVERY: Duration = Duration::from_secs(2);
const UNPROBED_LOST: Duration = Duration::from_secs(30);

/// Why a peer is given up whose time to greet is over.
fn not_answered(peer: &Peer) -> Error {
    if peer.dialing.is_refused() {
        return not_listening(peer.remote);
    }
    let secs = peer.dialing.most().as_secs_f64();
    let text = match peer.last_failure.as_str() {
        "" => format!(
            "{}: no answer in {secs} s; is a dacapo serving there, and does UDP get through?",
            peer.remote
        ),
        failure => format!("{}: {failure}", peer.remote),
    };
    Error::new(Code::Unreachable, text)
}

/// How long who asks for a deadline will do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    Deadline,
    NextLook,
}

impl Core {
    /// When [`Core::handle_timeout`] or [`Core::poll_transmit`] has something to do next.
    pub fn next_deadline(&mut self, now: Time) -> Option<Time> {
        self.tell_deadline(now, Until::Deadline)
    }

    /// The same for who does not sleep, but looks again and again: a session for which data comes
    /// and goes would else go to rest, and wake, with every packet.
    pub fn next_deadline_awake(&mut self, now: Time) -> Option<Time> {
        self.tell_deadline(now, Until::NextLook)
    }

    fn tell_deadline(&mut self, now: Time, until: Until) -> Option<Time> {
        let due = self.find_deadline(now, until);
        self.looks_at.tell(now, due);
        due
    }

    fn find_deadline(&mut self, now: Time, until: Until) -> Option<Time> {
        if self.has_probes() || self.asks_of_streams() || self.asks_of_groups() {
            return Some(now);
        }
        let next = earlier(self.control.next_deadline(), self.next_of_peers(now));
        earlier(next, self.next_of_sessions(now, until))
    }

    /// When the first peer is due. Those with which there is contact go to rest.
    fn next_of_peers(&mut self, now: Time) -> Option<Time> {
        let awake: Vec<PeerId> = self.peers.awake().collect();
        let mut next = None;
        for id in awake {
            let Some(peer) = self.peers.get(&id) else { continue };
            let (due, is_suspended) = (self.peer_deadline(now, id, peer), peer.suspended.is_some());
            // While contact is lost what becomes of its sessions is looked at all the time.
            if is_suspended {
                next = earlier(next, due);
            } else {
                self.peers.rest(id, due);
            }
        }
        earlier(next, self.peers.next_due())
    }

    /// When a peer is due: of one that nothing touches that does not change, but to become later.
    fn peer_deadline(&self, now: Time, id: PeerId, peer: &Peer) -> Option<Time> {
        let mut next = peer.deadline;
        if peer.conn.is_none() {
            next = earlier(next, Some(peer.next_attempt));
        }
        next = earlier(next, self.contact_deadline(id));
        let life = match peer.prober.as_ref().filter(|_| peer.data_remote.is_some()) {
            Some(prober) => Some(prober.next_deadline(now)),
            None if peer.conn.is_some() => {
                let ask = (peer.heard_at + UNPROBED_ASK).max(peer.ping_at);
                Some(ask.min(peer.heard_at + UNPROBED_LOST))
            }
            None => None,
        };
        next = earlier(next, life);
        if self.is_to_be_pinged(now, id) {
            next = earlier(next, Some(peer.ping_at));
        }
        earlier(next, peer.lists.iter().map(|(at, _)| *at).min())
    }

    /// When the first session is due. Those in which nothing is under way go to rest; of those that
    /// something has just happened to, only for who sleeps.
    fn next_of_sessions(&mut self, now: Time, until: Until) -> Option<Time> {
        let awake: Vec<SessionId> = self.sessions.awake().collect();
        let mut next = None;
        for id in awake {
            let Some(session) = self.sessions.get(&id) else { continue };
            let due = self.session_deadline(now, id, session);
            let may_rest = session.may_rest();
            let stays = until == Until::NextLook && self.sessions.take_touched(id);
            if may_rest && !stays {
                self.sessions.rest(id, due);
            } else {
                next = earlier(next, due);
            }
        }
        earlier(next, self.sessions.next_due())
    }

    /// When a session is due. Of one that may rest this does not depend on `now`, and changes with
    /// its peer only when contact is lost or back, or the data path is known: then all sessions
    /// with the peer are touched.
    fn session_deadline(&self, now: Time, id: SessionId, session: &Session) -> Option<Time> {
        let mut next = None;
        let is_suspended = self.is_without_contact(session.peer);
        if !is_suspended {
            next = session.awaited.iter().map(|(at, _)| *at).min();
        }
        let times = self.times(id);
        let peer = self.peers.get(&session.peer);
        let to_peer = peer.is_some_and(|peer| peer.data_remote.is_some());
        let datagrams = to_peer || session.cast.is_some();
        for flow in &session.flows {
            let may_send = flow.way(datagrams).is_some();
            if let Some(FlowStream { state: StreamState::Opening(until), .. }) = flow.stream
                && !is_suspended
            {
                next = earlier(next, Some(until));
            }
            next = earlier(
                next,
                match &flow.end {
                    FlowEnd::None | FlowEnd::Member(_) => None,
                    FlowEnd::Sender(sender) => sender.next_deadline(now, may_send),
                    FlowEnd::Receiver(receiver) => receiver.next_deadline(times),
                },
            );
        }
        next
    }

    /// Those that are awake; with the others nothing can have happened.
    pub(super) fn watch_peers(&mut self, now: Time) {
        self.peers.wake_due(now);
        let ids: Vec<PeerId> = self.peers.awake().collect();
        self.counters.peers_watched += ids.len() as u64;
        for id in ids {
            self.watch_dialing(now, id);
            self.watch_greeting(now, id);
            self.watch_lists(now, id);
            self.watch_life(now, id);
            self.watch_contact(now, id);
        }
    }

    fn watch_dialing(&mut self, now: Time, id: PeerId) {
        let due = self.peers.get(&id).is_some_and(|it| it.conn.is_none() && it.next_attempt <= now);
        if due && let Err(error) = self.begin_attempt(now, id) {
            self.lose_peer(now, id, &error);
        }
    }

    fn watch_greeting(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.get(&id) else { return };
        if peer.deadline.is_some_and(|deadline| deadline <= now) {
            let error = not_answered(peer);
            self.lose_peer(now, id, &error);
        }
    }

    fn watch_lists(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let before = peer.lists.len();
        peer.lists.retain(|(deadline, _)| *deadline > now);
        for _ in peer.lists.len()..before {
            let error = Error::new(Code::NoAnswer, "LIST");
            self.event(CoreEvent::Listing { peer: id, sessions: Err(error) });
        }
    }

    fn watch_life(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let heard = peer.conn.map_or(0, |conn| self.control.heard(conn));
        let changed = heard != peer.heard;
        if changed {
            (peer.heard, peer.heard_at) = (heard, now);
        }
        let acked = peer.conn.map_or(0, |conn| self.control.acked(conn));
        if acked != std::mem::replace(&mut peer.acked, acked) {
            peer.hurry = peer.hurry.saturating_sub(1);
        }
        let waits = peer.waits_for_path(now);
        let is_probed = peer.data_remote.is_some();
        let Some(prober) = peer.prober.as_mut().filter(|_| is_probed) else {
            self.ping_if_due(now, id);
            return self.watch_unprobed(now, id);
        };
        prober.note_stop(now);
        if changed && waits {
            prober.handle_life(now);
        }
        match (prober.life(now), peer.suspended) {
            (Life::Lost, None) => self.lose_contact(now, id),
            (Life::Alive, Some(_)) => self.restore_contact(now, id),
            _ => {}
        }
        self.ping_if_due(now, id);
        self.ask(now, id);
        self.answer_waiting(now, id);
    }

    /// Whether QUIC is to be asked for signs of life: until probes are answered it says whether the
    /// peer lives, for a data path that does not open is no loss of contact; and after something
    /// was said (see [`crate::peer::Peer::hurry`]).
    fn is_to_be_pinged(&self, now: Time, id: PeerId) -> bool {
        let peer = self.peers.get(&id).filter(|it| it.suspended.is_none() && it.conn.is_some());
        peer.is_some_and(|peer| peer.waits_for_path(now) || peer.hurry > 0)
    }

    fn ping_if_due(&mut self, now: Time, id: PeerId) {
        if !self.is_to_be_pinged(now, id) {
            return;
        }
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.ping_at <= now {
            peer.ping_at = now + HURRY_EVERY;
            peer.conn.into_iter().for_each(|conn| self.control.ping(conn));
        }
    }

    /// A peer that has not opened the data path yet is asked for life on the control connection.
    fn watch_unprobed(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(conn) = peer.conn else { return };
        let (silence, remote) = (now.since(peer.heard_at), peer.remote);
        if silence >= UNPROBED_LOST {
            let text = format!("{remote}: no sign of life for {} s", UNPROBED_LOST.as_secs());
            self.lose_peer(now, id, &Error::new(Code::ContactLost, text));
        } else if silence >= UNPROBED_ASK && peer.ping_at <= now {
            peer.ping_at = now + UNPROBED_EVERY;
            self.control.ping(conn);
        }
    }

    /// Those that are awake; in the others nothing can have happened.
    pub(super) fn watch_sessions(&mut self, now: Time) {
        self.sessions.wake_due(now);
        let ids: Vec<SessionId> = self.sessions.awake().collect();
        self.counters.sessions_watched += ids.len() as u64;
        for id in ids {
            // Who is only looked at is not touched.
            let was_touched = self.sessions.take_touched(id);
            let is_suspended = self.is_suspended(id);
            if !is_suspended {
                self.watch_streams(now, id);
            }
            self.watch_flows(now, id);
            if !is_suspended {
                self.watch_commands(now, id);
            }
            self.sessions.set_touched(id, was_touched);
        }
    }

    fn watch_flows(&mut self, now: Time, id: SessionId) {
        let times = self.times(id);
        let count = self.sessions.get(&id).map_or(0, |session| session.flows.len());
        for index in 0..count {
            let mut out = FlowOut::default();
            self.with_session(now, id, |session, around| {
                match session.flows.get_mut(index).map(|flow| &mut flow.end) {
                    Some(FlowEnd::Sender(it)) => it.handle_timeout(around, times.rtt, &mut out),
                    Some(FlowEnd::Receiver(it)) => it.handle_timeout(around, times, &mut out),
                    Some(FlowEnd::None | FlowEnd::Member(_)) | None => {}
                }
            });
            self.apply_out(now, id, index, out);
        }
        self.answer_closed_if_settled(now, id);
    }

    /// The watchdog of every command.
    fn watch_commands(&mut self, now: Time, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let over: Vec<Awaited> = session
            .awaited
            .iter()
            .filter(|(deadline, _)| *deadline <= now)
            .map(|(_, awaited)| *awaited)
            .collect();
        session.awaited.retain(|(deadline, _)| *deadline > now);
        for awaited in over {
            self.handle_no_answer(now, id, awaited);
        }
    }

    fn handle_no_answer(&mut self, now: Time, id: SessionId, awaited: Awaited) {
        let error = Error::new(Code::NoAnswer, awaited.name());
        match awaited {
            Awaited::Control(request) => {
                self.event(CoreEvent::ControlAnswered { session: id, request, answer: Err(error) });
            }
            Awaited::Accept if self.ports.contains_key(&id) => {
                // The ANSWER never went out: the data path did not open.
                let text = "probes from this host's data port are not answered; is UDP filtered?";
                self.break_session(now, id, Error::new(Code::NoDataPath, text));
            }
            _ => {
                let closing = self.sessions.get(&id).is_some_and(|it| it.state == State::Closing);
                if closing {
                    self.end_session(now, id, Some(error));
                } else {
                    self.break_session(now, id, error);
                }
            }
        }
    }
}
