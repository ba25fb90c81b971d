//! [`Pool`]: the bodies of one reactor, in size classes, counted and bounded.
//!
//! What it is not: shared; a core owns it and lends it to the modules of a graph, call by call.
//!
//! Invariants: `bytes` counts every body that exists, used or free, and never exceeds the budget;
//! a body is free exactly when no view refers to it; every access is checked against the body.

use crate::train::{Layout, TRAIN_BYTES_MAX};
use crate::{Kind, Packet};
use std::fmt;

/// Sizes of bodies: one datagram, a few datagrams, a train.
const CLASS_BYTES: [usize; 4] = [256, 2_048, 16_384, 65_536];

/// The memory budget of the pool is used up; wait until views come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFull;

impl fmt::Display for PoolFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the packet pool's memory budget is used up")
    }
}

impl std::error::Error for PoolFull {}

/// A view has no room for the bytes that were to be added, or not the bytes to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the packet has no room for these bytes")
    }
}

impl std::error::Error for NoRoom {}

#[derive(Debug)]
struct Body {
    bytes: Box<[u8]>,
    views: u32,
    class: u8,
}

/// Counters of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Bytes of all bodies, used or free.
    pub bytes: usize,
    /// Views that are out.
    pub views: usize,
    /// Bodies made since the start; constant in steady state.
    pub bodies_made: u64,
    /// Allocations refused for lack of budget.
    pub refused: u64,
    /// Bytes copied to make a view exclusive or to let a large body go.
    pub bytes_copied: u64,
}

/// The packet memory of one reactor.
#[derive(Debug)]
pub struct Pool {
    bodies: Vec<Body>,
    free: [Vec<u32>; CLASS_BYTES.len()],
    /// Numbers of bodies whose memory was let go.
    vacant: Vec<u32>,
    bytes_max: usize,
    stats: PoolStats,
}

