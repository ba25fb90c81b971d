//! [`Counting`]: what a path has lost and marked, from what the probes of both ends count.
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
//! What is missing at one answer may only have been overtaken by its question; what is missing at
//! the next one still is lost.
//!
//! How often it is asked depends on what leaves, see [`Counting::handle_left`].
//!
//! Invariants: at most [`ASKED_MAX`] questions are remembered; only an answer to a newer question
//! than before says anything; nothing is lost twice.

use crate::controller::Counts;
use dacapo_base::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// Questions whose answers may still say something.
const ASKED_MAX: usize = 64;

/// A question for so many packets is hardly noticed beside them.
const MANY: u64 = 16;

/// It is asked no more often.
const EVERY_MIN: Duration = Duration::from_millis(10);

/// And within this time at the latest, where a controller goes by the answers.
const EVERY_MAX: Duration = Duration::from_millis(40);

/// What had left for a path at some time, and what of it had come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// When this was asked.
    pub at: Time,
    /// Packets that had left, and their bytes.
    pub sent: u64,
    pub bytes: u64,
    /// Bytes of them of which no controller holds any.
    pub uncontrolled_bytes: u64,
    /// Packets of them that said that their sender hears marks of congestion.
    pub capable: u64,
    /// Packets that had come, and those of them that came with a mark.
    pub received: u64,
    pub marked: u64,
    /// Packets that were missing at an answer, and at the next one.
    pub lost: u64,
}

impl Counted {
    /// Of what had left no answer told yet before.
    fn missing(&self) -> u64 {
        self.sent - self.received
    }

    /// What is counted since `before`; the newer question and its answer took `rtt`.
    pub fn since(&self, before: &Self, rtt: Duration, one_way_ns: i64) -> Counts {
        let (sent, packets) = (self.sent - before.sent, self.received - before.received);
        let bytes = u128::from(self.bytes - before.bytes) * u128::from(packets);
        Counts {
            left_after: before.at,
            asked: self.at,
            packets,
            bytes: u64::try_from(bytes / u128::from(sent.max(1))).unwrap_or(u64::MAX),
            lost: self.lost - before.lost,
            marked: self.marked - before.marked,
            rtt,
            one_way_ns,
        }
    }
}

/// What a peer says has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// Packets, in the low 32 bits of their number.
    pub packets: u32,
    /// Those of them that came with a mark of congestion, in the low 24 bits of their number.
    pub marked: u32,
}

/// How many marked packets one answer tells apart.
const MARKED_RANGE: u32 = 1 << 24;

#[derive(Debug, Default)]
pub(crate) struct Counting {
    sent: u64,
    bytes: u64,
    uncontrolled_bytes: u64,
    capable: u64,
    /// How many packets have left since it was asked last.
    unasked: u64,
    asked_at: Time,
    /// By the number of the question, the oldest first.
    asked: VecDeque<(u64, Counted)>,
    /// What the newest answer has said, and the number of its question.
    last: Option<(u64, Counted)>,
}

impl Counting {
    /// So much has left; `is_uncontrolled`: no controller holds it.
    #[inline]
    pub fn handle_sent(&mut self, packets: u64, bytes: u64, is_uncontrolled: bool) {
        (self.sent, self.bytes) = (self.sent + packets, self.bytes + bytes);
        self.uncontrolled_bytes += if is_uncontrolled { bytes } else { 0 };
    }

    /// So many of what has left last said that their sender hears marks.
    #[inline]
    pub fn handle_capable(&mut self, packets: u64) {
        self.capable += packets;
    }

    /// So many packets that are to be heard of have left: within what time it is to be asked, where
    /// that is not known yet. After the first it is a round trip, and after [`MANY`] a quarter of
    /// it, by which a window that doubles has not grown far. Where a controller goes by it
    /// (`is_gone_by`) it is [`EVERY_MAX`] at most, and after [`MANY`] at once.
    pub fn handle_left(
        &mut self,
        now: Time,
        packets: u64,
        rtt: Duration,
        is_gone_by: bool,
    ) -> Option<Duration> {
        let before = self.unasked;
        self.unasked = before.saturating_add(packets);
        let is_many = match before {
            MANY.. => return None,
            _ if self.unasked >= MANY => true,
            0 => false,
            _ => return None,
        };
        let passed = now.since(self.asked_at);
        Some(match (is_gone_by, is_many) {
            (true, true) => EVERY_MIN.saturating_sub(passed),
            (true, false) => rtt.min(EVERY_MAX).max(EVERY_MIN),
            (false, true) => (rtt / 4).max(EVERY_MIN),
            (false, false) => rtt.max(EVERY_MIN),
        })
    }

    /// Whether the peer counts, and so says which packets came with a mark.
    pub fn is_answered(&self) -> bool {
        self.last.is_some()
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
        (self.unasked, self.asked_at) = (0, now);
        let counted = Counted {
            at: now,
            sent: self.sent,
            bytes: self.bytes,
            uncontrolled_bytes: self.uncontrolled_bytes,
            capable: self.capable,
            ..Counted::default()
        };
        self.asked.push_back((number, counted));
    }

