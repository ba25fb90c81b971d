//! [`Receiving`]: the sources that have come, and what can be computed of those that have not.
//!
//! ```text
//!            from                        end
//!   … gone   | 40 .  42 43 .  .  46 47 | 48 …     .: missing
//!            views of what came, equations of what did not
//! ```
//!
//! A source goes up when it comes; here only a view of it stays, as long as repairs may come that
//! are made of it too.
//!
//! Invariants: at most twice [`RANGE`] sources are kept, and [`BYTES_MAX`] bytes with the
//! equations; each source from `from` on that came or was computed is kept; a number is given once.
//! One repair costs at most a sum of [`SOURCES_MAX`] sources and two of [`UNKNOWN_MAX`] rows; a
//! source that was missing a product with each row, and those two. Each source that is computed or
//! given up has cost a repair.

use super::came::{CAME, Came};
use super::code::{Factors, add_sources};
use super::elimination::{Elimination, UNKNOWN_MAX};
use crate::beginning::{Beginning, JOIN_NEAR};
use crate::outliers::{NEAR, Outliers};
use dacapo_base::Time;
use dacapo_lift::{Cx, DropReason};
use dacapo_packet::{Packet, Pool};
use dacapo_wire::sliding::{CODED_AT, Header, LEN, SOURCES_MAX, extend};
use std::collections::VecDeque;

/// How far back sources are kept: a window, and as many packets as may be overtaken.
const RANGE: u64 = 2 * (SOURCES_MAX + 1);

/// How many bytes may be kept.
pub(super) const BYTES_MAX: usize = 4 << 20;

/// Where a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It, or its last source, has this number.
    At(u64),
    /// It is so old that nobody knows whether it came before.
    Late,
    /// It is so far ahead that another packet must confirm it.
    Beyond,
}

/// Sources that are kept: their packet, and the number of its first segment.
#[derive(Debug)]
struct Kept {
    first: u64,
    view: Packet,
    at: Time,
}

impl Kept {
    fn end(&self) -> u64 {
        self.first + self.view.segment_count() as u64
    }
}

#[derive(Debug, Default)]
pub(super) struct Receiving {
    beginning: Beginning,
    came: Came,
    /// No source below this one is computed.
    from: u64,
    /// Numbers far ahead that another packet may confirm.
    outliers: Outliers,
    /// In the order in which they came.
    kept: VecDeque<Kept>,
    bytes: usize,
    rows: Elimination,
    /// Of the repair that is being taken, and the source that is being made.
    missing: Vec<u64>,
    made: Vec<u8>,
}

impl Receiving {
    pub fn join(&mut self) {
        self.beginning = Beginning::Nothing;
    }

    /// Where a packet with this header belongs.
    pub fn place(&mut self, pool: &mut Pool, header: &Header) -> Place {
        let end = self.came.end();
        let has_nothing = self.beginning == Beginning::Nothing;
        let expected = if has_nothing { JOIN_NEAR } else { end };
        let Some(number) = extend(header.number, expected) else { return Place::Late };
        let is_late = number + CAME < end;
        let is_near = number < end + NEAR;
        if self.beginning != Beginning::Known {
            let is_elsewhere = has_nothing || is_late || !is_near;
            if header.is_repair() && is_elsewhere {
                return Place::Late;
            }
            let found = self.beginning.find(number, end, CAME).filter(|_| is_elsewhere);
            return self.begin(pool, number, found);
        }
        if is_late {
            return Place::Late;
        }
        if !is_near && !self.outliers.confirm(number) {
            return Place::Beyond;
        }
        self.outliers.clear();
        Place::At(number)
    }

    /// A packet of a stream that was joined lately: with it the stream begins, perhaps.
    fn begin(&mut self, pool: &mut Pool, number: u64, found: Option<u64>) -> Place {
        if let Some(first) = found {
            self.forget(pool);
            self.came.restart(first);
            self.from = first;
            self.outliers.clear();
        }
        Place::At(number)
    }

    /// Sources below `end` were sent: what is too far behind that is given up.
    fn reach(&mut self, pool: &mut Pool, end: u64) {
        self.came.reach(end);
        let from = self.came.end().saturating_sub(RANGE);
        if from > self.from {
            self.give_up_below(pool, from);
        }
    }

    fn give_up_below(&mut self, pool: &mut Pool, from: u64) {
        self.from = self.from.max(from);
        self.rows.give_up(self.from);
        while self.kept.front().is_some_and(|kept| kept.end() <= self.from) {
            self.let_go_first(pool);
        }
    }

    fn let_go_first(&mut self, pool: &mut Pool) {
        if let Some(kept) = self.kept.pop_front() {
            self.bytes -= kept.view.payload_len();
            pool.free(kept.view);
        }
    }

    /// Whether this one has come, or was computed.
    pub fn has(&self, number: u64) -> bool {
        self.came.has(number)
    }

    /// Whether the `count` sources from this one on can be taken at once: nobody has heard of any.
    pub fn takes_run(&self, number: u64, count: usize) -> bool {
        let mut run = number..number + count as u64;
        number >= self.came.end() || self.rows.is_empty() && !run.any(|it| self.came.has(it))
    }

