//! The queues between modules: one lane per module and direction.
//!
//! A lane is empty after every run unless a module has no credit.
//!
//! Invariant: a lane holds at most [`LANE_MAX`] slots and a batch; what exceeds it is freed and
//! counted by the caller.

use crate::load::Load;
use dacapo_packet::{Packet, Pool};
use std::collections::VecDeque;

/// The most slots that wait before one module in one direction: what one call may emit.
pub(crate) const LANE_MAX: usize = crate::EMISSIONS_MAX;

#[derive(Debug, Default)]
pub(crate) struct TrafficClass {
    slots: VecDeque<Packet>,
}

impl TrafficClass {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// The packet at the end.
    pub fn last_mut(&mut self) -> Option<&mut Packet> {
        self.slots.back_mut()
    }

    /// Adds a packet at the end, or gives it back when the lane is full.
    #[inline]
    pub fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.slots.len() >= LANE_MAX {
            return Err(packet);
        }
        self.slots.push_back(packet);
        Ok(())
    }

    /// Moves the next packets into `load`: at most `credit` segments, a train being cut where they
    /// end; whole trains only where `trains` is true.
    pub fn take(&mut self, pool: &mut Pool, load: &mut Load, credit: usize, trains: bool) {
        let mut left = credit;
        while left > 0 && load.has_capacity() {
            let Some(mut next) = self.slots.pop_front() else { break };
            let most = if trains { left } else { 1 };
            if next.segment_count() > most
                && let Some(first) = pool.split_first(&mut next, most)
            {
                self.slots.push_front(next);
                next = first;
                load.is_split = true;
            }
            left = left.saturating_sub(next.segment_count());
            load.push(next);
        }
    }

    /// Puts a load before everything else, though the lane be full; how many slots that are.
    pub fn prepend(&mut self, load: &mut Load) -> usize {
        let count = load.batch.len();
        for slot in load.batch.slots_mut().iter_mut().rev() {
            self.slots.push_front(slot.take());
        }
        load.batch.clear();
        load.reset();
        count
    }

    pub fn free_all(&mut self, pool: &mut Pool) -> usize {
        let count = self.slots.len();
        self.slots.drain(..).for_each(|packet| pool.free(packet));
        count
    }
}
