//! [`Requirement`]: what is asked of one attribute.
//!
//! Two hard bounds and a soft weight.
//!
//! ```text
//!        min               max
//!   ──────┼═════════════════┼──────>  quantity      outside: refused
//!   inside: the weight says how much better is worth
//! ```

use std::error::Error;
use std::fmt;

use super::key::{AttributeKey, Bound, Bounds, Quantity};

/// What is asked of one attribute; at least one of the three is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requirement {
    /// Hard lower bound, in the base unit of the key; of a level, the least that will do.
    pub min: Option<Quantity>,
    /// Hard upper bound, in the base unit of the key.
    pub max: Option<Quantity>,
    /// How much a better value is worth beyond the bounds, in percent, 0 to 100; none when the
    /// application did not say.
    pub weight: Option<u8>,
}

impl Requirement {
    /// What a value alone asks of `key`: the bound that it takes, or exactly that where it takes
    /// both.
    #[must_use]
    pub fn alone(key: AttributeKey, quantity: Quantity) -> Self {
        let (min, max) = match key.bounds() {
            Bounds::Min => (Some(quantity), None),
            Bounds::Max => (None, Some(quantity)),
            Bounds::Both => (Some(quantity), Some(quantity)),
        };
        Self { min, max, weight: None }
    }

    /// One of the bounds.
    #[must_use]
    pub const fn bound(&self, bound: Bound) -> Option<Quantity> {
        match bound {
            Bound::Min => self.min,
            Bound::Max => self.max,
        }
    }

    /// Whether some value of `key` can meet this.
    ///
    /// # Errors
    /// When nothing is asked, a bound is none that the key takes or out of its range, the weight
    /// exceeds 100, or the lower bound exceeds the upper one.
    pub fn check(&self, key: AttributeKey) -> Result<(), RequirementError> {
        if self.min.is_none() && self.max.is_none() && self.weight.is_none() {
            return Err(RequirementError::Empty(key));
        }
        let is_foreign =
            |bound: &Bound| self.bound(*bound).is_some() && !key.bounds().takes(*bound);
        if let Some(bound) = [Bound::Min, Bound::Max].into_iter().find(is_foreign) {
            return Err(RequirementError::Bound { key, bound });
        }
        let (low, high) = key.range();
        let outside = |bound: &Quantity| !(low..=high).contains(bound);
        if let Some(quantity) = self.min.into_iter().chain(self.max).find(outside) {
            return Err(RequirementError::OutOfRange { key, quantity });
        }
        if let Some(percent) = self.weight.filter(|&percent| percent > 100) {
            return Err(RequirementError::Weight { key, percent });
        }
        match (self.min, self.max) {
            (Some(min), Some(max)) if min > max => {
                Err(RequirementError::Contradiction { key, min, max })
            }
            _ => Ok(()),
        }
    }

    /// For people: "throughput at least 2 Mbit/s (weight 50 %)", "order".
    pub(crate) fn format(&self, key: AttributeKey) -> String {
        let asked = match (self.min, self.max) {
            (Some(min), Some(max)) if min == max => format!("{key} {}", key.format(min)),
            (Some(min), Some(max)) => {
                format!("{key} at least {} and at most {}", key.format(min), key.format(max))
            }
            (Some(min), None) => {
                let level = key.level_asked(min);
                level.unwrap_or_else(|| format!("{key} at least {}", key.format(min)))
            }
            (None, Some(0)) if key == AttributeKey::Loss => "no loss".to_owned(),
            (None, Some(max)) => format!("{key} at most {}", key.format(max)),
            (None, None) => key.to_string(),
        };
        match self.weight {
            Some(percent) => format!("{asked} (weight {percent} %)"),
            None => asked,
        }
    }
}

/// A requirement that no value can meet, or that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequirementError {
    /// The lower bound exceeds the upper one.
    Contradiction {
        /// The attribute.
        key: AttributeKey,
        /// The lower bound, in base units.
        min: Quantity,
        /// The upper bound, in base units.
        max: Quantity,
    },
    /// The attribute takes no such bound.
    Bound {
        /// The attribute.
        key: AttributeKey,
        /// The bound that was given.
        bound: Bound,
    },
    /// Neither bound nor weight is given.
    Empty(AttributeKey),
    /// A bound is outside the range of its key.
    OutOfRange {
        /// The attribute.
        key: AttributeKey,
        /// The bound, in base units.
        quantity: Quantity,
    },
    /// The weight exceeds 100 %.
    Weight {
        /// The attribute.
        key: AttributeKey,
        /// The weight.
        percent: u8,
    },
}

impl fmt::Display for RequirementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contradiction { key, min, max } => {
                let (min, max) = (key.format(*min), key.format(*max));
                write!(f, "{key}: min = {min} exceeds max = {max}; lower min or raise max")
            }
            Self::Bound { key, bound } => {
                let (given, taken) = (bound.name(), bound.other().name());
                write!(f, "{key} takes {taken}, not {given}")
            }
            Self::Empty(key) => {
                let keys = key.requirement_keys().join(" or ");
                write!(f, "{key}: nothing is asked; give {keys}")
            }
            Self::OutOfRange { key, quantity } => {
                let (low, high) = key.range();
                let (low, high) = (key.format(low), key.format(high));
                write!(f, "{key}: {} is not between {low} and {high}", key.format(*quantity))
            }
            Self::Weight { key, percent } => {
                write!(f, "{key}: a weight of {percent} % is not between 0 and 100 %")
            }
        }
    }
}

impl Error for RequirementError {}
