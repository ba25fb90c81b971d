//! The header of module `segment`: which unit a packet belongs to, and its place there.
//!
//! ```text
//!   0                               16  17                             32
//!  +-------------------------------+---+-------------------------------+
//!  |  unit (low 16 bits)            | L |  index of the segment (15)    |
//!  +-------------------------------+---+-------------------------------+
//!  L: the last segment of its unit
//! ```
//!
//! A packet with the largest index and L is no part of a unit: it is what modules above say to each
//! other, whole, and its unit means nothing. Several receivers of a flow say such things to its
//! sender, so it has no number.

use crate::Malformed;
use crate::bytes::Reader;

/// Length in bytes.
pub const LEN: usize = 4;

/// The largest index of a segment within its unit.
pub const INDEX_MAX: u16 = 0x7FFE;

/// The index of what is no part of a unit.
const BESIDE: u16 = 0x7FFF;

const LAST: u16 = 0x8000;

/// The legal form of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The low 16 bits of the unit's number within the epoch, marks included.
    pub unit: u16,
    /// The place of the segment in its unit, at most [`INDEX_MAX`] of what a peer writes.
    pub index: u16,
    /// True for the last segment of its unit.
    pub last: bool,
}

impl Header {
    /// That of what modules above say to each other.
    pub const OF_MODULES: Self = Self { unit: 0, index: BESIDE, last: true };

    /// Reads the header at the front of a packet.
    ///
    /// # Errors
    /// [`Malformed`] when the packet is too short.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(packet);
        let (unit, place) = (reader.u16()?, reader.u16()?);
        Ok(Self { unit, index: place & !LAST, last: place & LAST != 0 })
    }

    /// The bytes; the index is cut to 15 bits.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let place = (self.index & !LAST) | if self.last { LAST } else { 0 };
        let ([a, b], [c, d]) = (self.unit.to_be_bytes(), place.to_be_bytes());
        [a, b, c, d]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_and_parse_are_inverse() {
        for (unit, index, last) in [(0, 0, true), (65_535, INDEX_MAX, false), (7, 3, true)] {
            let header = Header { unit, index, last };
            assert_eq!(Header::parse(&header.emit()), Ok(header));
        }
        assert_eq!(Header::parse(&[0; 3]), Err(Malformed));
    }

    #[test]
    fn what_modules_say_is_told_from_every_segment() {
        let of_modules = Header::OF_MODULES;
        assert_eq!(Header::parse(&of_modules.emit()), Ok(of_modules));
        assert!(of_modules.index > INDEX_MAX && of_modules.last);
    }
}
