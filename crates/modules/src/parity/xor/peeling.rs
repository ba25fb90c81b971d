//! [`Peeling`]: sums of which more than one source is missing, until all but one are known.
//!
//! ```text
//!   row       40 .  42 .  44        a source that a column gives leaves one fewer missing in its
//!   column       41 .  61 71        row, which may then give another one to another column
//! ```
//!
//! Each source lies in one row and one column, so sums are the nodes of a graph and lost sources
//! its edges: what cannot be peeled off this way lies on a circle, or between two sums that were
//! lost, and no other way of solving equations would give it either.
//!
//! Invariants: at most [`SUMS_MAX`] sums wait, none of which gets longer; one costs an exclusive or
//! for each source of it; memory of a few is used again.

use crate::blocks::sums::add;
use crate::parity::sliding::{Code, Members, Repair};
use dacapo_base::Time;
use dacapo_gf256::add_products;
use dacapo_wire::sliding::{Header, SOURCES_MAX};
use std::collections::VecDeque;

/// How many sums may wait for others.
const SUMS_MAX: usize = 512;

/// How many lists are used again.
const SPARE_MAX: usize = 64;

/// A sum of some sources that are missing.
#[derive(Debug)]
struct Sum {
    members: Members,
    /// A bit for each of them that is missing.
    missing: [u64; 4],
    bytes: Vec<u8>,
    at: Time,
}

impl Sum {
    fn bit_of(&self, number: u64) -> Option<(usize, u64)> {
        let place = self.members.place_of(number)?;
        Some(((place / 64) as usize, 1 << (place % 64)))
    }

    fn lacks(&self, number: u64) -> bool {
        let bit = self.bit_of(number);
        bit.is_some_and(|(word, bit)| self.missing.get(word).is_some_and(|it| it & bit != 0))
    }

    fn turn(&mut self, number: u64) {
        if let Some((word, bit)) = self.bit_of(number)
            && let Some(missing) = self.missing.get_mut(word)
        {
            *missing ^= bit;
        }
    }

    fn count(&self) -> u32 {
        self.missing.iter().map(|word| word.count_ones()).sum()
    }

    /// The oldest source that is missing.
    fn oldest(&self) -> Option<u64> {
        let word = self.missing.iter().position(|word| *word != 0)?;
        let place = 64 * word as u64 + u64::from(self.missing.get(word)?.trailing_zeros());
        Some(self.members.at(place))
    }

    /// A source is known. No peer makes a sum that is shorter than a source of it.
    fn add(&mut self, number: u64, source: &[u8]) {
        add_products([&mut self.bytes], &[([1], source)]);
        self.turn(number);
    }
}

#[derive(Debug, Default)]
pub(super) struct Peeling {
    /// In the order in which they came.
    sums: VecDeque<Sum>,
    spare: Vec<Vec<u8>>,
}

impl Peeling {
    /// Forgets the sums that are not to be kept.
    fn retain(&mut self, is_kept: impl Fn(&Sum) -> bool) {
        let spare = &mut self.spare;
        self.sums.retain_mut(|sum| {
            let is_kept = is_kept(sum);
            if !is_kept && spare.len() < SPARE_MAX {
                spare.push(std::mem::take(&mut sum.bytes));
            }
            is_kept
        });
    }
}

impl Code for Peeling {
    const MISSING_MAX: usize = SOURCES_MAX as usize;

    fn members(header: &Header, last: u64) -> Option<Members> {
        let step = u64::from(header.key);
        Members::up_to(last, header.sources.into(), step).filter(|_| step > 0)
    }

    fn add<'a>(
        sum: &mut Vec<u8>,
        _: &Header,
        _: u64,
        sources: impl Iterator<Item = (u64, &'a [u8])>,
    ) {
        add(std::slice::from_mut(sum), &[()], sources, |(), _| 1);
    }

    fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    fn bytes_with(&self, len: usize) -> usize {
        len + self.sums.iter().map(|sum| sum.bytes.len()).sum::<usize>()
    }

    fn take_sum(&mut self) -> Vec<u8> {
        let mut sum = self.spare.pop().unwrap_or_default();
        sum.clear();
        sum
    }

    fn crowded_by(&self, _: &[u64]) -> Option<u64> {
        let first = self.sums.front().filter(|_| self.sums.len() >= SUMS_MAX);
        first.and_then(Sum::oldest)
    }

