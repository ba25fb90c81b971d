//! [`Peers`]: the peers of a core, whose each connection and stream is, and their probes.
//!
//! Peers that will be due soon are woken with the first that is: a process that sleeps is woken
//! once for all their probes, not for each.
//!
//! Invariants: two cores share one connection; at most [`TOGETHER_MAX`] peers are woken early at a
//! time; at most one look per peer and transport waits to be polled; a question that is due is
//! asked, however many are due with it, before any peer is asked twice.

use crate::ids::{PeerId, SessionId};
mod hub;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use hub::Routed;

use super::{HostLookup, Peer};
use crate::control::{ConnId, Control};
use crate::effect::{Effect, Out, PeerNews};
use crate::flow::FlowSeen;
use crate::ready_table::{Due, ReadyTable};
use crate::shared::Shared;
use crate::transmit::{ListenerId, Way};
use dacapo_base::{Address, Ecn, Time};
use dacapo_path::{EARLY_MAX, Question};
use dacapo_wire::probe::Probe;
use quinn_proto::StreamId;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The most peers that are woken early with one that is due: a quarter of the probes that may wait.
const TOGETHER_MAX: usize = 64;

/// Which stream of a control connection carries what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carries {
    Hub(PeerId),
    Session(SessionId),
    /// A session that is over at this end; what still comes is passed over.
    Over,
}

/// Who this core says it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    /// Which start of its program.
    pub instance: [u8; 16],
    pub boot: [u8; 16],
    pub time_namespace: u64,
    pub versions: (u16, u16),
}

/// What a call into the peers is given.
pub(crate) struct PeerCx<'a> {
    pub now: Time,
    pub control: &'a mut Control,
    pub shared: &'a mut Shared,
    pub identity: Identity,
}

#[derive(Default)]
pub(crate) struct Peers {
    all: ReadyTable<PeerId, Peer>,
    /// Peers by what names their connection in probes.
    probed: BTreeMap<u64, PeerId>,
    conns: BTreeMap<ConnId, PeerId>,
    streams: BTreeMap<(ConnId, StreamId), Carries>,
    /// Where a peer is to be looked for on this host.
    looks: VecDeque<HostLookup>,
    probes: VecDeque<WaitingProbe>,
    /// With which peer the room for questions came to its end: the next look begins there.
    unasked: Option<PeerId>,
}

/// A probe that waits: of which peer, to where, and with which congestion codepoint.
type WaitingProbe = (PeerId, Address, Vec<u8>, Ecn);

/// A probe that leaves: how, from where, to where, and with which congestion codepoint.
pub(crate) type LeavingProbe = (Way, Option<ListenerId>, Address, Vec<u8>, Ecn);

/// Questions leave half of the room to answers: who asks much has to answer, too.
fn has_room_for_question(probes: &VecDeque<WaitingProbe>, cx: &PeerCx<'_>) -> bool {
    probes.len() < cx.shared.queues.probes_max.div_ceil(2)
}

impl Peers {
    pub fn get(&self, id: PeerId) -> Option<&Peer> {
        self.all.get(id)
    }

    pub fn is_suspended(&self, id: PeerId) -> bool {
        self.get(id).is_some_and(Peer::is_suspended)
    }

    /// Runs `body` over a peer for what changes no deadline of it but that of its path, which says
    /// so.
    #[inline]
    pub fn adjust<R>(&mut self, id: PeerId, body: impl FnOnce(&mut Peer) -> R) -> Option<R> {
        let mut is_earlier = false;
        let result = self.all.adjust(id, |peer| {
            let result = body(peer);
            is_earlier = peer.data.poll_earlier();
            result
        });
        if is_earlier {
            self.all.wake(id);
        }
        result
    }

    /// Modules of flows with it have seen something of the path: whether packets that wait may
    /// leave now.
    pub fn handle_seen(&mut self, now: Time, id: PeerId, seen: &FlowSeen) -> bool {
        if seen.left.is_empty() {
            // What has come changes nothing of what leaves.
            self.all.adjust(id, |peer| peer.data.handle_seen(now, seen));
            return false;
        }
        let has_capacity = self.all.with(id, |peer| {
            peer.data.handle_seen(now, seen);
            peer.data.poll_room(now)
        });
        has_capacity == Some(true)
    }

