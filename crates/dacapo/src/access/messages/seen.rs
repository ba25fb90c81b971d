//! Decoder: [`Seen`], the numbers of messages that have begun to come.
//!
//! ```text
//!          <------------ SEEN_LEN ------------>
//!   old    | 1 0 1 1 1 1 0 … 1 1 1 0 1 1 1 1 1 |  new ones move it
//!                ^ never came: missed             ^ newest
//! ```
//!
//! The window of RFC 4303, section 3.4.3, over numbers of messages: what is behind it is old. A
//! sender numbers messages when they begin, so the window is as wide as what a flow may reorder.
//!
//! A number far ahead may be a wrong one, after which the window would be ahead of all that is
//! right. So a jump of more than [`JUMP_MAX`] is taken only when the numbers of [`DOUBTFUL_MAX`]
//! units before, one after the other, were near it; and what the very first one says holds only
//! until one that is behind its window says otherwise, or another in it confirms it.
//!
//! It is no safeguard against who lies all the time.
//!
//! Invariant: once two have agreed where the window is, a number is new once.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

/// Numbers that are told apart.
pub const SEEN_LEN: u64 = 1_024;

/// So far ahead of the newest a number is believed at once: far less than the window, so that those
/// which are right are still in it when this one was wrong.
pub const JUMP_MAX: u64 = SEEN_LEN / 4;

/// So many near each other that are too far ahead are not believed, and the next is.
pub const DOUBTFUL_MAX: u8 = 2;

/// What a number says of its message, of which nothing is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// It begins.
    New,
    /// It had begun before.
    Seen,
    /// It is behind the window: whether it had begun nobody knows.
    Old,
    /// It is too far ahead to be believed at once.
    Doubtful,
}

/// The numbers of messages that have begun to come.
#[derive(Debug)]
pub struct Seen {
    /// The first that came, and the newest.
    range: Option<(u64, u64)>,
    /// A second one was near the first.
    is_sure: bool,
    /// The last, when it was too far ahead, and how many were in a row.
    doubtful: Option<(u64, u8)>,
    /// Whether the number in the window with this remainder has come.
    marks: [bool; SEEN_LEN as usize],
    /// Numbers of which nothing came, after the first and before the window.
    missed: u64,
}

impl Default for Seen {
    fn default() -> Self {
        let marks = [false; SEEN_LEN as usize];
        Self { range: None, is_sure: false, doubtful: None, marks, missed: 0 }
    }
}

impl Seen {
    /// What a number says of its message, which has begun when it is new.
    pub fn look_up(&mut self, number: u64) -> Number {
        let (_, newest) = *self.range.get_or_insert((number, number));
        let near = self.doubtful.take().filter(|(it, _)| it.abs_diff(number) < SEEN_LEN);
        let before = near.map_or(0, |(_, count)| count);
        if number.saturating_sub(newest) > JUMP_MAX && before < DOUBTFUL_MAX {
            self.doubtful = Some((number, before.saturating_add(1)));
            return Number::Doubtful;
        }
        if newest.saturating_sub(number) >= SEEN_LEN {
            if self.is_sure {
                return Number::Old;
            }
            (self.range, self.marks) = (Some((number, number)), [false; SEEN_LEN as usize]);
        } else {
            self.is_sure |= number != newest;
        }
        if number > newest {
            self.move_to(newest, number);
        }
        match self.mark(number).is_none_or(|mark| std::mem::replace(mark, true)) {
            true => Number::Seen,
            false => Number::New,
        }
    }

    /// A unit of a message has come whose number needs no looking up: one that was too far ahead
    /// is not confirmed by the next.
    pub fn go_on(&mut self) {
        self.doubtful = None;
    }

    /// Messages between the first and the newest that came of which nothing did. Those in the
    /// window may still come.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Nothing will come any more.
    pub fn finish(&mut self) {
        let Some((first, newest)) = self.range.take() else { return };
        self.missed = self.missed.saturating_add(self.unmarked(first, newest));
    }

    fn mark(&mut self, number: u64) -> Option<&mut bool> {
        let at = usize::try_from(number % SEEN_LEN).ok()?;
        self.marks.get_mut(at)
    }

    /// Numbers in the window that ends with `newest` that have not come.
    fn unmarked(&self, first: u64, newest: u64) -> u64 {
        let from = first.max(newest.saturating_sub(SEEN_LEN.saturating_sub(1)));
        let came = |number: &u64| {
            let at = usize::try_from(number % SEEN_LEN).ok();
            at.and_then(|at| self.marks.get(at)).copied().unwrap_or(false)
        };
        (from..=newest).filter(|number| !came(number)).count() as u64
    }

