//! [`Load`]: the batch that is on its way from module to module, and what is in it.
//!
//! Packets that stay in their slots as long as every one of them is forwarded, and the sum of their
//! segments and bytes, counted once and then reckoned: a module adds a fixed number of bytes to
//! every segment.
//!
//! Invariant: `segments` and `bytes` are those of the packets in the slots.

use dacapo_packet::{BATCH_BYTES_MAX, BATCH_PACKETS_MAX, Batch, Packet, Pool};

#[derive(Debug, Default)]
pub(crate) struct Load {
    pub batch: Batch,
    pub segments: u64,
    pub bytes: u64,
    /// Trains were cut to make it, and may be joined again.
    pub is_split: bool,
}

impl Load {
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        self.segments += packet.segment_count() as u64;
        self.bytes += packet.payload_len() as u64;
        self.batch.push(packet);
    }

    /// Whether a batch may have one packet more.
    #[inline]
    pub fn has_capacity(&self) -> bool {
        self.batch.len() < BATCH_PACKETS_MAX && self.bytes < BATCH_BYTES_MAX as u64
    }

    #[inline]
    pub fn has_trains(&self) -> bool {
        self.segments != self.batch.len() as u64
    }

    /// Nothing is in it any more.
    #[inline]
    pub fn reset(&mut self) {
        (self.segments, self.bytes, self.is_split) = (0, 0, false);
    }

    /// Joins again what was cut; units stay apart.
    #[inline(never)]
    pub fn rejoin(&mut self, pool: &mut Pool) {
        self.is_split = false;
        self.batch.compact(|last, next| {
            if last.is_unit_last() && next.is_unit_first() {
                return Err(next);
            }
            pool.join(last, next)
        });
    }
}
