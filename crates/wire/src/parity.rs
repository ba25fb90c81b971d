//! The header of the parity modules: which block a packet belongs to, and its place there.
//!
//! ```text
//!   0                    24        32        40                  56
//!  +--------------------+---------+---------+-------------------+----------
//!  |  block (low 24)     |  index  | sources |  length            | bytes …
//!  +--------------------+---------+---------+-------------------+----------
//!                                            |<-- what parity is computed of -->
//! ```
//!
//! A packet whose index is below `sources` is one that was handed over, a *source*; `length` is how
//! many bytes follow. The others are parity, of which the last has index 255, the one before it
//! 254; their `length` and bytes are what the code makes of those of the sources, of which there
//! are `sources` in the block. A source says how many there may be at most, for a block can end
//! early.
//!
//! Own header; RFC 5510 section 5.1 has the same fields in 32 bits more.

use crate::Malformed;
use crate::bytes::Reader;
use crate::nearest::nearest;

/// Length in bytes.
pub const LEN: usize = 7;

/// Where in a packet begins what parity is computed of.
pub const CODED_AT: usize = 5;

/// The most packets that a block can have, parity included.
pub const PACKETS_MAX: usize = 255;

const BLOCK_BITS: u32 = 24;

/// The legal form of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The low 24 bits of the number of the block within the epoch.
    pub block: u32,
    /// The place in the block.
    pub index: u8,
    /// How many sources the block has; in a source, how many it has at most; at least 1.
    pub sources: u8,
    /// How many bytes of a source follow; in parity, what the code makes of these numbers.
    pub length: u16,
}

impl Header {
    /// Reads the header at the front of a packet.
    ///
    /// # Errors
    /// [`Malformed`] when the packet is too short, a block has no source, or a source is not as
    /// long as it says.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(packet);
        let place = reader.u32()?;
        let (sources, length) = (reader.u8()?, reader.u16()?);
        let header = Self { block: place >> 8, index: place as u8, sources, length };
        let is_as_long = header.is_parity() || usize::from(length) + LEN == packet.len();
        if sources == 0 || !is_as_long { Err(Malformed) } else { Ok(header) }
    }

    /// The bytes; of the block's number the low 24 bits.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let [_, a, b, c] = self.block.to_be_bytes();
        let [d, e] = self.length.to_be_bytes();
        [a, b, c, self.index, self.sources, d, e]
    }

    /// True for parity, false for a source.
    #[must_use]
    pub fn is_parity(&self) -> bool {
        self.index >= self.sources
    }
}

/// The 64-bit number nearest to `expected` whose low 24 bits are `low`; `None` when that would lie
/// before 0.
#[must_use]
pub fn extend(low: u32, expected: u64) -> Option<u64> {
    nearest(low, BLOCK_BITS, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_and_parse_are_inverse() {
        for (block, index, sources, length) in
            [(0, 0, 1, 0), (0xFF_FFFF, 9, 10, 3), (77, 255, 200, 40_000)]
        {
            let header = Header { block, index, sources, length };
            let bytes = [&header.emit()[..], &[0; 3][..]].concat();
            let whole = if header.is_parity() { LEN } else { LEN + usize::from(length) };
            assert_eq!(Header::parse(&bytes[..whole.min(bytes.len())]), Ok(header));
        }
    }

    #[test]
    fn what_no_peer_writes_is_refused() {
        let header = Header { block: 1, index: 0, sources: 1, length: 2 };
        let packet = [&header.emit()[..], &[7, 7]].concat();
        assert_eq!(Header::parse(&packet), Ok(header));
        assert_eq!(Header::parse(&packet[..8]), Err(Malformed), "shorter than it says");
        assert_eq!(Header::parse(&[&packet[..], &[7]].concat()), Err(Malformed), "longer");
        assert_eq!(Header::parse(&packet[..6]), Err(Malformed));
        let nothing = Header { sources: 0, ..header };
        assert_eq!(Header::parse(&nothing.emit()), Err(Malformed), "a block of nothing");
    }
}