    /// A session with a peer begins.
    pub fn note_session(&mut self, id: PeerId) {
        self.all.adjust(id, |peer| peer.sessions += 1);
    }

    /// A session with a peer is over; what came last on its stream is passed over, and begins no
    /// new one.
    pub fn end_session(&mut self, cx: &mut PeerCx<'_>, id: PeerId, stream: StreamId) {
        let conn = self.all.adjust(id, |peer| {
            peer.sessions = peer.sessions.saturating_sub(1);
            peer.conn()
        });
        let Some(conn) = conn.flatten() else { return };
        if let Some(carries) = self.streams.get_mut(&(conn, stream)) {
            *carries = Carries::Over;
        }
        cx.control.finish(conn, stream);
    }

    /// Opens a stream for a session with a peer; `None` when there are too many.
    pub fn open_stream(
        &mut self,
        cx: &mut PeerCx<'_>,
        conn: ConnId,
        session: SessionId,
    ) -> Option<StreamId> {
        let stream = cx.control.open_stream(conn)?;
        self.streams.insert((conn, stream), Carries::Session(session));
        Some(stream)
    }

    /// Something has come on a stream that carries this session from now on.
    pub fn carry(&mut self, conn: ConnId, stream: StreamId, session: SessionId) {
        self.streams.insert((conn, stream), Carries::Session(session));
    }

    /// Something is said to a peer, and is to arrive soon: the connection.
    pub fn speak(&mut self, now: Time, id: PeerId) -> Option<ConnId> {
        let conn = self.get(id)?.conn()?;
        self.all.with(id, |peer| peer.life.solicit_acks(now));
        Some(conn)
    }

    /// What is to be looked for on this host, one by one.
    pub fn poll_host_lookup(&mut self) -> Option<HostLookup> {
        self.looks.pop_front()
    }

    /// A peer is reached by a transport of one host.
    pub fn handle_found(&mut self, look: HostLookup) {
        self.all.with(look.peer, |peer| peer.same_host.push(look.transport));
    }

    /// The system or the network says that datagrams to an address are too long, and perhaps how
    /// long they may be. Anybody can say so; it is tried out.
    pub fn handle_too_large(&mut self, now: Time, remote: Address, len: Option<usize>) {
        let there = self.all.iter().filter(|(_, peer)| peer.data.remote() == Some(remote));
        let there: Vec<PeerId> = there.map(|(id, _)| id).collect();
        for id in there {
            self.all.with(id, |peer| peer.data.handle_too_large(now, len));
        }
    }

    /// A probe has come; false for one that is nobody's, or answers nothing.
    pub fn handle_probe(
        &mut self,
        cx: &mut PeerCx<'_>,
        remote: Address,
        probe: Probe,
        len: usize,
        out: &mut Out,
    ) -> bool {
        let id = self.probed.get(&probe.connection).copied();
        let is_authentic = |peer: &Peer| peer.data.key().tag(&probe) == probe.tag;
        let Some(id) = id.filter(|id| self.get(*id).is_some_and(is_authentic)) else {
            return false;
        };
        if probe.answer {
            return self.handle_answer(cx, id, remote, &probe, out);
        }
        let (now, number) = (cx.now, probe.number);
        let asked = self.all.with(id, |peer| {
            let is_listener = !peer.is_dialed();
            peer.data.handle_question(now, is_listener, remote, number, len)
        });
        if let Some(question) = asked.flatten() {
            self.push_question(cx, id, remote, question);
        }
        let answer = self.get(id).map(|it| it.data.write_answer(now, probe, len));
        self.push_probe(cx, id, remote, answer, Ecn::NotEct);
        true
    }

    fn handle_answer(
        &mut self,
        cx: &PeerCx<'_>,
        id: PeerId,
        remote: Address,
        probe: &Probe,
        out: &mut Out,
    ) -> bool {
        let now = cx.now;
        let answered = self.all.with(id, |peer| {
            let answered = peer.data.handle_answer(now, remote, probe)?;
            if answered.heard.is_back {
                // The path carries again: QUIC need not wait for its own timer to find out.
                peer.life.solicit_acks(now);
                peer.life.ping_now(now);
            }
            Some(answered)
        });
        let Some(answered) = answered.flatten() else { return false };
        if let Some(before) = answered.moved_from {
            before.into_iter().for_each(|before| out.push(Effect::CloseData(before)));
            out.peer(id, PeerNews::DataMoved);
        }
        if answered.heard.has_len {
            out.peer(id, PeerNews::DataOpen);
        }
        if let Some(held) = answered.heard.held {
            out.peer(id, PeerNews::Held(held));
        }
        if let Some(clock) = answered.heard.clock {
            out.peer(id, PeerNews::Clock(clock));
        }
        true
    }

