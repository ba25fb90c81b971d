//! The data path: which datagram belongs to whom, probes, and what goes out.
//!
//! What it is not: pace (the flows keep it), or sockets.
//!
//! Order of what goes out: control, then probes, then data: the flows of the highest priority that
//! have any, one after the other in turn.

use super::{Cast, Core, SessionId, StreamId};
use crate::control::Datagram;
use crate::flow::Around;
use crate::flow::receiver::PathTimes;
use crate::flow::sender::FlowOut;
use crate::peer::{Peer, PeerId};
use crate::session::table::HubRole;
use crate::session::{Flow, FlowEnd, PRIORITY_MAX};
use dacapo_base::Time;
use dacapo_packet::Packet;
use dacapo_path::{Prober, Question};
use dacapo_transport::Lane;
use dacapo_wire::data::{self, Belongs, TYPE_DATA, classify};
use dacapo_wire::probe::{Probe, TYPE_PROBE};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// What a core has for the network besides what control and flows hold themselves.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    probes: VecDeque<(PeerId, SocketAddr, Vec<u8>)>,
    /// Of the packet of a flow to a group that was given last, for further places.
    pub copies: VecDeque<Transmit>,
    /// Remotes whose data lane is no longer needed.
    pub closed_data: Vec<SocketAddr>,
    /// Who of each priority has sent last.
    turns: [(u64, usize); PRIORITY_MAX as usize + 1],
    /// The flows of sessions that are awake.
    order: Vec<Turn>,
}

/// A flow in the order in which flows are asked for packets.
#[derive(Clone, Copy, Debug)]
struct Turn {
    priority: u8,
    session: u64,
    index: usize,
}

/// How a [`Transmit`] goes to its remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// As datagrams, in the lane for control.
    Control,
    /// As datagrams, in the lane for data.
    Data,
    /// As records of the byte stream of a flow.
    Stream(StreamId),
}

impl Way {
    /// The lane of a transport that it takes.
    #[must_use]
    pub fn lane(self) -> Lane {
        match self {
            Self::Control => Lane::Control,
            Self::Data | Self::Stream(_) => Lane::Data,
        }
    }
}

/// One of the places at which a core receives, by a number of who drives it: what came to one is
/// answered from there, for another would not be known to the remote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Local(pub u64);

/// Something to send.
#[derive(Debug)]
pub struct Transmit {
    /// Which way.
    pub way: Way,
    /// From where: the place at which the remote is known to have come in; any will do when it is
    /// not said.
    pub local: Option<Local>,
    /// To whom; the address of the peer's control port when it goes by a stream.
    pub remote: SocketAddr,
    /// What.
    pub payload: Payload,
}

/// The bytes of a [`Transmit`].
#[derive(Debug)]
pub enum Payload {
    /// One datagram.
    Bytes(Vec<u8>),
    /// A packet or train in the core's pool; give it back through [`Core::transmitted`].
    Packet(Packet),
}