impl Pool {
    /// A pool that never holds more than `bytes_max` bytes of bodies. Nothing is allocated yet.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bodies: Vec::new(),
            free: Default::default(),
            vacant: Vec::new(),
            bytes_max,
            stats: PoolStats::default(),
        }
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.stats
    }

    /// How many views are out: 0 when everything was given back.
    #[must_use]
    pub fn live_views(&self) -> usize {
        self.stats.views
    }

    /// The budget and how much of it is in use by bodies with views.
    #[must_use]
    pub fn bytes_in_use(&self) -> usize {
        let free: usize =
            self.free.iter().zip(CLASS_BYTES).map(|(list, bytes)| list.len() * bytes).sum();
        self.stats.bytes - free
    }

    /// Whether `bytes` more would leave less than an eighth of the budget. Who can wait, as a
    /// source can, asks this first: what the network brings cannot, and probes and control are in
    /// it too.
    #[must_use]
    pub fn is_scarce(&self, bytes: usize) -> bool {
        self.bytes_in_use().saturating_add(bytes) > self.bytes_max - self.bytes_max / 8
    }

    /// A packet of one segment of `len` bytes (zeroed only when the body is new) with exclusive
    /// room around it.
    ///
    /// # Errors
    /// [`PoolFull`] when the budget is used up or the sum exceeds the largest body.
    pub fn alloc(&mut self, head: usize, len: usize, tail: usize) -> Result<Packet, PoolFull> {
        let layout = Layout { head, tail, segment: len.max(1), segmented: false };
        self.alloc_train(&layout, len)
    }

    /// A train with room for `len` payload bytes in the given layout.
    ///
    /// # Errors
    /// [`PoolFull`] when the budget is used up, or when `len` does not fit one train.
    pub fn alloc_train(&mut self, layout: &Layout, len: usize) -> Result<Packet, PoolFull> {
        let count = layout.segments_for(len);
        let stride = layout.stride();
        let bytes = count * stride;
        if bytes > CLASS_BYTES[CLASS_BYTES.len() - 1] || layout.segment > TRAIN_BYTES_MAX {
            return Err(self.refuse());
        }
        let body = self.take_body(bytes)?;
        let full = if count > 1 { layout.segment } else { len };
        let mut packet = Packet::EMPTY;
        packet.body = body;
        packet.offset = layout.head as u32;
        packet.len = full as u32;
        packet.short = (count * full - len) as u16;
        // A single segment may fill the largest body, whose size is no 16-bit number; its stride
        // is never used.
        packet.stride = if count > 1 { stride as u16 } else { 0 };
        packet.count = count as u16;
        packet.head = layout.head as u16;
        packet.tail = layout.tail as u16;
        Ok(packet)
    }

    fn refuse(&mut self) -> PoolFull {
        self.stats.refused += 1;
        PoolFull
    }

    fn take_body(&mut self, bytes: usize) -> Result<u32, PoolFull> {
        let Some(class) = CLASS_BYTES.iter().position(|&size| size >= bytes) else {
            return Err(self.refuse());
        };
        let id = match self.free[class].pop() {
            Some(id) => id,
            None => self.make_body(class)?,
        };
        self.bodies[id as usize].views = 1;
        self.stats.views += 1;
        Ok(id)
    }

    fn make_body(&mut self, class: usize) -> Result<u32, PoolFull> {
        let bytes = CLASS_BYTES[class];
        if self.stats.bytes + bytes > self.bytes_max && !self.reclaim(bytes) {
            return Err(self.refuse());
        }
        self.stats.bytes += bytes;
        self.stats.bodies_made += 1;
        let body = Body { bytes: vec![0; bytes].into_boxed_slice(), views: 0, class: class as u8 };
        if let Some(id) = self.vacant.pop() {
            self.bodies[id as usize] = body;
            return Ok(id);
        }
        self.bodies.push(body);
        Ok((self.bodies.len() - 1) as u32)
    }

    /// Lets free bodies of other classes go until `bytes` more fit the budget.
    fn reclaim(&mut self, bytes: usize) -> bool {
        for class in (0..CLASS_BYTES.len()).rev() {
            while self.stats.bytes + bytes > self.bytes_max {
                let Some(id) = self.free[class].pop() else { break };
                self.bodies[id as usize].bytes = Box::default();
                self.vacant.push(id);
                self.stats.bytes -= CLASS_BYTES[class];
            }
        }
        self.stats.bytes + bytes <= self.bytes_max
    }

    /// Ends a view; the body is free for reuse when this was the last one.
    pub fn free(&mut self, packet: Packet) {
        if packet.is_empty_slot() {
            return;
        }
        self.stats.views -= 1;
        let body = &mut self.bodies[packet.body as usize];
        body.views -= 1;
        if body.views == 0 {
            self.free[usize::from(body.class)].push(packet.body);
        }
    }

    /// A second, read-only view of the same bytes, without room of its own. The first keeps its
    /// room, and its bytes are read-only too until the second is freed.
    #[must_use]
    pub fn share(&mut self, packet: &mut Packet) -> Packet {
        packet.set_shared(true);
        let view = packet.view();
        self.count_view(packet);
        view
    }

    fn count_view(&mut self, packet: &Packet) {
        self.bodies[packet.body as usize].views += 1;
        self.stats.views += 1;
    }

    /// True when the bytes of this view may be written.
    #[must_use]
    pub fn is_exclusive(&self, packet: &Packet) -> bool {
        !packet.is_shared() || self.bodies[packet.body as usize].views == 1
    }

    /// The bytes of segment `index`; empty when there is no such segment.
    #[must_use]
    pub fn segment(&self, packet: &Packet, index: usize) -> &[u8] {
        let start = packet.segment_offset(index);
        self.range(packet, start, packet.segment_len(index))
    }

    fn range(&self, packet: &Packet, start: usize, len: usize) -> &[u8] {
        if packet.is_empty_slot() {
            return &[];
        }
        &self.bodies[packet.body as usize].bytes[start..start + len]
    }

    /// The bytes of segment `index`, to be written; copies them out first when they are shared.
    ///
    /// # Errors
    /// [`PoolFull`] when a copy was needed and there is no memory for it.
    pub fn segment_mut(
        &mut self,
        packet: &mut Packet,
        index: usize,
    ) -> Result<&mut [u8], PoolFull> {
        self.make_exclusive(packet)?;
        let start = packet.segment_offset(index);
        let len = packet.segment_len(index);
        Ok(&mut self.bodies[packet.body as usize].bytes[start..start + len])
    }

    /// Adds `n` bytes before every segment; write them through [`Pool::head_mut`].
    ///
    /// # Errors
    /// [`NoRoom`] when the view has less room; nothing changed.
    pub fn push_head(&mut self, packet: &mut Packet, n: usize) -> Result<(), NoRoom> {
        if packet.is_empty_slot() || packet.head_room() < n {
            return Err(NoRoom);
        }
        packet.offset -= n as u32;
        packet.head -= n as u16;
        packet.len += n as u32;
        Ok(())
    }

    /// Adds `n` bytes after every segment; write them through [`Pool::tail_mut`].
    ///
    /// # Errors
    /// [`NoRoom`] when the view has less room; nothing changed.
    pub fn push_tail(&mut self, packet: &mut Packet, n: usize) -> Result<(), NoRoom> {
        if packet.is_empty_slot() || packet.tail_room() < n {
            return Err(NoRoom);
        }
        packet.tail -= n as u16;
        packet.len += n as u32;
        Ok(())
    }

    /// Removes `n` bytes from the front of every segment; they become room.
    ///
    /// # Errors
    /// [`NoRoom`] when a segment is shorter; nothing changed.
    pub fn pull_head(&mut self, packet: &mut Packet, n: usize) -> Result<(), NoRoom> {
        if !Self::all_hold(packet, n) {
            return Err(NoRoom);
        }
        packet.offset += n as u32;
        packet.len -= n as u32;
        if !packet.is_shared() {
            packet.head = packet.head.saturating_add(n as u16);
        }
        Ok(())
    }

    /// Removes `n` bytes from the end of every segment; they become room.
    ///
    /// # Errors
    /// [`NoRoom`] when a segment is shorter; nothing changed.
    pub fn pull_tail(&mut self, packet: &mut Packet, n: usize) -> Result<(), NoRoom> {
        if !Self::all_hold(packet, n) {
            return Err(NoRoom);
        }
        packet.len -= n as u32;
        if !packet.is_shared() {
            packet.tail = packet.tail.saturating_add(n as u16);
        }
        Ok(())
    }

    fn all_hold(packet: &Packet, n: usize) -> bool {
        let last = packet.segment_count().saturating_sub(1);
        !packet.is_empty_slot() && packet.segment_len(last) >= n && packet.segment_len(0) >= n
    }

    /// The first `n` bytes of segment `index`, which [`Pool::push_head`] added.
    ///
    /// Empty when the segment is shorter: write nothing then.
    pub fn head_mut(&mut self, packet: &Packet, index: usize, n: usize) -> &mut [u8] {
        let start = packet.segment_offset(index);
        let n = if packet.segment_len(index) < n { 0 } else { n };
        &mut self.bodies[packet.body as usize].bytes[start..start + n]
    }

    /// The last `n` bytes of segment `index`, which [`Pool::push_tail`] added.
    ///
    /// Empty when the segment is shorter: write nothing then.
    pub fn tail_mut(&mut self, packet: &Packet, index: usize, n: usize) -> &mut [u8] {
        let len = packet.segment_len(index);
        let n = if len < n { 0 } else { n };
        let start = packet.segment_offset(index) + len - n;
        &mut self.bodies[packet.body as usize].bytes[start..start + n]
    }

    /// The whole packet as one buffer and the size of its segments, when no gap is left in it.
    #[must_use]
    pub fn contiguous(&self, packet: &Packet) -> Option<(&[u8], usize)> {
        if packet.is_empty_slot() {
            return None;
        }
        if packet.is_train() && packet.len != u32::from(packet.stride) {
            return None;
        }
        Some((
            self.range(packet, packet.offset as usize, packet.payload_len()),
            packet.len as usize,
        ))
    }

    /// Writes payload bytes at `at`, counted over all segments without the gaps; returns how many
    /// fitted.
    pub fn write_payload(&mut self, packet: &Packet, at: usize, mut from: &[u8]) -> usize {
        let total = from.len();
        let mut at = at;
        while !from.is_empty() && at < packet.payload_len() {
            let (index, skip) = (at / packet.len as usize, at % packet.len as usize);
            let n = (packet.segment_len(index) - skip).min(from.len());
            let start = packet.segment_offset(index) + skip;
            let (now, rest) = from.split_at(n);
            self.bodies[packet.body as usize].bytes[start..start + n].copy_from_slice(now);
            from = rest;
            at += n;
        }
        total - from.len()
    }

    /// Appends the payload bytes of every segment to `into`.
    pub fn read_payload(&self, packet: &Packet, into: &mut Vec<u8>) {
        for index in 0..packet.segment_count() {
            into.extend_from_slice(self.segment(packet, index));
        }
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

    /// Joins `next` to the end of `packet` when it lies one stride further in the same body and has
    /// the same shape; gives `next` back otherwise.
    ///
    /// # Errors
    /// The packet that could not be joined.
    pub fn join(&mut self, packet: &mut Packet, next: Packet) -> Result<(), Packet> {
        let stride = if packet.is_train() {
            usize::from(packet.stride)
        } else {
            (next.offset as usize).saturating_sub(packet.offset as usize)
        };
        let fits = packet.body == next.body
            && !packet.is_empty_slot()
            && !next.is_train()
            && packet.short == 0
            && stride >= packet.len as usize
            && u16::try_from(stride).is_ok()
            && next.offset as usize == packet.segment_offset(0) + packet.segment_count() * stride
            && next.len <= packet.len
            && next.kind() == packet.kind()
            && next.class == packet.class
            && next.head_room() == packet.head_room()
            && next.tail_room() == packet.tail_room()
            && packet.is_shared() == next.is_shared();
        if !fits {
            return Err(next);
        }
        packet.stride = stride as u16;
        packet.count += 1;
        packet.short = (packet.len - next.len) as u16;
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
        if packet.is_train() || body <= 4 * packet.payload_len().max(CLASS_BYTES[0] / 4) {
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

    fn copy_between(&mut self, from: u32, from_at: usize, to: u32, to_at: usize, len: usize) {
        // The bodies differ: `to` was just taken from the free list.
        let source = std::mem::take(&mut self.bodies[from as usize].bytes);
        self.bodies[to as usize].bytes[to_at..to_at + len]
            .copy_from_slice(&source[from_at..from_at + len]);
        self.bodies[from as usize].bytes = source;
    }

    /// A packet that holds a copy of `bytes`, marked as a whole unit of data.
    ///
    /// # Errors
    /// [`PoolFull`] when there is no memory.
    pub fn packet_from(
        &mut self,
        head: usize,
        bytes: &[u8],
        tail: usize,
    ) -> Result<Packet, PoolFull> {
        let mut packet = self.alloc(head, bytes.len(), tail)?;
        self.write_payload(&packet, 0, bytes);
        packet.set_kind(Kind::Data);
        packet.set_unit_ends(true, true);
        Ok(packet)
    }
}
