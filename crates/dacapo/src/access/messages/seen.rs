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
//! What it is not: the messages themselves; those that are open are found without it.
//!
//! Invariant: a number is new once.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

/// Numbers that are told apart.
pub const SEEN_LEN: u64 = 1_024;

/// The numbers of messages that have begun to come.
#[derive(Debug)]
pub struct Seen {
    /// The first that came, and the newest.
    range: Option<(u64, u64)>,
    /// Whether the number in the window with this remainder has come.
    marks: [bool; SEEN_LEN as usize],
    /// Numbers of which nothing came, after the first and before the window.
    missed: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self { range: None, marks: [false; SEEN_LEN as usize], missed: 0 }
    }
}

impl Seen {
    /// Whether a message begins with this number; it has begun then.
    pub fn begins(&mut self, number: u64) -> bool {
        let (_, newest) = *self.range.get_or_insert((number, number));
        if number > newest {
            self.move_to(newest, number);
        } else if newest.saturating_sub(number) >= SEEN_LEN {
            return false;
        }
        self.mark(number).is_some_and(|mark| !std::mem::replace(mark, true))
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
    fn a_number_is_new_once_and_behind_the_window_never() {
        let mut seen = Seen::default();
        assert!(seen.begins(5) && !seen.begins(5));
        assert!(seen.begins(4), "it was overtaken");
        assert!(seen.begins(5 + SEEN_LEN) && !seen.begins(5) && !seen.begins(0));
        assert!(seen.begins(6) && !seen.begins(6));
        assert_eq!(seen.missed(), 0);
        assert!(seen.begins(u64::MAX));
        assert!(seen.begins(u64::MAX - 1) && !seen.begins(7) && !seen.begins(u64::MAX));
    }

    #[test]
    fn what_never_came_is_counted_once_whatever_the_order() {
        for seed in 0..50 {
            let mut random = Random::from_number(seed);
            let (mut seen, mut came, mut base) = (Seen::default(), BTreeSet::new(), 1_000_u64);
            assert!(seen.begins(base) && came.insert(base));
            for _ in 0..5_000 {
                let number = base + random.below(50);
                assert_eq!(seen.begins(number), came.insert(number), "seed {seed}");
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