impl Core {
    /// Takes a datagram from the network, or a train of equal ones, in this core's pool. `local` is
    /// where it came in, for who has several such places.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        local: Local,
        remote: SocketAddr,
        mut packet: Packet,
    ) {
        packet.time = now;
        if !packet.is_train() {
            return self.route_run(now, local, remote, packet);
        }
        // A train may mix owners, so each run of segments with the same header goes its way.
        while !packet.is_empty_slot() {
            let run = self.run_of_equals(&packet);
            let first = match self.pool.split_first(&mut packet, run) {
                Some(first) => first,
                None => packet.take(),
            };
            self.route_run(now, local, remote, first);
        }
    }

    /// How many segments from the first on begin with the same data header.
    fn run_of_equals(&self, packet: &Packet) -> usize {
        let head = |index| {
            let segment = self.pool.segment(packet, index);
            segment.get(..data::LEN.min(segment.len())).unwrap_or_default()
        };
        let first = head(0);
        if first.first() != Some(&TYPE_DATA) {
            return 1;
        }
        (1..packet.segment_count()).find(|&at| head(at) != first).unwrap_or(packet.segment_count())
    }

    /// Finds out to whom a run belongs.
    fn route_run(&mut self, now: Time, local: Local, remote: SocketAddr, packet: Packet) {
        let belongs = classify(self.pool.segment(&packet, 0));
        if belongs == Belongs::Ours(TYPE_DATA) {
            return self.handle_data(now, remote, packet);
        }
        self.touch();
        let bytes = self.pool.segment(&packet, 0);
        match belongs {
            Belongs::Quic => {
                let conn = self.control.handle_datagram(now, local, remote, bytes);
                // What it acknowledges shows life.
                let peer = conn.and_then(|conn| self.conns.get(&conn));
                peer.map(|id| self.peers.get_mut(id));
            }
            Belongs::Ours(TYPE_PROBE) => match Probe::parse(bytes) {
                Ok(probe) => {
                    let len = bytes.len();
                    self.handle_probe(now, remote, probe, len);
                }
                Err(_) => self.counters.malformed += 1,
            },
            Belongs::Ours(_) => self.counters.malformed += 1,
            Belongs::Reserved => self.counters.reserved += 1,
        }
        self.pool.free(packet);
        self.drain_control(now);
    }

    fn handle_data(&mut self, now: Time, remote: SocketAddr, mut packet: Packet) {
        let Ok(header) = data::Header::parse(self.pool.segment(&packet, 0)) else {
            self.counters.malformed += 1;
            return self.pool.free(packet);
        };
        let own = self.labels.target(header.label);
        let Some(target) = own.or_else(|| self.group_target(remote, header.label)) else {
            let old = self.labels.is_quarantined(header.label);
            *(if old { &mut self.counters.old_label } else { &mut self.counters.unknown_label }) +=
                1;
            return self.pool.free(packet);
        };
        if self.pool.pull_head(&mut packet, data::LEN).is_err() {
            self.counters.malformed += 1;
            return self.pool.free(packet);
        }
        let id = SessionId(target.session);
        let Some(session) = self.sessions.get_data_mut(&id) else {
            return self.pool.free(packet);
        };
        let times = self.peers.get(&session.peer).map(Peer::times);
        let Some(flow) = session.flows.get_mut(target.flow) else {
            return self.pool.free(packet);
        };
        let mut out = FlowOut::default();
        let mut around = Around { now, pool: &mut self.pool, random: &mut self.random };
        match &mut flow.end {
            FlowEnd::Receiver(receiver) => {
                let times = times.unwrap_or_default();
                receiver.handle_packet(&mut around, target.epoch, packet, times, &mut out);
            }
            FlowEnd::Sender(sender) => sender.handle_packet(&mut around, target.epoch, packet),
            FlowEnd::None | FlowEnd::Member(_) => around.pool.free(packet),
        }
        let on_stream = flow.stream.is_some();
        self.sessions.may_give |= flow.end.may_give(now);
        self.apply_out(now, id, target.flow, out);
        if on_stream {
            self.note_room(now, id, target.flow);
        }
    }

    /// What the path of a session's peer knows of its times.
    pub(super) fn times(&self, id: SessionId) -> PathTimes {
        let peer = self.sessions.get(&id).and_then(|session| self.peers.get(&session.peer));
        peer.map(Peer::times).unwrap_or_default()
    }

    fn handle_probe(&mut self, now: Time, remote: SocketAddr, probe: Probe, len: usize) {
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

    /// The next thing to send; `None` when nothing may be sent now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if let Some(Datagram { local, remote, bytes }) = self.control.poll_transmit(now) {
            self.drain_control(now);
            let payload = Payload::Bytes(bytes);
            return Some(Transmit { way: Way::Control, local, remote, payload });
        }
        if let Some((id, remote, bytes)) = self.outbox.probes.pop_front() {
            // A socket of its own is for a data port that has answered. Who leaves before that, and
            // an address from which somebody repeats a question, would leave theirs open for ever.
            let peer = self.peers.get(&id);
            let is_known = peer.is_some_and(|it| it.data_remote == Some(remote));
            let way = if is_known { Way::Data } else { Way::Control };
            let local = peer.and_then(|it| it.local);
            return Some(Transmit { way, local, remote, payload: Payload::Bytes(bytes) });
        }
        self.poll_flows(now)
    }

    /// The next packet of one flow, for who has just handed a unit over to it; `None` when there is
    /// none, or others may go first.
    pub fn poll_flow_transmit(
        &mut self,
        now: Time,
        id: SessionId,
        index: usize,
    ) -> Option<Transmit> {
        if self.has_copies() {
            return self.outbox.copies.pop_front();
        }
        let (id, index) = self.sending(id, index);
        let priority = self.sessions.get(&id)?.flows.get(index)?.priority;
        let first = self.outbox.order.first().map(|turn| turn.priority);
        let is_known = !self.sessions.is_changed && self.stream_casts.is_empty();
        if !is_known || first != Some(priority) || self.has_probes() {
            return None;
        }
        self.poll_turn(now, &Turn { priority, session: id.0, index })
    }

    /// The next packet of the flows: of the highest priority, in turn among equals. It is all that
    /// there can be while nothing but data has come since [`Core::poll_transmit`] gave nothing; see
    /// [`Core::is_watched`].
    pub fn poll_flows(&mut self, now: Time) -> Option<Transmit> {
        if self.has_copies() {
            return self.outbox.copies.pop_front();
        }
        self.sessions.wake_due(now);
        if !self.stream_casts.is_empty() {
            self.fan_out(now);
        }
        if std::mem::take(&mut self.sessions.is_changed) {
            self.put_flows_in_order();
        }
        self.sessions.may_give = false;
        let order = std::mem::take(&mut self.outbox.order);
        let equals = order.chunk_by(|one, next| one.priority == next.priority);
        let found = equals.map(|equals| self.poll_equals(now, equals)).find(Option::is_some);
        self.outbox.order = order;
        self.sessions.may_give |= found.is_some();
        found.flatten()
    }

    /// Whether [`Core::poll_flows`] has something to do although it gave nothing the last time, and
    /// no time has passed that was waited for.
    #[must_use]
    pub fn may_give(&self) -> bool {
        let sessions = &self.sessions;
        let may_give = sessions.may_give || sessions.is_changed;
        may_give || self.has_copies() || !self.stream_casts.is_empty()
    }

    /// The next packet of flows of one priority: first those behind the one that sent last.
    fn poll_equals(&mut self, now: Time, equals: &[Turn]) -> Option<Transmit> {
        let priority = equals.first().map_or(0, |turn| turn.priority);
        let last = self.outbox.turns.get(usize::from(priority)).copied().unwrap_or_default();
        let first = equals.partition_point(|turn| (turn.session, turn.index) <= last);
        let (before, behind) = equals.split_at(first);
        behind.iter().chain(before).find_map(|turn| self.poll_turn(now, turn))
    }

    fn poll_turn(&mut self, now: Time, turn: &Turn) -> Option<Transmit> {
        let id = SessionId(turn.session);
        // Who is only asked is not touched.
        let session = self.sessions.get_resting_mut(&id)?;
        let flow = session.flows.get_mut(turn.index)?;
        if !flow.end.may_give(now) {
            return None;
        }
        session.is_touched = true;
        // What was sent is asked about with the next question that is due anyway.
        let peer = self.peers.get_resting_mut(&session.peer);
        let cast = session.cast.as_ref();
        let (way, local, remote) = way_of(flow, cast, peer.as_deref())?;
        let is_cast = cast.is_some();
        self.counters.flows_asked += 1;
        let mut out = FlowOut::default();
        let mut around = Around { now, pool: &mut self.pool, random: &mut self.random };
        let packet = flow.end.poll_packet(&mut around, &mut out);
        if let (Way::Data, Some(packet), Some(peer)) = (way, &packet, peer) {
            peer.note_sent(packet);
        }
        self.apply_out(now, id, turn.index, out);
        let mut packet = packet?;
        if is_cast {
            self.copy_out(id, &mut packet);
        }
        if let Some(last) = self.outbox.turns.get_mut(usize::from(turn.priority)) {
            *last = (turn.session, turn.index);
        }
        Some(Transmit { way, local, remote, payload: Payload::Packet(packet) })
    }

    /// The flows of all sessions that are awake, the highest priority first.
    fn put_flows_in_order(&mut self) {
        let order = &mut self.outbox.order;
        order.clear();
        for id in self.sessions.awake() {
            let Some(session) = self.sessions.get(&id) else { continue };
            let flows = session.flows.iter().enumerate();
            let turn = |(index, flow): (usize, &Flow)| Turn {
                priority: flow.priority,
                session: id.0,
                index,
            };
            order.extend(flows.map(turn));
        }
        order.sort_by_key(|turn| Reverse(turn.priority));
    }

    pub(super) fn poll_flow(&mut self, now: Time, id: SessionId, index: usize) -> Option<Packet> {
        let session = self.sessions.get_mut(&id)?;
        let flow = session.flows.get_mut(index)?;
        let mut out = FlowOut::default();
        let mut around = Around { now, pool: &mut self.pool, random: &mut self.random };
        let packet = flow.end.poll_packet(&mut around, &mut out);
        self.apply_out(now, id, index, out);
        packet
    }

    /// The bytes of a transmit, and the length of its datagrams.
    #[must_use]
    pub fn bytes<'a>(&'a self, transmit: &'a Transmit) -> (&'a [u8], usize) {
        match &transmit.payload {
            Payload::Bytes(bytes) => (bytes, bytes.len()),
            // The layout leaves no gap in what goes out.
            Payload::Packet(packet) => self.pool.contiguous(packet).unwrap_or_default(),
        }
    }

    /// Gives back what was sent, or cannot be.
    pub fn transmitted(&mut self, transmit: Transmit) {
        if let Payload::Packet(packet) = transmit.payload {
            self.pool.free(packet);
        }
    }

    /// Remotes whose data lane is no longer needed, since the last call.
    pub fn take_closed_data(&mut self) -> Vec<SocketAddr> {
        std::mem::take(&mut self.outbox.closed_data)
    }

    /// Whether a packet waits to be sent from further places.
    pub(super) fn has_copies(&self) -> bool {
        !self.outbox.copies.is_empty()
    }

    pub(super) fn has_probes(&self) -> bool {
        !self.outbox.probes.is_empty()
    }
}

/// How a flow may send now, from where, and to whom.
fn way_of(
    flow: &Flow,
    cast: Option<&Cast>,
    peer: Option<&Peer>,
) -> Option<(Way, Option<Local>, SocketAddr)> {
    if let Some(cast) = cast {
        // One over streams is polled in `fan_out`.
        return Some((Way::Data, cast.places.first().copied(), cast.group?));
    }
    let peer = peer?;
    let way = flow.way(peer.data_remote.is_some())?;
    let remote = if way == Way::Data { peer.data_remote? } else { peer.remote };
    Some((way, peer.local, remote))
}
