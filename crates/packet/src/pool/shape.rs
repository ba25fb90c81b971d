//! Several views of one body: shared, split off, joined, and copied out where that is better.
//!
//! ```text
//!  split_first   |0|1|2|3|4|  ->  |0|1|  |2|3|4|      the same body, one view more
//!  join          |0|1|  |2|3|4|  ->  |0|1|2|3|4|
//! ```
//!
//! Invariant: what was split off and is joined again is as it was.

use super::{CLASS_BYTES, Pool, PoolFull};
use crate::{Layout, Packet};

impl Pool {
    /// A second, read-only view of the same bytes, without room of its own. The first keeps its
    /// room, and its bytes are read-only too until the second is freed.
    #[must_use]
    pub fn share(&mut self, packet: &mut Packet) -> Packet {
        packet.set_shared(true);
        let view = packet.view();
        self.count_view(packet);
        view
    }

    pub(super) fn count_view(&mut self, packet: &Packet) {
        self.bodies[packet.body as usize].views += 1;
        self.stats.views += 1;
    }

    /// Splits the first `count` segments off as a packet of their own; `None` when that would leave
    /// nothing. Both parts stay exclusive if the whole was.
    pub fn split_first(&mut self, packet: &mut Packet, count: usize) -> Option<Packet> {
        if count == 0 || count >= packet.segment_count() {
            return None;
        }
        let mut first = packet.view();
        first.count = count as u16;
        first.short = 0;
        first.head = packet.head;
        first.tail = packet.tail;
        let last = packet.is_unit_last();
        first.set_unit_ends(packet.is_unit_first(), false);
        packet.offset += (count * usize::from(packet.stride)) as u32;
        packet.count -= count as u16;
        packet.set_unit_ends(false, last);
        if packet.count == 1 {
            packet.len -= u32::from(packet.short);
            packet.short = 0;
        }
        self.count_view(packet);
        Some(first)
    }

    /// Joins `next`, a packet or a train, to the end of `packet` when it lies one stride further in
    /// the same body, has the same shape, and does not begin another unit; gives `next` back
    /// otherwise.
    ///
    /// # Errors
    /// The packet that could not be joined.
    #[inline]
    pub fn join(&mut self, packet: &mut Packet, next: Packet) -> Result<(), Packet> {
        if packet.body != next.body || packet.is_empty_slot() || next.is_unit_first() {
            return Err(next);
        }
        self.join_in_body(packet, next)
    }

    /// The same for packets of different units, too, below which nobody looks at units: the train
    /// then begins one and ends another.
    ///
    /// # Errors
    /// The packet that could not be joined.
    pub fn join_any(&mut self, packet: &mut Packet, next: Packet) -> Result<(), Packet> {
        if packet.body != next.body || packet.is_empty_slot() {
            return Err(next);
        }
        self.join_in_body(packet, next)
    }

    fn join_in_body(&mut self, packet: &mut Packet, next: Packet) -> Result<(), Packet> {
        // Views that were carved out of one segment say no stride: there the distance is the
        // stride.
        let stride = match (packet.stride, next.stride) {
            (0, 0) => (next.offset as usize).saturating_sub(packet.offset as usize),
            (0, stride) | (stride, _) => usize::from(stride),
        };
        let Some(count) = packet.count.checked_add(next.count) else { return Err(next) };
        let fits = packet.short == 0
            && stride >= packet.len as usize
            && u16::try_from(stride).is_ok()
            && (!next.is_train() || usize::from(next.stride) == stride)
            && next.offset as usize == packet.offset as usize + packet.segment_count() * stride
            && (next.len == packet.len || (!next.is_train() && next.len < packet.len))
            && next.kind() == packet.kind()
            && next.class == packet.class
            && next.head_room() == packet.head_room()
            && next.tail_room() == packet.tail_room()
            && packet.is_shared() == next.is_shared();
        if !fits {
            return Err(next);
        }
        packet.stride = stride as u16;
        packet.count = count;
        packet.short = (packet.len - next.len) as u16 + next.short;
        packet.set_unit_ends(packet.is_unit_first(), next.is_unit_last());
        self.free(next);
        Ok(())
    }

    /// Copies the bytes out into a body of their own when another view shares them.
    ///
    /// # Errors
    /// [`PoolFull`] when there is no memory; the packet is as it was.
    pub fn make_exclusive(&mut self, packet: &mut Packet) -> Result<(), PoolFull> {
        if self.is_exclusive(packet) {
            packet.set_shared(false);
            return Ok(());
        }
        self.copy_out(packet, packet.head_room(), packet.tail_room())
    }

    /// Moves a small view out of a large body, so that what is held long does not pin what is not
    /// needed. Does nothing when the body is at most four times as large.
    ///
    /// # Errors
    /// [`PoolFull`] when there is no memory; the packet is as it was.
    pub fn settle(&mut self, packet: &mut Packet) -> Result<(), PoolFull> {
        let body = self.bodies.get(packet.body as usize).map_or(0, |body| body.bytes.len());
        if body <= 4 * packet.payload_len().max(CLASS_BYTES[0] / 4) {
            return Ok(());
        }
        self.copy_out(packet, 0, 0)
    }

    fn copy_out(&mut self, packet: &mut Packet, head: usize, tail: usize) -> Result<(), PoolFull> {
        let segment = packet.len as usize;
        let layout = Layout { head, tail, segment: segment.max(1), segmented: true };
        let mut copy = self.alloc_train(&layout, packet.payload_len())?;
        copy.copy_marks(packet);
        for index in 0..packet.segment_count() {
            let from = packet.segment_offset(index);
            let (to, len) = (copy.segment_offset(index), packet.segment_len(index));
            self.copy_between(packet.body, from, copy.body, to, len);
        }
        self.stats.bytes_copied += packet.payload_len() as u64;
        let old = std::mem::replace(packet, copy);
        self.free(old);
        Ok(())
    }

    pub(super) fn copy_between(
        &mut self,
        from: u32,
        from_at: usize,
        to: u32,
        to_at: usize,
        len: usize,
    ) {
        // The bodies differ: `to` was just taken from the free list.
        let source = std::mem::take(&mut self.bodies[from as usize].bytes);
        self.bodies[to as usize].bytes[to_at..to_at + len]
            .copy_from_slice(&source[from_at..from_at + len]);
        self.bodies[from as usize].bytes = source;
    }
}
