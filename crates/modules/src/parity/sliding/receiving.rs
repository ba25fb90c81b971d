//! [`Receiving`]: the sources that have come, and what can be computed of those that have not.
//!
//! ```text
//!   sources   History   40 .  42 43 .  .  46 47       .: missing
//!   repairs   Code      of 41 and 44; of 44 and 45    each as soon as it is of one
//! ```
//!
//! A source goes up when it comes; here only a view of it stays, as long as repairs may come that
//! are made of it too.
//!
//! Invariants: sources are kept of a range, and [`BYTES_MAX`] bytes with the repairs that wait;
//! each source from `from` on that came or was computed is kept; a number is given once. One repair
//! costs at most a sum of `SOURCES_MAX` sources and what its code says; each source that is
//! computed or given up has cost a repair.

use super::history::{History, Place};
use super::{Code, Repair};
use dacapo_base::Time;
use dacapo_lift::{Cx, DropReason};
use dacapo_packet::{Packet, Pool};
use dacapo_wire::sliding::{CODED_AT, Header, LEN};

/// How many bytes may be kept.
const BYTES_MAX: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Receiving<C> {
    history: History,
    code: C,
    /// Of the repair that is being taken, and the source that is being made.
    missing: Vec<u64>,
    made: Vec<u8>,
}

impl<C: Code> Receiving<C> {
    pub fn new(code: C, range: u64) -> Self {
        Self { history: History::new(range), code, missing: Vec::new(), made: Vec::new() }
    }

    pub fn set_range(&mut self, range: u64) {
        self.history.set_range(range);
    }

    pub fn join(&mut self) {
        self.history.join();
    }

    /// Where a packet with this header belongs.
    pub fn place(&mut self, pool: &mut Pool, header: &Header) -> Place {
        let place = self.history.place(header);
        if let Place::Begins(first) = place {
            self.forget(pool);
            self.history.begin(pool, first);
        }
        place
    }

    /// Sources below `end` were sent: what is too far behind that is given up.
    fn reach(&mut self, pool: &mut Pool, end: u64) {
        let from = self.history.reach(end);
        if from > self.history.from() {
            self.give_up_below(pool, from);
        }
    }

    fn give_up_below(&mut self, pool: &mut Pool, from: u64) {
        self.history.give_up_below(pool, from);
        self.code.give_up(self.history.from());
    }

    /// Whether this one has come, or was computed.
    pub fn has(&self, number: u64) -> bool {
        self.history.has(number)
    }

    /// Whether the `count` sources from this one on can be taken at once: nobody has heard of any.
    pub fn takes_run(&self, number: u64, count: usize) -> bool {
        let mut run = number..number + count as u64;
        number >= self.history.end() || self.code.is_empty() && !run.any(|it| self.has(it))
    }

    /// Keeps a view of sources that have come, as many as the packet has segments from this number
    /// on, none of which has come before.
    pub fn add_sources(&mut self, cx: &mut Cx<'_>, number: u64, packet: &mut Packet) {
        let count = packet.segment_count() as u64;
        self.reach(cx.pool, number + count);
        (number..number + count).for_each(|it| self.history.mark(it));
        if !self.code.is_empty() && self.code.has(number) {
            let coded = cx.pool.segment(packet, 0).get(CODED_AT..).unwrap_or_default();
            self.code.know(number, coded);
        }
        if number + count <= self.history.from() {
            return;
        }
        let mut view = cx.pool.share(packet);
        // A small view must not pin the large body that a burst arrived in.
        let _ = cx.pool.settle(&mut view);
        self.keep(cx, number, view);
    }

    fn keep(&mut self, cx: &mut Cx<'_>, first: u64, view: Packet) {
        self.history.keep(first, view, cx.now());
        while self.history.bytes() > BYTES_MAX
            && let Some((_, end)) = self.history.oldest()
        {
            self.give_up_below(cx.pool, end);
        }
    }

