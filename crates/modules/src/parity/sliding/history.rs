//! [`History`]: which sources have come, and views of the last of them.
//!
//! ```text
//!            from                        end
//!   … gone   | 40 .  42 43 .  .  46 47 | 48 …     .: missing
//!            views of what came
//! ```
//!
//! Invariants: only sources of the last `range` numbers are kept; a number far ahead moves nothing
//! until another one near it comes.

use super::came::{CAME, Came};
use crate::beginning::{Beginning, JOIN_NEAR};
use crate::outliers::{NEAR, Outliers};
use dacapo_base::Time;
use dacapo_packet::{Packet, Pool};
use dacapo_wire::sliding::{CODED_AT, Header, extend};
use std::collections::VecDeque;

use super::members::Members;

/// Where a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It, or its last source, has this number.
    At(u64),
    /// The same, and the stream begins with it, or with another one than was thought.
    Begins(u64),
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

#[derive(Debug)]
pub(super) struct History {
    beginning: Beginning,
    came: Came,
    /// How far back sources are kept.
    range: u64,
    /// No source below this one is computed.
    from: u64,
    /// Numbers far ahead that another packet may confirm.
    outliers: Outliers,
    /// In the order in which they came.
    kept: VecDeque<Kept>,
    bytes: usize,
}

impl History {
    /// Of the last `range` sources, at most [`CAME`].
    pub fn new(range: u64) -> Self {
        Self {
            beginning: Beginning::default(),
            came: Came::default(),
            range: range.min(CAME),
            from: 0,
            outliers: Outliers::default(),
            kept: VecDeque::new(),
            bytes: 0,
        }
    }

    pub fn set_range(&mut self, range: u64) {
        self.range = range.min(CAME);
    }

    pub fn join(&mut self) {
        self.beginning = Beginning::Nothing;
    }

    /// No source below this one is computed.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// The number behind the last that anything was heard of.
    pub fn end(&self) -> u64 {
        self.came.end()
    }

    /// How many bytes are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether this one has come, or was computed.
    pub fn has(&self, number: u64) -> bool {
        self.came.has(number)
    }

    pub fn mark(&mut self, number: u64) {
        self.came.mark(number);
    }

    /// Where a packet with this header belongs.
    pub fn place(&mut self, header: &Header) -> Place {
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
            return found.map_or(Place::At(number), Place::Begins);
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

    /// The stream begins with this number; nothing is kept of what was before.
    pub fn begin(&mut self, pool: &mut Pool, first: u64) {
        self.forget(pool);
        self.came.restart(first);
        self.from = first;
        self.outliers.clear();
    }

    /// Sources below `end` were sent; the number from which on they are kept now.
    pub fn reach(&mut self, end: u64) -> u64 {
        self.came.reach(end);
        self.came.end().saturating_sub(self.range)
    }

    /// Lets go of what is below this number, and computes none of it any more.
    pub fn give_up_below(&mut self, pool: &mut Pool, from: u64) {
        self.from = self.from.max(from);
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

    /// Keeps a view of sources, the first of which has this number.
    pub fn keep(&mut self, first: u64, view: Packet, at: Time) {
        self.bytes += view.payload_len();
        self.kept.push_back(Kept { first, view, at });
    }

    /// The number behind the sources that are kept longest, and when these came.
    pub fn oldest(&self) -> Option<(Time, u64)> {
        self.kept.front().map(|kept| (kept.at, kept.end()))
    }

    /// What is kept of these sources.
    pub fn known<'a>(
        &'a self,
        pool: &'a Pool,
        members: Members,
    ) -> impl Iterator<Item = (u64, &'a [u8])> {
        let last = members.at(members.count.saturating_sub(1));
        let is_touched = move |it: &&Kept| it.first <= last && it.end() > members.first;
        self.kept.iter().filter(is_touched).flat_map(move |kept| {
            let coded = |at| pool.segment(&kept.view, at).get(CODED_AT..).unwrap_or_default();
            let all = (kept.first..).zip(0..kept.view.segment_count());
            let theirs = all.filter(move |(number, _)| members.place_of(*number).is_some());
            theirs.map(move |(number, at)| (number, coded(at)))
        })
    }

    /// Lets go of everything that is kept; where the stream is, is still known.
    pub fn forget(&mut self, pool: &mut Pool) {
        self.give_up_below(pool, self.came.end());
        while !self.kept.is_empty() {
            self.let_go_first(pool);
        }
    }
}
