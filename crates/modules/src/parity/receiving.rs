//! [`Receiving`]: the blocks that packets come from, and what can be computed of them.
//!
//! ```text
//!   first                                     first + 64
//!   | done | s0 s1 . s3 p | s0 . . | … |       .: missing; a block with as many parities as that
//!                                              is solved, and keeps nothing any more
//! ```
//!
//! A packet goes up when it comes; here only views of it stay, until its block is whole, is solved,
//! or is given up for its age or because it lies too far behind.
//!
//! Invariants: at most [`WINDOW`] blocks are known and at most [`KEPT_BYTES_MAX`] bytes are kept; a
//! source that was computed is not taken again; nothing is kept of a block that is done.

use super::block::{Block, Kept};
use super::code::{add_known, solve};
use dacapo_base::Time;
use dacapo_lift::{Cx, DropReason};
use dacapo_packet::{Packet, Pool};
use dacapo_wire::parity::{CODED_AT, Header, LEN, PACKETS_MAX, extend};
use std::collections::VecDeque;

/// How many blocks are known at once.
pub(super) const WINDOW: u64 = 64;

/// How many bytes may be kept.
pub(super) const KEPT_BYTES_MAX: usize = 4 << 20;

/// Where a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In this block.
    In(u64),
    /// In one that is no longer known.
    Late,
    /// In one so far ahead that another packet must confirm it.
    Beyond,
}

#[derive(Debug, Default)]
pub(super) struct Receiving {
    /// The number of the first block.
    first: u64,
    blocks: VecDeque<Block>,
    /// A block beyond the window that the next packet may confirm.
    outlier: Option<u64>,
    /// Where the stream is, is not known: the first packet says it.
    is_joining: bool,
    /// Bytes that are kept.
    bytes: usize,
    /// Lists that are used again.
    spare: Vec<Vec<Kept>>,
    scratch: Scratch,
}

/// Memory that solving uses again and again.
#[derive(Debug, Default)]
struct Scratch {
    missing: Vec<u8>,
    parities: Vec<u8>,
    sums: Vec<Vec<u8>>,
    found: Vec<u8>,
}

impl Receiving {
    pub fn join(&mut self) {
        self.is_joining = true;
    }

    /// Where a packet with this header belongs; the window moves with it.
    pub fn place(&mut self, pool: &mut Pool, header: &Header) -> Place {
        let expected = self.first + self.blocks.len() as u64;
        if self.is_joining {
            // What is below 24 bits has one whole number near this one.
            self.first = u64::from(header.block) + (1 << 24) - WINDOW / 2;
            self.is_joining = false;
            return self.place(pool, header);
        }
        let Some(block) = extend(header.block, expected) else { return Place::Late };
        if block < self.first {
            return Place::Late;
        }
        let is_near = block < expected + WINDOW;
        let is_confirmed = self.outlier.is_some_and(|it| (it..=it + 1).contains(&block));
        self.outlier = (!is_near).then_some(block);
        if !is_near && !is_confirmed {
            return Place::Beyond;
        }
        self.outlier = None;
        self.reach(pool, block);
        Place::In(block)
    }

    /// Moves the window until it ends with this block, or behind it.
    fn reach(&mut self, pool: &mut Pool, block: u64) {
        if block >= self.first + self.blocks.len() as u64 + WINDOW {
            while let Some(mut old) = self.blocks.pop_front() {
                self.let_go(pool, &mut old);
            }
            self.first = block;
        }
        while self.first + (self.blocks.len() as u64) <= block {
            if self.blocks.len() as u64 == WINDOW
                && let Some(mut old) = self.blocks.pop_front()
            {
                self.let_go(pool, &mut old);
                self.first += 1;
            }
            let kept = self.spare.pop().unwrap_or_default();
            self.blocks.push_back(Block::new(kept));
        }
    }

    fn block(&mut self, number: u64) -> Option<&mut Block> {
        let at = number.checked_sub(self.first)?;
        self.blocks.get_mut(usize::try_from(at).ok()?)
    }

