//! [`Outliers`]: numbers far ahead of what is awaited, until another one confirms them.
//!
//! ```text
//!   awaited 5    90000 (altered)   6    90000 (the same again)    20000  10000  20001
//!                no                     no: it says nothing new     no     no    yes: near 20000
//! ```
//!
//! One packet far ahead may have been altered, so it moves nothing; another one near it is
//! believed. The last few are remembered, since where each packet is sent again some time later
//! the first packets after a long gap are of several places in turn.
//!
//! Invariant: at most [`OUTLIERS`] are remembered.

/// How near another number must be to confirm one.
pub(crate) const NEAR: u64 = 256;

/// How many are remembered: a packet and three copies of others.
const OUTLIERS: usize = 4;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outliers {
    /// The latest first.
    numbers: [u64; OUTLIERS],
    count: usize,
}

impl Outliers {
    /// A number far ahead has come: whether another one near it did. Else it is remembered.
    pub fn confirm(&mut self, number: u64) -> bool {
        let confirms = |it: &u64| *it != number && it.abs_diff(number) <= NEAR;
        let is_confirmed = self.numbers.iter().take(self.count).any(confirms);
        if is_confirmed {
            self.clear();
        } else {
            self.numbers.rotate_right(1);
            self.numbers[0] = number;
            self.count = (self.count + 1).min(OUTLIERS);
        }
        is_confirmed
    }

    /// What was awaited has come.
    #[inline]
    pub fn clear(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_number_near_it_confirms_one_and_the_same_does_not() {
        let mut outliers = Outliers::default();
        assert!([90_000, 90_000, 90_300, 7_000].iter().all(|it| !outliers.confirm(*it)));
        assert!(outliers.confirm(90_001));
        assert!(!outliers.confirm(90_002), "then it is known where packets are");
        outliers.clear();
        assert!(!outliers.confirm(90_003));
    }

    #[test]
    fn packets_and_three_copies_of_others_confirm_each_other_in_the_second_turn() {
        let mut outliers = Outliers::default();
        let behind = [0, 1_000, 2_000, 3_000];
        let mut turn = (20_000..).flat_map(|it| behind.map(|behind| it - behind));
        assert_eq!(turn.position(|it| outliers.confirm(it)), Some(4));
    }
}
