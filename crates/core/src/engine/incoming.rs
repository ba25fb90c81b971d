//! What comes from the network, and with time.
//!
//! ```text
//!   datagram or train -> runs of equal heads -> data: label -> flow
//!                                               QUIC: control    probe: peers
//!   network, stream --> peers, sessions, fan-outs        time --> those that are awake
//! ```

use super::router::Router;
use crate::effect::{Effect, Out};
use crate::error::{Code, Error};
use crate::events::CoreEvent;
use crate::fanout::FanOut;
use crate::flow::FlowOut;
use crate::ids::{FanOutId, Place, SessionId, StreamId};
use crate::labels::Target;
use crate::network::{ChannelEvent, NetworkEvent};
use crate::peer::{self, Peer};
use crate::session::{Flow, Session};
use crate::transmit::ListenerId;
use dacapo_base::{Address, Ecn, Time};
use dacapo_lift::Membership;
use dacapo_packet::{Packet, Pool};
use dacapo_wire::data::{self, Belongs, TYPE_DATA, classify};
use dacapo_wire::probe::{Probe, TYPE_PROBE};
use std::time::Duration;

impl Router {
    /// The network says something besides datagrams.
    pub(super) fn handle_network(&mut self, now: Time, event: NetworkEvent) {
        self.touch();
        match event {
            NetworkEvent::Refused(remote) => {
                self.with_peers(now, |peers, cx, out| peers.handle_refused(cx, remote, out));
            }
            NetworkEvent::TooLarge { remote, len } => {
                self.peers.handle_too_large(now, remote, len);
            }
            NetworkEvent::Listening(place, address) => self.shared.listening.push((place, address)),
            NetworkEvent::Found(look) => self.peers.handle_found(look),
            NetworkEvent::Joined(joined, result) => self.handle_joined(now, &joined, result),
            NetworkEvent::GroupClosed { local, group, reason } => {
                self.handle_group_closed(now, local, group, &reason);
            }
        }
    }

    fn handle_joined(&mut self, now: Time, joined: &Membership, result: Result<(), String>) {
        let mut out = Out::default();
        for (id, index) in self.shared.groups.users(joined) {
            self.with_session(now, id, &mut out, |it, cx, out| {
                it.on_flow(index, |flow| flow.handle_joined(cx, joined, &result));
                it.answer_if_open(cx, out);
            });
        }
        self.route(now, out);
        self.drain_control(now);
    }

    fn handle_group_closed(
        &mut self,
        now: Time,
        local: Option<ListenerId>,
        group: Address,
        why: &str,
    ) {
        let error = Error::new(Code::NoDataPath, format!("cannot send to group {group}: {why}"));
        let mut out = Out::default();
        let ids: Vec<_> = self.fan_outs.to_group(group).collect();
        for id in ids {
            match self.fan_outs.get(id).and_then(|it| it.close_origin(local)) {
                // The others are sent to still.
                Some(here) => here.into_iter().for_each(|place| {
                    out.push(Effect::LoseMember(place, error.clone()));
                }),
                None => {
                    let shared = &mut self.shared;
                    self.fan_outs.with(id, &mut out, |it, told| {
                        it.lose_way(&mut shared.flow(now), &error, told);
                    });
                }
            }
        }
        self.route(now, out);
        self.drain_control(now);
    }

    /// Something has happened to the stream of a flow.
    pub(super) fn handle_channel(&mut self, now: Time, stream: StreamId, event: ChannelEvent) {
        let Some((session, flow)) = self.shared.channels.owner(stream) else { return self.touch() };
        if let ChannelEvent::Fallback { transport, reason } = event {
            return self.events.push(CoreEvent::Fallback { session, flow, transport, reason });
        }
        if let ChannelEvent::Estimates(seen) = event {
            let told = |flow: &mut Flow| flow.handle_below(now, &seen);
            self.sessions.adjust(session, |it| it.on_flow(flow, told));
            return;
        }
        self.touch();
        let is_room = matches!(event, ChannelEvent::Ready(_));
        let mut out = Out::default();
        self.with_session(now, session, &mut out, |it, cx, out| {
            it.handle_channel(cx, (flow, stream), event, out);
        });
        self.route(now, out);
        if !is_room {
            self.drain_control(now);
        }
    }

