//! [`Attributes::tightened`]: what two sides ask of one flow, together.
//!
//! The stricter of both for every bound.
//!
//! ```text
//!   first            ├──────────────────┤           throughput at least 1, at most 4 Mbit/s
//!   other                   ├─────────────────>     throughput at least 2 Mbit/s
//!   both                    ├───────────┤
//! ```
//!
//! Invariants: what meets the outcome meets both; the order of the two only decides what a
//! contradiction calls the nearest.

use std::error::Error;
use std::fmt;

use super::key::{AttributeKey, Bound, Quantity};
use super::{Attributes, Requirement};

/// Two sides ask for what no value can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The attribute.
    pub key: AttributeKey,
    /// The larger of the lower bounds, in base units.
    pub min: Quantity,
    /// The smaller of the upper bounds, in base units.
    pub max: Quantity,
    /// Which of the two the other side asked for; the first side had the opposite one before.
    pub asked: Bound,
}

impl Contradiction {
    /// What the other side can ask for at most, in base units: the bound of the first.
    #[must_use]
    pub const fn nearest(&self) -> Quantity {
        match self.asked {
            Bound::Min => self.max,
            Bound::Max => self.min,
        }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bound: Bound, quantity| {
            let word = match bound {
                Bound::Min => "at least",
                Bound::Max => "at most",
            };
            format!("{word} {}", self.key.format(quantity))
        };
        let (min, max) = (text(Bound::Min, self.min), text(Bound::Max, self.max));
        let (asked, had) = match self.asked {
            Bound::Min => (min, max),
            Bound::Max => (max, min),
        };
        let nearest = text(self.asked, self.nearest());
        write!(f, "{}: {asked} contradicts {had}; nearest: {nearest}", self.key)
    }
}

impl Error for Contradiction {}

impl Attributes {
    /// What both this and `other` ask for: of every attribute the larger min, the smaller max and
    /// the larger weight.
    ///
    /// # Errors
    /// The first attribute for which no value meets both.
    pub fn tightened(&self, other: &Self) -> Result<Self, Contradiction> {
        let mut both = self.clone();
        for (key, asked) in other.entries() {
            let had = self.get(key).copied().unwrap_or_default();
            let stricter = Requirement {
                min: had.min.max(asked.min),
                max: smaller(had.max, asked.max),
                weight: had.weight.max(asked.weight),
            };
            if let (Some(min), Some(max)) = (stricter.min, stricter.max)
                && min > max
            {
                let from_other = asked.min == Some(min) && had.min != Some(min);
                let asked = if from_other { Bound::Min } else { Bound::Max };
                return Err(Contradiction { key, min, max, asked });
            }
            both.0.insert(key, stricter);
        }
        Ok(both)
    }
}

/// The smaller bound; one that is not there is no bound.
fn smaller(a: Option<Quantity>, b: Option<Quantity>) -> Option<Quantity> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
