//! The header of modules `fec-rlc` and `fec-xor`: which source a packet is, or of which ones it is
//! computed.
//!
//! ```text
//!   0                    24        32        40                  56
//!  +--------------------+---------+---------+-------------------+----------
//!  |  number (low 24)    | sources |   key   |  length            | bytes …
//!  +--------------------+---------+---------+-------------------+----------
//!                                            |<-- what repairs are computed of -->
//! ```
//!
//! Where `sources` is 0, the packet is one that was handed over, a *source*, with this number, and
//! `length` is how many bytes follow; its key says nothing. Else it is a *repair*, computed of that
//! many sources, of which the last has this number; `length` and bytes are what the code makes of
//! those of the sources. In `fec-rlc` sources follow each other, and factors follow from number and
//! key; in `fec-xor` each is as many numbers behind the one before it as the key says, at least 1,
//! and the sum is an exclusive or.
//!
//! A repair is as much longer than the longest source as its header is, and both must fit the same
//! path: so both headers have one length, and a shorter one for sources would save nothing where
//! packets are full.
//!
//! Own header; RFC 8681 sections 3.1 and 3.3 have the same fields in 32 bits more, and SMPTE ST
//! 2022-1 has number (SNBase), key (offset) and sources (NA) among 16 bytes behind those of RTP.

use crate::Malformed;
use crate::bytes::Reader;
use crate::nearest::nearest;

/// Length in bytes.
pub const LEN: usize = 7;

/// Where in a packet begins what repairs are computed of.
pub const CODED_AT: usize = 5;

/// The most sources that a repair can be computed of.
pub const SOURCES_MAX: u64 = 255;

const NUMBER_BITS: u32 = 24;

/// The legal form of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The low 24 bits of the number of a source within the epoch; of a repair that of its last
    /// source.
    pub number: u32,
    /// Of how many sources a repair is computed; 0 in a source.
    pub sources: u8,
    /// What the factors of a repair follow from, besides the number; of a sum, how far its sources
    /// are apart.
    pub key: u8,
    /// How many bytes of a source follow; in a repair, what the code makes of these numbers.
    pub length: u16,
}

impl Header {
    /// The header of a source that has so many bytes.
    #[must_use]
    pub fn source(number: u64, length: u16) -> Self {
        Self { number: low(number), sources: 0, key: 0, length }
    }

    /// Reads the header at the front of a packet.
    ///
    /// # Errors
    /// [`Malformed`] when the packet is too short, or a source is not as long as it says.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(packet);
        let place = reader.u32()?;
        let (key, length) = (reader.u8()?, reader.u16()?);
        let header = Self { number: place >> 8, sources: place as u8, key, length };
        let is_as_long = header.is_repair() || usize::from(length) + LEN == packet.len();
        if is_as_long { Ok(header) } else { Err(Malformed) }
    }

    /// The bytes; of the number the low 24 bits.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let [_, a, b, c] = self.number.to_be_bytes();
        let [d, e] = self.length.to_be_bytes();
        [a, b, c, self.sources, self.key, d, e]
    }

    /// True for a repair, false for a source.
    #[must_use]
    pub fn is_repair(&self) -> bool {
        self.sources > 0
    }
}

/// The bits of a number that are sent.
#[must_use]
pub fn low(number: u64) -> u32 {
    number as u32 & ((1 << NUMBER_BITS) - 1)
}

/// The 64-bit number nearest to `expected` whose low 24 bits are `low`; `None` when that would lie
/// before 0.
#[must_use]
pub fn extend(low: u32, expected: u64) -> Option<u64> {
    nearest(low, NUMBER_BITS, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_and_parse_are_inverse() {
        let source = Header::source((5 << 24) + 0xFF_FFFE, 3);
        assert_eq!((source.number, source.is_repair()), (0xFF_FFFE, false));
        let repair = Header { number: 77, sources: 255, key: 9, length: 40_000 };
        for header in [source, repair, Header { sources: 1, length: 0, ..repair }] {
            let bytes = [&header.emit()[..], b"abc"].concat();
            assert_eq!(Header::parse(&bytes), Ok(header));
        }
    }

    #[test]
    fn what_no_peer_writes_is_refused() {
        let packet = [&Header::source(1, 2).emit()[..], &[7, 7]].concat();
        assert!(Header::parse(&packet).is_ok());
        assert_eq!(Header::parse(&[&packet[..], &[7]].concat()), Err(Malformed), "longer");
        for len in 0..packet.len() {
            assert_eq!(Header::parse(&packet[..len]), Err(Malformed), "{len} bytes");
        }
        let repair = Header { sources: 4, ..Header::source(1, 0) }.emit();
        assert!((0..LEN).all(|len| Header::parse(&repair[..len]) == Err(Malformed)));
    }

    #[test]
    fn any_bytes_give_a_header_that_has_them_or_none() {
        let mut state = 1_u32;
        let mut random = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for _ in 0..10_000 {
            let len = random() % 12;
            let bytes: Vec<u8> = (0..len).map(|_| random()).collect();
            if let Ok(header) = Header::parse(&bytes) {
                assert_eq!(header.emit(), bytes[..LEN]);
                assert_eq!(extend(header.number, 7 << 24).map(low), Some(header.number));
            }
        }
    }
}