    /// Takes a datagram from the network, or a train of equal ones, in this core's pool. `local` is
    /// where it came in, for who has several such places.
    pub(super) fn handle_datagram(
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
            let run = run_of_equals(&self.shared.pool, &packet);
            let first = match self.shared.pool.split_first(&mut packet, run) {
                Some(first) => first,
                None => packet.take(),
            };
            self.route_run(now, local, remote, first);
        }
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
                let (local, remote) = peer::control_origin(&self.peers, local, remote);
                let conn = self.control.handle_datagram(now, local, remote, bytes);
                conn.into_iter().for_each(|conn| self.peers.handle_heard(conn));
            }
            Belongs::Ours(TYPE_PROBE) => match (Probe::parse(bytes), bytes.len()) {
                (Ok(probe), len) => {
                    let is_known = self.with_peers(now, |peers, cx, out| {
                        peers.handle_probe(cx, (local, remote), probe, len, out)
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
        if target.flow == Target::FAN_OUT {
            return self.handle_answer(now, remote, FanOutId(target.session), packet);
        }
        let (id, index) = (SessionId(target.session), target.flow);
        let (mut told, mut come) = (FlowOut::default(), Some(packet));
        let (peers, is_own) = (&mut self.peers, own.is_some());
        self.sessions.with_data(id, |session| {
            let packets = come.as_ref().map_or(0, Packet::segment_count);
            let is_marked = come.as_ref().is_some_and(|it| it.ecn() == Ecn::Ce);
            let look = |peer: &mut Peer| {
                // What goes to a group was not sent to this path alone.
                peer.note_received(remote, if is_own { packets } else { 0 }, is_marked);
                peer.times()
            };
            let times = peers.adjust(session.peer(), look).unwrap_or_default();
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

    /// Who takes part in a flow that is sent for several has sent a packet to its modules; what
    /// comes from anybody else is nobody's.
    fn handle_answer(&mut self, now: Time, remote: Address, id: FanOutId, packet: Packet) {
        let is_from = |place: &Place| {
            let session = self.sessions.get(place.0);
            let peer = session.and_then(|session| self.peers.get(session.peer()));
            peer.is_some_and(|it| it.remote() == remote || it.data().remote() == Some(remote))
        };
        let members = self.fan_outs.get(id).into_iter().flat_map(FanOut::members);
        let Some(place) = members.into_iter().find(is_from) else {
            self.counters.unknown_label += 1;
            return self.shared.pool.free(packet);
        };
        let mut out = Out::default();
        let cx = &mut self.shared.flow(now);
        self.fan_outs.with(id, &mut out, |it, told| it.handle_answer(cx, place, packet, told));
        self.route(now, out);
    }

    /// Does what a flow tells; what was seen of the path goes there at once.
    pub(super) fn apply_told(&mut self, now: Time, id: SessionId, index: usize, mut told: FlowOut) {
        if let Some(modules) = &mut told.modules
            && let Some(session) = self.sessions.get(id)
        {
            let (mut seen, peer) = (std::mem::take(&mut modules.seen), session.peer());
            session.flows().get(index).into_iter().for_each(|flow| seen.keep_of_paths(flow.spread));
            if !seen.is_empty() && self.peers.handle_seen(now, peer, &seen) {
                self.sessions.wake_with(peer);
            }
            told.modules.take_if(|it| it.asks.is_empty() && it.failure.is_none());
        }
        if !told.is_empty() {
            let mut out = Out::default();
            self.with_session(now, id, &mut out, |it, cx, out| {
                it.on_flows(|flows| flows.apply(cx, index, told, out));
            });
            self.route(now, out);
        }
    }

    /// Looks at those that are awake; in the others nothing can have happened. How many peers, and
    /// sessions and fan-outs, they are.
    pub(super) fn look_at_awake(&mut self, now: Time) -> (usize, usize) {
        let peers = self.with_peers(now, |peers, cx, out| peers.handle_timeout(cx, out));
        let awake = self.sessions.take_awake(now);
        for &id in &awake {
            // Who is only looked at is not touched.
            let was_touched = self.sessions.take_touched(id);
            let mut out = Out::default();
            self.with_session(now, id, &mut out, Session::handle_timeout);
            self.route(now, out);
            self.sessions.set_touched(id, was_touched);
        }
        let mut out = Out::default();
        let fan_outs = self.fan_outs.handle_timeout(now, &mut self.shared, &mut out);
        self.route(now, out);
        (peers, awake.len() + fan_outs)
    }

    /// This end did not run for so long: every deadline moves by it.
    pub(super) fn shift(&mut self, now: Time, stopped: Duration) {
        self.peers.shift(now, stopped);
        let ids: Vec<SessionId> = self.sessions.iter().map(|(id, _)| id).collect();
        for id in ids {
            // Of one without contact they move when contact is back.
            let peer = self.sessions.get(id).map(Session::peer);
            if !peer.is_some_and(|peer| self.peers.is_suspended(peer)) {
                self.sessions.with(id, |session| session.shift(stopped));
            }
        }
    }
}

/// How many segments from the first on begin with the same data header.
fn run_of_equals(pool: &Pool, packet: &Packet) -> usize {
    let head = |index| {
        let segment = pool.segment(packet, index);
        segment.get(..data::LEN.min(segment.len())).unwrap_or_default()
    };
    let first = head(0);
    if first.first() != Some(&TYPE_DATA) {
        return 1;
    }
    (1..packet.segment_count()).find(|&at| head(at) != first).unwrap_or(packet.segment_count())
}
