//! [`Recent`]: which of the last numbers have come.
//!
//! A bitmap that moves with the largest number (RFC 4303, section 3.4.3, against duplicates only).
//!
//! ```text
//!             next - WINDOW                     next         next + NEAR
//!   . . stale | 1 1 0 1 1 1 0 … 1 1 1 1 0 1 1 1 |  new        |  far: asks for a second
//! ```
//!
//! One packet far ahead may have been altered, so it moves nothing until another one near it comes
//! ([`Outliers`]).
//!
//! Invariants: a number is new once; nothing is allocated, and a call takes no more steps than the
//! bitmap has words, however far the window moves.

use crate::beginning::{Beginning, JOIN_NEAR};
use crate::outliers::{NEAR, Outliers};

/// How many numbers are remembered: those before the next one.
pub(super) const WINDOW: u64 = 8_192;

const WORD: u64 = u64::BITS as u64;
const WORDS: usize = (WINDOW / WORD) as usize;

/// What one or several numbers in a row mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Was {
    /// They had not come, and have now.
    New,
    /// All had come.
    Repeated,
    /// They are too far back to say.
    Stale,
    /// It is far ahead, and no other has confirmed it.
    Beyond,
    /// Not the same holds for all.
    Mixed,
}

#[derive(Debug)]
pub(super) struct Recent {
    /// One more than the largest number that is believed.
    next: u64,
    /// A bit for each number, in the place that it has modulo [`WINDOW`].
    came: [u64; WORDS],
    /// Numbers far ahead that another one may confirm.
    outliers: Outliers,
    beginning: Beginning,
}

impl Recent {
    pub fn new() -> Self {
        let beginning = Beginning::default();
        Self { next: 0, came: [0; WORDS], outliers: Outliers::default(), beginning }
    }

    /// Whatever comes first says where the numbers are.
    pub fn join(&mut self) {
        *self = Self { next: JOIN_NEAR, beginning: Beginning::Nothing, ..Self::new() };
    }

    pub fn next(&self) -> u64 {
        self.next
    }

    /// Takes `count` numbers, at least one and less than [`WINDOW`], that begin with this one.
    pub fn take(&mut self, number: u64, count: usize) -> Was {
        let end = number.saturating_add(count as u64);
        if number == self.next && self.beginning == Beginning::Known {
            // Nearly always.
            self.note(number, end);
            return Was::New;
        }
        if let Some(was) = self.find(number, end) {
            return was;
        }
        let was = self.was(number, end);
        if was == Was::New {
            self.advance(number);
            self.note(number, end);
        }
        was
    }

    /// Moves the window where numbers that are somewhere else say so; what they are where they are
    /// not believed.
    fn find(&mut self, number: u64, end: u64) -> Option<Was> {
        if self.beginning == Beginning::Nothing {
            (self.next, self.beginning) = (number, Beginning::Begun);
        } else if self.is_far(number, end) {
            // Those of a train confirm each other.
            if end - number == 1 && !self.outliers.confirm(number) {
                return Some(Was::Beyond);
            }
            self.go_back(end);
        } else {
            self.beginning = Beginning::Known;
        }
        None
    }

    /// Numbers that are new have come; those from the next one on follow it.
    fn note(&mut self, number: u64, end: u64) {
        parts(number, end).for_each(|(word, mask)| self.came[word] |= mask);
        self.next = self.next.max(end);
        self.outliers.clear();
    }

    /// Whether numbers are not where the window is: far ahead, or, when it has only begun, behind
    /// it.
    fn is_far(&self, number: u64, end: u64) -> bool {
        let is_behind = self.beginning == Beginning::Begun && end <= self.floor();
        is_behind || number.saturating_sub(self.next) > NEAR
    }

    /// The window begun too far ahead: it ends here.
    fn go_back(&mut self, end: u64) {
        if end < self.next {
            (self.next, self.came) = (end, [0; WORDS]);
        }
    }

    /// The least number of which it is known whether it came.
    fn floor(&self) -> u64 {
        self.next.saturating_sub(WINDOW)
    }

    fn was(&self, number: u64, end: u64) -> Was {
        let floor = self.floor();
        if number < floor {
            return if end <= floor { Was::Stale } else { Was::Mixed };
        }
        let known = end.min(self.next);
        let mut seen = parts(number, known).map(|(word, mask)| (self.came[word] & mask, mask));
        if number >= known || seen.clone().all(|(seen, _)| seen == 0) {
            return Was::New;
        }
        let is_whole = known == end && seen.all(|(seen, mask)| seen == mask);
        if is_whole { Was::Repeated } else { Was::Mixed }
    }

    /// The numbers from the next one to before `number` have not come.
    fn advance(&mut self, number: u64) {
        let Some(by) = number.checked_sub(self.next) else { return };
        if by >= WINDOW {
            self.came = [0; WORDS];
        } else {
            parts(self.next, number).for_each(|(word, mask)| self.came[word] &= !mask);
        }
        self.next = number;
    }
}

