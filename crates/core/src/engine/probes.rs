//! Probes of the data path to a peer: questions, answers, and where its data port is.
//!
//! Invariants: a question or answer whose tag is not the peer's changes nothing; an answer is no
//! longer than its question; data goes to an address that has answered.

use super::{Core, SessionId};
use crate::peer::PeerId;
use crate::session::FlowEnd;
use crate::session::table::HubRole;
use dacapo_base::Time;
use dacapo_path::{Prober, Question};
use dacapo_wire::probe::Probe;
use std::net::SocketAddr;

impl Core {
    pub(super) fn handle_probe(&mut self, now: Time, remote: SocketAddr, probe: Probe, len: usize) {
        let id = self.probed.get(&probe.connection).copied();
        let authentic =
            |id: &PeerId| self.peers.get(id).is_some_and(|peer| peer.key.tag(&probe) == probe.tag);
        let Some(id) = id.filter(authentic) else {
            self.counters.unknown_probe += 1;
            return;
        };
        if probe.answer {
            return self.handle_probe_answer(now, id, remote, &probe);
        }
        self.handle_question(now, id, remote, probe.number, len);
        let answer = Probe {
            answer: true,
            size: len.min(usize::from(u16::MAX)) as u16,
            received_ns: now.as_nanos(),
            answered_ns: now.as_nanos(),
            ..probe
        };
        // Not longer than the question; a full-size answer shows that the way back carries it too.
        self.push_probe(id, remote, answer, len);
    }

    /// The peer asks. A dialer's data port is where its newest question came from, when that
    /// address has answered one of ours: somebody else may have sent the question. It is asked once
    /// for each of its questions, with no more bytes. A listener has one port, and the dialer knows
    /// it.
    fn handle_question(
        &mut self,
        now: Time,
        id: PeerId,
        remote: SocketAddr,
        number: u64,
        len: usize,
    ) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let is_new = peer.note_question(number);
        if let Some(prober) = peer.prober.as_mut().filter(|_| is_new) {
            prober.ask_early(now);
        }
        if !is_new || peer.role != HubRole::Listener || peer.data_remote == Some(remote) {
            return;
        }
        let one_clock = peer.one_clock;
        let prober = peer.prober.get_or_insert_with(|| Prober::new(now, one_clock));
        let question = prober.ask_at_most(now, len);
        let since = peer.candidate.filter(|(candidate, _)| *candidate == remote);
        let since = since.map_or(question.number, |(_, since)| since);
        peer.candidate = Some((remote, since));
        self.push_question(now, id, remote, question);
    }

    /// A dialer's data port is there from now on.
    fn move_data(&mut self, now: Time, id: PeerId, remote: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.candidate = None;
        let before = peer.data_remote.replace(remote);
        if let Some(prober) = peer.prober.as_mut().filter(|_| before.is_some()) {
            prober.handle_path_change(now);
        }
        self.outbox.closed_data.extend(before);
        // They may send from now on.
        self.sessions.touch_with(id);
    }

    fn handle_probe_answer(&mut self, now: Time, id: PeerId, remote: SocketAddr, probe: &Probe) {
        let candidate = self.peers.get(&id).and_then(|peer| peer.candidate);
        let Some(prober) = self.peers.get_mut(&id).and_then(|peer| peer.prober.as_mut()) else {
            return;
        };
        let was_silent = prober.is_silent(now);
        let before = (*prober.offset(), prober.datagram_len(now));
        if !prober.handle_answer(now, probe.number, probe.received_ns, probe.answered_ns) {
            self.counters.unknown_probe += 1;
            return;
        }
        let after = (*prober.offset(), prober.datagram_len(now));
        if candidate.is_some_and(|(known, since)| known == remote && probe.number >= since) {
            self.move_data(now, id, remote);
        }
        if let Some(peer) = self.peers.get_mut(&id).filter(|_| was_silent) {
            // The path carries again: QUIC need not wait for its own timer to find out.
            peer.hurry(now);
            peer.ping_at = now;
        }
        if before.1 != after.1 {
            self.answer_waiting(now, id);
        }
        if before.0 != after.0 {
            self.tell_clock(id, after.0);
        }
    }

    /// The data path is open: offers that waited for it are answered.
    pub(super) fn answer_waiting(&mut self, now: Time, id: PeerId) {
        // One that waits has its access modules here still.
        let of_peer = |it: &&SessionId| self.sessions.get(it).is_some_and(|it| it.peer == id);
        let waiting: Vec<SessionId> = self.ports.keys().filter(of_peer).copied().collect();
        for session in waiting {
            self.answer_if_open(now, session);
        }
    }

    fn tell_clock(&mut self, id: PeerId, offset: dacapo_path::ClockOffset) {
        for session in self.sessions_with(id) {
            let Some(session) = self.sessions.get_resting_mut(&session) else { continue };
            for flow in &mut session.flows {
                if let FlowEnd::Receiver(receiver) = &mut flow.end {
                    receiver.handle_clock(offset);
                }
            }
        }
    }

    fn push_probe(&mut self, id: PeerId, remote: SocketAddr, mut probe: Probe, len: usize) {
        let Some(key) = self.peers.get(&id).map(|peer| peer.key) else { return };
        probe.tag = key.tag(&probe);
        if self.outbox.probes.len() < self.config.queues.probes_max {
            let mut bytes = Vec::with_capacity(len);
            probe.emit(len, &mut bytes);
            self.outbox.probes.push_back((id, remote, bytes));
        }
    }

    /// Asks the questions that are due on the data path to a peer.
    pub(super) fn ask(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let remote = peer.data_remote;
        let Some((prober, remote)) = peer.prober.as_mut().zip(remote) else { return };
        let mut questions = Vec::new();
        while let Some(question) = prober.poll_question(now) {
            questions.push(question);
        }
        questions.into_iter().for_each(|question| self.push_question(now, id, remote, question));
        self.tell_datagram_len(id);
    }

    fn push_question(&mut self, now: Time, id: PeerId, to: SocketAddr, question: Question) {
        let Some(key) = self.peers.get(&id).map(|peer| peer.key) else { return };
        let probe = Probe {
            answer: false,
            size: question.len as u16,
            connection: key.connection(),
            number: question.number,
            asked_ns: now.as_nanos(),
            received_ns: 0,
            answered_ns: 0,
            tag: 0,
        };
        self.push_probe(id, to, probe, question.len);
    }
}