    /// Keeps a view of sources that have come, as many as the packet has segments from this number
    /// on, none of which has come before.
    pub fn add_sources(&mut self, cx: &mut Cx<'_>, number: u64, packet: &mut Packet) {
        let count = packet.segment_count() as u64;
        self.reach(cx.pool, number + count);
        (number..number + count).for_each(|it| self.came.mark(it));
        if !self.rows.is_empty() && self.rows.has(number) {
            let coded = cx.pool.segment(packet, 0).get(CODED_AT..).unwrap_or_default();
            self.rows.know(number, coded);
        }
        if number + count <= self.from {
            return;
        }
        let mut view = cx.pool.share(packet);
        // A small view must not pin the large body that a burst arrived in.
        let _ = cx.pool.settle(&mut view);
        self.keep(cx, number, view);
    }

    fn keep(&mut self, cx: &mut Cx<'_>, first: u64, view: Packet) {
        self.bytes += view.payload_len();
        self.kept.push_back(Kept { first, view, at: cx.now() });
        while self.bytes > BYTES_MAX
            && let Some(end) = self.kept.front().map(Kept::end)
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
        repair: &Packet,
    ) -> bool {
        let sources = u64::from(header.sources);
        let Some(first) = (last + 1).checked_sub(sources) else { return false };
        self.reach(cx.pool, last + 1);
        self.missing.clear();
        if first >= self.from {
            self.missing.extend((first..=last).filter(|it| !self.came.has(*it)));
        }
        let bytes = cx.pool.segment(repair, 0).get(CODED_AT..).unwrap_or_default();
        let has_room = self.rows.bytes_with(bytes.len()) + self.bytes <= BYTES_MAX;
        let is_of_use = !self.missing.is_empty() && self.missing.len() <= UNKNOWN_MAX && has_room;
        if !is_of_use || !self.make_places(cx.pool, first) {
            return false;
        }
        let factors = Factors::of(last, header.key);
        let mut sums = [self.rows.take_sum()];
        sums[0].extend_from_slice(cx.pool.segment(repair, 0).get(CODED_AT..).unwrap_or_default());
        add_sources(&mut sums, &[factors], known(&self.kept, cx.pool, first, last));
        let missing = self.missing.iter().map(|it| (*it, factors.of_source(*it)));
        let [sum] = sums;
        self.rows.add(missing, sum, cx.now());
        true
    }

    /// Gives up the oldest unknown sources until there are places for those that are missing, of a
    /// repair that begins with `first`; false when that is given up, too.
    fn make_places(&mut self, pool: &mut Pool, first: u64) -> bool {
        // What is given up may free others that are missing here.
        let new = |it: &Self| it.missing.iter().filter(|number| !it.rows.has(**number)).count();
        while self.rows.places() < new(self)
            && let Some(oldest) = self.rows.oldest()
        {
            self.give_up_below(pool, oldest + 1);
        }
        first >= self.from
    }

    /// Gives each source that is known now to `give`, as the packet that its peer sent.
    pub fn solve(&mut self, cx: &mut Cx<'_>, mut give: impl FnMut(&mut Cx<'_>, Packet)) {
        let mut made = std::mem::take(&mut self.made);
        while let Some(number) = self.rows.solved(&mut made) {
            let Some(len) = source_len(&made) else {
                cx.not_made(1, DropReason::Malformed);
                continue;
            };
            made.truncate(LEN - CODED_AT + len);
            made.splice(0..0, [0; CODED_AT]);
            self.came.mark(number);
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
        let row = self.rows.first_came().map(|(at, _)| at);
        self.kept.front().map(|kept| kept.at).into_iter().chain(row).min()
    }

    /// Gives up what came until `before`, and what was missing then.
    pub fn give_up(&mut self, pool: &mut Pool, before: Time) {
        while let Some(end) = self.kept.front().filter(|it| it.at <= before).map(Kept::end) {
            self.give_up_below(pool, end);
        }
        while let Some((_, pivot)) = self.rows.first_came().filter(|(at, _)| *at <= before) {
            self.give_up_below(pool, pivot + 1);
        }
    }

    /// Forgets everything that is kept; where the stream is, is still known.
    pub fn forget(&mut self, pool: &mut Pool) {
        self.give_up_below(pool, self.came.end());
        while !self.kept.is_empty() {
            self.let_go_first(pool);
        }
    }
}

/// What is kept of the sources from `first` to `last`.
fn known<'a>(
    kept: &'a VecDeque<Kept>,
    pool: &'a Pool,
    first: u64,
    last: u64,
) -> impl Iterator<Item = (u64, &'a [u8])> {
    let touched = kept.iter().filter(move |it| it.first <= last && it.end() > first);
    touched.flat_map(move |kept| {
        let coded = |at| pool.segment(&kept.view, at).get(CODED_AT..).unwrap_or_default();
        let all = (kept.first..).zip((0..kept.view.segment_count()).map(coded));
        all.filter(move |(number, _)| (first..=last).contains(number))
    })
}

/// The length of a source of which these bytes were computed; none where it is not what a peer
/// codes.
fn source_len(made: &[u8]) -> Option<usize> {
    let (len, bytes) = made.split_first_chunk::<{ LEN - CODED_AT }>()?;
    let len = usize::from(u16::from_be_bytes(*len));
    (len <= bytes.len()).then_some(len)
}
