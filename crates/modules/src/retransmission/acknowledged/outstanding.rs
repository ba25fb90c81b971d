//! [`Outstanding`]: what has left and is not known to have come, packet by packet.
//!
//! ```text
//!   first               high            next
//!   | . + + . . + + + + |               |        + came   . a hole
//! ```
//!
//! A packet is lost when one that left no earlier has come, and an answer is overdue by as much as
//! packets may overtake each other (RFC 8985).
//!
//! Invariants: `holes` are the numbers from `first` to `high` that have not come; nothing from
//! `high` on has.

use dacapo_base::{Ranges, Time, earlier};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// How a packet left last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub sent: Time,
    /// How many times it was sent again.
    pub attempt: u8,
    has_come: bool,
    /// It is lost, and has not been sent again.
    is_lost: bool,
    len: u16,
}

/// What an acknowledgement says that was not known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    pub packets: u64,
    pub bytes: u64,
    /// When the newest of it left.
    pub newest: Option<Time>,
    /// How many were sent again for nothing.
    pub spurious: u64,
}

impl Heard {
    /// This has come now, `now`; one that was sent again and answered within less than any `round`
    /// trip came of the time before.
    fn note(&mut self, slot: &mut Slot, now: Time, round: Duration) {
        slot.has_come = true;
        self.packets += 1;
        self.bytes += u64::from(slot.len);
        if slot.attempt == 0 || now.since(slot.sent) >= round {
            self.newest = self.newest.max(Some(slot.sent));
        } else {
            self.spurious += 1;
        }
    }

    /// So is this.
    pub fn add(&mut self, more: &Self) {
        self.packets += more.packets;
        self.bytes += more.bytes;
        self.newest = self.newest.max(more.newest);
        self.spurious += more.spurious;
    }
}

/// What looking for losses has found besides them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// When more will be lost, if nothing comes.
    pub due: Option<Time>,
    /// When the newest of what is lost left.
    pub left: Option<Time>,
}

#[derive(Debug, Default)]
pub(super) struct Outstanding {
    first: u64,
    slots: VecDeque<Slot>,
    high: u64,
    holes: Ranges,
}

impl Outstanding {
    /// The first that has not come.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The first that has not left.
    pub fn next(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// The next packet leaves `now`.
    pub fn push(&mut self, now: Time, len: usize) {
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        let slot = Slot { sent: now, attempt: 0, has_come: false, is_lost: false, len };
        self.slots.push_back(slot);
    }

    /// How a packet left that is not known to have come.
    pub fn get(&self, number: u64) -> Option<&Slot> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.slots.get(at).filter(|slot| !slot.has_come)
    }

    /// The last that has not come.
    pub fn last(&self) -> Option<u64> {
        let next = self.next();
        if self.high < next {
            return Some(next - 1);
        }
        self.holes.last().map(|hole| hole.end - 1)
    }

    /// All before `number` has come, which is no more than has left.
    pub fn acknowledge_to(&mut self, number: u64, now: Time, round: Duration) -> Heard {
        let heard = self.acknowledge(self.first..number, now, round);
        while self.first < number && self.slots.pop_front().is_some() {
            self.first += 1;
        }
        heard
    }

    /// These have come; what of them never left, or is known, counts nothing.
    pub fn acknowledge(&mut self, range: Range<u64>, now: Time, round: Duration) -> Heard {
        let range = range.start.max(self.first)..range.end.min(self.next());
        let mut heard = Heard::default();
        if range.is_empty() {
            return heard;
        }
        let (first, slots) = (self.first, &mut self.slots);
        let mut note = |part: Range<u64>| {
            let places = (part.start - first) as usize..(part.end - first) as usize;
            slots.range_mut(places).for_each(|slot| heard.note(slot, now, round));
        };
        self.holes.remove(range.clone(), &mut note);
        if range.end > self.high {
            let from = range.start.max(self.high);
            note(from..range.end);
            self.holes.insert(self.high..from);
            self.high = range.end;
        }
        heard
    }

    /// Finds what is lost and was not known to be: it left no later than `newest`, which has come,
    /// and `wait` ago.
    pub fn find_lost(
        &mut self,
        now: Time,
        newest: Time,
        wait: Duration,
        lost: &mut Vec<Range<u64>>,
    ) -> Found {
        let mut found = Found::default();
        let (first, slots) = (self.first, &mut self.slots);
        for number in self.holes.iter().cloned().flatten() {
            let slot = slots.get_mut((number - first) as usize);
            let Some(slot) = slot.filter(|slot| !slot.is_lost && slot.sent <= newest) else {
                continue;
            };
            if slot.sent + wait > now {
                found.due = earlier(found.due, Some(slot.sent + wait));
                continue;
            }
            slot.is_lost = true;
            found.left = found.left.max(Some(slot.sent));
            match lost.last_mut().filter(|range| range.end == number) {
                Some(range) => range.end += 1,
                None => lost.push(number..number + 1),
            }
        }
        found
    }

    /// Finds whether the first is lost that has not come, and was not known to be: a packet with a
    /// later number has come that left no earlier. Then all behind it count as lost, for nobody
    /// keeps them.
    pub fn find_first_lost(
        &mut self,
        (newest, number): (Time, u64),
        lost: &mut Vec<Range<u64>>,
    ) -> Found {
        let first = self.slots.front().filter(|_| self.first < number);
        let first = first.filter(|slot| !slot.is_lost && slot.sent <= newest);
        let left = first.map(|slot| slot.sent);
        if left.is_some() {
            self.slots.iter_mut().for_each(|slot| slot.is_lost = true);
            lost.push(self.first..self.next());
        }
        Found { due: None, left }
    }

