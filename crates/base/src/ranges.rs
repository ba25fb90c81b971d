//! [`Ranges`]: a set of numbers, such as packets that are missing or bytes that are to be sent
//! again, as ranges.
//!
//! ```text
//!   . 3 4 . . 7 . 9 10 11        [3, 5) [7, 8) [9, 12)
//! ```
//!
//! Invariants: in order, none empty, at least one number between two; at most
//! [`Ranges::COUNT_MAX`].

use std::collections::VecDeque;
use std::ops::Range;

/// A set of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(VecDeque<Range<u64>>);

impl Ranges {
    /// The most ranges.
    pub const COUNT_MAX: usize = 4_096;

    /// Adds these numbers; nothing, where that would be one range too many.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.0.partition_point(|known| known.end < range.start);
        let last = self.0.partition_point(|known| known.start <= range.end);
        if first == last {
            if self.0.len() < Self::COUNT_MAX {
                self.0.insert(first, range);
            }
            return;
        }
        let end = self.0.get(last - 1).map_or(range.end, |known| known.end.max(range.end));
        if let Some(known) = self.0.get_mut(first) {
            *known = known.start.min(range.start)..end;
        }
        self.0.drain(first + 1..last);
    }

    /// Takes these numbers away; `each` gets those of them that were there.
    pub fn remove(&mut self, range: Range<u64>, mut each: impl FnMut(Range<u64>)) {
        if range.is_empty() {
            return;
        }
        let mut at = self.0.partition_point(|known| known.end <= range.start);
        while let Some(known) = self.0.get_mut(at).filter(|known| known.start < range.end) {
            let whole = known.clone();
            let (from, to) = (whole.start.max(range.start), whole.end.min(range.end));
            each(from..to);
            let (before, after) = (whole.start..from, to..whole.end);
            match (before.is_empty(), after.is_empty()) {
                (true, true) => drop(self.0.remove(at)),
                (false, true) => (*known, at) = (before, at + 1),
                (true, false) => (*known, at) = (after, at + 1),
                (false, false) => {
                    *known = before;
                    self.0.insert(at + 1, after);
                    at += 2;
                }
            }
        }
    }

    /// The ranges in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<u64>> {
        self.0.iter()
    }

    /// The first range.
    #[must_use]
    pub fn first(&self) -> Option<&Range<u64>> {
        self.0.front()
    }

    /// The last range.
    #[must_use]
    pub fn last(&self) -> Option<&Range<u64>> {
        self.0.back()
    }

    /// Whether there is no number in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of these numbers are in it, and there are any.
    #[must_use]
    pub fn covers(&self, range: &Range<u64>) -> bool {
        let at = self.0.partition_point(|known| known.end <= range.start);
        let known = self.0.get(at).filter(|known| known.start <= range.start);
        !range.is_empty() && known.is_some_and(|known| range.end <= known.end)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The numbers around `number`, which is not in the set, that are not either: from `low` to
    /// `high` at most.
    #[must_use]
    pub fn between(&self, number: u64, low: u64, high: u64) -> Range<u64> {
        let at = self.0.partition_point(|known| known.end <= number);
        let before = at.checked_sub(1).and_then(|at| self.0.get(at));
        let from = before.map_or(low, |known| known.end.max(low));
        from..self.0.get(at).map_or(high, |known| known.start.min(high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn ranges_are_a_set_of_numbers() {
        for seed in 0..300 {
            let random = &mut Random::from_number(seed);
            let (mut ranges, mut model) = (Ranges::default(), [false; 64]);
            for _ in 0..40 {
                let (one, other) = (random.below(65), random.below(65));
                let range = one.min(other)..one.max(other);
                let places = range.start as usize..range.end as usize;
                if random.chance(0.6) {
                    ranges.insert(range);
                    model[places].fill(true);
                } else {
                    let (mut gone, before) = ([false; 64], model);
                    model[places].fill(false);
                    ranges.remove(range, |part| {
                        gone[part.start as usize..part.end as usize].fill(true);
                    });
                    let told = (0..64).all(|at| gone[at] == (before[at] && !model[at]));
                    assert!(told, "seed {seed}");
                }
                let has = |place: u64| ranges.iter().any(|range| range.contains(&place));
                assert!((0..64).all(|place| has(place) == model[place as usize]), "seed {seed}");
                let list: Vec<&Range<u64>> = ranges.iter().collect();
                assert!(list.iter().all(|range| !range.is_empty()), "seed {seed}");
                assert!(list.windows(2).all(|two| two[0].end < two[1].start), "seed {seed}");
                assert_eq!(
                    (ranges.first(), ranges.last()),
                    (list.first().copied(), list.last().copied())
                );
            }
        }
    }

    #[test]
    fn more_ranges_than_the_bound_are_not_taken() {
        let mut ranges = Ranges::default();
        (0..10_000).for_each(|place| ranges.insert(2 * place..2 * place + 1));
        assert_eq!(ranges.iter().count(), Ranges::COUNT_MAX);
        ranges.insert(0..20_000);
        assert_eq!(ranges.iter().count(), 1);
        ranges.clear();
        assert!(ranges.is_empty());
    }

    #[test]
    fn between_ranges_is_what_is_not_in_the_set() {
        let mut holes = Ranges::default();
        holes.insert(3..5);
        holes.insert(8..9);
        assert_eq!(holes.between(6, 0, 50), 5..8);
        assert_eq!(holes.between(1, 0, 50), 0..3);
        assert_eq!(holes.between(30, 0, 50), 9..50);
        assert_eq!(Ranges::default().between(30, 2, 50), 2..50);
    }
}
