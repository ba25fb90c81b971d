//! [`Elimination`]: what repairs say of the sources that are missing, as equations that are solved
//! step by step (Gauss and Jordan).
//!
//! ```text
//!              41 43 48 49 | sum           a row for each repair that says something new
//!     row 0     a  .  c  . |  …            its pivot, the oldest of its sources, is in no other
//!     row 1     .  b  d  . |  …            row; one that has nothing but its pivot gives it
//! ```
//!
//! Invariants: at most [`UNKNOWN_MAX`] sources are unknown, and as many rows kept; a row takes one
//! sum with each other row, at most; memory is used again.

use super::code::{Factors, add_sources};
use crate::parity::sliding::{Code, Members, Repair};
use dacapo_base::Time;
use dacapo_gf256::{add_products, inverse, mul, set_products};
use dacapo_wire::sliding::Header;

/// How many sources may be unknown.
const UNKNOWN_MAX: usize = 128;

/// What is known of some unknown sources together.
#[derive(Debug)]
struct Row {
    /// What each source is multiplied by, by its place.
    factors: [u8; UNKNOWN_MAX],
    /// The place of the source that no other row has.
    pivot: usize,
    sum: Vec<u8>,
    /// When the last repair came that it is made of.
    at: Time,
}

impl Row {
    /// Takes the source at `place` out of this row by means of another one that has it.
    fn eliminate(&mut self, place: usize, other: &Self) {
        let by = mul(self.factors[place], inverse(other.factors[place]));
        if by == 0 {
            return;
        }
        if self.sum.len() < other.sum.len() {
            self.sum.resize(other.sum.len(), 0);
        }
        add_products([&mut self.sum], &[([by], &other.sum)]);
        add_products([&mut self.factors], &[([by], &other.factors)]);
        self.at = self.at.max(other.at);
    }

    fn is_of_one(&self) -> bool {
        self.factors.iter().filter(|factor| **factor != 0).count() == 1
    }
}

#[derive(Debug)]
pub(super) struct Elimination {
    /// The numbers of the sources, by their places.
    unknown: [Option<u64>; UNKNOWN_MAX],
    rows: Vec<Row>,
    spare: Vec<Vec<u8>>,
}

impl Default for Elimination {
    fn default() -> Self {
        Self { unknown: [None; UNKNOWN_MAX], rows: Vec::new(), spare: Vec::new() }
    }
}

impl Elimination {
    fn recycle(&mut self, mut sum: Vec<u8>) {
        sum.clear();
        if self.spare.len() < UNKNOWN_MAX {
            self.spare.push(sum);
        }
    }

    /// The oldest source that is unknown.
    fn oldest(&self) -> Option<u64> {
        self.unknown.iter().flatten().min().copied()
    }

    /// How many more sources may be unknown.
    fn places(&self) -> usize {
        self.unknown.iter().filter(|it| it.is_none()).count()
    }

    fn place_of(&self, number: u64) -> Option<usize> {
        self.unknown.iter().position(|it| *it == Some(number))
    }

    /// Takes what a repair says of the sources that are missing: what each is multiplied by, and
    /// the sum. There must be places for all.
    fn add_row(&mut self, missing: impl Iterator<Item = (u64, u8)>, sum: Vec<u8>, at: Time) {
        let mut factors = [0; UNKNOWN_MAX];
        for (number, factor) in missing {
            let free = || self.unknown.iter().position(Option::is_none);
            let Some(place) = self.place_of(number).or_else(free) else { return };
            self.unknown[place] = Some(number);
            factors[place] = factor;
        }
        self.insert(Row { factors, pivot: 0, sum, at });
        self.release();
    }

