//! [`Ranges`]: stretches of the stream, in order and apart from each other.
//!
//! Invariant: no stretch is empty, and between two there is at least one byte.

use crate::wire::Span;

/// A set of numbers of bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Span>);

impl Ranges {
    /// The most stretches.
    pub const COUNT_MAX: usize = 4_096;

    /// Adds what lies in `span`.
    pub fn insert(&mut self, span: Span) {
        if span.left >= span.right {
            return;
        }
        let first = self.0.partition_point(|known| known.right < span.left);
        let last = self.0.partition_point(|known| known.left <= span.right);
        let mut merged = span;
        for known in self.0.get(first..last).unwrap_or_default() {
            merged.left = merged.left.min(known.left);
            merged.right = merged.right.max(known.right);
        }
        if first < last || self.0.len() < Self::COUNT_MAX {
            self.0.splice(first..last, [merged]);
        }
    }

    /// Takes away what lies in `span`.
    pub fn remove(&mut self, span: Span) {
        if span.left >= span.right {
            return;
        }
        let first = self.0.partition_point(|known| known.right <= span.left);
        let last = self.0.partition_point(|known| known.left < span.right);
        let cut = self.0.get(first..last).unwrap_or_default();
        let left = cut.first().map(|known| Span { left: known.left, right: span.left });
        let right = cut.last().map(|known| Span { left: span.right, right: known.right });
        let rests = [left, right].into_iter().flatten().filter(|rest| rest.left < rest.right);
        let rests: Vec<Span> = rests.collect();
        self.0.splice(first..last, rests);
    }

    /// The first stretch.
    #[must_use]
    pub fn first(&self) -> Option<Span> {
        self.0.first().copied()
    }

    /// The stretches in their order.
    pub fn iter(&self) -> impl Iterator<Item = Span> {
        self.0.iter().copied()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn ranges_are_a_set_of_numbers() {
        for seed in 0..300 {
            let random = &mut Random::from_number(seed);
            let (mut ranges, mut model) = (Ranges::default(), [false; 64]);
            for _ in 0..40 {
                let (one, other) = (random.below(65), random.below(65));
                let span = Span { left: one.min(other), right: one.max(other) };
                let is_added = random.chance(0.6);
                if is_added {
                    ranges.insert(span)
                } else {
                    ranges.remove(span)
                }
                model[span.left as usize..span.right as usize].fill(is_added);
                let has = |place: u64| ranges.iter().any(|s| s.left <= place && place < s.right);
                assert!((0..64).all(|place| has(place) == model[place as usize]), "seed {seed}");
                let list: Vec<Span> = ranges.iter().collect();
                assert!(list.iter().all(|span| span.left < span.right), "seed {seed}");
                assert!(list.windows(2).all(|two| two[0].right < two[1].left), "seed {seed}");
            }
        }
    }

    #[test]
    fn more_stretches_than_the_bound_are_not_taken() {
        let mut ranges = Ranges::default();
        for place in 0..10_000 {
            ranges.insert(Span { left: 2 * place, right: 2 * place + 1 });
        }
        assert_eq!(ranges.iter().count(), Ranges::COUNT_MAX);
        ranges.insert(Span { left: 0, right: 20_000 });
        assert_eq!(ranges.iter().count(), 1);
    }
}
