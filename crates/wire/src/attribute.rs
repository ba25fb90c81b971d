//! One attribute that an OFFER asks of a flow, as bytes.
//!
//! ```text
//!   0         2       3        4              12             20
//!  +---------+-------+--------+--------------+--------------+
//!  | key u16 | flags | weight |    min i64   |    max i64   |
//!  +---------+-------+--------+--------------+--------------+
//!  flags: 1 min is there, 2 max is there, 4 weight is there
//! ```
//!
//! Invariants: what is not there is written as 0 and not looked at; flags of a later version are
//! ignored.
//!
//! Source: docs/protocol.md, "Fields".

use crate::Malformed;
use crate::bytes::Reader;

/// The numbers of the attributes that a core heeds; `qos::AttributeKey` has all.
pub mod key {
    /// One way, in ns.
    pub const DELAY: u16 = 2;
    /// The share of units lost, in ppb.
    pub const LOSS: u16 = 4;
    /// The sequence of units: 1 ordered.
    pub const ORDER: u16 = 5;
    /// Repeated units: 1 none.
    pub const DUPLICATES: u16 = 6;
    /// Changes are noticed: 1 checked.
    pub const INTEGRITY: u16 = 7;
    /// How old a unit may be that is handed over, in ns.
    pub const DEADLINE: u16 = 8;
    /// Which flows go first: 0 to 7, 7 before all others.
    pub const PRIORITY: u16 = 9;
    /// Others cannot read: 1 preferred, 2 required.
    pub const CONFIDENTIALITY: u16 = 13;
    /// Who has sent it: 1 preferred, 2 somebody of the group, 3 the source.
    pub const AUTHENTICITY: u16 = 14;
    /// The newest unit arrives: 1.
    pub const NEWEST: u16 = 15;
    /// What a flow gets beside others of its priority: 0 to 100; 0 what all others leave.
    pub const SHARE: u16 = 16;
}

/// Length in bytes.
pub const LEN: usize = 20;

const MIN: u8 = 1;
const MAX: u8 = 2;
const WEIGHT: u8 = 4;

/// What is asked of one attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AttributeForm {
    /// The number of the attribute.
    pub key: u16,
    /// Hard lower bound, in the base unit of the key.
    pub min: Option<i64>,
    /// Hard upper bound, in the base unit of the key.
    pub max: Option<i64>,
    /// How much better than the bounds is worth, in percent.
    pub weight: Option<u8>,
}

impl AttributeForm {
    /// Reads an attribute that fills `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when they are not [`LEN`] bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let (key, flags, weight) = (reader.u16()?, reader.u8()?, reader.u8()?);
        let (min, max) = (reader.u64()?.cast_signed(), reader.u64()?.cast_signed());
        reader.end()?;
        Ok(Self {
            key,
            min: (flags & MIN != 0).then_some(min),
            max: (flags & MAX != 0).then_some(max),
            weight: (flags & WEIGHT != 0).then_some(weight),
        })
    }

    /// Appends the bytes.
    pub fn encode(&self, into: &mut Vec<u8>) {
        let flag = |is_there, flag| if is_there { flag } else { 0 };
        let flags = flag(self.min.is_some(), MIN)
            | flag(self.max.is_some(), MAX)
            | flag(self.weight.is_some(), WEIGHT);
        into.extend_from_slice(&self.key.to_be_bytes());
        into.extend_from_slice(&[flags, self.weight.unwrap_or_default()]);
        into.extend_from_slice(&self.min.unwrap_or_default().to_be_bytes());
        into.extend_from_slice(&self.max.unwrap_or_default().to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_of_parts_comes_back() {
        for choice in 0..8_u8 {
            let attribute = AttributeForm {
                key: 0xABCD,
                min: (choice & 1 != 0).then_some(i64::MIN),
                max: (choice & 2 != 0).then_some(-2),
                weight: (choice & 4 != 0).then_some(100),
            };
            let mut bytes = Vec::new();
            attribute.encode(&mut bytes);
            assert_eq!((bytes.len(), bytes[2]), (LEN, choice));
            assert_eq!(AttributeForm::decode(&bytes), Ok(attribute));
            assert_eq!(AttributeForm::decode(&bytes[1..]), Err(Malformed));
            bytes.push(0);
            assert_eq!(AttributeForm::decode(&bytes), Err(Malformed));
        }
    }

    #[test]
    fn what_no_flag_names_is_not_looked_at() {
        let mut bytes = [0xFF; LEN];
        bytes[2] = 0xF8;
        let nothing = AttributeForm { key: 0xFFFF, ..AttributeForm::default() };
        assert_eq!(AttributeForm::decode(&bytes), Ok(nothing));
    }
}
