//! [`SentBlock`]: a block that was sent, and the parities that are made of it when they are needed.
//!
//! ```text
//!   sources    s0 s1 s2 s3                 kept as views
//!   asked      2 more         ->  p p      rows 0 and 1
//!   asked      1 more         ->  p        row 2: none is sent twice, and each helps everybody
//! ```
//!
//! Invariant: a block has [`ROWS_MAX`] parities at most.

use crate::blocks::block::Kept;
use crate::blocks::code::add_known;
use dacapo_base::Time;
use dacapo_lift::Cx;
use dacapo_packet::{Packet, Pool};
use dacapo_wire::group_repair::Ask;
use dacapo_wire::parity::{CODED_AT, Header, LEN};
use std::collections::VecDeque;
use std::time::Duration;

/// How many parities of a block there are.
pub(super) const ROWS_MAX: u8 = 128;

/// Of so many answers it is known when they were given.
const ANSWERS_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct SentBlock {
    pub number: u64,
    /// When its first source was sent.
    pub begun: Time,
    pub class: u8,
    /// How many sources it has.
    pub sources: u8,
    views: Vec<Kept>,
    /// How many bytes are kept.
    pub bytes: usize,
    /// The length of the longest source, as far as it is coded.
    longest: usize,
    /// How many parities were made.
    rows: u8,
    /// When some were, and how many there were then: the newest last.
    answers: VecDeque<(Time, u8)>,
}

impl SentBlock {
    pub fn new(number: u64, begun: Time, class: u8) -> Self {
        let (views, answers) = (Vec::new(), VecDeque::new());
        Self { number, begun, class, sources: 0, views, bytes: 0, longest: 0, rows: 0, answers }
    }

    /// Keeps a view of sources, which follow those that are there.
    pub fn add(&mut self, view: Packet) {
        let count = u8::try_from(view.segment_count()).unwrap_or(u8::MAX);
        self.bytes += view.payload_len();
        self.longest = self.longest.max(view.segment_len(0).saturating_sub(CODED_AT));
        self.views.push(Kept { index: self.sources, view });
        self.sources = self.sources.saturating_add(count);
    }

    /// How many more packets it takes until a receiver that asks so has as many as there are
    /// sources. Parities that it has not seen may be under way when they were sent within the time
    /// that an answer takes; those before are lost.
    pub fn needed(&self, now: Time, ask: &Ask, answer: Duration) -> u8 {
        let came_by = now - answer;
        let before = self.answers.iter().rev().find(|(at, _)| *at <= came_by);
        let forgotten = if self.answers.len() < ANSWERS_MAX { 0 } else { self.rows };
        let known = before.map_or(forgotten, |(_, rows)| *rows).max(ask.rows.min(self.rows));
        let under_way = self.rows.saturating_sub(known);
        self.sources.saturating_sub(ask.have).saturating_sub(under_way)
    }

    /// How many parities can still be made.
    pub fn rows_left(&self) -> u8 {
        ROWS_MAX.saturating_sub(self.rows)
    }

    /// How long a parity is, as far as it is coded.
    pub fn parity_len(&self) -> usize {
        self.longest
    }

    /// The next parities, of which there are so many left: their headers, and into `sums` what they
    /// are.
    pub fn make(&mut self, cx: &Cx<'_>, count: u8, sums: &mut Vec<Vec<u8>>) -> Vec<[u8; LEN]> {
        let rows: Vec<u8> =
            (0..count).map(|row| u8::MAX.saturating_sub(self.rows).saturating_sub(row)).collect();
        sums.resize_with(rows.len().max(sums.len()), Vec::new);
        for sum in sums.iter_mut().take(rows.len()) {
            sum.clear();
            sum.resize(self.longest, 0);
        }
        let pool: &Pool = cx.pool;
        let known = self.views.iter().flat_map(|kept| kept.coded(pool));
        add_known(sums.get_mut(..rows.len()).unwrap_or_default(), &rows, known);
        self.rows = self.rows.saturating_add(count);
        if self.answers.len() == ANSWERS_MAX {
            self.answers.pop_front();
        }
        self.answers.push_back((cx.now(), self.rows));
        let (block, sources) = (self.number as u32, self.sources);
        rows.into_iter().map(|index| Header { block, index, sources, length: 0 }.emit()).collect()
    }

    /// Gives every view back.
    pub fn let_go(self, pool: &mut Pool) {
        self.views.into_iter().for_each(|kept| pool.free(kept.view));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn ask(have: u8, rows: u8) -> Ask {
        Ask { block: 7, have, rows }
    }

    #[test]
    fn what_may_be_under_way_is_not_made_again() {
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let mut block = SentBlock::new(7, at(0), 0);
        block.sources = 10;
        assert_eq!(block.needed(at(50), &ask(8, 0), ms(40)), 2);
        assert_eq!(block.needed(at(50), &ask(10, 0), ms(40)), 0);
        (block.rows, block.answers) = (2, VecDeque::from([(at(50), 2)]));
        // Two were sent 10 ms ago.
        assert_eq!(block.needed(at(60), &ask(8, 0), ms(40)), 0);
        assert_eq!(block.needed(at(60), &ask(5, 0), ms(40)), 3);
        // One of them has come, and the other has been seen to be lost, or is.
        assert_eq!(block.needed(at(60), &ask(9, 2), ms(40)), 1);
        assert_eq!(block.needed(at(95), &ask(8, 0), ms(40)), 2);
        // Nobody has seen what was not sent.
        assert_eq!(block.needed(at(60), &ask(8, 200), ms(40)), 2);
    }
}