    /// Keeps nothing of a block any more.
    fn let_go(&mut self, pool: &mut Pool, block: &mut Block) {
        let mut kept = std::mem::take(&mut block.kept);
        for it in kept.drain(..) {
            self.bytes = self.bytes.saturating_sub(it.view.payload_len());
            pool.free(it.view);
        }
        block.is_done = true;
        if kept.capacity() > 0 && self.spare.len() < WINDOW as usize {
            self.spare.push(kept);
        }
    }

    fn is_done(&mut self, pool: &mut Pool, number: u64) {
        let Some(at) = number.checked_sub(self.first) else { return };
        let Some(block) = self.blocks.get_mut(at as usize) else { return };
        let mut block = std::mem::take(block);
        self.let_go(pool, &mut block);
        if let Some(place) = self.blocks.get_mut(at as usize) {
            *place = block;
        }
    }

    /// Whether this one has come, or was computed.
    pub fn has(&mut self, number: u64, index: u8) -> bool {
        self.block(number).is_some_and(|block| block.has(index))
    }

    /// Whether the `count` sources from this one on can be taken at once: none of them has come,
    /// and their block cannot be solved before the last of them is there.
    pub fn takes_run(&mut self, number: u64, index: u8, count: usize) -> bool {
        let Some(block) = self.block(number) else { return true };
        let is_waiting = block.is_ended && !block.is_done;
        !is_waiting && !(index..=u8::MAX).take(count).any(|index| block.has(index))
    }

    /// Keeps a view of sources that have come, as many as the packet has segments from `header` on,
    /// none of which has come before.
    pub fn add_sources(
        &mut self,
        cx: &mut Cx<'_>,
        number: u64,
        header: &Header,
        packet: &mut Packet,
    ) {
        let (now, count, bytes) = (cx.now(), packet.segment_count(), packet.payload_len());
        let has_capacity = self.bytes + bytes <= KEPT_BYTES_MAX;
        let Some(block) = self.block(number) else { return };
        (header.index..=u8::MAX).take(count).for_each(|index| block.mark(index));
        block.since.get_or_insert(now);
        if !block.is_ended {
            block.sources = block.sources.max(header.sources);
        }
        if block.is_done {
            return;
        }
        let is_strange = usize::from(header.index) + count > usize::from(block.sources);
        if block.is_whole() || is_strange || !has_capacity {
            return self.is_done(cx.pool, number);
        }
        let mut view = cx.pool.share(packet);
        // A small view must not pin the large body that a burst arrived in.
        let _ = cx.pool.settle(&mut view);
        block.kept.push(Kept { index: header.index, view });
        self.bytes += bytes;
    }

    /// Takes a parity; it is given back when its block has no use for it.
    pub fn add_parity(
        &mut self,
        cx: &mut Cx<'_>,
        number: u64,
        header: &Header,
        packet: Packet,
    ) -> Option<Packet> {
        let (now, len) = (cx.now(), packet.payload_len());
        let has_capacity = self.bytes + len <= KEPT_BYTES_MAX;
        let Some(block) = self.block(number) else { return Some(packet) };
        let is_other = if block.is_ended {
            block.sources != header.sources || block.parity_len != len
        } else {
            block.kept.iter().any(|kept| kept.end() > usize::from(header.sources))
        };
        if block.is_done || is_other || !has_capacity || block.has(header.index) {
            return Some(packet);
        }
        block.mark(header.index);
        block.since.get_or_insert(now);
        (block.sources, block.is_ended, block.parity_len) = (header.sources, true, len);
        if block.is_whole() {
            self.is_done(cx.pool, number);
            return Some(packet);
        }
        block.kept.push(Kept { index: header.index, view: packet });
        self.bytes += len;
        None
    }

