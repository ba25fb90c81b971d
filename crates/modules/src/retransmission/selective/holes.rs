//! [`Holes`]: numbers that are missing among others, as ranges.
//!
//! ```text
//!   . 3 4 . . 7 . 9 10 11        [3, 5) [7, 8) [9, 12)
//! ```
//!
//! Invariants: in order, none empty, none overlaps another.

use std::collections::VecDeque;
use std::ops::Range;

#[derive(Debug, Default)]
pub(super) struct Holes(VecDeque<Range<u64>>);

impl Holes {
    /// These are missing, too; they are behind all that are known.
    pub fn add(&mut self, range: Range<u64>) {
        debug_assert!(self.0.back().is_none_or(|last| last.end <= range.start));
        if range.is_empty() {
            return;
        }
        match self.0.back_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end,
            None => self.0.push_back(range),
        }
    }

    /// These are missing no longer; `each` gets those of them that were.
    pub fn remove(&mut self, range: &Range<u64>, mut each: impl FnMut(Range<u64>)) {
        let mut at = self.0.partition_point(|hole| hole.end <= range.start);
        while let Some(hole) = self.0.get_mut(at).filter(|hole| hole.start < range.end) {
            let whole = hole.clone();
            let (from, to) = (whole.start.max(range.start), whole.end.min(range.end));
            each(from..to);
            let (before, after) = (whole.start..from, to..whole.end);
            match (before.is_empty(), after.is_empty()) {
                (true, true) => drop(self.0.remove(at)),
                (false, true) => (*hole, at) = (before, at + 1),
                (true, false) => (*hole, at) = (after, at + 1),
                (false, false) => {
                    *hole = before;
                    self.0.insert(at + 1, after);
                    at += 2;
                }
            }
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<u64>> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// What is there around `number` between two holes, where `number` is in none: from `low` to
    /// `high` at most.
    pub fn between(&self, number: u64, low: u64, high: u64) -> Range<u64> {
        let at = self.0.partition_point(|hole| hole.end <= number);
        let before = at.checked_sub(1).and_then(|at| self.0.get(at));
        let from = before.map_or(low, |hole| hole.end.max(low));
        from..self.0.get(at).map_or(high, |hole| hole.start.min(high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ranges: &[Range<u64>]) -> Holes {
        let mut holes = Holes::default();
        ranges.iter().for_each(|range| holes.add(range.clone()));
        holes
    }

    fn removed(holes: &mut Holes, range: Range<u64>) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        holes.remove(&range, |part| all.push((part.start, part.end)));
        all
    }

    fn all(holes: &Holes) -> Vec<(u64, u64)> {
        holes.iter().map(|hole| (hole.start, hole.end)).collect()
    }

    #[test]
    fn what_is_removed_is_told_and_splits_and_shortens() {
        let mut holes = of(&[3..5, 7..8, 9..20]);
        assert_eq!(removed(&mut holes, 0..3), []);
        assert_eq!(removed(&mut holes, 4..12), [(4, 5), (7, 8), (9, 12)]);
        assert_eq!(removed(&mut holes, 14..15), [(14, 15)]);
        assert_eq!(all(&holes), [(3, 4), (12, 14), (15, 20)]);
        assert_eq!(removed(&mut holes, 0..100), [(3, 4), (12, 14), (15, 20)]);
        assert!(holes.is_empty());
    }

    #[test]
    fn what_follows_at_once_is_one() {
        let mut holes = of(&[3..5, 5..7, 7..7]);
        assert_eq!(all(&holes), [(3, 7)]);
        holes.clear();
        assert!(holes.is_empty());
    }

    #[test]
    fn between_holes_is_what_has_come() {
        let holes = of(&[3..5, 8..9]);
        assert_eq!(holes.between(6, 0, 50), 5..8);
        assert_eq!(holes.between(1, 0, 50), 0..3);
        assert_eq!(holes.between(30, 0, 50), 9..50);
        assert_eq!(Holes::default().between(30, 2, 50), 2..50);
    }
}
