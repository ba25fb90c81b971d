//! The data path: which datagram belongs to whom, and what goes out next.
//!
//! ```text
//!   datagram or train -> runs of equal heads -> data: label -> flow
//!                                               QUIC: control    probe: peers
//!   control, then probes, then data: the flows of the highest priority that have any, in turn
//! ```

use super::Core;
use crate::control::Datagram;
use crate::effect::Out;
use crate::error::{Code, Error};
use crate::fanout::BACKLOG_BYTES_MAX;
use crate::flow::FlowOut;
use crate::ids::{FanOutId, Place, SessionId};
use crate::peer::Peer;
use crate::schedule::{Asked, Turn};
use crate::session::{Flow, FlowEnd};
use crate::transmit::{ListenerId, Offered, Payload, StreamWriter, Transmit, Way};
use dacapo_base::{Address, Time};
use dacapo_packet::Packet;
use dacapo_wire::data::{self, Belongs, TYPE_DATA, classify};
use dacapo_wire::probe::{Probe, TYPE_PROBE};

/// Packets of a fan-out that are given to streams before other flows have their turn.
const FAN_OUT_PACKETS_MAX: usize = 64;

impl Core {
    /// Takes a datagram from the network, or a train of equal ones, in this core's pool. `local` is
    /// where it came in, for who has several such places.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        local: ListenerId,
        remote: Address,
        mut packet: Packet,
    ) {
        packet.time = now;
        if !packet.is_train() {
            return self.route_run(now, local, remote, packet);
        }
        // A train may mix owners, so each run of segments with the same header goes its way.
        while !packet.is_empty_slot() {
            let run = self.run_of_equals(&packet);
            let first = match self.shared.pool.split_first(&mut packet, run) {
                Some(first) => first,
                None => packet.take(),
            };
            self.route_run(now, local, remote, first);
        }
    }

    /// How many segments from the first on begin with the same data header.
    fn run_of_equals(&self, packet: &Packet) -> usize {
        let head = |index| {
            let segment = self.shared.pool.segment(packet, index);
            segment.get(..data::LEN.min(segment.len())).unwrap_or_default()
        };
        let first = head(0);
        if first.first() != Some(&TYPE_DATA) {
            return 1;
        }
        (1..packet.segment_count()).find(|&at| head(at) != first).unwrap_or(packet.segment_count())
    }

    /// Finds out to whom a run belongs.
    fn route_run(&mut self, now: Time, local: ListenerId, remote: Address, packet: Packet) {
        let bytes = self.shared.pool.segment(&packet, 0);
        let belongs = classify(bytes);
        if belongs == Belongs::Ours(TYPE_DATA) {
            return self.handle_data(now, remote, packet);
        }
        match belongs {
            Belongs::Quic => {
                let conn = self.control.handle_datagram(now, local, remote, bytes);
                conn.into_iter().for_each(|conn| self.peers.handle_heard(conn));
            }
            Belongs::Ours(TYPE_PROBE) => match (Probe::parse(bytes), bytes.len()) {
                (Ok(probe), len) => {
                    let is_known = self.with_peers(now, |peers, cx, out| {
                        peers.handle_probe(cx, remote, probe, len, out)
                    });
                    self.counters.unknown_probe += u64::from(!is_known);
                }
                (Err(_), _) => self.counters.malformed += 1,
            },
            Belongs::Ours(_) => self.counters.malformed += 1,
            Belongs::Reserved => self.counters.reserved += 1,
        }
        self.touch();
        self.shared.pool.free(packet);
        self.drain_control(now);
    }

    fn handle_data(&mut self, now: Time, remote: Address, mut packet: Packet) {
        let shared = &mut self.shared;
        let Ok(header) = data::Header::parse(shared.pool.segment(&packet, 0)) else {
            self.counters.malformed += 1;
            return shared.pool.free(packet);
        };
        let own = shared.labels.target(header.label);
        let Some(target) = own.or_else(|| shared.groups.target(remote, header.label)) else {
            let old = shared.labels.is_quarantined(header.label);
            *(if old { &mut self.counters.old_label } else { &mut self.counters.unknown_label }) +=
                1;
            return shared.pool.free(packet);
        };
        if shared.pool.pull_head(&mut packet, data::LEN).is_err() {
            self.counters.malformed += 1;
            return shared.pool.free(packet);
        }
        let (id, index) = (SessionId(target.session), target.flow);
        let (mut told, mut come) = (FlowOut::default(), Some(packet));
        let peers = &self.peers;
        self.sessions.with_data(id, |session| {
            let times = peers.get(session.peer()).map(Peer::times).unwrap_or_default();
            let taken = session.on_flow(index, |flow| {
                let packet = come.take()?;
                Some(flow.handle_data(now, shared, target.epoch, packet, times, &mut told))
            });
            taken.flatten().unwrap_or(false)
        });
        if let Some(packet) = come {
            shared.pool.free(packet);
        }
        if !told.is_empty() {
            self.apply_told(now, id, index, told);
        }
    }

    /// Does what a flow tells; what was seen of the path goes there at once.
    fn apply_told(&mut self, now: Time, id: SessionId, index: usize, mut told: FlowOut) {
        if let Some(modules) = &mut told.modules
            && let Some(session) = self.sessions.get(id)
        {
            let (seen, peer) = (std::mem::take(&mut modules.seen), session.peer());
            if !seen.is_empty() && self.peers.handle_seen(now, peer, &seen) {
                self.sessions.wake_with(peer);
            }
            told.modules.take_if(|it| it.asks.is_empty() && it.failure.is_none());
        }
        if !told.is_empty() {
            let mut out = Out::default();
            self.with_session(now, id, &mut out, |it, cx, out| it.apply(cx, index, told, out));
            self.route(now, out);
        }
    }

    /// The next thing to send; `None` when nothing may be sent now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if let Some(Datagram { local, remote, bytes }) = self.control.poll_transmit(now) {
            self.drain_control(now);
            let payload = Payload::Bytes(bytes);
            return Some(Transmit { way: Way::Control, local, remote, payload });
        }
        if let Some((way, local, remote, bytes)) = self.peers.poll_probe() {
            return Some(Transmit { way, local, remote, payload: Payload::Bytes(bytes) });
        }
        self.poll_flows(now)
    }

    /// The next packet of the flows: of the highest priority, in turn among equals. It is all that
    /// there can be while nothing but data has come since [`Core::poll_transmit`] gave nothing; see
    /// [`Core::is_watched`].
    pub fn poll_flows(&mut self, now: Time) -> Option<Transmit> {
        if !self.outbox.copies.is_empty() {
            return self.outbox.copies.pop_front();
        }
        self.sessions.wake_due(now);
        self.fan_outs.wake_due(now);
        if !self.fan_outs.over_streams().is_empty() {
            self.fan_out(now);
        }
        if self.sessions.take_changed() | self.fan_outs.take_changed() {
            self.schedule.set(self.sessions.turns().chain(self.fan_outs.turns()));
        }
        self.sessions.set_may_give(false);
        self.fan_outs.set_may_give(false);
        let order = self.schedule.take();
        let equals = order.chunk_by(|one, next| one.priority == next.priority);
        let found = equals.map(|equals| self.poll_equals(now, equals)).find(Option::is_some);
        self.schedule.give_back(order);
        if found.is_some() {
            self.sessions.set_may_give(true);
        }
        found.flatten()
    }

    /// Whether [`Core::poll_flows`] has something to do although it gave nothing the last time, and
    /// no time has passed that was waited for.
    #[must_use]
    pub fn may_give(&self) -> bool {
        let may_give = self.sessions.may_give() || self.sessions.is_changed();
        let waits = !self.outbox.copies.is_empty() || self.fan_outs.may_give();
        may_give || waits
    }

    /// The next packet of flows of one priority: first those behind the one that sent last.
    fn poll_equals(&mut self, now: Time, equals: &[Turn]) -> Option<Transmit> {
        self.schedule.in_turn(equals).find_map(|turn| self.poll_turn(now, turn))
    }

    fn poll_turn(&mut self, now: Time, turn: &Turn) -> Option<Transmit> {
        let transmit = match turn.asked {
            Asked::Flow(id, index) => self.poll_flow(now, id, index),
            Asked::FanOut(id) => self.poll_fan_out(now, id),
        };
        if transmit.is_some() {
            self.schedule.note_sent(turn);
        }
        transmit
    }

    fn poll_flow(&mut self, now: Time, id: SessionId, index: usize) -> Option<Transmit> {
        let mut told = None;
        let (peers, shared, counters) = (&mut self.peers, &mut self.shared, &mut self.counters);
        // Who is only asked is not touched.
        let asked = self.sessions.ask(id, |session, is_touched| {
            if !session.flows().get(index).is_some_and(|flow| flow.end.may_give(now)) {
                return None;
            }
            *is_touched = true;
            let told = told.insert(FlowOut::default());
            // It is asked about with the next question that is due anyway.
            peers.adjust(session.peer(), |peer| {
                let poll = |flow: &mut Flow| flow.poll_packet(now, shared, peer, told);
                let sent = session.on_flow(index, poll)??;
                counters.flows_asked += 1;
                Some((sent.0, peer.local(), sent.1, sent.2))
            })
        });
        let (way, local, remote, packet) = asked.flatten().flatten()?;
        if let Some(told) = told.filter(|told| !told.is_empty()) {
            self.apply_told(now, id, index, told);
        }
        Some(Transmit { way, local, remote, payload: Payload::Packet(packet?) })
    }

    /// The next packet of a fan-out to a group, from the first of its origins; copies of it are
    /// kept for the others, and go before the next packet of any flow.
    fn poll_fan_out(&mut self, now: Time, id: FanOutId) -> Option<Transmit> {
        let mut out = Out::default();
        let packet = self.fan_outs.poll_packet(&mut self.shared.flow(now), id, &mut out);
        self.route(now, out);
        self.counters.flows_asked += u64::from(packet.is_some());
        let mut packet = packet.flatten()?;
        let it = self.fan_outs.get(id);
        let Some((it, remote)) = it.and_then(|it| Some((it, it.group()?))) else {
            self.shared.pool.free(packet);
            return None;
        };
        for origin in it.origins().iter().skip(1) {
            let payload = Payload::Packet(self.shared.pool.share(&mut packet));
            let local = Some(*origin);
            self.outbox.copies.push_back(Transmit { way: Way::Data, local, remote, payload });
        }
        let (local, payload) = (it.origins().first().copied(), Payload::Packet(packet));
        Some(Transmit { way: Way::Data, local, remote, payload })
    }

    /// Gives what fan-outs over streams have to the streams of their members: a view for each.
    fn fan_out(&mut self, now: Time) {
        let mut at = 0;
        // None begins meanwhile; when one ends, the one behind it is asked the next time.
        while let Some(&id) = self.fan_outs.over_streams().get(at) {
            at += 1;
            for _ in 0..FAN_OUT_PACKETS_MAX {
                let mut out = Out::default();
                let is_awake = self.fan_outs.is_awake(id);
                let packet = is_awake
                    .then(|| self.fan_outs.poll_packet(&mut self.shared.flow(now), id, &mut out));
                self.route(now, out);
                let Some(packet) = packet.flatten().flatten() else { break };
                self.share_out(now, id, packet);
            }
        }
    }

    fn share_out(&mut self, now: Time, id: FanOutId, mut packet: Packet) {
        let members: Vec<Place> =
            self.fan_outs.get(id).into_iter().flat_map(|it| it.members()).collect();
        let mut behind = Vec::new();
        let pool = &mut self.shared.pool;
        for (session, index) in members {
            let push = |flow: &mut Flow| flow.push_copy(pool, &mut packet);
            let pushed = self.sessions.with(session, |it| it.on_flow(index, push));
            if pushed.flatten() == Some(false) {
                behind.push((session, index));
            }
        }
        pool.free(packet);
        if behind.is_empty() {
            return;
        }
        let most = BACKLOG_BYTES_MAX >> 20;
        let text = format!("the participant is {most} MiB behind what is sent to all");
        let mut out = Out::default();
        for (session, index) in behind {
            let error = Error::new(Code::ContactLost, text.as_str());
            self.with_session(now, session, &mut out, |it, cx, out| {
                it.lose_member(cx, index, &error, out);
                it.close_channel(cx, index, out);
            });
        }
        self.route(now, out);
    }

    /// Who sends a flow of a session: its fan-out, where it has one.
    fn sending(&self, id: SessionId, index: usize) -> Asked {
        let flow = self.sessions.get(id).and_then(|session| session.flows().get(index));
        match flow.map(|flow| &flow.end) {
            Some(FlowEnd::Member(member)) => Asked::FanOut(member.fan_out()),
            _ => Asked::Flow(id, index),
        }
    }

    /// Asks the source of a flow again that has answered [`crate::SourcePoll::Idle`], or its sink
    /// whether it has room again ([`crate::Sink::has_capacity`]): for those that are fed and
    /// emptied from outside.
    pub fn wake(&mut self, now: Time, id: SessionId, flow: usize) {
        let channels = &mut self.shared.channels;
        self.sessions.with(id, |it| it.on_flow(flow, |flow| flow.wake(now, channels)));
        if let Asked::FanOut(fan_out) = self.sending(id, flow) {
            self.fan_outs.wake_source(now, fan_out);
        }
    }

    /// Takes a unit for a flow that this end sends, past its source, in which none may wait; what
    /// cannot be taken now is the source's to give. What was taken goes out with the next packets
    /// of the flows ([`Core::poll_flows`]).
    pub fn offer(
        &mut self,
        now: Time,
        id: SessionId,
        flow: usize,
        unit: &[u8],
        writer: &mut dyn StreamWriter,
    ) -> Offered {
        let asked = self.sending(id, flow);
        let shared = &mut self.shared;
        let offered = match asked {
            Asked::Flow(id, flow) => {
                let offer = |flow: &mut Flow| flow.offer(&mut shared.flow(now), unit, writer);
                self.sessions.with(id, |it| it.on_flow(flow, offer)).flatten()
            }
            Asked::FanOut(id) => self.fan_outs.offer(&mut shared.flow(now), id, unit),
        };
        offered.unwrap_or(Offered::NotNow)
    }

    /// Whether units of a flow wait at this end that may be sent.
    #[must_use]
    pub fn has_backlog(&self, id: SessionId, flow: usize) -> bool {
        let waits = match self.sending(id, flow) {
            Asked::Flow(id, flow) => {
                let flow = self.sessions.get(id).and_then(|it| it.flows().get(flow));
                flow.is_some_and(Flow::has_backlog)
            }
            Asked::FanOut(id) => self.fan_outs.get(id).is_some_and(|it| it.sender().has_backlog()),
        };
        waits || !self.outbox.copies.is_empty()
    }
}