    fn take(&mut self, repair: &Repair<'_>, bytes: Vec<u8>, at: Time) {
        let mut sum = Sum { members: repair.members, missing: [0; 4], bytes, at };
        repair.missing.iter().for_each(|number| sum.turn(*number));
        self.sums.push_back(sum);
    }

    fn has(&self, number: u64) -> bool {
        self.sums.iter().any(|sum| sum.lacks(number))
    }

    fn know(&mut self, number: u64, source: &[u8]) {
        for sum in self.sums.iter_mut().filter(|sum| sum.lacks(number)) {
            sum.add(number, source);
        }
        self.retain(|sum| sum.count() > 0);
    }

    /// What lacks one of them gives nothing any more.
    fn give_up(&mut self, from: u64) {
        self.retain(|sum| sum.oldest().is_some_and(|oldest| oldest >= from));
    }

    fn first_came(&self) -> Option<(Time, u64)> {
        self.sums.front().and_then(|sum| Some((sum.at, sum.oldest()?)))
    }

    fn solved(&mut self, into: &mut Vec<u8>) -> Option<u64> {
        let at = self.sums.iter().position(|sum| sum.count() == 1)?;
        let sum = self.sums.remove(at)?;
        let number = sum.oldest()?;
        into.clear();
        into.extend_from_slice(&sum.bytes);
        if self.spare.len() < SPARE_MAX {
            self.spare.push(sum.bytes);
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(number: u64) -> Vec<u8> {
        (0..20).map(|at| (number * 31 + at * 7) as u8).collect()
    }

    /// Adds the sum of so many sources, of which these are missing.
    fn add(sums: &mut Peeling, last: u64, count: u8, step: u8, missing: &[u64]) {
        let header = Header { number: last as u32, sources: count, key: step, length: 0 };
        let members = Peeling::members(&header, last).unwrap();
        let mut bytes = vec![0; 20];
        let missing_of: Vec<_> = missing.iter().map(|it| (*it, source(*it))).collect();
        let sources = missing_of.iter().map(|(it, bytes)| (*it, &bytes[..]));
        Peeling::add(&mut bytes, &header, last, sources);
        let repair = Repair { header: &header, last, members, missing };
        sums.take(&repair, bytes, Time::ZERO);
    }

    /// All that follows, in the order in which it does.
    fn solved(sums: &mut Peeling) -> Vec<u64> {
        let (mut bytes, mut all) = (Vec::new(), Vec::new());
        while let Some(number) = sums.solved(&mut bytes) {
            assert_eq!(bytes, source(number));
            sums.know(number, &bytes);
            all.push(number);
        }
        all
    }

    #[test]
    fn what_one_sum_gives_another_one_lacks() {
        let mut sums = Peeling::default();
        add(&mut sums, 14, 5, 1, &[11, 13]);
        add(&mut sums, 31, 3, 10, &[11, 21]);
        add(&mut sums, 24, 5, 1, &[21, 23]);
        assert_eq!(solved(&mut sums), []);
        assert!(sums.has(23) && !sums.has(12) && !sums.has(33));
        sums.know(13, &source(13));
        assert_eq!(solved(&mut sums), [11, 21, 23]);
        assert!(sums.is_empty());
    }

    #[test]
    fn what_lies_on_a_circle_waits_until_one_comes_and_what_is_given_up_takes_its_sums() {
        let circle = || {
            let mut sums = Peeling::default();
            for (last, step, missing) in
                [(14, 1, [11, 13]), (24, 1, [21, 23]), (31, 10, [11, 21]), (33, 10, [13, 23])]
            {
                add(&mut sums, last, 5.min(last as u8 / step), step, &missing);
            }
            sums
        };
        let mut sums = circle();
        assert_eq!(solved(&mut sums), []);
        sums.know(23, &source(23));
        assert_eq!(solved(&mut sums), [21, 11, 13]);
        let mut sums = circle();
        sums.give_up(12);
        assert_eq!((sums.sums.len(), sums.first_came()), (2, Some((Time::ZERO, 21))));
    }

    #[test]
    fn of_too_many_sums_the_oldest_source_of_the_first_goes() {
        let mut sums = Peeling::default();
        for at in 0..SUMS_MAX as u64 {
            assert_eq!(sums.crowded_by(&[]), None);
            add(&mut sums, 10 * at + 4, 5, 1, &[10 * at + 1, 10 * at + 2]);
        }
        assert_eq!(sums.crowded_by(&[]), Some(1));
        sums.give_up(2);
        assert_eq!(sums.crowded_by(&[]), None);
    }
}