    /// It is answered: what had left and come then.
    pub fn handle_answer(&mut self, number: u64, came: Came) -> Option<Counted> {
        let at = self.asked.iter().position(|(asked, _)| *asked == number)?;
        let (_, asked) = self.asked.drain(..=at).next_back()?;
        if self.last.is_some_and(|(newest, _)| newest > number) {
            return None;
        }
        let before = self.last();
        let more = came.packets.wrapping_sub(before.received as u32);
        // More than has left cannot have come, and nothing comes back.
        let more = u64::from(more).min(asked.sent.saturating_sub(before.received));
        let marked = came.marked.wrapping_sub(before.marked as u32) % MARKED_RANGE;
        let marked = before.marked + u64::from(marked).min(more);
        let mut counted = Counted { received: before.received + more, marked, ..asked };
        counted.lost = before.lost.max(counted.missing().min(before.missing()));
        self.last = Some((number, counted));
        Some(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(packets: u32) -> Came {
        Came { packets, marked: 0 }
    }

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
        assert!(!it.is_answered());
        let first = Counted {
            at: at(1),
            sent: 40,
            bytes: 4_000,
            uncontrolled_bytes: 4_000,
            received: 38,
            ..Counted::default()
        };
        assert_eq!(it.handle_answer(1, came(38)), Some(first));
        let second = Counted { at: at(2), sent: 90, bytes: 9_000, received: 78, lost: 2, ..first };
        assert_eq!(it.handle_answer(2, came(78)), Some(second));
        let counts = second.since(&first, Duration::ZERO, 7);
        assert_eq!((counts.left_after, counts.asked), (at(1), at(2)));
        assert_eq!((counts.packets, counts.bytes, counts.lost), (40, 4_000, 2));
        assert_eq!(it.handle_answer(2, came(78)), None, "once");
        assert_eq!(it.handle_answer(9, came(78)), None, "to nothing");
        assert!(it.is_answered());
    }

    #[test]
    fn marks_are_those_of_packets_that_have_come_and_go_on_behind_24_bits() {
        let mut it = Counting::default();
        let mut marked = |packets: u32, marked| {
            it.handle_sent(10, 0, false);
            it.handle_capable(10);
            ask(&mut it, packets.into());
            let counted = it.handle_answer(packets.into(), Came { packets, marked }).unwrap();
            assert_eq!(counted.capable, u64::from(packets));
            counted.marked
        };
        assert_eq!(marked(10, 0), 0);
        assert_eq!(marked(20, 7), 7);
        assert_eq!(marked(30, 100), 17, "no more than have come since");
        assert_eq!(marked(40, MARKED_RANGE + 20), 20, "the low bits count");
    }

    #[test]
    fn answers_that_are_overtaken_or_lie_are_not_believed_and_numbers_go_on_behind_32_bits() {
        let mut it = Counting::default();
        it.handle_sent(100, 0, false);
        (1..=3).for_each(|number| ask(&mut it, number));
        assert_eq!(
            it.handle_answer(2, came(4_000_000)).unwrap().received,
            100,
            "no more than has left"
        );
        assert_eq!(it.handle_answer(1, came(90)), None, "an older question");
        assert_eq!(it.handle_answer(3, came(20)).unwrap().received, 100, "nothing comes back");
        it.handle_sent(u64::from(u32::MAX), 0, false);
        ask(&mut it, 4);
        let all = u64::from(u32::MAX) + 40;
        assert_eq!(it.handle_answer(4, came(all as u32)).unwrap().received, all);
    }

    #[test]
    fn what_is_missing_at_two_answers_is_lost_once_and_what_comes_late_is_not() {
        let mut it = Counting::default();
        let mut lost = |number: u64, received| {
            it.handle_sent(10, 0, false);
            ask(&mut it, number);
            it.handle_answer(number, came(received)).unwrap().lost
        };
        assert_eq!(lost(1, 7), 0, "three may be on their way");
        assert_eq!(lost(2, 19), 1, "two were");
        assert_eq!(lost(3, 25), 1, "of the five at most one was missing before");
        assert_eq!(lost(4, 34), 5, "they are missing still, and one more");
        assert_eq!(lost(5, 44), 6);
        assert_eq!(lost(6, 55), 6, "one that was given up has come");
        assert_eq!(lost(7, 65), 6, "and is not lost again");
    }

    #[test]
    fn it_is_asked_after_what_leaves_and_sooner_after_much() {
        let (mut it, ms, at) = (Counting::default(), Duration::from_millis, Time::from_millis);
        let mut left =
            |packets, rtt, is_gone_by| it.handle_left(at(200), packets, ms(rtt), is_gone_by);
        assert_eq!(left(1, 80, false), Some(ms(80)));
        assert_eq!(left(14, 80, false), None);
        assert_eq!(left(1, 80, false), Some(ms(20)), "sixteen");
        assert_eq!(left(1_000, 80, false), None);
        for (packets, rtt, is_gone_by, wait) in [
            (45, 80, false, ms(20)),
            (1, 1, false, EVERY_MIN),
            (1, 80, true, EVERY_MAX),
            (1, 1, true, EVERY_MIN),
            (45, 80, true, ms(8)),
        ] {
            it.note_asked(at(198), 1);
            let waits = it.handle_left(at(200), packets, ms(rtt), is_gone_by);
            assert_eq!(waits, Some(wait), "{packets} {rtt} {is_gone_by}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut it = Counting::default();
        (0..1_000).for_each(|number| ask(&mut it, number));
        assert_eq!(it.asked.len(), ASKED_MAX);
        assert_eq!(it.handle_answer(0, came(0)), None);
        assert!(it.handle_answer(999, came(0)).is_some());
        assert!(it.asked.is_empty(), "those before say nothing any more");
    }
}
