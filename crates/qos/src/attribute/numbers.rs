//! [`AttributeNumbers`]: a requirement as the numbers that go over the wire.
//!
//! The conversion between requirements and numbers, with the checks of what a peer says.
//!
//! Invariant: attributes that were made from numbers pass [`Attributes::check`].

use std::error::Error;
use std::fmt;

use super::key::{AttributeKey, Quantity};
use super::{Attributes, Requirement, RequirementError};

/// One requirement in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributeNumbers {
    /// The number of the attribute.
    pub key: u16,
    /// Hard lower bound, in the base unit of the key.
    pub min: Option<i64>,
    /// Hard upper bound, in the base unit of the key.
    pub max: Option<i64>,
    /// How much better than the bounds is worth, in percent.
    pub weight: Option<u8>,
}

/// Numbers that are no attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumbersError {
    /// A bound is below zero.
    Negative {
        /// The attribute.
        key: AttributeKey,
        /// The bound, in base units.
        number: i64,
    },
    /// The same attribute comes twice.
    Twice(AttributeKey),
    /// No value can meet the requirement, or it is none.
    Requirement(RequirementError),
}

impl fmt::Display for NumbersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Negative { key, number } => {
                write!(f, "{key}: the bound {number} is below zero; bounds are 0 or more")
            }
            Self::Twice(key) => write!(f, "{key} is given twice; give it once"),
            Self::Requirement(error) => error.fmt(f),
        }
    }
}

impl Error for NumbersError {}

impl Attributes {
    /// The requirements of these numbers, and the numbers of those attributes that this vocabulary
    /// does not have, for the caller to report: what they ask for is not kept.
    ///
    /// # Errors
    /// The first known attribute that comes twice, has a bound that is negative, out of range or
    /// not one that it takes, a weight above 100, contradicting bounds, or nothing at all.
    pub fn from_numbers(
        numbers: impl IntoIterator<Item = AttributeNumbers>,
    ) -> Result<(Self, Vec<u16>), NumbersError> {
        let mut attributes = Self::new();
        let mut unknown = Vec::new();
        for entry in numbers {
            let Some(key) = AttributeKey::from_number(entry.key) else {
                unknown.push(entry.key);
                continue;
            };
            let requirement = requirement_of(key, &entry)?;
            let before = attributes.insert(key, requirement).map_err(NumbersError::Requirement)?;
            if before.is_some() {
                return Err(NumbersError::Twice(key));
            }
        }
        Ok((attributes, unknown))
    }

    /// The requirements as numbers, in the order of the keys; a bound beyond the range of its key
    /// is cut to what the wire holds.
    pub fn numbers(&self) -> impl Iterator<Item = AttributeNumbers> + '_ {
        let number = |quantity: Quantity| i64::try_from(quantity).unwrap_or(i64::MAX);
        self.entries().map(move |(key, requirement)| AttributeNumbers {
            key: key.number(),
            min: requirement.min.map(number),
            max: requirement.max.map(number),
            weight: requirement.weight,
        })
    }
}

fn requirement_of(
    key: AttributeKey,
    entry: &AttributeNumbers,
) -> Result<Requirement, NumbersError> {
    let quantity = |bound: Option<i64>| match bound {
        Some(number) => match Quantity::try_from(number) {
            Ok(quantity) => Ok(Some(quantity)),
            Err(_) => Err(NumbersError::Negative { key, number }),
        },
        None => Ok(None),
    };
    Ok(Requirement { min: quantity(entry.min)?, max: quantity(entry.max)?, weight: entry.weight })
}