    /// Asks the questions that are due on the data path to a peer.
    pub(super) fn ask(&mut self, cx: &mut PeerCx<'_>, id: PeerId, out: &mut Out) {
        let Some(remote) = self.get(id).and_then(|peer| peer.data.remote()) else { return };
        let now = cx.now;
        while has_room_for_question(&self.probes, cx)
            && let Some(question) = self.all.with(id, |it| it.data.poll_question(now)).flatten()
        {
            self.push_question(cx, id, remote, question);
        }
        if !has_room_for_question(&self.probes, cx) {
            self.unasked.get_or_insert(id);
        }
        if let Some((from, to)) = self.all.with(id, |peer| peer.data.poll_len()).flatten() {
            out.peer(id, PeerNews::PathLen { from, to });
        }
    }

    fn push_question(&mut self, cx: &PeerCx<'_>, id: PeerId, to: Address, question: Question) {
        let bytes = self.get(id).map(|it| it.data.write_question(cx.now, question));
        self.push_probe(cx, id, to, bytes, question.ecn);
    }

    fn push_probe(
        &mut self,
        cx: &PeerCx<'_>,
        id: PeerId,
        to: Address,
        bytes: Option<Vec<u8>>,
        ecn: Ecn,
    ) {
        if self.probes.len() < cx.shared.queues.probes_max {
            self.probes.extend(bytes.map(|bytes| (id, to, bytes, ecn)));
        }
    }

    pub fn has_probes(&self) -> bool {
        !self.probes.is_empty()
    }

    /// The next probe, and how it goes. A socket of its own is for a data port that has answered.
    /// Who leaves before that, and an address from which somebody repeats a question, would leave
    /// theirs open for ever.
    pub fn poll_probe(&mut self) -> Option<LeavingProbe> {
        let (id, remote, bytes, ecn) = self.probes.pop_front()?;
        let peer = self.get(id);
        let is_known = peer.is_some_and(|it| it.data.remote() == Some(remote));
        let way = if is_known { Way::Data } else { Way::Control };
        Some((way, peer.and_then(Peer::local), remote, bytes, ecn))
    }

    /// When the first is due; `give_up_at` says of one when its first session waits for contact no
    /// longer that was lost then. Those with which there is contact go to rest.
    pub fn next_deadline(
        &mut self,
        now: Time,
        give_up_at: impl Fn(PeerId, Time) -> Option<Time>,
    ) -> Option<Time> {
        self.all.file(false, |id, peer| {
            let due = peer.due(now, |since| give_up_at(id, since));
            // While contact is lost what becomes of its sessions is looked at all the time.
            if peer.is_suspended() { Due::Now(due) } else { Due::resting(due) }
        })
    }

    /// Wakes those whose time has come, and with them some whose time will come soon.
    pub(super) fn wake_due(&mut self, now: Time) {
        if !self.all.wake_due(now) {
            return;
        }
        for _ in 0..TOGETHER_MAX {
            let Some(id) = self.all.first_due(now + EARLY_MAX) else { return };
            self.all.with(id, |peer| peer.data.ask_early(now));
        }
    }

    /// For tests: from now on who rests is not woken by time.
    pub fn forget_due(&mut self) {
        self.all.forget_due();
    }

    /// Wakes all, for tests.
    pub fn wake_all(&mut self) {
        self.all.wake_all();
    }

    /// This time does not count.
    pub fn shift(&mut self, now: Time, by: Duration) {
        let all: Vec<PeerId> = self.all.iter().map(|(id, _)| id).collect();
        for id in all {
            self.all.with(id, |peer| {
                peer.link.shift(by);
                peer.life.shift(by);
                peer.data.shift(now);
            });
        }
    }
}
