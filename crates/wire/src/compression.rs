//! The header of the modules that compress units: how a unit lies in its packets.
//!
//! ```text
//!  +----------+---------------------+
//!  |  form u8 |  plain, or packed…  |     every packet of the unit
//!  +----------+---------------------+
//!  0 plain   1 packed, one segment before that   2 packed, several, each of so many bytes u16
//! ```
//!
//! All packets of a unit say the same. The length of form 2 stands once, at the front of what is
//! packed. How long the unit is the packed bytes say, each in its own way.

use crate::Malformed;
use crate::bytes::Reader;

/// Length in bytes.
pub const LEN: usize = 1;

/// Length of the length of segments, in bytes.
pub const SEGMENT_LEN: usize = 2;

/// The shortest segments of a packed unit that has several, in bytes.
pub const SEGMENT_MIN: u16 = 64;

/// The legal form of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The unit as it is.
    Plain,
    /// A unit of one segment, packed.
    Packed,
    /// A unit of several segments, packed: their length first.
    PackedSegments,
}

impl Form {
    /// Reads the header at the front of a packet.
    ///
    /// # Errors
    /// [`Malformed`] when the packet is empty or the form is none of these.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        match Reader(packet).u8()? {
            0 => Ok(Self::Plain),
            1 => Ok(Self::Packed),
            2 => Ok(Self::PackedSegments),
            _ => Err(Malformed),
        }
    }

    /// The bytes.
    #[must_use]
    pub fn emit(self) -> [u8; LEN] {
        match self {
            Self::Plain => [0],
            Self::Packed => [1],
            Self::PackedSegments => [2],
        }
    }
}

/// How long the segments of a unit of several are, at the front of what is packed.
///
/// # Errors
/// [`Malformed`] when that is too short, or they are.
pub fn segment_len(packed: &[u8]) -> Result<u16, Malformed> {
    let len = Reader(packed).u16()?;
    if len >= SEGMENT_MIN { Ok(len) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_and_parse_are_inverse() {
        for form in [Form::Plain, Form::Packed, Form::PackedSegments] {
            assert_eq!(Form::parse(&form.emit()), Ok(form));
        }
        for bytes in [&[][..], &[3], &[255, 0]] {
            assert_eq!(Form::parse(bytes), Err(Malformed));
        }
    }

    #[test]
    fn short_segments_are_none() {
        assert_eq!(segment_len(&[0, 64, 1]), Ok(64));
        assert_eq!([segment_len(&[0, 63]), segment_len(&[9])], [Err(Malformed); 2]);
    }
}
