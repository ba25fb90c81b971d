//! The data path in: which datagram belongs to whom.
//!
//! ```text
//!   datagram or train -> runs of equal heads -> data: label -> flow
//!                                               QUIC: control    probe: `probes`
//! ```

use super::{Core, Local, SessionId};
use crate::flow::Context;
use crate::flow::FlowOut;
use crate::flow::PathTimes;
use crate::peer::Peer;
use crate::session::FlowEnd;
use dacapo_base::Time;
use dacapo_packet::Packet;
use dacapo_wire::data::{self, Belongs, TYPE_DATA, classify};
use dacapo_wire::probe::{Probe, TYPE_PROBE};
use std::net::SocketAddr;

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
                if let Some(conn) = self.control.handle_datagram(now, local, remote, bytes) {
                    self.handle_heard(conn);
                }
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
        let mut around = Context { now, pool: &mut self.pool, random: &mut self.random };
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
}
