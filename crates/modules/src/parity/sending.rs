//! [`Sending`]: the block that is being sent, and the parities that are to follow it.
//!
//! ```text
//!   sources     s0   s1   s2   s0   s1 …        a source is added to every sum and goes on
//!   sums        +    +    + |
//!   parities                |  p    p           a block that ends leaves its sums as packets
//! ```
//!
//! Parities leave as far apart as sources do on average: sent at once, they would be lost together
//! with the last source wherever losses come in runs. Where sources are closer than [`GRAIN`], as
//! many parities leave together as that has sources.
//!
//! Invariants: a sum is as long as the longest source; nothing is kept of a source but what
//! its sums are.

use crate::blocks::code::{add_known, set_known};
use crate::blocks::heads::put_heads;
use crate::blocks::leaving::Leaving;
use dacapo_base::Time;
use dacapo_lift::{Cx, Setup};
use dacapo_packet::Packet;
use dacapo_wire::parity::{CODED_AT, Header};
use std::ops::Range;
use std::time::Duration;

/// The shortest time between parities that a timer is armed for.
const GRAIN: Duration = Duration::from_millis(1);

/// How large a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// How many packets that were handed over.
    pub sources: u8,
    /// How many that are computed of them.
    pub parities: u8,
}

#[derive(Debug)]
pub(super) struct Sending {
    /// The number of the block.
    block: u64,
    /// What the block was begun with.
    size: Size,
    /// How many sources it has.
    count: u8,
    /// When its first source was sent.
    begun: Option<Time>,
    /// When the first source of the block before was sent, and how many it had.
    before: Option<(Time, u32)>,
    /// One sum for each parity; the others are spare.
    sums: Vec<Vec<u8>>,
    /// The indices of the parities.
    rows: Vec<u8>,
    /// The class of the packets in it.
    class: u8,
    leaving: Leaving,
}

impl Sending {
    pub fn new(setup: &Setup) -> Self {
        Self {
            block: 0,
            size: Size { sources: 1, parities: 0 },
            count: 0,
            begun: None,
            before: None,
            sums: Vec::new(),
            rows: Vec::new(),
            class: 0,
            leaving: Leaving::new(setup),
        }
    }

    /// When the first source of the block was sent; none where no block is begun.
    pub fn begun(&self) -> Option<Time> {
        self.begun
    }

    /// How many sources the last block had.
    pub fn filled(&self) -> Option<u8> {
        self.before.map(|(_, count)| u8::try_from(count).unwrap_or(u8::MAX))
    }

    /// The parities that wait.
    pub fn leaving(&mut self) -> &mut Leaving {
        &mut self.leaving
    }

    /// When the next parities are to be sent.
    pub fn due(&self) -> Option<Time> {
        self.leaving.due()
    }

    /// How many sources the block takes still, of which none has come where `size` may be another.
    pub fn capacity(&mut self, size: Size) -> usize {
        if self.count == 0 {
            self.begin(size);
        }
        usize::from(self.size.sources.saturating_sub(self.count))
    }

    fn begin(&mut self, size: Size) {
        self.size = size;
        self.rows.clear();
        self.rows.extend((0..size.parities).map(|row| u8::MAX - row));
        if self.sums.len() < self.rows.len() {
            self.sums.resize_with(self.rows.len(), Vec::new);
        }
    }

    /// Numbers as many sources as the packet has segments, of which there is capacity for all, and
    /// adds them to the sums. False, and nothing done, when there is no room for the header.
    pub fn add(&mut self, cx: &mut Cx<'_>, packet: &mut Packet) -> bool {
        if !put_heads(cx.pool, packet, (self.block, self.count, self.size.sources)) {
            return false;
        }
        self.begun.get_or_insert(cx.now());
        self.class = packet.class;
        self.sum(cx, packet);
        self.count = self.count.saturating_add(packet.segment_count() as u8);
        true
    }

    fn sum(&mut self, cx: &Cx<'_>, packet: &Packet) {
        let longest = packet.segment_len(0).saturating_sub(CODED_AT);
        let sums = self.sums.get_mut(..self.rows.len()).unwrap_or_default();
        let coded = |at| cx.pool.segment(packet, at).get(CODED_AT..).unwrap_or_default();
        let known = (0..packet.segment_count()).zip(self.count..);
        let known = known.map(|(at, index)| (index, coded(at)));
        if self.count == 0 {
            sums.iter_mut().for_each(|sum| sum.resize(longest, 0));
            return set_known(sums, &self.rows, known);
        }
        for sum in sums.iter_mut().filter(|sum| sum.len() < longest) {
            sum.resize(longest, 0);
        }
        add_known(sums, &self.rows, known);
    }

    /// Whether the block has as many sources as it may.
    pub fn is_full(&self) -> bool {
        self.count > 0 && self.count >= self.size.sources
    }

    /// Ends the block, if one is begun: its parities wait to be sent. `span` is how long a block
    /// may take.
    pub fn end(&mut self, cx: &mut Cx<'_>, span: Duration) {
        let Some(begun) = self.begun else { return };
        let apart = self.apart(begun, span);
        let len = self.sums.first().map_or(0, Vec::len);
        let together = nanoseconds(GRAIN).checked_div(nanoseconds(apart)).unwrap_or(u64::MAX);
        let most = (together as usize).clamp(1, self.leaving.most(len));
        let mut due = cx.now();
        for from in (0..self.rows.len()).step_by(most) {
            due += apart * most as u32;
            self.wait(cx, due, len, from..self.rows.len().min(from + most));
        }
        self.before = Some((begun, u32::from(self.count)));
        (self.block, self.count, self.begun) = (self.block + 1, 0, None);
    }

    /// How far apart sources have been since the block before began, and parities as much closer as
    /// there are more of them: those of a block never take longer than its sources, or as long as
    /// these may.
    fn apart(&self, begun: Time, span: Duration) -> Duration {
        let Some((before, count)) = self.before else { return Duration::ZERO };
        let apart = nanoseconds(begun.since(before)) / u64::from(count.max(1));
        let sources = u64::from(self.count.max(1));
        let parities = sources.max(self.rows.len() as u64);
        Duration::from_nanos(apart.saturating_mul(sources).min(nanoseconds(span)) / parities)
    }

    /// Makes a train of some of the parities.
    fn wait(&mut self, cx: &mut Cx<'_>, due: Time, len: usize, rows: Range<usize>) {
        let (block, sources) = (self.block as u32, self.count);
        let header = |index| Header { block, index, sources, length: 0 }.emit();
        let rows = self.rows.iter().zip(&self.sums).skip(rows.start).take(rows.len());
        let sums = rows.map(|(&index, sum)| (header(index), sum.as_slice()));
        self.leaving.push(cx, (due, self.class), len, sums);
    }

    /// Forgets the block; what waits is still to leave.
    pub fn forget(&mut self) {
        if self.count > 0 {
            (self.block, self.count, self.begun) = (self.block + 1, 0, None);
        }
    }
}

/// A division of 64 bits is made for each block, not one of 128.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
