//! [`Waiting`]: packets and trains that wait for the next burst, in their order.
//!
//! Invariant: `bytes` and `packets` are those of all views here.

use dacapo_packet::Packet;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Waiting {
    views: VecDeque<Packet>,
    bytes: usize,
    packets: usize,
}

impl Waiting {
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// Payload bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many packets wait, each segment of a train being one.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// The one that leaves next.
    pub fn front(&self) -> Option<&Packet> {
        self.views.front()
    }

    /// Adds one behind all others.
    pub fn push(&mut self, packet: Packet) {
        self.bytes += packet.payload_len();
        self.packets += packet.segment_count();
        self.views.push_back(packet);
    }

    /// Puts one back before all others.
    pub fn put_back(&mut self, packet: Packet) {
        self.bytes += packet.payload_len();
        self.packets += packet.segment_count();
        self.views.push_front(packet);
    }

    /// Takes the one that leaves next.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.views.pop_front()?;
        self.bytes -= packet.payload_len();
        self.packets -= packet.segment_count();
        Some(packet)
    }
}
