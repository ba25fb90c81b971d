//! [`Sending`]: the blocks that were sent lately, and what is sent of them when a receiver asks.
//!
//! ```text
//!   down     s0 … s31 | s0 … s31 | s0 …          every source is kept as a view
//!   asked    block 1: 30 of 32 ---> p p          as many parities as that receiver lacks
//!   idle                             ended: 9    nothing follows that would show a loss
//! ```
//!
//! Invariants: at most [`BLOCKS_MAX`] blocks and [`BYTES_MAX`] bytes are kept, the oldest go first;
//! no more is sent to repair than [`Budgets`] says.

use super::budgets::Budgets;
use super::sent::SentBlock;
use crate::blocks::heads::put_heads;
use crate::blocks::leaving::Leaving;
use crate::blocks::receiving::WINDOW;
use crate::copying::Copier;
use crate::emitting::tell;
use crate::runs::down_or_drop;
use dacapo_base::Time;
use dacapo_lift::{Cx, Setup};
use dacapo_packet::{Packet, Pool};
use dacapo_wire::group_repair::{Ask, Said};
use dacapo_wire::parity::extend;
use std::collections::VecDeque;
use std::time::Duration;

/// How many blocks are kept: of those a receiver knows.
const BLOCKS_MAX: usize = WINDOW as usize;

/// How many bytes of them.
const BYTES_MAX: usize = 8 << 20;

/// How often it is said how far the sender is, after the last packet; each time after twice as long
/// as before.
const ANNOUNCED_MAX: u32 = 5;

#[derive(Debug)]
pub(super) struct Sending {
    /// The number of the block that is begun next.
    next: u64,
    /// In order; the last may be open.
    blocks: VecDeque<SentBlock>,
    is_open: bool,
    /// How many sources a block has at most.
    size: u8,
    bytes: usize,
    budgets: Budgets,
    leaving: Leaving,
    sums: Vec<Vec<u8>>,
    /// When the last packet was sent.
    last: Option<Time>,
    /// How often it was said since how far this end is.
    announced: u32,
    /// How many parities were made.
    pub parities: i64,
}

impl Sending {
    pub fn new(setup: &Setup, size: u8) -> Self {
        Self {
            next: 0,
            blocks: VecDeque::new(),
            is_open: false,
            size,
            bytes: 0,
            budgets: Budgets::default(),
            leaving: Leaving::new(setup),
            sums: Vec::new(),
            last: None,
            announced: 0,
            parities: 0,
        }
    }

    /// Blocks have so many sources at most from the next on.
    pub fn set_size(&mut self, size: u8) {
        self.end();
        self.size = size;
    }

    fn open(&mut self) -> Option<&mut SentBlock> {
        self.blocks.back_mut().filter(|_| self.is_open)
    }

    /// How many sources the block takes that is begun, or the next one.
    pub fn capacity(&mut self) -> usize {
        let size = self.size;
        usize::from(self.open().map_or(size, |block| size.saturating_sub(block.sources)))
    }

    /// Numbers as many sources as the packet has segments, of which there is capacity for all, and
    /// keeps a view of them. False, and nothing done, when there is no room for the header.
    pub fn add(&mut self, cx: &mut Cx<'_>, packet: &mut Packet) -> bool {
        let begun = self.open().map(|block| (block.number, block.sources));
        let (block, first) = begun.unwrap_or((self.next, 0));
        if !put_heads(cx.pool, packet, (block, first, self.size)) {
            return false;
        }
        if begun.is_none() {
            self.blocks.push_back(SentBlock::new(block, cx.now(), packet.class));
            (self.next, self.is_open) = (block + 1, true);
        }
        self.budgets.earn(packet.segment_count() as u64);
        (self.last, self.announced) = (Some(cx.now()), 0);
        self.bytes += packet.payload_len();
        let view = cx.pool.share(packet);
        match self.blocks.back_mut() {
            Some(block) => block.add(view),
            None => cx.pool.free(view),
        }
        self.bound(cx.pool);
        if self.capacity() == 0 {
            self.end();
        }
        true
    }

    /// Lets go of the oldest blocks beyond the bounds.
    fn bound(&mut self, pool: &mut Pool) {
        while self.blocks.len() > BLOCKS_MAX || (self.bytes > BYTES_MAX && self.blocks.len() > 1) {
            self.let_go_first(pool);
        }
    }