    /// Takes what a repair says, of which the last source has this number; whether that is of use.
    pub fn add_repair(
        &mut self,
        cx: &mut Cx<'_>,
        last: u64,
        header: &Header,
        packet: &Packet,
    ) -> bool {
        let Some(members) = C::members(header, last) else { return false };
        self.reach(cx.pool, last + 1);
        let mut missing = std::mem::take(&mut self.missing);
        missing.clear();
        if members.first >= self.history.from() {
            missing.extend(members.numbers().filter(|it| !self.history.has(*it)));
        }
        let repair = Repair { header, last, members, missing: &missing };
        let is_of_use = self.take(cx, &repair, packet);
        self.missing = missing;
        is_of_use
    }

    fn take(&mut self, cx: &mut Cx<'_>, repair: &Repair<'_>, packet: &Packet) -> bool {
        let bytes = cx.pool.segment(packet, 0).get(CODED_AT..).unwrap_or_default();
        let has_room = self.code.bytes_with(bytes.len()) + self.history.bytes() <= BYTES_MAX;
        let is_of_use = (1..=C::MISSING_MAX).contains(&repair.missing.len()) && has_room;
        if !is_of_use || !self.make_room(cx.pool, repair) {
            return false;
        }
        let mut sum = self.code.take_sum();
        sum.extend_from_slice(cx.pool.segment(packet, 0).get(CODED_AT..).unwrap_or_default());
        let known = self.history.known(cx.pool, repair.members);
        C::add(&mut sum, repair.header, repair.last, known);
        self.code.take(repair, sum, cx.now());
        true
    }

    /// Gives up the oldest unknown sources until there is room for a repair; false when that is
    /// given up, too.
    fn make_room(&mut self, pool: &mut Pool, repair: &Repair<'_>) -> bool {
        while let Some(oldest) = self.code.crowded_by(repair.missing) {
            self.give_up_below(pool, oldest + 1);
        }
        repair.members.first >= self.history.from()
    }

    /// Gives each source that is known now to `give`, as the packet that its peer sent.
    pub fn solve(&mut self, cx: &mut Cx<'_>, mut give: impl FnMut(&mut Cx<'_>, Packet)) {
        let mut made = std::mem::take(&mut self.made);
        while let Some(number) = self.code.solved(&mut made) {
            let Some(len) = source_len(&made) else {
                cx.not_made(1, DropReason::Malformed);
                continue;
            };
            made.truncate(LEN - CODED_AT + len);
            self.history.mark(number);
            // What is not what a peer codes tells nothing about others either.
            self.code.know(number, &made);
            made.splice(0..0, [0; CODED_AT]);
            let Ok(mut packet) = cx.pool.packet_from(0, &made, 0) else {
                cx.not_made(1, DropReason::NoMemory);
                // What is not kept no repair can be freed of.
                self.give_up_below(cx.pool, number + 1);
                continue;
            };
            packet.time = cx.now();
            let view = cx.pool.share(&mut packet);
            self.keep(cx, number, view);
            give(cx, packet);
        }
        self.made = made;
    }

    /// When the first came of what is kept.
    pub fn oldest(&self) -> Option<Time> {
        let kept = self.history.oldest().map(|(at, _)| at);
        let waits = self.code.first_came().map(|(at, _)| at);
        kept.into_iter().chain(waits).min()
    }

    /// Gives up what came until `before`, and what was missing then.
    pub fn give_up(&mut self, pool: &mut Pool, before: Time) {
        while let Some((_, end)) = self.history.oldest().filter(|(at, _)| *at <= before) {
            self.give_up_below(pool, end);
        }
        while let Some((_, number)) = self.code.first_came().filter(|(at, _)| *at <= before) {
            self.give_up_below(pool, number + 1);
        }
    }

    /// Forgets everything that is kept; where the stream is, is still known.
    pub fn forget(&mut self, pool: &mut Pool) {
        self.history.forget(pool);
        self.code.give_up(self.history.from());
    }
}

/// The length of a source of which these bytes were computed; none where it is not what a peer
/// codes.
fn source_len(made: &[u8]) -> Option<usize> {
    let (len, bytes) = made.split_first_chunk::<{ LEN - CODED_AT }>()?;
    let len = usize::from(u16::from_be_bytes(*len));
    (len <= bytes.len()).then_some(len)
}
