//! [`Blocks`]: the block that is filled, and what is left of the one that leaves.
//!
//! ```text
//!   down ->  | 16 17 18 .  .  .  .  . |     filled, in order
//!            | .  .  .  11 8  13 10 15| ->  leaves: one for each that comes, or when it is due
//! ```
//!
//! Invariant: at most [`DEPTH_MAX`] packets are in either.

use super::order::order;
use dacapo_base::Time;
use dacapo_packet::Packet;
use std::collections::VecDeque;
use std::time::Duration;

/// The most packets of a block.
pub(super) const DEPTH_MAX: u8 = 64;

#[derive(Debug)]
pub(super) struct Blocks {
    filling: Vec<Packet>,
    /// When the first of them came.
    begun: Time,
    leaving: VecDeque<Packet>,
    /// How many there were, and since when they leave.
    size: u32,
    ended: Time,
    /// The order in which a block leaves of as many packets as the last one had.
    order: Vec<u8>,
}

impl Blocks {
    pub fn new() -> Self {
        let most = usize::from(DEPTH_MAX);
        Self {
            filling: Vec::with_capacity(most),
            begun: Time::ZERO,
            leaving: VecDeque::with_capacity(most),
            size: 0,
            ended: Time::ZERO,
            order: Vec::with_capacity(most),
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.filling.is_empty() && self.leaving.is_empty()
    }

    /// How many packets the block has that is filled.
    pub fn filled(&self) -> usize {
        self.filling.len()
    }

    /// When the block that is filled was begun.
    pub fn begun(&self) -> Option<Time> {
        (!self.filling.is_empty()).then_some(self.begun)
    }

    /// Adds a packet to the block that is filled, which has fewer than [`DEPTH_MAX`].
    pub fn push(&mut self, now: Time, packet: Packet) {
        if self.filling.is_empty() {
            self.begun = now;
        }
        self.filling.push(packet);
    }

    /// The block that is filled leaves, behind what is left of the one before it.
    pub fn end(&mut self, now: Time) {
        let count = self.filling.len();
        if count != self.order.len() {
            order(u8::try_from(count).unwrap_or(DEPTH_MAX), &mut self.order);
        }
        for place in &self.order {
            self.leaving.extend(self.filling.get_mut(usize::from(*place)).map(Packet::take));
        }
        self.filling.clear();
        (self.size, self.ended) = (self.leaving.len() as u32, now);
    }

    /// The next packet of the block that leaves.
    pub fn pop(&mut self) -> Option<Packet> {
        self.leaving.pop_front()
    }

    /// When the next one is due where the block leaves evenly within this time.
    pub fn due(&self, within: Duration) -> Option<Time> {
        let gone = self.size.checked_sub(self.leaving.len() as u32)?;
        let is_left = !self.leaving.is_empty();
        is_left.then(|| self.ended + within * gone / self.size.max(1))
    }

    /// Takes everything out.
    pub fn take_all(&mut self) -> impl Iterator<Item = Packet> {
        self.leaving.drain(..).chain(self.filling.drain(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_packet::Pool;

    #[test]
    fn a_block_leaves_in_its_order_and_evenly() {
        let mut pool = Pool::new(1 << 20);
        let (mut blocks, ms) = (Blocks::new(), Duration::from_millis);
        let start = Time::from_millis(7);
        assert_eq!((blocks.begun(), blocks.due(ms(40)), blocks.filled()), (None, None, 0));
        for number in 0..4 {
            blocks.push(start + ms(u64::from(number)), pool.packet_from(0, &[number], 0).unwrap());
        }
        assert_eq!((blocks.begun(), blocks.filled()), (Some(start), 4));
        blocks.end(start + ms(10));
        assert_eq!((blocks.begun(), blocks.filled()), (None, 0));
        for (place, number) in [1, 3, 0, 2].into_iter().enumerate() {
            assert_eq!(blocks.due(ms(40)), Some(start + ms(10 + 10 * place as u64)));
            let packet = blocks.pop().unwrap();
            assert_eq!(pool.segment(&packet, 0), [number]);
            pool.free(packet);
        }
        assert_eq!((blocks.due(ms(40)), blocks.pop()), (None, None));
        blocks.end(start);
        assert_eq!(blocks.due(ms(40)), None, "of nothing nothing leaves");
    }
}