    /// Computes the missing sources of a block, if that is possible now, and hands each to `give`
    /// as the bytes that its peer was handed.
    pub fn solve(
        &mut self,
        cx: &mut Cx<'_>,
        number: u64,
        mut give: impl FnMut(&mut Cx<'_>, &[u8]),
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        if let Some(block) = self.block(number).filter(|it| !it.is_done && it.is_solvable()) {
            scratch.begin(block);
            scratch.add(cx.pool, block);
            for at in 0..scratch.missing.len() {
                let Some(&index) = scratch.missing.get(at) else { break };
                match scratch.source(at, block.parity_len) {
                    Some(source) => {
                        block.mark(index);
                        give(cx, source);
                    }
                    None => cx.not_made(1, DropReason::Malformed),
                }
            }
            self.is_done(cx.pool, number);
        }
        self.scratch = scratch;
    }

    /// When the block that is known longest, and keeps something, began to come.
    pub fn oldest(&self) -> Option<Time> {
        let open = self.blocks.iter().filter(|block| !block.kept.is_empty());
        open.filter_map(|block| block.since).min()
    }

    /// Gives up what began to come before `before`.
    pub fn give_up(&mut self, pool: &mut Pool, before: Time) {
        for number in self.first..self.first + self.blocks.len() as u64 {
            let block = self.block(number);
            let is_old = |it: &Time| *it <= before;
            if block.is_some_and(|it| !it.is_done && it.since.as_ref().is_some_and(is_old)) {
                self.is_done(pool, number);
            }
        }
    }

    /// Forgets everything that is kept; where the stream is, is still known.
    pub fn forget(&mut self, pool: &mut Pool) {
        self.give_up(pool, Time::NEVER);
    }
}

impl Scratch {
    /// Looks which sources are missing, and takes as many parities.
    fn begin(&mut self, block: &Block) {
        self.missing.clear();
        self.missing.extend(block.missing());
        self.parities.clear();
        let parities = block.kept.iter().map(|kept| kept.index).filter(|it| *it >= block.sources);
        self.parities.extend(parities.take(self.missing.len()));
        if self.sums.len() < self.missing.len() {
            self.sums.resize_with(self.missing.len(), Vec::new);
        }
    }

    /// Makes the sums of what the chosen parities say of the missing sources alone.
    fn add(&mut self, pool: &Pool, block: &Block) {
        let len = block.parity_len.saturating_sub(CODED_AT);
        let sums = self.sums.get_mut(..self.parities.len()).unwrap_or_default();
        for (sum, index) in sums.iter_mut().zip(&self.parities) {
            sum.clear();
            let parity = block.kept.iter().find(|kept| kept.index == *index);
            let bytes = parity.map_or(&[][..], |it| pool.segment(&it.view, 0));
            sum.extend_from_slice(bytes.get(CODED_AT..).unwrap_or_default());
            sum.resize(len, 0);
        }
        let sources =
            block.kept.iter().filter(|kept| kept.index < block.sources).flat_map(|kept| {
                let coded = |at| pool.segment(&kept.view, at).get(CODED_AT..).unwrap_or_default();
                (0..kept.view.segment_count()).map(move |at| (kept.index + at as u8, coded(at)))
            });
        let mut known: [(u8, &[u8]); PACKETS_MAX] = [(0, &[]); PACKETS_MAX];
        let mut count = 0;
        for (place, source) in known.iter_mut().zip(sources) {
            *place = source;
            count += 1;
        }
        add_known(sums, &self.parities, known.get(..count).unwrap_or_default());
    }

    /// The bytes of the missing source at this place; none where they are not what a peer codes.
    fn source(&mut self, at: usize, parity_len: usize) -> Option<&[u8]> {
        self.found.clear();
        self.found.resize(parity_len.saturating_sub(CODED_AT), 0);
        solve(&mut self.found, at, &self.missing, &self.sums, &self.parities);
        let (length, bytes) = self.found.split_first_chunk::<{ LEN - CODED_AT }>()?;
        bytes.get(..usize::from(u16::from_be_bytes(*length)))
    }
}
