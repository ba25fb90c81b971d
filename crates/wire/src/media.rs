//! The medium header: what a media A-module puts before every media frame, inside the unit.
//!
//! ```text
//!   0         4                 8                16               24
//!  +---------+-----------------+----------------+----------------+
//!  | flags 8 |  media time (ns, 64)              | …              |
//!  | gener.24|  frame index (32)                 | sent at (ns)   |
//!  +---------+-----------------+----------------+----------------+
//! ```
//!
//! In order: flags u8, generation u24, index u32, media time u64 (ns from the start of the medium),
//! sent u64 (ns on the sender's monotonic clock, for one-way delay). A command that changes
//! position counts the generation up, and so does a medium that begins again; units of an older one
//! are never shown.

use crate::Malformed;
use crate::bytes::Reader;

/// Length in bytes.
pub const LEN: usize = 24;

/// Generations count in this many bits and wrap.
pub const GENERATION_BITS: u32 = 24;

const GENERATION_MASK: u32 = (1 << GENERATION_BITS) - 1;

/// The frame repeats the previous picture and carries no bytes.
pub const FLAG_REPEAT: u8 = 1;

/// The sender is stepping fast or backwards: show it, do not add it to a recording's timeline.
pub const FLAG_TRICK: u8 = 2;

/// The last unit of its medium, of one that is repeated: what follows is of another generation.
pub const FLAG_LAST: u8 = 4;

/// The medium is repeated: its passes are hashed one by one.
pub const FLAG_LOOP: u8 = 8;

/// The legal form of the medium header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// [`FLAG_REPEAT`], [`FLAG_TRICK`], [`FLAG_LAST`], [`FLAG_LOOP`]; others are ignored.
    pub flags: u8,
    /// Low 24 bits of the generation.
    pub generation: u32,
    /// The frame's number in its stream.
    pub index: u32,
    /// Nanoseconds from the start of the medium.
    pub media_ns: u64,
    /// Nanoseconds on the sender's clock at which the unit was handed over.
    pub sent_ns: u64,
}

impl Header {
    /// Reads the header at the front of a unit's bytes.
    ///
    /// # Errors
    /// [`Malformed`] when they are too short.
    pub fn parse(unit: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(unit);
        let word = reader.u32()?;
        Ok(Self {
            flags: (word >> GENERATION_BITS) as u8,
            generation: word & GENERATION_MASK,
            index: reader.u32()?,
            media_ns: reader.u64()?,
            sent_ns: reader.u64()?,
        })
    }

    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let word = (u32::from(self.flags) << GENERATION_BITS) | (self.generation & GENERATION_MASK);
        let head = (u64::from(word) << 32) | u64::from(self.index);
        let words = [head, self.media_ns, self.sent_ns];
        let mut bytes = [0; LEN];
        for (to, from) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&from.to_be_bytes());
        }
        bytes
    }
}

/// True when generation `a` comes after `b`, counting in 24 bits that wrap.
#[must_use]
pub fn is_newer(a: u32, b: u32) -> bool {
    let ahead = a.wrapping_sub(b) & GENERATION_MASK;
    ahead != 0 && ahead <= GENERATION_MASK >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_and_parse_are_inverse() {
        let header = Header {
            flags: FLAG_TRICK,
            generation: 0xAB_CDEF,
            index: 9,
            media_ns: u64::MAX - 3,
            sent_ns: 1 << 60,
        };
        assert_eq!(Header::parse(&header.emit()), Ok(header));
        assert_eq!(Header::parse(&header.emit()[..LEN - 1]), Err(Malformed));
    }

    #[test]
    fn generations_wrap() {
        assert!(is_newer(1, 0) && !is_newer(0, 1) && !is_newer(5, 5));
        assert!(is_newer(0, GENERATION_MASK) && !is_newer(GENERATION_MASK, 0));
    }
}
