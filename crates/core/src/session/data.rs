//! What data does to a flow of a session.

use super::{Flow, FlowEnd, Session, SessionCx};
use crate::channel::Channels;
use crate::flow::{Context, FlowOut, PathTimes};
use crate::peer::Peer;
use crate::shared::Shared;
use crate::transmit::{Offered, StreamWriter, Way};
use dacapo_base::{Address, Time};
use dacapo_packet::{Packet, Pool};
use dacapo_path::ClockOffset;

impl Flow {
    /// A packet of an epoch has come; whether there may be something to send.
    pub fn handle_data(
        &mut self,
        now: Time,
        shared: &mut Shared,
        epoch: u64,
        packet: Packet,
        times: PathTimes,
        told: &mut FlowOut,
    ) -> bool {
        self.end.handle_packet(&mut shared.flow(now), epoch, packet, times, told);
        if self.channel.is_some() {
            self.hold_up(now, &mut shared.channels);
        }
        self.end.may_give(now)
    }

    /// The next packet, if it may send and has one: how it goes, and to where.
    pub fn poll_packet(
        &mut self,
        now: Time,
        shared: &mut Shared,
        peer: &mut Peer,
        told: &mut FlowOut,
    ) -> Option<(Way, Address, Option<Packet>)> {
        let data = peer.data().remote();
        let way = self.way(data.is_some())?;
        let remote = if way == Way::Data { data? } else { peer.remote() };
        // What carries a stream holds back by itself.
        let is_path = way == Way::Data;
        let allowed = if is_path { peer.allowance(now) } else { usize::MAX };
        let packet = self.end.poll_packet(&mut shared.flow(now), allowed, told);
        match &packet {
            Some(packet) if is_path => peer.note_sent(now, &self.end.sent(packet)),
            None if told.is_held => peer.await_room(),
            _ => {}
        }
        Some((way, remote, packet))
    }

    /// Keeps a view for the stream of a member; false when too much waits already.
    pub fn push_copy(&mut self, pool: &mut Pool, packet: &mut Packet) -> bool {
        let FlowEnd::Member(member) = &mut self.end else { return true };
        if !member.runs() {
            return true;
        }
        let pushed = member.push(pool.share(packet));
        pushed.map_err(|view| pool.free(view)).is_ok()
    }

    /// Its source may have something again, or its sink room.
    pub fn wake(&mut self, now: Time, channels: &mut Channels) {
        self.hold_up(now, channels);
        if let FlowEnd::Sender(sender) = &mut self.end {
            sender.wake(now);
        }
    }

    /// Takes a unit that the application hands over, past its source.
    pub fn offer(
        &mut self,
        cx: &mut Context<'_>,
        unit: &[u8],
        writer: &mut dyn StreamWriter,
    ) -> Offered {
        let way = self.way(false);
        let FlowEnd::Sender(sender) = &mut self.end else { return Offered::NotNow };
        match way {
            Some(Way::Stream(stream)) => sender.offer(cx, unit, Some((stream, writer))),
            _ => sender.offer(cx, unit, None),
        }
    }

    /// Whether units wait that may be sent.
    pub fn has_backlog(&self) -> bool {
        matches!(&self.end, FlowEnd::Sender(sender) if sender.has_backlog())
    }
}

impl Session {
    /// Runs `body` over one of its flows; `None` when there is no such.
    pub fn on_flow<R>(&mut self, index: usize, body: impl FnOnce(&mut Flow) -> R) -> Option<R> {
        self.flows.get_mut(index).map(body)
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
