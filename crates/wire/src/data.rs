//! The data header: what every datagram of a flow begins with.
//!
//! ```text
//!   0               1                                               5
//!  +---------------+-----------------------------------------------+
//!  | type 1000 0000|                 label (32 bits)                |
//!  +---------------+-----------------------------------------------+
//! ```
//!
//! The first byte tells what shares the port: 0x40–0x7F and 0xC0–0xFF are QUIC (its fixed bit is
//! never greased here), 0x80–0xBF are ours, 0x00–0x3F are reserved (STUN, DTLS).
//!
//! The label names flow, direction and epoch. The receiver of the packets chooses it (multicast:
//! the sender), at random, and does not use it again for two minutes. Everything after it belongs
//! to the modules of the epoch's graph.

use crate::Malformed;
use crate::bytes::Reader;

/// The type byte of data.
pub const TYPE_DATA: u8 = 0x80;

/// Length in bytes.
pub const LEN: usize = 5;

/// To whom a datagram on the shared port belongs, told by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belongs {
    /// The control connection.
    Quic,
    /// A flow or the path: one of our types.
    Ours(u8),
    /// Nobody yet.
    Reserved,
}

/// Tells by its first byte to whom a datagram belongs; an empty one belongs to nobody.
#[must_use]
pub fn classify(datagram: &[u8]) -> Belongs {
    match datagram.first() {
        Some(&first) if first & 0xC0 == 0x80 => Belongs::Ours(first),
        Some(&first) if first & 0x40 != 0 => Belongs::Quic,
        _ => Belongs::Reserved,
    }
}

/// The legal form of the data header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Flow, direction and epoch.
    pub label: u32,
}

impl Header {
    /// Reads the header at the front of a datagram.
    ///
    /// # Errors
    /// [`Malformed`] when it is too short or of another type.
    pub fn parse(datagram: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(datagram);
        if reader.u8()? != TYPE_DATA {
            return Err(Malformed);
        }
        Ok(Self { label: reader.u32()? })
    }

    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let [a, b, c, d] = self.label.to_be_bytes();
        [TYPE_DATA, a, b, c, d]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_decides() {
        for first in 0..=255_u8 {
            let expected = match first {
                0x00..=0x3F => Belongs::Reserved,
                0x40..=0x7F | 0xC0..=0xFF => Belongs::Quic,
                0x80..=0xBF => Belongs::Ours(first),
            };
            assert_eq!(classify(&[first, 0, 0]), expected, "{first:#x}");
        }
        assert_eq!(classify(&[]), Belongs::Reserved);
    }

    #[test]
    fn emit_and_parse_are_inverse() {
        let header = Header { label: 0xDEAD_BEEF };
        assert_eq!(Header::parse(&header.emit()), Ok(header));
        assert_eq!(Header::parse(&header.emit()[..4]), Err(Malformed));
        assert_eq!(Header::parse(&[0x81, 0, 0, 0, 0]), Err(Malformed));
    }
}