    /// Takes all pivots out of a row, gives it one of its own, and takes that out of the others.
    fn insert(&mut self, mut row: Row) {
        self.rows.iter().for_each(|other| row.eliminate(other.pivot, other));
        let places = self.unknown.iter().enumerate();
        let has = places.filter_map(|(at, number)| Some((*number.as_ref()?, at)));
        let Some((_, pivot)) = has.filter(|(_, at)| row.factors[*at] != 0).min() else {
            return self.recycle(row.sum);
        };
        row.pivot = pivot;
        self.rows.iter_mut().for_each(|other| other.eliminate(pivot, &row));
        self.rows.push(row);
    }

    /// Frees the places of sources that no row has any more.
    fn release(&mut self) {
        for (place, number) in self.unknown.iter_mut().enumerate() {
            if number.is_some() && self.rows.iter().all(|row| row.factors[place] == 0) {
                *number = None;
            }
        }
    }

    fn give_up_one(&mut self, number: u64) {
        let Some(place) = self.place_of(number) else { return };
        let pivot = self.rows.iter().position(|row| row.pivot == place);
        let any = || self.rows.iter().position(|row| row.factors[place] != 0);
        if let Some(at) = pivot.or_else(any) {
            let row = self.rows.swap_remove(at);
            self.rows.iter_mut().for_each(|other| other.eliminate(place, &row));
            self.recycle(row.sum);
        }
        self.unknown[place] = None;
        self.release();
    }
}

impl Code for Elimination {
    const MISSING_MAX: usize = UNKNOWN_MAX;

    fn members(header: &Header, last: u64) -> Option<Members> {
        Members::up_to(last, header.sources.into(), 1)
    }

    fn add<'a>(
        sum: &mut Vec<u8>,
        header: &Header,
        last: u64,
        sources: impl Iterator<Item = (u64, &'a [u8])>,
    ) {
        add_sources(std::slice::from_mut(sum), &[Factors::of(last, header.key)], sources);
    }

    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn bytes_with(&self, len: usize) -> usize {
        let longest = self.rows.iter().map(|row| row.sum.len()).max().unwrap_or(0).max(len);
        longest * (self.rows.len() + 1)
    }

