//! The header of modules that acknowledge, and what their receivers say has come.
//!
//! ```text
//!   0                    32        40
//!  +--------------------+---------+----------
//!  |  number (low 32)    | attempt | bytes …
//!  +--------------------+---------+----------
//!   attempt   0         the packet with this number, sent first
//!             1 to 120  the same, sent again for so many times; 120: or more
//!             + 128     it asks to be acknowledged at once (as QUIC's IMMEDIATE_ACK does)
//!             255       acknowledged: everything before this number has come, and then
//!
//!      0          32        40        72             104
//!     +-----------+---------+---------+--------------+-------------------------------
//!     | number    | attempt | held    | duplicates   | ranges of first u32, count u16 …
//!     +-----------+---------+---------+--------------+-------------------------------
//! ```
//!
//! The number and attempt of the packet that came last, and how many µs ago it did: with them the
//! sender knows a round trip whatever was sent again (RFC 7323 does it by a clock). How many
//! packets came twice in all, of 32 bits: then something was sent again too early (RFC 2883). The
//! ranges have come, too (RFC 2018).
//!
//! Both ends begin an epoch at 0; the receiver extends a number to 64 bits from the one it expects,
//! the sender from the first that is not acknowledged.

use crate::Malformed;
use crate::bytes::{Reader, all};
pub use crate::sequence::extend;

/// Length in bytes.
pub const LEN: usize = 5;

/// The highest attempt that is told from others.
pub const ATTEMPTS_MAX: u8 = 120;

/// The most ranges in one acknowledgement.
pub const RANGES_MAX: usize = 32;

/// The length of what is said before the ranges, in bytes.
pub const STATE_LEN: usize = 13;

/// The length of a range in bytes.
pub const RANGE_LEN: usize = 6;

/// The bit of a packet that asks.
const ASKS: u8 = 128;

const ACKNOWLEDGED: u8 = 255;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One that was sent.
    Sent {
        /// For so many times again; 0: first.
        attempt: u8,
        /// It is to be acknowledged at once.
        asks: bool,
    },
    /// What the receiver says.
    Acknowledged,
}

/// The legal form of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The low 32 bits of the packet's number, or of the first that has not come.
    pub number: u32,
    /// What the packet is.
    pub kind: Kind,
}

impl Header {
    /// Reads the header at the front of a packet.
    ///
    /// # Errors
    /// [`Malformed`] when the packet is too short, or of no kind.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(packet);
        let number = reader.u32()?;
        let kind = match reader.u8()? {
            ACKNOWLEDGED => Kind::Acknowledged,
            byte => Kind::Sent { attempt: byte & !ASKS, asks: byte & ASKS != 0 },
        };
        if matches!(kind, Kind::Sent { attempt, .. } if attempt > ATTEMPTS_MAX) {
            return Err(Malformed);
        }
        Ok(Self { number, kind })
    }

    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let [a, b, c, d] = self.number.to_be_bytes();
        let kind = match self.kind {
            Kind::Sent { attempt, asks } => attempt.min(ATTEMPTS_MAX) | if asks { ASKS } else { 0 },
            Kind::Acknowledged => ACKNOWLEDGED,
        };
        [a, b, c, d, kind]
    }
}

/// What is said before the ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The low 32 bits of the number of the packet that came last.
    pub number: u32,
    /// Its attempt.
    pub attempt: u8,
    /// How long ago it came, in µs.
    pub held_us: u32,
    /// How many packets came twice.
    pub duplicates: u32,
}

impl State {
    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; STATE_LEN] {
        let [a, b, c, d] = self.number.to_be_bytes();
        let [e, f, g, h] = self.held_us.to_be_bytes();
        let [i, j, k, l] = self.duplicates.to_be_bytes();
        [a, b, c, d, self.attempt, e, f, g, h, i, j, k, l]
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            number: reader.u32()?,
            attempt: reader.u8()?,
            held_us: reader.u32()?,
            duplicates: reader.u32()?,
        })
    }
}

/// Packets that have come, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The low 32 bits of the first one's number.
    pub first: u32,
    /// How many they are, at least 1.
    pub count: u16,
}

impl Range {
    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; RANGE_LEN] {
        let [a, b, c, d] = self.first.to_be_bytes();
        let [e, f] = self.count.to_be_bytes();
        [a, b, c, d, e, f]
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let range = Self { first: reader.u32()?, count: reader.u16()? };
        if range.count > 0 { Ok(range) } else { Err(Malformed) }
    }
}

/// What follows a header of [`Kind::Acknowledged`].
///
/// # Errors
/// [`Malformed`] where the state is not whole, there are more ranges than [`RANGES_MAX`], or one is
/// none.
pub fn said(bytes: &[u8]) -> Result<(State, impl Iterator<Item = Range>), Malformed> {
    let mut reader = Reader(bytes);
    let state = State::parse(&mut reader)?;
    Ok((state, all::<RANGE_LEN, _>(reader.0, RANGES_MAX, Range::parse)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_and_parse_are_inverse() {
        let sent = |attempt, asks| Kind::Sent { attempt, asks };
        for kind in [sent(0, false), sent(1, true), sent(120, true), Kind::Acknowledged] {
            let header = Header { number: 0xFFFF_FFFE, kind };
            assert_eq!(Header::parse(&header.emit()), Ok(header));
        }
        let often = Header { number: 1, kind: sent(255, true) }.emit();
        assert_eq!(Header::parse(&often).map(|it| it.kind), Ok(sent(120, true)));
    }

    #[test]
    fn what_no_peer_writes_is_refused() {
        for kind in (121..=127).chain(249..=254) {
            assert_eq!(Header::parse(&[0, 0, 0, 0, kind]), Err(Malformed));
        }
        assert_eq!(Header::parse(&[0; 4]), Err(Malformed));
    }

    #[test]
    fn what_is_said_is_read_whole_or_not_at_all() {
        let state = State { number: 7, attempt: 3, held_us: 900, duplicates: u32::MAX };
        let given = [Range { first: 9, count: 1 }, Range { first: u32::MAX, count: u16::MAX }];
        let ranges: Vec<u8> = given.iter().flat_map(Range::emit).collect();
        let bytes = [&state.emit()[..], &ranges].concat();
        let read = |bytes: &[u8]| said(bytes).map(|(state, it)| (state, it.collect::<Vec<_>>()));
        assert_eq!(read(&bytes), Ok((state, given.to_vec())));
        assert_eq!(read(&state.emit()), Ok((state, Vec::new())));
        let refused = |bytes: &[u8]| said(bytes).is_err();
        assert!(refused(&[]) && refused(&bytes[1..]) && refused(&bytes[..bytes.len() - 1]));
        assert!(refused(&[&state.emit()[..], &[0; RANGE_LEN]].concat()), "a range of none");
        let many = given[0].emit().repeat(RANGES_MAX + 1);
        assert!(refused(&[&state.emit()[..], &many].concat()), "too many");
    }
}
