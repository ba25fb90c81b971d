//! The queues between modules: one lane per module and direction.
//!
//! What it is not: a place where units wait for the network; that is the splice. A lane is empty
//! after every run unless a module has no credit.
//!
//! Invariant: a lane holds at most [`LANE_MAX`] slots; what exceeds it is freed and counted by the
//! caller.

use dacapo_packet::{BATCH_BYTES_MAX, BATCH_PACKETS_MAX, Batch, Packet, Pool};
use std::collections::VecDeque;

/// The most slots that wait before one module in one direction.
pub(crate) const LANE_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Lane {
    slots: VecDeque<Packet>,
}

impl Lane {
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The packet at the end.
    pub fn last_mut(&mut self) -> Option<&mut Packet> {
        self.slots.back_mut()
    }

    /// Adds a packet at the end, or gives it back when the lane is full.
    pub fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.slots.len() >= LANE_MAX {
            return Err(packet);
        }
        self.slots.push_back(packet);
        Ok(())
    }

    /// Moves the next batch into `batch`: at most `credit` segments, a train being cut where they
    /// end; whole trains only where `trains` is true.
    pub fn take_batch(&mut self, pool: &mut Pool, batch: &mut Batch, credit: usize, trains: bool) {
        let (mut left, mut bytes) = (credit, 0);
        while left > 0 && batch.len() < BATCH_PACKETS_MAX && bytes < BATCH_BYTES_MAX {
            let Some(mut next) = self.slots.pop_front() else { break };
            let most = if trains { left } else { 1 };
            if let Some(first) = pool.split_first(&mut next, most) {
                self.slots.push_front(next);
                next = first;
            }
            left = left.saturating_sub(next.segment_count());
            bytes += next.payload_len();
            batch.push(next);
        }
    }

    pub fn free_all(&mut self, pool: &mut Pool) -> usize {
        let count = self.slots.len();
        self.slots.drain(..).for_each(|packet| pool.free(packet));
        count
    }
}
