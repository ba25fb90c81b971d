//! [`Pool`]: the bodies of one reactor, in size classes, counted and bounded.
//!
//! Invariants: `bytes` counts every body that exists, used, free or lent, and never exceeds the
//! budget; a body is free exactly when no view refers to it and its memory is here; every access is
//! checked against the body.

use crate::train::{Layout, TRAIN_BYTES_MAX};
use crate::{Kind, Packet};
use loan::Returns;
use std::fmt;
use std::sync::Arc;

mod arrival;
mod loan;
mod room;
mod shape;
mod slab;

pub use arrival::ARRIVAL_BYTES_MAX;
pub use loan::Loan;

/// Sizes of bodies: one datagram, a few datagrams, a train.
const CLASS_BYTES: [usize; 4] = [256, 2_048, 16_384, 65_536];

/// The largest of them.
const TRAIN_BODY_BYTES: usize = CLASS_BYTES[CLASS_BYTES.len() - 1];

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
    /// Views that nobody has any more and that were not given back ([`Pool::write_off`]).
    pub views_lost: u64,
    /// Bytes of bodies that are lent ([`Pool::lend`]), or have come back and were not taken in yet.
    pub lent_bytes: usize,
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
    returns: Arc<Returns>,
}

impl Pool {
    /// A pool that never holds more than `bytes_max` bytes of bodies. None is made yet.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bodies: Vec::new(),
            free: Default::default(),
            vacant: Vec::new(),
            bytes_max,
            stats: PoolStats::default(),
            returns: Arc::default(),
        }
    }

    /// The counters.
    #[must_use]
    #[inline]
    pub fn stats(&self) -> PoolStats {
        self.stats
    }

    /// How many views are out: 0 when everything was given back.
    #[must_use]
    #[inline]
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
    #[inline]
    pub fn alloc(&mut self, head: usize, len: usize, tail: usize) -> Result<Packet, PoolFull> {
        self.alloc_single(head, len, tail)
    }

    /// A train with room for `len` payload bytes in the given layout.
    ///
    /// # Errors
    /// [`PoolFull`] when the budget is used up, or when `len` does not fit one train.
    #[inline]
    pub fn alloc_train(&mut self, layout: &Layout, len: usize) -> Result<Packet, PoolFull> {
        if len <= layout.segment {
            return self.alloc_single(layout.head, len, layout.tail);
        }
        let (count, stride) = (layout.segments_for(len), layout.stride());
        let bytes = count * stride;
        if bytes > TRAIN_BODY_BYTES || layout.segment > TRAIN_BYTES_MAX {
            return Err(self.refuse());
        }
        let mut packet = Packet::EMPTY;
        packet.body = self.take_body(bytes)?;
        packet.offset = layout.head as u32;
        packet.len = layout.segment as u32;
        packet.short = (count * layout.segment - len) as u16;
        packet.stride = stride as u16;
        packet.count = count as u16;
        packet.head = layout.head as u16;
        packet.tail = layout.tail as u16;
        Ok(packet)
    }

    /// One segment takes a body of its own size, not of the layout's.
    #[inline]
    fn alloc_single(&mut self, head: usize, len: usize, tail: usize) -> Result<Packet, PoolFull> {
        let bytes = head + len + tail;
        if bytes > TRAIN_BODY_BYTES || len > TRAIN_BYTES_MAX {
            return Err(self.refuse());
        }
        let mut packet = Packet::EMPTY;
        packet.body = self.take_body(bytes)?;
        packet.offset = head as u32;
        packet.len = len as u32;
        // A single segment may fill the largest body, whose size is no 16-bit number; its stride
        // is never used.
        packet.count = 1;
        packet.head = head as u16;
        packet.tail = tail as u16;
        Ok(packet)
    }

    #[cold]
    fn refuse(&mut self) -> PoolFull {
        self.stats.refused += 1;
        PoolFull
    }

    #[inline]
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

    #[cold]
    fn make_body(&mut self, class: usize) -> Result<u32, PoolFull> {
        let bytes = CLASS_BYTES[class];
        self.collect();
        if self.stats.views == 0 && self.stats.views_lost > 0 {
            self.recover();
        }
        if let Some(id) = self.free[class].pop() {
            return Ok(id);
        }
        if self.stats.bytes + bytes > self.bytes_max && !self.reclaim(bytes) {
            return Err(self.refuse());
        }
        self.stats.bytes += bytes;
        self.stats.bodies_made += 1;
        let body = Body { bytes: vec![0; bytes].into_boxed_slice(), views: 0, class: class as u8 };
        Ok(self.put_body(body))
    }

    /// Gives a body a number.
    fn put_body(&mut self, body: Body) -> u32 {
        if let Some(id) = self.vacant.pop() {
            self.bodies[id as usize] = body;
            return id;
        }
        self.bodies.push(body);
        (self.bodies.len() - 1) as u32
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
    #[inline]
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

    /// Views are gone that were not given back: who held them has panicked. They are not out any
    /// more; the memory behind them is used again once nothing else is out and it is needed.
    #[cold]
    pub fn write_off(&mut self, count: usize) {
        let count = count.min(self.stats.views);
        self.stats.views -= count;
        self.stats.views_lost += count as u64;
    }

    /// Nothing is out: what still counts views has lost them.
    fn recover(&mut self) {
        for (id, body) in (0..).zip(&mut self.bodies).filter(|(_, body)| body.views > 0) {
            body.views = 0;
            self.free[usize::from(body.class)].push(id);
        }
    }

    /// True when the bytes of this view may be written.
    #[must_use]
    #[inline]
    pub fn is_exclusive(&self, packet: &Packet) -> bool {
        !packet.is_shared() || self.bodies[packet.body as usize].views == 1
    }

    /// The bytes of segment `index`; empty when there is no such segment.
    #[must_use]
    #[inline]
    pub fn segment(&self, packet: &Packet, index: usize) -> &[u8] {
        let start = packet.segment_offset(index);
        self.range(packet, start, packet.segment_len(index))
    }

    #[inline]
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
    #[inline]
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

    /// The whole packet as one buffer and the size of its segments, when no gap is left in it.
    #[must_use]
    #[inline]
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