    /// Makes `number` the newest. What leaves the window without having come was missed.
    fn move_to(&mut self, newest: u64, number: u64) {
        let first = self.range.map_or(number, |(first, _)| first);
        self.range = Some((first, number));
        let steps = number.saturating_sub(newest);
        if steps >= SEEN_LEN {
            let beyond = steps.saturating_sub(SEEN_LEN);
            let missed = self.unmarked(first, newest).saturating_add(beyond);
            self.missed = self.missed.saturating_add(missed);
            self.marks = [false; SEEN_LEN as usize];
            return;
        }
        for new in newest.saturating_add(1)..=number {
            let leaves = new.checked_sub(SEEN_LEN).is_some_and(|old| old >= first);
            let came = self.mark(new).is_none_or(std::mem::take);
            self.missed = self.missed.saturating_add(u64::from(leaves && !came));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;
    use std::collections::BTreeSet;

    #[test]
    fn a_number_is_new_once_and_behind_the_window_nobody_knows() {
        let mut seen = Seen::default();
        let mut is = |number, expected| assert_eq!(seen.look_up(number), expected, "{number}");
        is(5, Number::New);
        is(5, Number::Seen);
        is(4, Number::New);
        for number in [5 + JUMP_MAX, 5 + 2 * JUMP_MAX, 5 + 3 * JUMP_MAX, 5 + 4 * JUMP_MAX] {
            is(number, Number::New);
        }
        is(5, Number::Old);
        is(0, Number::Old);
        is(6, Number::New);
        is(6, Number::Seen);
        assert_eq!(seen.missed(), 0);
    }

    #[test]
    fn a_number_far_ahead_is_believed_when_others_before_it_were_near() {
        let mut seen = Seen::default();
        for number in 0..10 {
            assert_eq!(seen.look_up(number), Number::New);
        }
        // Wrong ones, now and then, change nothing.
        for (number, wrong) in (10..100).zip((0..64).cycle()) {
            let wrong: u64 = number ^ (1 << wrong);
            if wrong.saturating_sub(number) > JUMP_MAX {
                assert_eq!(seen.look_up(wrong), Number::Doubtful);
            }
            match number % 2 {
                0 => assert_eq!(seen.look_up(number), Number::New),
                _ => seen.go_on(),
            }
        }
        assert_eq!(seen.look_up(5_000_001), Number::Doubtful);
        assert_eq!(seen.look_up(5_000_002), Number::Doubtful);
        assert_eq!(seen.look_up(5_000_000), Number::New);
        assert_eq!((seen.look_up(5_000_001), seen.look_up(99)), (Number::New, Number::Old));
        (0..DOUBTFUL_MAX).for_each(|_| assert_eq!(seen.look_up(u64::MAX), Number::Doubtful));
        assert_eq!(seen.look_up(u64::MAX), Number::New, "who lies often is believed");
        assert_eq!((seen.look_up(u64::MAX), seen.look_up(7)), (Number::Seen, Number::Old));
    }

    #[test]
    fn the_first_number_may_be_wrong_or_late() {
        for first in [1 << 40, 9_000] {
            let mut seen = Seen::default();
            assert_eq!(seen.look_up(first), Number::New);
            for number in 0..5 {
                assert_eq!(seen.look_up(number), Number::New, "after {first}");
            }
            assert_eq!(seen.look_up(first), Number::Doubtful);
            seen.finish();
            assert_eq!(seen.missed(), 0);
        }
    }

    #[test]
    fn what_never_came_is_counted_once_whatever_the_order() {
        for seed in 0..50 {
            let mut random = Random::from_number(seed);
            let (mut seen, mut came, mut base) = (Seen::default(), BTreeSet::new(), 1_000_u64);
            assert!(seen.look_up(base) == Number::New && came.insert(base));
            for _ in 0..5_000 {
                let number = base + random.below(50);
                let mut said = (0..=DOUBTFUL_MAX).map(|_| seen.look_up(number));
                let said = said.find(|said| *said != Number::Doubtful).unwrap();
                assert_eq!(said == Number::New, came.insert(number), "seed {seed}");
                base += random.below(40) / 39 * random.below(2_500);
                base += random.below(3);
            }
            seen.finish();
            seen.finish();
            let all = came.last().unwrap() - came.first().unwrap() + 1;
            assert_eq!(seen.missed() + came.len() as u64, all, "seed {seed}");
        }
    }
}
