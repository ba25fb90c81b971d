//! The vocabulary of quality of service: what an application can ask of a flow.
//!
//! [`AttributeKey`], the closed list of attributes with a number for the wire, a name for the file,
//! a base unit and a range each; [`Requirement`], what is asked of one of them; and [`Attributes`],
//! the requirements of one flow, which need no file.
//!
//! | no | name            | base unit     | range                          | bounds   | asks for            |
//! |----|-----------------|---------------|--------------------------------|----------|---------------------|
//! | 1  | throughput      | bit/s         | to 2⁶³-1                       | min, max | payload rate        |
//! | 2  | delay           | ns            | to 2⁶³-1                       | max      | one way             |
//! | 3  | jitter          | ns            | to 2⁶³-1                       | max      | spread of the delay |
//! | 4  | loss            | ppb           | to 100 %                       | max      | share of units lost |
//! | 5  | order           | level         | any, ordered                   | min      | sequence of units   |
//! | 6  | duplicates      | level         | allowed, none                  | min      | repeated units      |
//! | 7  | integrity       | level         | none, checked                  | min      | changes noticed     |
//! | 8  | deadline        | ns            | to 2⁶³-1                       | max      | use-by age          |
//! | 9  | priority        | number        | 0 to 7                         | min      | 7 goes first        |
//! | 10 | frame_rate      | 10⁻⁶/s        | to 1000000 /s                  | min, max | units per second    |
//! | 11 | cpu             | ppb of a core | to 102400 %                    | max      | processor time      |
//! | 12 | receivers       | number        | 1 to 65535                     | min, max | how many at once    |
//! | 13 | confidentiality | level         | none, preferred, required      | min      | others cannot read  |
//! | 14 | authenticity    | level         | none, preferred, group, source | min      | who sent it         |
//! | 15 | newest          | level         | any, arrives                   | min      | the newest unit     |
//! | 16 | share           | number        | 0 to 100                       | min      | part beside equals  |
//!
//! Authenticity of the group says that some holder of its key sent a unit, of the source that this
//! very sender did; the two are never shown as the same.
//!
//! What a protocol makes of these is computed elsewhere.
//!
//! A value alone (`delay = "150 ms"`) is the bound that the attribute takes, and exactly that where
//! it takes both.
//!
//! Invariants: a number is never reused for another meaning; levels ascend with what they demand;
//! entries come in the order of the numbers.

mod key;
mod numbers;
mod requirement;
#[cfg(test)]
mod tests;
mod text;
mod tighten;
pub(crate) mod weight;

pub use key::{AttributeError, AttributeKey, Bound, Bounds, Kind, Quantity};
pub use numbers::{AttributeNumbers, NumbersError};
pub use requirement::{Requirement, RequirementError};
pub use tighten::Contradiction;

use std::collections::BTreeMap;
use std::fmt;

/// What the levels of the attributes with levels are called in code.
pub mod level {
    use super::Quantity;

    /// order: units may come in any order.
    pub const ORDER_ANY: Quantity = 0;
    /// order: units come in the order in which they were sent.
    pub const ORDERED: Quantity = 1;
    /// duplicates: a unit may come twice.
    pub const DUPLICATES_ALLOWED: Quantity = 0;
    /// duplicates: no unit comes twice.
    pub const DUPLICATES_NONE: Quantity = 1;
    /// integrity: changed bytes may be delivered.
    pub const INTEGRITY_NONE: Quantity = 0;
    /// integrity: a unit with changed bytes is not delivered.
    pub const INTEGRITY_CHECKED: Quantity = 1;
    /// confidentiality: others may read.
    pub const CONFIDENTIALITY_NONE: Quantity = 0;
    /// confidentiality: encrypt where both sides can.
    pub const CONFIDENTIALITY_PREFERRED: Quantity = 1;
    /// confidentiality: only the participants can read.
    pub const CONFIDENTIALITY_REQUIRED: Quantity = 2;
    /// authenticity: anybody may have sent it.
    pub const AUTHENTICITY_NONE: Quantity = 0;
    /// authenticity: prove a sender where both sides can.
    pub const AUTHENTICITY_PREFERRED: Quantity = 1;
    /// authenticity: some holder of the group's key sent it.
    pub const AUTHENTICITY_GROUP: Quantity = 2;
    /// authenticity: this very sender sent it.
    pub const AUTHENTICITY_SOURCE: Quantity = 3;
    /// newest: any unit may be lost.
    pub const NEWEST_ANY: Quantity = 0;
    /// newest: a unit arrives that no newer one replaces.
    pub const NEWEST_ARRIVES: Quantity = 1;
}