    fn let_go_first(&mut self, pool: &mut Pool) {
        let Some(block) = self.blocks.pop_front() else { return };
        self.bytes = self.bytes.saturating_sub(block.bytes);
        self.is_open &= !self.blocks.is_empty();
        block.let_go(pool);
    }

    /// When the block that is open was begun.
    pub fn begun(&mut self) -> Option<Time> {
        self.open().map(|block| block.begun)
    }

    /// The block that is open takes no more sources.
    pub fn end(&mut self) {
        self.is_open = false;
    }

    /// Sends what a receiver asks for, as far as that is kept and the budgets allow: an answer
    /// takes so long to come to it.
    pub fn answer(
        &mut self,
        cx: &mut Cx<'_>,
        copier: &Copier,
        (receiver, answer): (u32, Duration),
        asks: impl Iterator<Item = Ask>,
    ) {
        for ask in asks {
            let Some(number) = extend(ask.block, self.next) else { continue };
            let open = self.open().map(|block| block.number);
            let at = self.blocks.front().and_then(|first| number.checked_sub(first.number));
            let at = at.and_then(|at| usize::try_from(at).ok());
            let Some(block) = at.and_then(|at| self.blocks.get_mut(at)) else { continue };
            if open == Some(number) {
                continue;
            }
            if ask.have >= block.sources {
                if self.budgets.take(receiver, 1) > 0 {
                    let said = Said::Ended { block: number as u32, sources: block.sources };
                    tell(cx, copier, said.emit(), &[]);
                }
                continue;
            }
            let needed = block.needed(cx.now(), &ask, answer).min(block.rows_left());
            let count = self.budgets.take(receiver, needed);
            if count > 0 {
                repair(cx, block, count, &mut self.sums, &mut self.leaving);
                self.parities += i64::from(count);
            }
        }
    }

    /// Says to a receiver that its asking was heard, where it wants to know.
    pub fn echo(
        &mut self,
        cx: &mut Cx<'_>,
        copier: &Copier,
        receiver: u32,
        (answer_ms, echo): (u32, u8),
    ) {
        if echo != 0 && self.budgets.take(receiver, 1) > 0 {
            tell(cx, copier, Said::Heard { answer_ms, echo }.emit(), &[]);
        }
    }

    /// When it is to be said how far this end is, where a block takes `span`; none where it was
    /// said often enough.
    pub fn tail(&self, span: Duration) -> Option<Time> {
        let last = self.last.filter(|_| self.announced < ANNOUNCED_MAX)?;
        Some(last + span * ((2 << self.announced) - 1))
    }

    /// Says how the newest block has ended, which it does now.
    pub fn announce(&mut self, cx: &mut Cx<'_>, copier: &Copier) {
        self.end();
        self.announced += 1;
        if let Some(block) = self.blocks.back() {
            let said = Said::Ended { block: block.number as u32, sources: block.sources };
            tell(cx, copier, said.emit(), &[]);
        }
    }

    /// When the oldest of what is kept was begun.
    pub fn oldest(&self) -> Option<Time> {
        self.blocks.front().map(|block| block.begun)
    }

    /// Lets go of what was begun by then.
    pub fn let_go(&mut self, pool: &mut Pool, by: Time) {
        while self.oldest().is_some_and(|begun| begun <= by) {
            self.let_go_first(pool);
        }
    }

    /// Lets go of everything, and says nothing more.
    pub fn flush(&mut self, cx: &mut Cx<'_>) {
        self.let_go(cx.pool, Time::NEVER);
        self.leaving.flush(cx);
        self.last = None;
    }
}

/// Sends so many more parities of a block.
fn repair(
    cx: &mut Cx<'_>,
    block: &mut SentBlock,
    count: u8,
    sums: &mut Vec<Vec<u8>>,
    leaving: &mut Leaving,
) {
    let headers = block.make(cx, count, sums);
    let (len, now) = (block.parity_len(), cx.now());
    let most = leaving.most(len).max(1);
    for (headers, sums) in headers.chunks(most).zip(sums.chunks(most)) {
        let sums = headers.iter().zip(sums).map(|(header, sum)| (*header, sum.as_slice()));
        leaving.push(cx, (now, block.class), len, sums);
    }
    while let Some(parities) = leaving.poll(now) {
        down_or_drop(cx, parities);
    }
}
