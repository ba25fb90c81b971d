//! [`Demand`] and [`DemandSet`]: what a choice has to meet, one thing at a time.
//!
//! The attributes that were asked for, and two things that the application says elsewhere and that
//! can stand in the way all the same: how large its units are, and the fixed delay at which it
//! shows what it gets. To *relax* a demand is to drop its bounds and its weight.
//!
//! ```text
//!   bit    0        1         …   13              30         31
//!          throughput  delay      authenticity    unit size  playout
//! ```
//!
//! The numbers stay in the request.

use crate::attribute::AttributeKey;
use serde::{Serialize, Serializer};
use std::fmt;

/// One thing that a choice has to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Demand {
    /// An attribute: its bounds and its weight.
    Attribute(AttributeKey),
    /// Units as large as the application hands them over.
    UnitSize,
    /// The fixed delay at which what comes is shown.
    Playout,
}

const UNIT_SIZE: u32 = 1 << 30;
const PLAYOUT: u32 = 1 << 31;
const _: () = assert!(AttributeKey::ALL.len() <= 30, "the bits above are the other demands'");

impl Demand {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Attribute(key) => key.name(),
            Self::UnitSize => "unit_size",
            Self::Playout => "playout",
        }
    }

    const fn bit(self) -> u32 {
        match self {
            Self::Attribute(key) => 1 << key.number().saturating_sub(1),
            Self::UnitSize => UNIT_SIZE,
            Self::Playout => PLAYOUT,
        }
    }

    fn from_bit(bit: u32) -> Option<Self> {
        match bit {
            UNIT_SIZE => Some(Self::UnitSize),
            PLAYOUT => Some(Self::Playout),
            _ => AttributeKey::ALL.into_iter().map(Self::Attribute).find(|key| key.bit() == bit),
        }
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Demand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A set of demands.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DemandSet(u32);

impl DemandSet {
    /// None.
    pub const EMPTY: Self = Self(0);

    /// This one.
    #[must_use]
    pub const fn one(demand: Demand) -> Self {
        Self(demand.bit())
    }

    /// Whether this one is among them.
    #[must_use]
    pub const fn contains(self, demand: Demand) -> bool {
        self.0 & demand.bit() != 0
    }

    /// Whether all of `others` are among them.
    #[must_use]
    pub const fn contains_all(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }

    /// Whether some of `others` are among them.
    #[must_use]
    pub const fn intersects(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// These and `others`.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These without `others`.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Those that are also among `others`.
    #[must_use]
    pub const fn intersection(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// How many there are.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// One after the other: attributes by their numbers, then the size of units, then the playout.
    pub fn iter(self) -> impl Iterator<Item = Demand> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let bit = left & left.wrapping_neg();
            left ^= bit;
            Demand::from_bit(bit)
        })
    }

    /// Every set of these but the empty one, smaller ones first; at most 2¹⁶ of them.
    pub(super) fn subsets(self) -> Vec<Self> {
        let all: Vec<Demand> = self.iter().take(16).collect();
        let mut sets = vec![Self::EMPTY];
        for demand in all {
            let more: Vec<Self> = sets.iter().map(|set| set.with(Self::one(demand))).collect();
            sets.extend(more);
        }
        sets.retain(|set| !set.is_empty());
        sets.sort_unstable_by_key(|set| set.smaller_first());
        sets
    }

    /// The order in which sets are tried.
    pub(super) const fn smaller_first(self) -> (u32, u32) {
        (self.0.count_ones(), self.0)
    }
}

impl FromIterator<Demand> for DemandSet {
    fn from_iter<I: IntoIterator<Item = Demand>>(demands: I) -> Self {
        demands.into_iter().fold(Self::EMPTY, |set, demand| set.with(Self::one(demand)))
    }
}

impl fmt::Debug for DemandSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_back_what_was_put_in_in_order() {
        let demands = [
            Demand::Attribute(AttributeKey::Throughput),
            Demand::Attribute(AttributeKey::Authenticity),
            Demand::UnitSize,
            Demand::Playout,
        ];
        let set: DemandSet = demands.into_iter().rev().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), demands);
        assert_eq!(set.len(), 4);
        assert!(set.contains(Demand::Playout) && !DemandSet::EMPTY.contains(Demand::Playout));
        let less = set.without(DemandSet::one(Demand::UnitSize));
        assert!(set.contains_all(less) && !less.contains_all(set) && less.intersects(set));
        assert_eq!(format!("{:?}", DemandSet::one(Demand::Playout)), "{Playout}");
    }

    #[test]
    fn subsets_come_smaller_ones_first_and_each_once() {
        let set: DemandSet = AttributeKey::ALL.into_iter().map(Demand::Attribute).take(4).collect();
        let subsets = set.subsets();
        assert_eq!(subsets.len(), 15);
        assert!(subsets.is_sorted_by_key(|subset| subset.len()));
        assert!(subsets.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(subsets.iter().all(|subset| set.contains_all(*subset)));
    }
}
