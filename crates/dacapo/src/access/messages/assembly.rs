//! Decoder: [`Assembly`], a message that comes: its units in any order, parts as they are whole.
//!
//! ```text
//!          given to the user     data, without a gap      early, apart
//!   0 ....................... | =====================|  ..  ====  .. ==  ........ len
//!                             ^ given                ^ end        at most PART_LEN_MAX ahead
//! ```
//!
//! Invariants: `data` is shorter than a part and its longest unit; what is early does not overlap
//! anything; memory grows with what has come, never with what a head says.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::head::Head;
use super::inbox::PART_LEN_MAX;
use std::collections::BTreeMap;

/// What became of a unit of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It continues what is there: parts may be whole now.
    Continues,
    /// It is kept until what is before it comes.
    Early,
    /// It was there before.
    Duplicate,
    /// It contradicts what was there.
    Malformed,
    /// What lacks before it is more than is waited for.
    TooFar,
}

/// A message that has begun to come.
#[derive(Debug)]
pub struct Assembly {
    /// The sender's priority.
    pub priority: u16,
    /// Length of the whole message in bytes.
    pub len: u64,
    /// Bytes in parts that are whole.
    pub given: u64,
    /// When something last came of it, in units of the flow.
    pub touched: u64,
    /// Units that were sent after its last one and have come.
    pub passed: u32,
    data: Vec<u8>,
    early: BTreeMap<u64, Vec<u8>>,
    early_bytes: usize,
}

impl Assembly {
    /// One of which nothing has come.
    pub fn new(head: &Head) -> Self {
        Self {
            priority: head.priority,
            len: head.len,
            given: 0,
            touched: 0,
            passed: 0,
            data: Vec::new(),
            early: BTreeMap::new(),
            early_bytes: 0,
        }
    }

    /// Bytes that have come without a gap.
    pub fn end(&self) -> u64 {
        self.given.saturating_add(self.data.len() as u64)
    }

    /// Units that wait for what is before them, and their bytes.
    pub fn early(&self) -> (usize, usize) {
        (self.early.len(), self.early_bytes)
    }

    /// A unit has come.
    pub fn place(&mut self, head: &Head, bytes: &[u8]) -> Placed {
        if (head.priority, head.len) != (self.priority, self.len) {
            return Placed::Malformed;
        }
        let (begin, end) = (head.offset, head.offset.saturating_add(bytes.len() as u64));
        if end <= self.end() && end > 0 {
            return Placed::Duplicate;
        }
        if begin < self.end() {
            return Placed::Malformed;
        }
        if let Some(placed) = self.meets_early(begin, end) {
            return placed;
        }
        if begin > self.end() {
            if end.saturating_sub(self.end()) > PART_LEN_MAX as u64 {
                return Placed::TooFar;
            }
            self.early.insert(begin, bytes.to_vec());
            self.early_bytes = self.early_bytes.saturating_add(bytes.len());
            return Placed::Early;
        }
        self.data.extend_from_slice(bytes);
        self.join_early();
        Placed::Continues
    }

    /// What it means that these bytes meet some that are early, if they do.
    fn meets_early(&self, begin: u64, end: u64) -> Option<Placed> {
        // They do not overlap each other, so the last that begins before the end tells.
        let (&at, met) = self.early.range(..end).next_back()?;
        let met_end = at.saturating_add(met.len() as u64);
        if met_end <= begin {
            return None;
        }
        let is_same = at <= begin && end <= met_end;
        Some(if is_same { Placed::Duplicate } else { Placed::Malformed })
    }

    fn join_early(&mut self) {
        while let Some(bytes) = self.early.remove(&self.end()) {
            self.early_bytes = self.early_bytes.saturating_sub(bytes.len());
            self.data.extend_from_slice(&bytes);
        }
    }

    /// The next part that is whole, and whether it is the last; nothing follows that.
    pub fn take_part(&mut self) -> Option<(Vec<u8>, bool)> {
        let is_last = self.end() == self.len && self.data.len() <= PART_LEN_MAX;
        if !is_last && self.data.len() < PART_LEN_MAX {
            return None;
        }
        let rest = self.data.split_off(self.data.len().min(PART_LEN_MAX));
        let part = std::mem::replace(&mut self.data, rest);
        self.given = self.given.saturating_add(part.len() as u64);
        Some((part, is_last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(len: u64, offset: u64) -> Head {
        Head { priority: 7, number: 0, len, offset }
    }

    #[test]
    fn units_in_any_order_make_the_message_once() {
        let mut message = Assembly::new(&head(9, 0));
        assert_eq!(message.place(&head(9, 6), b"ghi"), Placed::Early);
        assert_eq!(message.place(&head(9, 3), b"def"), Placed::Early);
        assert_eq!(message.place(&head(9, 3), b"def"), Placed::Duplicate);
        assert_eq!((message.early(), message.take_part()), ((2, 6), None));
        assert_eq!(message.place(&head(9, 0), b"abc"), Placed::Continues);
        assert_eq!(message.early(), (0, 0));
        assert_eq!(message.place(&head(9, 6), b"ghi"), Placed::Duplicate);
        assert_eq!(message.take_part(), Some((b"abcdefghi".to_vec(), true)));
    }

    #[test]
    fn a_message_without_bytes_is_whole_at_once() {
        let mut message = Assembly::new(&head(0, 0));
        assert_eq!(message.place(&head(0, 0), b""), Placed::Continues);
        assert_eq!(message.take_part(), Some((Vec::new(), true)));
    }

    #[test]
    fn a_long_message_comes_in_parts_of_which_the_last_is_the_rest() {
        for len in [PART_LEN_MAX, PART_LEN_MAX + 1, 2 * PART_LEN_MAX, 3 * PART_LEN_MAX - 1] {
            let mut message = Assembly::new(&head(len as u64, 0));
            let (mut parts, mut at) = (Vec::new(), 0);
            while at < len {
                let piece = 60_000.min(len - at);
                let placed = message.place(&head(len as u64, at as u64), &vec![9; piece]);
                assert_eq!(placed, Placed::Continues);
                at += piece;
                while let Some((part, is_last)) = message.take_part() {
                    parts.push(part.len());
                    if is_last {
                        break;
                    }
                }
            }
            assert_eq!(parts.len(), len.div_ceil(PART_LEN_MAX), "{parts:?}");
            assert_eq!(parts.iter().sum::<usize>(), len);
            assert!(parts.iter().all(|part| *part <= PART_LEN_MAX));
        }
    }

    #[test]
    fn what_contradicts_or_is_too_far_ahead_is_not_kept() {
        let long = 10 * PART_LEN_MAX as u64;
        let mut message = Assembly::new(&head(long, 0));
        message.place(&head(long, 0), &[1; 100]);
        message.place(&head(long, 200), &[2; 100]);
        let lies = [
            (head(long - 1, 100), 10),
            (Head { priority: 8, ..head(long, 100) }, 10),
            (head(long, 50), 51),
            (head(long, 100), 101),
            (head(long, 150), 200),
            (head(long, 299), 2),
        ];
        for (lie, len) in lies {
            assert_eq!(message.place(&lie, &vec![3; len]), Placed::Malformed, "{lie:?}");
        }
        let far = head(long, 100 + PART_LEN_MAX as u64);
        assert_eq!(message.place(&far, &[4]), Placed::TooFar);
        assert_eq!((message.end(), message.early()), (100, (1, 100)));
    }
}