    fn take_sum(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// What is given up may free others that are missing here.
    fn crowded_by(&self, missing: &[u64]) -> Option<u64> {
        let new = missing.iter().filter(|number| !self.has(**number)).count();
        if self.places() < new { self.oldest() } else { None }
    }

    fn take(&mut self, repair: &Repair<'_>, sum: Vec<u8>, at: Time) {
        let factors = Factors::of(repair.last, repair.header.key);
        let missing = repair.missing.iter().map(|it| (*it, factors.of_source(*it)));
        self.add_row(missing, sum, at);
    }

    fn has(&self, number: u64) -> bool {
        self.place_of(number).is_some()
    }

    fn know(&mut self, number: u64, source: &[u8]) {
        let Some(place) = self.place_of(number) else { return };
        for row in &mut self.rows {
            let factor = std::mem::take(&mut row.factors[place]);
            if factor != 0 {
                add_products([&mut row.sum], &[([factor], source)]);
            }
        }
        if let Some(at) = self.rows.iter().position(|row| row.pivot == place) {
            let row = self.rows.swap_remove(at);
            self.insert(row);
        }
        self.release();
    }

    /// One row is given up for each source, and no more.
    fn give_up(&mut self, from: u64) {
        while let Some(number) = self.oldest().filter(|oldest| *oldest < from) {
            self.give_up_one(number);
        }
    }

    /// By the last repair that a row is made of; its pivot.
    fn first_came(&self) -> Option<(Time, u64)> {
        let rows = self.rows.iter();
        rows.filter_map(|row| Some((row.at, self.unknown[row.pivot]?))).min()
    }

    fn solved(&mut self, into: &mut Vec<u8>) -> Option<u64> {
        let at = self.rows.iter().position(Row::is_of_one)?;
        let row = self.rows.swap_remove(at);
        into.resize(row.sum.len(), 0);
        set_products([into], &[([inverse(row.factors[row.pivot])], &row.sum)]);
        self.recycle(row.sum);
        self.unknown[row.pivot].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;
    use std::collections::BTreeMap;

    fn source(number: u64) -> Vec<u8> {
        (0..20).map(|at| (number * 31 + at * 7) as u8).collect()
    }

    /// Adds the repair of a window of which these are missing.
    fn add(rows: &mut Elimination, last: u64, key: u8, missing: &[u64]) {
        let factors = Factors::of(last, key);
        let mut sums = [vec![0; 20]];
        let sources: Vec<_> = missing.iter().map(|it| (*it, source(*it))).collect();
        add_sources(&mut sums, &[factors], sources.iter().map(|(it, bytes)| (*it, &bytes[..])));
        let missing = missing.iter().map(|it| (*it, factors.of_source(*it)));
        let [sum] = sums;
        rows.add_row(missing, sum, Time::ZERO);
    }

    fn solved(rows: &mut Elimination) -> BTreeMap<u64, Vec<u8>> {
        let mut bytes = Vec::new();
        let mut all = BTreeMap::new();
        while let Some(number) = rows.solved(&mut bytes) {
            all.insert(number, bytes.clone());
        }
        all
    }

    #[test]
    fn as_many_repairs_as_are_missing_give_them_all_in_any_order_of_coming() {
        let (mut random, mut needed) = (Random::from_number(1), 0);
        for round in 0..200 {
            let mut rows = Elimination::default();
            let count = 1 + random.below(40);
            let missing: Vec<u64> = (0..count).map(|it| 1_000 + 3 * it).collect();
            let (mut found, mut repairs) = (BTreeMap::new(), 0);
            while found.len() < missing.len() {
                // Windows that end here or there.
                let end = (1 + random.below(count) + repairs).min(count) as usize;
                let still: Vec<u64> =
                    missing[..end].iter().filter(|it| !found.contains_key(*it)).copied().collect();
                add(&mut rows, missing[end - 1], repairs as u8, &still);
                repairs += 1;
                if random.chance(0.1) {
                    let number = missing[random.below(count) as usize];
                    rows.know(number, &source(number));
                    found.entry(number).or_insert_with(|| source(number));
                }
                found.extend(solved(&mut rows));
                assert!(repairs < 20 * count, "round {round}");
            }
            assert!(found.iter().all(|(number, bytes)| *bytes == source(*number)));
            assert!(rows.is_empty() && rows.places() == UNKNOWN_MAX, "round {round}");
            needed += repairs.saturating_sub(count);
        }
        println!("{needed} repairs said nothing new");
    }

    #[test]
    fn what_is_given_up_costs_one_row_and_the_others_are_still_solved() {
        for given_up in 10..14 {
            let mut rows = Elimination::default();
            (0..4).for_each(|key| add(&mut rows, 30, key, &[10, 11, 12, 13, 14]));
            assert_eq!(solved(&mut rows).len(), 0);
            rows.give_up(given_up);
            // One unknown fewer, and one row: only the last repair gives those that are left.
            let still: Vec<u64> = (given_up..15).collect();
            assert_eq!(rows.oldest(), still.first().copied());
            add(&mut rows, 30, 9, &still);
            let found = solved(&mut rows);
            assert_eq!(found.keys().copied().collect::<Vec<_>>(), still);
            assert!(found.iter().all(|(number, bytes)| *bytes == source(*number)));
            assert!(rows.is_empty());
        }
    }

    #[test]
    fn a_source_that_comes_after_all_leaves_the_others_as_they_were() {
        for late in 10..13 {
            let mut rows = Elimination::default();
            (0..2).for_each(|key| add(&mut rows, 30, key, &[10, 11, 12]));
            rows.know(late, &source(late));
            let found = solved(&mut rows);
            assert_eq!(found.len(), 2, "{late}");
            assert!(found.iter().all(|(number, bytes)| *bytes == source(*number)));
        }
    }
}
