//! [`Feedback`]: packets of a receiver's modules for those of the sender.
//!
//! Invariant: so many wait at most; what comes beyond is given up, as if it had been lost.

use dacapo_packet::{Packet, Pool};
use dacapo_wire::data;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Feedback {
    packets: VecDeque<Packet>,
    packets_max: usize,
}

impl Feedback {
    pub fn new(packets_max: usize) -> Self {
        Self { packets: VecDeque::new(), packets_max }
    }

    /// Takes a packet for an epoch with this label at the sender.
    pub fn push(&mut self, pool: &mut Pool, mut packet: Packet, label: u32) {
        let room = pool.push_head(&mut packet, data::LEN).is_ok();
        if !room || self.packets.len() >= self.packets_max {
            return pool.free(packet);
        }
        let header = data::Header { label }.emit();
        for index in 0..packet.segment_count() {
            pool.head_mut(&packet, index, data::LEN).copy_from_slice(&header);
        }
        self.packets.push_back(packet);
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Packet> {
        self.packets.pop_front()
    }

    /// Gives every view back.
    pub fn flush(&mut self, pool: &mut Pool) {
        self.packets.drain(..).for_each(|packet| pool.free(packet));
    }
}