/// What is asked of one flow: at most one requirement per attribute.
///
/// ```
/// use dacapo_qos::{AttributeKey, Attributes};
///
/// let video = Attributes::reliable()
///     .min(AttributeKey::Throughput, 2_000_000)
///     .max(AttributeKey::Delay, 150_000_000)
///     .weight(AttributeKey::Delay, 50);
/// assert!(video.check().is_ok());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(BTreeMap<AttributeKey, Requirement>);

impl Attributes {
    /// Asks for nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Asks for what a file transfer needs: no loss, in order, nothing twice, changes noticed.
    #[must_use]
    pub fn reliable() -> Self {
        Self::new()
            .max(AttributeKey::Loss, 0)
            .min(AttributeKey::Order, level::ORDERED)
            .min(AttributeKey::Duplicates, level::DUPLICATES_NONE)
            .min(AttributeKey::Integrity, level::INTEGRITY_CHECKED)
    }

    /// Asks for at least `quantity`, in the base unit of `key`; [`Attributes::check`] tells later
    /// whether it is in range.
    #[must_use]
    pub fn min(mut self, key: AttributeKey, quantity: Quantity) -> Self {
        self.0.entry(key).or_default().min = Some(quantity);
        self
    }

    /// Asks for at most `quantity`, in the base unit of `key`.
    #[must_use]
    pub fn max(mut self, key: AttributeKey, quantity: Quantity) -> Self {
        self.0.entry(key).or_default().max = Some(quantity);
        self
    }

    /// Says how much `key` matters beyond its bounds, in percent (0 to 100).
    #[must_use]
    pub fn weight(mut self, key: AttributeKey, percent: u8) -> Self {
        self.0.entry(key).or_default().weight = Some(percent);
        self
    }

    /// The requirement of `key`.
    #[must_use]
    pub fn get(&self, key: AttributeKey) -> Option<&Requirement> {
        self.0.get(&key)
    }

    /// Sets the requirement of `key` and returns the one that it replaces.
    ///
    /// # Errors
    /// When the requirement is empty, out of the range of `key`, or contradicts itself.
    pub fn insert(
        &mut self,
        key: AttributeKey,
        requirement: Requirement,
    ) -> Result<Option<Requirement>, RequirementError> {
        requirement.check(key)?;
        Ok(self.0.insert(key, requirement))
    }

    /// Removes and returns the requirement of `key`.
    pub fn remove(&mut self, key: AttributeKey) -> Option<Requirement> {
        self.0.remove(&key)
    }

    /// The requirements in the order of the keys' numbers.
    pub fn entries(&self) -> impl Iterator<Item = (AttributeKey, Requirement)> + '_ {
        self.0.iter().map(|(&key, &requirement)| (key, requirement))
    }

    /// How many attributes have a requirement.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every requirement can be met by some value at all.
    ///
    /// # Errors
    /// The first requirement that is empty, out of range, contradicts itself, or has a bound that
    /// its attribute does not take.
    pub fn check(&self) -> Result<(), RequirementError> {
        self.entries().try_for_each(|(key, requirement)| requirement.check(key))
    }

    /// Whether the newest unit is to arrive.
    #[must_use]
    pub fn newest(&self) -> bool {
        let is_worth = |asked: &Requirement| asked.weight.is_some_and(|weight| weight > 0);
        let is_asked = |asked: &Requirement| asked.min >= Some(level::NEWEST_ARRIVES);
        self.get(AttributeKey::Newest).is_some_and(|asked| is_asked(asked) || is_worth(asked))
    }

    /// The time after which a unit is of no use: the bound of its delay, or its deadline, in ns.
    #[must_use]
    pub fn useful_ns(&self) -> Option<u64> {
        let keys = [AttributeKey::Delay, AttributeKey::Deadline];
        keys.into_iter().filter_map(|key| self.get(key)?.max).min()
    }
}

impl fmt::Display for Attributes {
    /// For people: `delay at most 150 ms, order, no duplicates`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, requirement)) in self.entries().enumerate() {
            let lead = if i == 0 { "" } else { ", " };
            write!(f, "{lead}{}", requirement.format(key))?;
        }
        Ok(())
    }
}
