//! The header of modules `window` and `credit`: where in the flow a packet is, and what of it has
//! room.
//!
//! ```text
//!   0                    32      40
//!  +--------------------+-------+----------
//!  |  place (low 32)     | kind  | bytes …
//!  +--------------------+-------+----------
//!   kind  0   a packet of a unit: its first byte in the flow of all, or its unit's number
//!         1   a packet that does not count: as many of either are before it
//!         2   the sender has used so many, and may send no more; nothing follows
//!         3   the receiver has room for so many in all; nothing follows
//! ```
//!
//! Places are counted from the beginning of the epoch (RFC 9000, section 4.1: limits are absolute,
//! so that one that is lost or repeated changes nothing). Whoever reads one extends it to 64 bits
//! from the one that it expects.

use crate::Malformed;
use crate::bytes::Reader;
pub use crate::sequence::extend;

/// Length in bytes.
pub const LEN: usize = 5;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is of a unit, and counts.
    Counted,
    /// It does not count.
    Beside,
    /// The sender waits for room (RFC 9000, section 19.12: DATA_BLOCKED).
    Blocked,
    /// The receiver says how much there is (section 19.9: MAX_DATA).
    Granted,
}

/// The legal form of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The low 32 bits of a place, in bytes or units.
    pub place: u32,
    /// What the packet is.
    pub kind: Kind,
}

impl Header {
    /// Reads the header at the front of a packet.
    ///
    /// # Errors
    /// [`Malformed`] when the packet is too short, is of no kind, or has bytes that its kind has
    /// not.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(packet);
        let place = reader.u32()?;
        let kind = match reader.u8()? {
            0 => Kind::Counted,
            1 => Kind::Beside,
            2 => Kind::Blocked,
            3 => Kind::Granted,
            _ => return Err(Malformed),
        };
        let is_alone = matches!(kind, Kind::Blocked | Kind::Granted);
        if is_alone && !reader.0.is_empty() {
            return Err(Malformed);
        }
        Ok(Self { place, kind })
    }

    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let [a, b, c, d] = self.place.to_be_bytes();
        let kind = match self.kind {
            Kind::Counted => 0,
            Kind::Beside => 1,
            Kind::Blocked => 2,
            Kind::Granted => 3,
        };
        [a, b, c, d, kind]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_and_parse_are_inverse() {
        for kind in [Kind::Counted, Kind::Beside, Kind::Blocked, Kind::Granted] {
            let header = Header { place: 0xFFFF_FFFE, kind };
            assert_eq!(Header::parse(&header.emit()), Ok(header));
        }
        let counted = Header { place: 7, kind: Kind::Counted };
        assert_eq!(Header::parse(&[&counted.emit()[..], b"abc"].concat()), Ok(counted));
    }

    #[test]
    fn what_no_peer_writes_is_refused() {
        for kind in 4..=u8::MAX {
            assert_eq!(Header::parse(&[0, 0, 0, 0, kind]), Err(Malformed));
        }
        for len in 0..LEN {
            assert_eq!(Header::parse(&[0; LEN][..len]), Err(Malformed));
        }
        for kind in [2, 3] {
            assert_eq!(Header::parse(&[0, 0, 0, 9, kind, 0]), Err(Malformed), "nothing follows");
        }
    }
}