    /// These leave again `now`.
    pub fn sent_again(&mut self, range: &Range<u64>, now: Time) {
        for number in range.clone() {
            let at = number.checked_sub(self.first).map(|at| at as usize);
            if let Some(slot) = at.and_then(|at| self.slots.get_mut(at)) {
                (slot.sent, slot.attempt) = (now, slot.attempt.saturating_add(1));
                slot.is_lost = false;
            }
        }
    }

    /// Forgets what has left; numbers go on.
    pub fn clear(&mut self) {
        self.first = self.next();
        self.high = self.first;
        self.slots.clear();
        self.holes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_millis(10);

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Ten packets, a millisecond apart.
    fn ten() -> Outstanding {
        let mut it = Outstanding::default();
        (0..10).for_each(|at| it.push(ms(at), 100));
        it
    }

    fn lost(it: &mut Outstanding, now: u64, newest: u64) -> (Vec<(u64, u64)>, Option<Time>) {
        let mut lost = Vec::new();
        let due = it.find_lost(ms(now), ms(newest), ROUND, &mut lost).due;
        (lost.into_iter().map(|range| (range.start, range.end)).collect(), due)
    }

    #[test]
    fn what_came_counts_once() {
        let mut it = ten();
        let heard = it.acknowledge(4..6, ms(20), ROUND);
        assert_eq!((heard.packets, heard.bytes, heard.newest), (2, 200, Some(ms(5))));
        assert_eq!(it.acknowledge(3..7, ms(20), ROUND).packets, 2);
        assert_eq!(it.acknowledge_to(5, ms(20), ROUND).packets, 3);
        assert_eq!((it.first(), it.next(), it.len()), (5, 10, 5));
        assert_eq!(it.acknowledge(0..900, ms(20), ROUND).packets, 3, "no more than left");
        assert_eq!((it.last(), it.acknowledge(5..10, ms(20), ROUND).packets), (None, 0));
        it.acknowledge_to(10, ms(20), ROUND);
        assert_eq!(it.len(), 0);
    }

    #[test]
    fn a_hole_is_lost_when_an_answer_is_overdue() {
        let mut it = ten();
        assert_eq!(lost(&mut it, 100, 5), (vec![], None), "nothing that left later has come");
        it.acknowledge(3..5, ms(20), ROUND);
        it.acknowledge(6..7, ms(20), ROUND);
        assert_eq!(lost(&mut it, 11, 6), (vec![(0, 2)], Some(ms(12))));
        assert_eq!(lost(&mut it, 15, 6), (vec![(2, 3), (5, 6)], None), "each once");
        it.sent_again(&(0..2), ms(15));
        assert_eq!(lost(&mut it, 15, 6), (vec![], None), "they left later than what came");
        assert_eq!(it.get(1).map(|slot| (slot.sent, slot.attempt)), Some((ms(15), 1)));
        assert_eq!(lost(&mut it, 24, 15), (vec![], Some(ms(25))));
        assert_eq!(lost(&mut it, 25, 15), (vec![(0, 2)], None), "lost again");
        assert_eq!(it.last(), Some(9));
    }

    #[test]
    fn an_answer_that_is_too_soon_is_one_to_the_time_before() {
        let mut it = ten();
        it.acknowledge(1..2, ms(11), ROUND);
        it.sent_again(&(0..1), ms(12));
        assert_eq!(it.acknowledge_to(2, ms(13), ROUND).newest, None);
        it.sent_again(&(2..3), ms(13));
        assert_eq!(it.acknowledge_to(3, ms(23), ROUND).newest, Some(ms(13)));
    }

    #[test]
    fn numbers_go_on_when_all_is_forgotten() {
        let mut it = ten();
        it.acknowledge(4..6, ms(20), ROUND);
        it.clear();
        assert_eq!((it.first(), it.next(), it.last()), (10, 10, None));
        it.push(ms(30), 1);
        assert_eq!(it.acknowledge(10..11, ms(40), ROUND).packets, 1);
    }

    #[test]
    fn the_first_is_lost_with_all_behind_it_when_a_later_one_came_that_left_no_earlier() {
        let mut it = ten();
        it.acknowledge_to(3, ms(20), ROUND);
        let mut find = |newest: u64, number| {
            let mut lost = Vec::new();
            let left = it.find_first_lost((ms(newest), number), &mut lost).left;
            (lost.into_iter().map(|it| (it.start, it.end)).collect::<Vec<_>>(), left)
        };
        assert_eq!(find(9, 3), (vec![], None), "it is not behind it");
        assert_eq!(find(2, 7), (vec![], None), "it left before");
        assert_eq!(find(5, 5), (vec![(3, 10)], Some(ms(3))));
        assert_eq!(find(6, 6), (vec![], None), "known");
        it.sent_again(&(3..10), ms(30));
        let mut lost = Vec::new();
        it.find_first_lost((ms(9), 9), &mut lost);
        assert!(lost.is_empty(), "that was under way before");
        it.find_first_lost((ms(30), 9), &mut lost);
        assert_eq!(lost.into_iter().flatten().count(), 7);
    }
}
