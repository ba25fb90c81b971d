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
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self { slots: Vec::with_capacity(BATCH_PACKETS_MAX) }
    }

    /// Adds a packet at the end; an empty slot is left out.
    pub fn push(&mut self, packet: Packet) {
        if !packet.is_empty_slot() {
            self.slots.push(packet);
        }
    }

    /// The number of packets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True without packets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The payload bytes of all packets together.
    #[must_use]
    pub fn payload_len(&self) -> usize {
        self.slots.iter().map(Packet::payload_len).sum()
    }

    /// The packets in order.
    #[must_use]
    pub fn packets(&self) -> &[Packet] {
        &self.slots
    }

    /// The slots in order, to work on in place.
    pub fn slots_mut(&mut self) -> &mut [Packet] {
        &mut self.slots
    }

    /// Takes every packet out, in order; the memory stays.
    pub fn drain(&mut self) -> impl Iterator<Item = Packet> + '_ {
        self.slots.drain(..)
    }

    /// Moves all packets of `other` to the end of this batch.
    pub fn append(&mut self, other: &mut Self) {
        self.slots.append(&mut other.slots);
    }
}
