//! [`Counting`]: what a path has lost, from what the probes of both ends count.
//!
//! ```text
//!   packets ------ 40 left -------- 90 left ----------->
//!   questions           n = 7            n = 8
//!   answers        7: 38 had come   8: 78 had come      of 50 the path has carried 40
//! ```
//!
//! A question leaves behind the packets that it counts, so one that overtakes some, or is
//! overtaken, makes one difference larger and the next smaller by as much.
//!
//! Invariants: at most [`ASKED_MAX`] questions are remembered; only an answer to a newer question
//! than before says anything.

use dacapo_base::Time;
use std::collections::VecDeque;

/// Questions whose answers may still say something.
const ASKED_MAX: usize = 64;

/// What had left for a path at some time, and what of it had come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// When this was asked.
    pub at: Time,
    /// Packets that had left.
    pub sent: u64,
    /// Bytes of them of which no controller holds any.
    pub uncontrolled_bytes: u64,
    /// Packets that had come.
    pub received: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counting {
    sent: u64,
    uncontrolled_bytes: u64,
    /// By the number of the question, the oldest first.
    asked: VecDeque<(u64, Counted)>,
    /// What the newest answer has said, and the number of its question.
    last: Option<(u64, Counted)>,
}

impl Counting {
    /// So much has left; `is_uncontrolled`: no controller holds it.
    #[inline]
    pub fn handle_sent(&mut self, packets: u64, bytes: u64, is_uncontrolled: bool) {
        self.sent += packets;
        self.uncontrolled_bytes += if is_uncontrolled { bytes } else { 0 };
    }

    /// Packets that have left.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// What the newest answer has said.
    pub fn last(&self) -> Counted {
        self.last.map(|(_, counted)| counted).unwrap_or_default()
    }

    /// A question is asked.
    pub fn note_asked(&mut self, now: Time, number: u64) {
        if self.asked.len() >= ASKED_MAX {
            self.asked.pop_front();
        }
        let (sent, uncontrolled_bytes) = (self.sent, self.uncontrolled_bytes);
        self.asked.push_back((number, Counted { at: now, sent, uncontrolled_bytes, received: 0 }));
    }

    /// It is answered: so many packets had come, in the low 32 bits of their number. What had left
    /// and come then.
    pub fn handle_answer(&mut self, number: u64, received: u32) -> Option<Counted> {
        let at = self.asked.iter().position(|(asked, _)| *asked == number)?;
        let (_, asked) = self.asked.drain(..=at).next_back()?;
        if self.last.is_some_and(|(newest, _)| newest > number) {
            return None;
        }
        let before = self.last.map_or(0, |(_, counted)| counted.received);
        let more = received.wrapping_sub(before as u32);
        // More than has left cannot have come, and nothing comes back.
        let more = u64::from(more).min(asked.sent.saturating_sub(before));
        let counted = Counted { received: before + more, ..asked };
        self.last = Some((number, counted));
        Some(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(it: &mut Counting, number: u64) {
        it.note_asked(Time::from_millis(number), number);
    }

    #[test]
    fn an_answer_says_what_had_left_and_come_when_it_was_asked() {
        let mut it = Counting::default();
        it.handle_sent(40, 4_000, true);
        ask(&mut it, 1);
        it.handle_sent(50, 5_000, false);
        ask(&mut it, 2);
        let at = Time::from_millis;
        let first = Counted { at: at(1), sent: 40, uncontrolled_bytes: 4_000, received: 38 };
        assert_eq!(it.handle_answer(1, 38), Some(first));
        let second = Counted { at: at(2), sent: 90, uncontrolled_bytes: 4_000, received: 78 };
        assert_eq!(it.handle_answer(2, 78), Some(second));
        assert_eq!(it.handle_answer(2, 78), None, "once");
        assert_eq!(it.handle_answer(9, 78), None, "to nothing");
    }

    #[test]
    fn answers_that_are_overtaken_or_lie_are_not_believed_and_numbers_go_on_behind_32_bits() {
        let mut it = Counting::default();
        it.handle_sent(100, 0, false);
        (1..=3).for_each(|number| ask(&mut it, number));
        assert_eq!(it.handle_answer(2, 4_000_000).unwrap().received, 100, "no more than has left");
        assert_eq!(it.handle_answer(1, 90), None, "an older question");
        assert_eq!(it.handle_answer(3, 20).unwrap().received, 100, "nothing comes back");
        it.handle_sent(u64::from(u32::MAX), 0, false);
        ask(&mut it, 4);
        let come = u64::from(u32::MAX) + 40;
        assert_eq!(it.handle_answer(4, come as u32).unwrap().received, come);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut it = Counting::default();
        (0..1_000).for_each(|number| ask(&mut it, number));
        assert_eq!(it.asked.len(), ASKED_MAX);
        assert_eq!(it.handle_answer(0, 0), None);
        assert!(it.handle_answer(999, 0).is_some());
        assert!(it.asked.is_empty(), "those before say nothing any more");
    }
}
