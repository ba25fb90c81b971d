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
use super::seen::Seen;
use super::solving::Solving;
use crate::beginning::Beginning;
use dacapo_base::Time;
use dacapo_lift::{Cx, DropReason};
use dacapo_packet::{Packet, Pool};
use dacapo_wire::parity::{Header, extend};
use std::collections::VecDeque;

/// How many blocks are known at once.
pub(crate) const WINDOW: u64 = 64;

/// How many bytes may be kept.
pub(super) const KEPT_BYTES_MAX: usize = 4 << 20;

/// Where a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this block.
    In(u64),
    /// In one that is no longer known.
    Late,
    /// In one so far ahead that another packet must confirm it.
    Beyond,
}

/// A block of which something is missing that will not come by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub number: u64,
    /// How many packets of it have come.
    pub have: u8,
    /// How many of its parities have been made, as far as is known.
    pub rows: u8,
}

#[derive(Debug, Default)]
pub(crate) struct Receiving {
    /// The number of the first block.
    first: u64,
    blocks: VecDeque<Block>,
    /// A block beyond the window, and which packet of it came: the next one may confirm it, a copy
    /// does not.
    outlier: Option<(u64, u8)>,
    /// A packet of a later block than that of the first one confirms where the stream is.
    beginning: Beginning,
    /// The blocks before this one began before this end joined: what is missing of them, nobody
    /// has lost.
    counts_from: u64,
    keeping: Keeping,
    solving: Solving,
}

/// How much is kept.
#[derive(Debug, Default)]
struct Keeping {
    bytes: usize,
    /// What the blocks that are over have shown.
    seen: Seen,
    /// Lists that are used again.
    spare: Vec<Vec<Kept>>,
}

impl Keeping {
    fn has_capacity(&self, bytes: usize) -> bool {
        self.bytes + bytes <= KEPT_BYTES_MAX
    }

    fn keep(&mut self, block: &mut Block, index: u8, view: Packet) {
        self.bytes += view.payload_len();
        block.kept.push(Kept { index, view });
    }

    /// Ends a block of which it is not known whether something was lost.
    fn abandon(&mut self, pool: &mut Pool, block: &mut Block) {
        block.is_done = true;
        self.let_go(pool, block);
    }

    /// Ends a block: nothing of it is kept any more.
    fn let_go(&mut self, pool: &mut Pool, block: &mut Block) {
        if !block.is_done && block.counts {
            self.seen.add(&block.seen());
        }
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
}

impl Receiving {
    pub fn join(&mut self) {
        self.beginning = Beginning::Nothing;
    }

    /// Where a packet with this header belongs; the window moves with it.
    pub fn place(&mut self, pool: &mut Pool, header: &Header) -> Place {
        let expected = self.first + self.blocks.len() as u64;
        if self.beginning == Beginning::Nothing {
            return self.begin(pool, header);
        }
        let Some(block) = extend(header.block, expected) else { return Place::Late };
        let is_near = block < expected + WINDOW;
        if self.beginning == Beginning::Begun {
            if block < self.first || !is_near {
                return self.begin(pool, header);
            }
            if block >= self.counts_from {
                self.beginning = Beginning::Known;
            }
        }
        if block < self.first {
            return Place::Late;
        }
        let is_confirmed = self.outlier.is_some_and(|(far, index)| {
            (far..=far + 1).contains(&block) && (block, header.index) != (far, index)
        });
        self.outlier = (!is_near).then_some((block, header.index));
        if !is_near && !is_confirmed {
            return Place::Beyond;
        }
        self.outlier = None;
        self.reach(pool, block);
        Place::In(block)
    }

    /// The stream is where this packet says, unless others say that it was altered.
    fn begin(&mut self, pool: &mut Pool, header: &Header) -> Place {
        while let Some(mut other) = self.blocks.pop_front() {
            self.keeping.abandon(pool, &mut other);
        }
        // What is below 24 bits has one whole number near this one.
        let block = u64::from(header.block) + (1 << 24);
        (self.first, self.counts_from) = (block - WINDOW / 2, block + 1);
        self.beginning = Beginning::Begun;
        self.outlier = None;
        self.reach(pool, block);
        Place::In(block)
    }

    /// Moves the window until it ends with this block, or behind it.
    fn reach(&mut self, pool: &mut Pool, block: u64) {
        if block >= self.first + self.blocks.len() as u64 + WINDOW {
            while let Some(mut old) = self.blocks.pop_front() {
                self.keeping.let_go(pool, &mut old);
            }
            self.first = block;
        }
        while self.first + (self.blocks.len() as u64) <= block {
            if self.blocks.len() as u64 == WINDOW
                && let Some(mut old) = self.blocks.pop_front()
            {
                self.keeping.let_go(pool, &mut old);
                self.first += 1;
            }
            let mut block = Block::new(self.keeping.spare.pop().unwrap_or_default());
            block.expected = self.blocks.back().map_or(0, Block::size);
            block.counts = self.first + self.blocks.len() as u64 >= self.counts_from;
            self.blocks.push_back(block);
        }
    }

    /// The place of a block that is known.
    fn at(&self, number: u64) -> usize {
        number.checked_sub(self.first).map_or(usize::MAX, |at| at as usize)
    }

    fn block(&self, number: u64) -> Option<&Block> {
        self.blocks.get(self.at(number))
    }

    /// Whether this one has come, or was computed.
    pub fn has(&self, number: u64, index: u8) -> bool {
        self.block(number).is_some_and(|block| block.has(index))
    }

