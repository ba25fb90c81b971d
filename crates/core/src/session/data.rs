//! What data does to the flows of a session.

use super::{FlowEnd, Session, SessionCx};
use crate::channel::Channels;
use crate::flow::{Context, FlowOut, PathTimes};
use crate::peer::Peer;
use crate::shared::Shared;
use crate::transmit::Way;
use dacapo_base::Time;
use dacapo_packet::{Packet, Pool};
use dacapo_path::ClockOffset;
use std::net::SocketAddr;

impl Session {
    /// A packet of a flow and an epoch has come; whether there may be something to send.
    pub fn handle_data(
        &mut self,
        now: Time,
        shared: &mut Shared,
        (index, epoch): (usize, u64),
        packet: Packet,
        times: PathTimes,
        told: &mut FlowOut,
    ) -> bool {
        let Some(flow) = self.flows.get_mut(index) else {
            shared.pool.free(packet);
            return false;
        };
        flow.end.handle_packet(&mut shared.flow(now), epoch, packet, times, told);
        if flow.channel.is_some() {
            flow.hold_up(now, &mut shared.channels);
        }
        flow.end.may_give(now)
    }

    /// Whether it is worth asking a flow for a packet.
    pub fn may_give(&self, now: Time, index: usize) -> bool {
        self.flows.get(index).is_some_and(|flow| flow.end.may_give(now))
    }

    /// The next packet of a flow, if it may send and has one: how it goes, and to where.
    pub fn poll_packet(
        &mut self,
        now: Time,
        shared: &mut Shared,
        index: usize,
        peer: &mut Peer,
        told: &mut FlowOut,
    ) -> Option<(Way, SocketAddr, Option<Packet>)> {
        let flow = self.flows.get_mut(index)?;
        let data = peer.data().remote();
        let way = flow.way(data.is_some())?;
        let remote = if way == Way::Data { data? } else { peer.remote() };
        let packet = flow.end.poll_packet(&mut shared.flow(now), told);
        if let (Way::Data, Some(packet)) = (way, &packet) {
            peer.note_sent(packet);
        }
        Some((way, remote, packet))
    }

    /// Keeps a view for the stream of a member; false when too much waits already.
    pub fn push_copy(&mut self, pool: &mut Pool, index: usize, packet: &mut Packet) -> bool {
        let Some(FlowEnd::Member(member)) = self.flows.get_mut(index).map(|it| &mut it.end) else {
            return true;
        };
        if !member.runs() {
            return true;
        }
        match member.push(pool.share(packet)) {
            Ok(()) => true,
            Err(view) => {
                pool.free(view);
                false
            }
        }
    }

    /// The source of a flow may have something again, or its sink room.
    pub fn wake(&mut self, now: Time, channels: &mut Channels, index: usize) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        flow.hold_up(now, channels);
        if let FlowEnd::Sender(sender) = &mut flow.end {
            sender.wake(now);
        }
    }

    /// Hands a unit over past the source of a flow.
    pub fn push(&mut self, cx: &mut Context<'_>, index: usize, unit: &[u8]) -> bool {
        match self.flows.get_mut(index).map(|flow| &mut flow.end) {
            Some(FlowEnd::Sender(sender)) => sender.push(cx, unit),
            _ => false,
        }
    }

    /// A unit has left from where it lay.
    pub fn handle_direct(&mut self, index: usize, len: usize) {
        if let Some(FlowEnd::Sender(sender)) = self.flows.get_mut(index).map(|it| &mut it.end) {
            sender.handle_direct(len);
        }
    }

    /// Whether units of a flow wait that may be sent.
    pub fn has_backlog(&self, index: usize) -> bool {
        let end = self.flows.get(index).map(|flow| &flow.end);
        matches!(end, Some(FlowEnd::Sender(sender)) if sender.has_backlog())
    }

    /// The clock of the peer is known better.
    pub fn handle_clock(&mut self, clock: ClockOffset) {
        for flow in &mut self.flows {
            if let FlowEnd::Receiver(receiver) = &mut flow.end {
                receiver.handle_clock(clock);
            }
        }
    }

    /// The path takes datagrams of another length; whether the application is to hear of it.
    pub fn handle_path_len(&mut self, cx: &mut SessionCx<'_>, len: usize) -> bool {
        let mut has_datagrams = false;
        for (index, flow) in self.flows.iter_mut().enumerate() {
            if cx.shared.graphs.is_stream(flow.offer.transport) {
                continue;
            }
            has_datagrams |= !matches!(flow.end, FlowEnd::None);
            let pool = &mut cx.shared.pool;
            match &mut flow.end {
                FlowEnd::Sender(sender) => sender.set_datagram_len(pool, len),
                FlowEnd::Member(member) => {
                    cx.fan_outs.set_len(pool, member.fan_out(), (self.id, index), len);
                }
                FlowEnd::None | FlowEnd::Receiver(_) => {}
            }
        }
        has_datagrams && self.was_ready
    }
}
