//! The header of module `sequence`: the number of a packet within its epoch.
//!
//! ```text
//!  +-----------------------------------------------+
//!  |        number of the packet (low 32 bits)      |
//!  +-----------------------------------------------+
//! ```
//!
//! Both ends begin an epoch at 0; the receiver extends the number to 64 bits from the one it
//! expects.

use crate::Malformed;
use crate::bytes::Reader;

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
    let ahead = low.wrapping_sub(expected as u32).cast_signed();
    expected.checked_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_extended_to_the_nearest() {
        let wrap = 1_u64 << 32;
        assert_eq!(extend(5, 3), Some(5));
        assert_eq!(extend(3, 5), Some(3));
        assert_eq!(extend(2, wrap - 2), Some(wrap + 2));
        assert_eq!(extend(u32::MAX, wrap + 1), Some(wrap - 1));
        assert_eq!(extend(u32::MAX, 3), None);
    }

    #[test]
    fn emit_and_parse_are_inverse() {
        let header = Header { number: 77 };
        assert_eq!(Header::parse(&header.emit()), Ok(header));
        assert_eq!(Header::parse(&[0; 3]), Err(Malformed));
    }
}
