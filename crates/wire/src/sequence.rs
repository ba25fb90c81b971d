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
        let header = Header { number: 77 };
        assert_eq!(Header::parse(&header.emit()), Ok(header));
        assert_eq!(Header::parse(&[0; 3]), Err(Malformed));
    }
}
