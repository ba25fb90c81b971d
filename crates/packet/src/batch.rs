//! [`Batch`]: a vector of packets that a runner carries from module to module.

use crate::Packet;

/// The most packets that a runner takes in one batch.
pub const BATCH_PACKETS_MAX: usize = 32;

/// The most payload bytes that a runner takes in one batch.
pub const BATCH_BYTES_MAX: usize = 256 * 1024;

/// A vector of packets; its memory is kept from use to use.
#[derive(Debug, Default)]
pub struct Batch {
    slots: Vec<Packet>,
}

impl Batch {
    /// An empty batch. It takes memory with the first packet: most flows that exist do nothing.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a packet at the end; an empty slot is left out.
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        if !packet.is_empty_slot() {
            self.slots.push(packet);
        }
    }

    /// The number of packets.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True without packets.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The payload bytes of all packets together.
    #[must_use]
    #[inline]
    pub fn payload_len(&self) -> usize {
        self.slots.iter().map(Packet::payload_len).sum()
    }

    /// The packets in order.
    #[must_use]
    #[inline]
    pub fn packets(&self) -> &[Packet] {
        &self.slots
    }

    /// The slots in order, to work on in place.
    #[inline]
    pub fn slots_mut(&mut self) -> &mut [Packet] {
        &mut self.slots
    }

    /// Takes every packet out, in order; the memory stays.
    #[inline]
    pub fn drain(&mut self) -> impl Iterator<Item = Packet> + '_ {
        self.slots.drain(..)
    }

    /// Moves all packets of `other` to the end of this batch. Where this one has none, they change
    /// places, and nothing is copied.
    #[inline]
    pub fn append(&mut self, other: &mut Self) {
        if self.slots.is_empty() {
            std::mem::swap(&mut self.slots, &mut other.slots);
        } else {
            self.slots.append(&mut other.slots);
        }
    }

    /// Offers each packet to the one before it: what `join` takes is gone, what it gives back
    /// stays.
    pub fn compact(&mut self, mut join: impl FnMut(&mut Packet, Packet) -> Result<(), Packet>) {
        let mut kept = 0;
        for at in 1..self.slots.len() {
            let next = self.slots[at].take();
            if let Err(next) = join(&mut self.slots[kept], next) {
                kept += 1;
                self.slots[kept] = next;
            }
        }
        self.slots.truncate(kept + 1);
    }

    /// Forgets all slots, which must be empty; the memory stays.
    pub fn clear(&mut self) {
        debug_assert!(self.slots.iter().all(Packet::is_empty_slot), "packets are left");
        self.slots.clear();
    }

    /// Leaves out slots that were emptied.
    pub fn remove_empty(&mut self) {
        self.slots.retain(|slot| !slot.is_empty_slot());
    }
}
