//! [`UnitTracker`]: what became of every unit number at the receiver.
//!
//! The account behind the ledger: each number is open until it is passed on or booked lost, once
//! and for all.
//!
//! ```text
//!              floor
//!    …closed…   |  closed  open  open  closed        the window above the floor
//! ```
//!
//! Invariants: every number below the floor is closed; the window is at most [`WINDOW`] long: what
//! falls behind it is booked lost; a number is closed once.

use std::collections::VecDeque;
use std::ops::Range;

/// How many numbers may lie between the oldest open one and the newest.
pub(crate) const WINDOW: u64 = 65_536;

/// How many lost numbers are remembered, to tell a unit that comes after all from a repeated one.
const MEMORY: usize = 4_096;

/// What a number that comes means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accept {
    /// It is open: pass the unit on, then close it.
    New,
    /// It was passed on before.
    Duplicate,
    /// It was booked lost before.
    AfterLost,
    /// No sender is that far ahead.
    Absurd,
}

#[derive(Debug, Default)]
pub(crate) struct UnitTracker {
    floor: u64,
    closed: VecDeque<bool>,
    lost: VecDeque<u64>,
}

impl UnitTracker {
    /// Every number below this one is closed.
    #[inline]
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// One more than the largest number that came.
    #[inline]
    pub fn seen(&self) -> u64 {
        self.floor + self.closed.len() as u64
    }

    pub fn accept(&self, number: u64) -> Accept {
        let Some(place) = number.checked_sub(self.floor) else {
            let lost = self.lost.binary_search(&number).is_ok();
            return if lost { Accept::AfterLost } else { Accept::Duplicate };
        };
        if place >= 1 << 27 {
            return Accept::Absurd;
        }
        match self.closed.get(place as usize) {
            Some(true) => Accept::Duplicate,
            _ => Accept::New,
        }
    }

    /// Closes an accepted number. What falls behind the window is booked lost: the ranges.
    #[inline]
    pub fn close(&mut self, number: u64, lost: &mut Vec<Range<u64>>) {
        if number == self.floor && self.closed.is_empty() {
            // What comes in order, nearly always.
            self.floor += 1;
            return;
        }
        self.close_in_window(number, lost);
    }

    fn close_in_window(&mut self, number: u64, lost: &mut Vec<Range<u64>>) {
        let lowest = number.saturating_add(1).saturating_sub(WINDOW);
        self.settle(lowest, lost);
        while self.seen() <= number {
            self.closed.push_back(false);
        }
        if let Some(slot) = self.closed.get_mut((number - self.floor) as usize) {
            *slot = true;
        }
        self.raise();
    }

    /// Books everything that is open below `to` as lost: the ranges.
    pub fn settle(&mut self, to: u64, lost: &mut Vec<Range<u64>>) {
        while self.floor < to {
            match self.closed.pop_front() {
                Some(true) => self.floor += 1,
                Some(false) => self.book_lost(self.floor + 1, lost),
                None => self.book_lost(to, lost),
            }
        }
        self.raise();
    }

    fn book_lost(&mut self, end: u64, lost: &mut Vec<Range<u64>>) {
        let range = self.floor..end;
        for number in range.clone().rev().take(MEMORY).collect::<Vec<_>>().into_iter().rev() {
            if self.lost.len() >= MEMORY {
                self.lost.pop_front();
            }
            self.lost.push_back(number);
        }
        self.floor = end;
        match lost.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => lost.push(range),
        }
    }

    #[inline]
    fn raise(&mut self) {
        while self.closed.front() == Some(&true) {
            self.closed.pop_front();
            self.floor += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;
    use std::collections::BTreeSet;

    #[test]
    fn every_number_is_closed_once_whatever_the_order() {
        for seed in 0..200 {
            let mut random = Random::from_number(seed);
            let mut tracker = UnitTracker::default();
            let (mut passed, mut lost) = (BTreeSet::new(), Vec::new());
            for _ in 0..3_000 {
                let number = (tracker.seen() + random.below(6)).saturating_sub(random.below(40));
                match tracker.accept(number) {
                    Accept::New => {
                        assert!(passed.insert(number), "seed {seed}: {number} passed twice");
                        tracker.close(number, &mut lost);
                    }
                    Accept::Duplicate => assert!(passed.contains(&number), "seed {seed}"),
                    Accept::AfterLost => assert!(!passed.contains(&number), "seed {seed}"),
                    Accept::Absurd => panic!("seed {seed}"),
                }
                if random.chance(0.01) {
                    tracker.settle(tracker.floor() + random.below(10), &mut lost);
                }
            }
            let end = tracker.seen() + 5;
            tracker.settle(end, &mut lost);
            let lost: BTreeSet<u64> = lost.into_iter().flatten().collect();
            assert!(passed.is_disjoint(&lost), "seed {seed}");
            assert_eq!(passed.len() + lost.len(), end as usize, "seed {seed}");
        }
    }

    #[test]
    fn the_floor_rises_over_all_that_is_closed() {
        let (mut tracker, mut lost) = (UnitTracker::default(), Vec::new());
        for (number, floor) in [(1, 0), (2, 0), (0, 3), (5, 3)] {
            tracker.close(number, &mut lost);
            assert_eq!(tracker.floor(), floor, "{number}");
        }
        tracker.settle(5, &mut lost);
        assert_eq!((tracker.floor(), tracker.seen()), (6, 6));
        assert_eq!(lost.into_iter().flatten().collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn a_far_number_books_what_falls_behind_the_window() {
        let mut tracker = UnitTracker::default();
        let mut lost = Vec::new();
        tracker.close(3, &mut lost);
        tracker.close(WINDOW + 9, &mut lost);
        assert_eq!(lost, [0..3, 4..10]);
        assert_eq!(tracker.accept(1 << 40), Accept::Absurd);
        assert_eq!(tracker.accept(2), Accept::AfterLost);
        assert_eq!(tracker.accept(3), Accept::Duplicate);
    }
}