/// The words in which the numbers from `from` to before `to` lie, fewer than [`WINDOW`], each with
/// their bits.
fn parts(from: u64, to: u64) -> impl Iterator<Item = (usize, u64)> + Clone {
    let words = if from < to { from / WORD..to.div_ceil(WORD) } else { 0..0 };
    words.map(move |word| {
        let first = from.saturating_sub(word * WORD).min(WORD);
        let last = (to - word * WORD).min(WORD);
        let mask = (u64::MAX << first) & (u64::MAX >> (WORD - last));
        ((word % WORDS as u64) as usize, mask)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;
    use std::collections::HashSet;

    /// One by one.
    fn take_all(recent: &mut Recent, numbers: impl IntoIterator<Item = u64>) -> Vec<Was> {
        numbers.into_iter().map(|number| recent.take(number, 1)).collect()
    }

    #[test]
    fn each_number_is_new_once_in_any_order() {
        let mut recent = Recent::new();
        let came = take_all(&mut recent, [0, 3, 1, 3, 0, 2, 4]);
        let (new, again) = (Was::New, Was::Repeated);
        assert_eq!(came, [new, new, new, again, again, new, new]);
    }

    #[test]
    fn what_is_older_than_the_window_is_stale() {
        let mut recent = Recent::new();
        assert_eq!(recent.take(9, 1), Was::New);
        assert_eq!(recent.take(10, WINDOW as usize - 2), Was::New);
        assert_eq!(recent.next(), WINDOW + 8);
        assert_eq!(take_all(&mut recent, [7, 8, 9]), [Was::Stale, Was::New, Was::Repeated]);
        assert_eq!(recent.take(6, 2), Was::Stale);
        assert_eq!(recent.take(7, 2), Was::Mixed, "one is too old, one had come");
    }

    #[test]
    fn one_altered_number_moves_nothing_however_often_it_comes() {
        for altered in [NEAR + 6, 1 << 20, 1 << 31] {
            let mut recent = Recent::new();
            take_all(&mut recent, 0..5);
            for _ in 0..3 {
                assert_eq!(recent.take(altered, 1), Was::Beyond, "{altered}");
            }
            assert_eq!(recent.next(), 5);
            assert_eq!(take_all(&mut recent, [5, 6, 4]), [Was::New, Was::New, Was::Repeated]);
        }
    }

    #[test]
    fn a_second_one_near_it_is_believed_and_moves_the_window() {
        let mut recent = Recent::new();
        take_all(&mut recent, 0..5);
        assert_eq!(take_all(&mut recent, [90_000, 90_003]), [Was::Beyond, Was::New]);
        assert_eq!(recent.next(), 90_004);
        assert_eq!(
            take_all(&mut recent, [90_001, 90_003, 4]),
            [Was::New, Was::Repeated, Was::Stale]
        );
        assert_eq!(recent.take(200_000, 2), Was::New, "a train is several");
    }

    #[test]
    fn after_a_gap_packets_and_copies_of_others_come_in_turn() {
        let mut recent = Recent::new();
        take_all(&mut recent, 0..5);
        let behind = [0, 1_000, 2_000, 3_000];
        let turn = (20_000..20_010).flat_map(|it| behind.map(|behind| it - behind));
        let came = take_all(&mut recent, turn);
        assert_eq!(came.iter().position(|it| *it == Was::New), Some(4), "the second turn");
        assert!(came[4..].iter().all(|it| *it == Was::New), "{came:?}");
    }

    #[test]
    fn who_joins_begins_where_packets_are_whatever_the_first_one_says() {
        for first in [1 << 20, 400, 70_001, 90_000] {
            let mut recent = Recent::new();
            recent.join();
            let near = |it: u64| JOIN_NEAR + it;
            assert_eq!(recent.take(near(first), 1), Was::New);
            let came = take_all(&mut recent, (70_000..70_004).map(near));
            assert_eq!(came.last(), Some(&Was::New), "the first says {first}: {came:?}");
            assert!(recent.next().abs_diff(near(70_004)) < 25_000, "{first}");
            assert_eq!(recent.beginning, Beginning::Known, "{first}");
        }
    }

    #[test]
    fn a_run_is_what_its_numbers_are_one_by_one() {
        for seed in 0..200 {
            let mut random = Random::from_number(seed);
            let (mut recent, mut known) = (Recent::new(), HashSet::new());
            let mut at = 0;
            for _ in 0..2_000 {
                at += random.below(200);
                let number = at.saturating_sub(random.below(9_000));
                let count = 1 + random.below(60);
                let floor = recent.floor();
                let numbers = number..number + count;
                let new = numbers.clone().filter(|it| !known.contains(it)).count() as u64;
                let stale = numbers.clone().filter(|it| *it < floor).count() as u64;
                let is_far = count == 1 && number > recent.next() + NEAR;
                let was = recent.take(number, count as usize);
                let expected = match (stale, new) {
                    (0, 0) => Was::Repeated,
                    (stale, _) if stale == count => Was::Stale,
                    (0, new) if new == count => Was::New,
                    _ => Was::Mixed,
                };
                let is_beyond = is_far && was == Was::Beyond;
                assert!(was == expected || is_beyond, "seed {seed}: {numbers:?}: {was:?}");
                if was == Was::New {
                    known.extend(numbers);
                }
            }
        }
    }
}
