//! What goes out: control, then probes, then data: the flows of the highest priority that have any,
//! one after the other in turn.

use super::{Cast, Core, SessionId, StreamId};
use crate::control::Datagram;
use crate::flow::Context;
use crate::flow::FlowOut;
use crate::peer::{Peer, PeerId};
use crate::schedule::{Schedule, Turn};
use crate::session::Flow;
use dacapo_base::Time;
use dacapo_packet::Packet;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// What a core has for the network besides what control and flows hold themselves.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub probes: VecDeque<(PeerId, SocketAddr, Vec<u8>)>,
    /// Of the packet of a flow to a group that was given last, for further places.
    pub copies: VecDeque<Transmit>,
    /// Remotes whose data lane is no longer needed.
    pub closed_data: Vec<SocketAddr>,
    /// The flows of sessions that are awake.
    pub schedule: Schedule,
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
        let is_first = self.outbox.schedule.is_first(priority);
        let is_known = !self.sessions.is_changed && self.stream_casts.is_empty();
        if !is_known || !is_first || self.has_probes() {
            return None;
        }
        self.poll_turn(now, &Turn { priority, session: id, index })
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
        let order = self.outbox.schedule.take();
        let equals = order.chunk_by(|one, next| one.priority == next.priority);
        let found = equals.map(|equals| self.poll_equals(now, equals)).find(Option::is_some);
        self.outbox.schedule.give_back(order);
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
        self.outbox.schedule.in_turn(equals).find_map(|turn| self.poll_turn(now, turn))
    }

    fn poll_turn(&mut self, now: Time, turn: &Turn) -> Option<Transmit> {
        let id = turn.session;
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
        let mut around = Context { now, pool: &mut self.pool, random: &mut self.random };
        let packet = flow.end.poll_packet(&mut around, &mut out);
        if let (Way::Data, Some(packet), Some(peer)) = (way, &packet, peer) {
            peer.note_sent(packet);
        }
        self.apply_out(now, id, turn.index, out);
        let mut packet = packet?;
        if is_cast {
            self.copy_out(id, &mut packet);
        }
        self.outbox.schedule.note_sent(turn);
        Some(Transmit { way, local, remote, payload: Payload::Packet(packet) })
    }

    /// The flows of all sessions that are awake.
    fn put_flows_in_order(&mut self) {
        let sessions = &self.sessions;
        let awake = sessions.awake().filter_map(|id| Some((id, sessions.get(&id)?)));
        self.outbox.schedule.set(awake.flat_map(|(session, it)| {
            let flows = it.flows.iter().enumerate();
            flows.map(move |(index, flow)| Turn { priority: flow.priority, session, index })
        }));
    }

    pub(super) fn poll_flow(&mut self, now: Time, id: SessionId, index: usize) -> Option<Packet> {
        let session = self.sessions.get_mut(&id)?;
        let flow = session.flows.get_mut(index)?;
        let mut out = FlowOut::default();
        let mut around = Context { now, pool: &mut self.pool, random: &mut self.random };
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
