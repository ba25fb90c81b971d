//! The header of modules `sequence` and `dedup`: the number of a packet within its epoch.
//!
//! ```text
//!  +-----------------------------------------------+
//!  |        number of the packet (low 32 bits)      |
//!  +-----------------------------------------------+
//! ```
//!
//! Both ends begin an epoch at 0; the receiver extends the number to 64 bits from the one it
//! expects, so numbers turn over unnoticed while it misses fewer than 2^31 in a row.

use crate::Malformed;
use crate::bytes::Reader;
use crate::nearest::nearest;

/// Length in bytes.
pub const LEN: usize = 4;

/// The legal form of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The low 32 bits of the packet's number.
    pub number: u32,
}

impl Header {
    /// Reads the header at the front of a packet.
    ///
    /// # Errors
    /// [`Malformed`] when the packet is too short.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        Ok(Self { number: Reader(packet).u32()? })
    }

    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        self.number.to_be_bytes()
    }
}

/// The 64-bit number nearest to `expected` whose low 32 bits are `low`; `None` when that would lie
/// before 0.
#[must_use]
pub fn extend(low: u32, expected: u64) -> Option<u64> {
    nearest(low, u32::BITS, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_and_parse_are_inverse() {
        for number in [0, 1, 77, u32::MAX] {
            let header = Header { number };
            assert_eq!(Header::parse(&header.emit()), Ok(header));
            assert_eq!(Header::parse(&[&header.emit()[..], &[9; 40]].concat()), Ok(header));
        }
        for len in 0..LEN {
            assert_eq!(Header::parse(&[7; LEN][..len]), Err(Malformed), "{len} bytes");
        }
    }

    #[test]
    fn a_number_is_found_on_both_sides_of_a_turn() {
        let turn = 1_u64 << 32;
        for number in [0, 1, turn - 1, turn, 3 * turn + 9] {
            for apart in [0, 1, 8_192, (1 << 31) - 1] {
                assert_eq!(extend(number as u32, number + apart), Some(number), "{apart} ahead");
                let before = number.saturating_sub(apart);
                assert_eq!(extend(number as u32, before), Some(number), "{apart} behind");
            }
        }
        assert_eq!(extend(u32::MAX, 0), None, "before the epoch began");
    }
}