    /// Whether the `count` sources from this one on can be taken at once: none of them has come,
    /// and their block cannot be solved before the last of them is there.
    pub fn takes_run(&self, number: u64, index: u8, count: usize) -> bool {
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
        let (count, at) = (packet.segment_count(), self.at(number));
        let Some(block) = self.blocks.get_mut(at) else { return };
        (header.index..=u8::MAX).take(count).for_each(|index| block.mark(index));
        block.since.get_or_insert(cx.now());
        if !block.is_ended {
            block.sources = block.sources.max(header.sources);
        }
        if block.is_done {
            return;
        }
        let is_strange = usize::from(header.index) + count > usize::from(block.sources);
        let has_capacity = self.keeping.has_capacity(packet.payload_len());
        if is_strange || !has_capacity {
            return self.keeping.abandon(cx.pool, block);
        }
        if block.is_whole() {
            return self.keeping.let_go(cx.pool, block);
        }
        let mut view = cx.pool.share(packet);
        // A small view must not pin the large body that a burst arrived in.
        let _ = cx.pool.settle(&mut view);
        self.keeping.keep(block, header.index, view);
    }

    /// Takes a parity; it is given back when its block has no use for it.
    pub fn add_parity(
        &mut self,
        cx: &mut Cx<'_>,
        number: u64,
        header: &Header,
        packet: Packet,
    ) -> Option<Packet> {
        let (len, at) = (packet.payload_len(), self.at(number));
        let Some(block) = self.blocks.get_mut(at) else { return Some(packet) };
        let is_other = if block.is_ended {
            let is_long = block.parity_len != 0 && block.parity_len != len;
            block.sources != header.sources || is_long
        } else {
            block.kept.iter().any(|kept| kept.end() > usize::from(header.sources))
        };
        let has_capacity = self.keeping.has_capacity(len);
        if block.is_done || is_other || !has_capacity || block.has(header.index) {
            return Some(packet);
        }
        block.mark(header.index);
        block.since.get_or_insert(cx.now());
        (block.sources, block.is_ended, block.parity_len) = (header.sources, true, len);
        if block.is_whole() {
            self.keeping.let_go(cx.pool, block);
            return Some(packet);
        }
        self.keeping.keep(block, header.index, packet);
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
        let at = self.at(number);
        let Some(block) = self.blocks.get_mut(at) else { return };
        if block.is_done || !block.is_solvable() {
            return;
        }
        if block.counts {
            self.keeping.seen.add(&block.seen());
        }
        for place in 0..self.solving.begin(cx.pool, block) {
            match self.solving.source(place) {
                (index, Some(source)) => {
                    block.mark(index);
                    give(cx, source);
                }
                (_, None) => cx.not_made(1, DropReason::Malformed),
            }
        }
        self.keeping.abandon(cx.pool, block);
    }

    /// The number of the newest block of which something has come, or was said.
    pub fn newest(&self) -> Option<u64> {
        (self.first + self.blocks.len() as u64).checked_sub(1)
    }

    /// The blocks that are over and not whole, in order: one that a later one follows, or whose end
    /// was said, and that began after this end joined.
    pub fn missing(&self) -> impl Iterator<Item = Missing> + '_ {
        let newest = self.newest();
        (self.first..).zip(&self.blocks).filter_map(move |(number, block)| {
            let is_over = block.is_ended || newest.is_some_and(|newest| number < newest);
            let is_open = is_over && !block.is_done && block.counts;
            let have = block.sources_came() + block.parities_came();
            let have = u8::try_from(have).unwrap_or(u8::MAX);
            is_open.then(|| Missing { number, have, rows: block.rows() })
        })
    }

    /// The sender says that a block that is known has ended with so many sources.
    pub fn learn_end(&mut self, cx: &mut Cx<'_>, number: u64, sources: u8) {
        let at = self.at(number);
        let Some(block) = self.blocks.get_mut(at) else { return };
        let is_other = block.kept.iter().any(|kept| kept.end() > usize::from(sources));
        if block.is_done || block.is_ended || is_other {
            return;
        }
        (block.sources, block.is_ended) = (sources, true);
        if block.is_whole() {
            self.keeping.let_go(cx.pool, block);
        }
    }

    /// Gives a block up that is not done; how many of its sources are lost.
    pub fn give_up_one(&mut self, pool: &mut Pool, number: u64) -> u64 {
        let at = self.at(number);
        let Some(block) = self.blocks.get_mut(at).filter(|block| !block.is_done) else { return 0 };
        let lost = block.lost();
        self.keeping.let_go(pool, block);
        lost
    }

    /// What the blocks have shown that were over since it was taken last.
    pub fn seen(&mut self) -> &mut Seen {
        &mut self.keeping.seen
    }

    /// When the block that is known longest, and keeps something, began to come.
    pub fn oldest(&self) -> Option<Time> {
        let open = self.blocks.iter().filter(|block| !block.kept.is_empty());
        open.filter_map(|block| block.since).min()
    }

    /// Gives up what began to come before `before`.
    pub fn give_up(&mut self, pool: &mut Pool, before: Time) {
        for block in &mut self.blocks {
            let is_old = block.since.is_some_and(|since| since <= before);
            if !block.is_done && is_old {
                self.keeping.let_go(pool, block);
            }
        }
    }

    /// Forgets everything that is kept; where the stream is, is still known.
    pub fn forget(&mut self, pool: &mut Pool) {
        self.give_up(pool, Time::NEVER);
    }
}
