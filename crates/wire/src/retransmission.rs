//! The header of the modules of retransmission, and what their receivers ask for.
//!
//! ```text
//!   0                    32        40
//!  +--------------------+---------+----------
//!  |  number (low 32)    | attempt | bytes …
//!  +--------------------+---------+----------
//!   attempt   0         the packet with this number, sent first
//!             1 to 15   the same again, because it was asked for so many times
//!             254       the next packet will have this number; age u32: µs since the last one left
//!             255       asked: ranges of first u32, count u16, attempt u8; number: how many µs ago
//!                       a packet must have left to be meant
//! ```
//!
//! Both ends begin an epoch at 0; the receiver extends a number to 64 bits from the one it expects,
//! the sender from the one it sends next. That an answer says which asking it answers makes a round
//! trip of it without a clock in the header.
//!
//! Own header. RFC 4585 section 6.2.1 asks by a packet and a mask of 16 behind it; ranges say runs
//! of any length in as many bytes.

use crate::Malformed;
use crate::bytes::{Reader, all};
pub use crate::sequence::extend;

/// Length in bytes.
pub const LEN: usize = 5;

/// How many times a packet can be asked for.
pub const ATTEMPTS_MAX: u8 = 15;

/// The most ranges in one asking.
pub const RANGES_MAX: usize = 32;

/// The length of a range in bytes.
pub const RANGE_LEN: usize = 7;

const NEWEST: u8 = 254;
const ASKED: u8 = 255;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One that is sent first.
    First,
    /// One that is sent again, in answer to this asking: 1 to [`ATTEMPTS_MAX`].
    Again(u8),
    /// How far the sender is.
    Newest,
    /// What the receiver asks for.
    Asked,
}

/// The legal form of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The low 32 bits of the packet's number, or of the next one's; of [`Kind::Asked`] how many µs
    /// ago a packet must have left to be meant.
    pub number: u32,
    /// What the packet is.
    pub kind: Kind,
}

impl Header {
    /// Reads the header at the front of a packet.
    ///
    /// # Errors
    /// [`Malformed`] when the packet is too short, or is of no kind.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(packet);
        let number = reader.u32()?;
        let kind = match reader.u8()? {
            0 => Kind::First,
            attempt @ 1..=ATTEMPTS_MAX => Kind::Again(attempt),
            NEWEST => Kind::Newest,
            ASKED => Kind::Asked,
            _ => return Err(Malformed),
        };
        Ok(Self { number, kind })
    }

    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let [a, b, c, d] = self.number.to_be_bytes();
        let kind = match self.kind {
            Kind::First => 0,
            Kind::Again(attempt) => attempt,
            Kind::Newest => NEWEST,
            Kind::Asked => ASKED,
        };
        [a, b, c, d, kind]
    }
}

/// Packets that are missing, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The low 32 bits of the first one's number.
    pub first: u32,
    /// How many they are, at least 1.
    pub count: u16,
    /// For which time they are asked for: 1 to [`ATTEMPTS_MAX`].
    pub attempt: u8,
}

impl Range {
    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; RANGE_LEN] {
        let [a, b, c, d] = self.first.to_be_bytes();
        let [e, f] = self.count.to_be_bytes();
        [a, b, c, d, e, f, self.attempt]
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let range = Self { first: reader.u32()?, count: reader.u16()?, attempt: reader.u8()? };
        let is_legal = range.count > 0 && (1..=ATTEMPTS_MAX).contains(&range.attempt);
        if is_legal { Ok(range) } else { Err(Malformed) }
    }
}

/// The ranges that follow a header of [`Kind::Asked`].
///
/// # Errors
/// [`Malformed`] where there are none or more than [`RANGES_MAX`], or one is none.
pub fn ranges(bytes: &[u8]) -> Result<impl Iterator<Item = Range>, Malformed> {
    if bytes.is_empty() {
        Err(Malformed)
    } else {
        all::<RANGE_LEN, _>(bytes, RANGES_MAX, Range::parse)
    }
}

/// How long ago the last packet left, in µs, which follows a header of [`Kind::Newest`].
///
/// # Errors
/// [`Malformed`] where there is anything else.
pub fn newest_age_us(bytes: &[u8]) -> Result<u32, Malformed> {
    let mut reader = Reader(bytes);
    let age = reader.u32()?;
    reader.end()?;
    Ok(age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_and_parse_are_inverse() {
        let kinds = [Kind::First, Kind::Again(1), Kind::Again(15), Kind::Newest, Kind::Asked];
        for kind in kinds {
            let header = Header { number: 0xFFFF_FFFE, kind };
            assert_eq!(Header::parse(&header.emit()), Ok(header));
        }
    }

    #[test]
    fn what_no_peer_writes_is_refused() {
        for kind in 16..=253 {
            assert_eq!(Header::parse(&[0, 0, 0, 0, kind]), Err(Malformed));
        }
        assert_eq!(Header::parse(&[0; 4]), Err(Malformed));
    }

    #[test]
    fn ranges_are_read_whole_or_not_at_all() {
        let range = |first, count, attempt| Range { first, count, attempt };
        let given = [range(7, 1, 1), range(u32::MAX, u16::MAX, 15)];
        let bytes: Vec<u8> = given.iter().flat_map(Range::emit).collect();
        assert_eq!(ranges(&bytes).map(Iterator::collect::<Vec<_>>), Ok(given.to_vec()));
        let refused = |bytes: &[u8]| ranges(bytes).is_err();
        assert!(refused(&[]) && refused(&bytes[1..]), "none, and a part of one");
        assert!(refused(&range(7, 1, 1).emit().repeat(RANGES_MAX + 1)), "too many");
        for wrong in [range(7, 0, 1), range(7, 1, 0), range(7, 1, 16)] {
            assert!(refused(&[bytes.clone(), wrong.emit().to_vec()].concat()), "{wrong:?}");
        }
    }

    #[test]
    fn an_age_is_four_bytes() {
        assert_eq!(newest_age_us(&[0, 0, 1, 0]), Ok(256));
        assert!(newest_age_us(&[0; 3]).is_err() && newest_age_us(&[0; 5]).is_err());
    }
}
