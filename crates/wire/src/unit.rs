//! The unit header: what every unit begins with inside the graph, and the marks of a change.
//!
//! ```text
//!   0       4                                                     32
//!  +-------+-----------------------------------------------------+
//!  | kind  |   place of the unit in its epoch (low 28 bits)       |  + the unit's bytes
//!  +-------+-----------------------------------------------------+
//!  kind 0  data
//!       1  begin   + epoch u64, base u64     first in an epoch
//!       2  end     + epoch u64, count u64    last in an epoch
//!       3  probe   + nonce u64, padding      a way through a new epoch, there …
//!       4  answer  + nonce u64               … and back
//! ```
//!
//! It stands inside everything that the modules add, so it is sealed, repaired and ordered like the
//! data. The number of a unit is base(epoch) + place; only the low bits of the place are sent, once
//! per unit and not per packet. With it a receiver can say of every single unit what became of it,
//! whatever the graph. Marks have the place of the data unit that follows them.

use crate::Malformed;
use crate::bytes::Reader;
use crate::nearest::nearest;

/// Length in bytes.
pub const LEN: usize = 4;

/// Length in bytes of a begin or end mark, the unit header included.
pub const MARK_LEN: usize = 20;

const PLACE_BITS: u32 = 28;
const PLACE_MASK: u32 = (1 << PLACE_BITS) - 1;

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The application's bytes.
    Data,
    /// The first mark of an epoch.
    Begin,
    /// The last mark of an epoch.
    End,
    /// A full-size question whether an epoch's path carries.
    Probe,
    /// The answer to a probe.
    Answer,
}

/// The legal form of the unit header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the unit is.
    pub kind: Kind,
    /// The low 28 bits of its place.
    pub place: u32,
}

impl Header {
    /// The header of the unit at `place` in its epoch.
    #[must_use]
    pub fn new(kind: Kind, place: u64) -> Self {
        Self { kind, place: (place as u32) & PLACE_MASK }
    }

    /// Reads the header at the front of a unit.
    ///
    /// # Errors
    /// [`Malformed`] when the unit is too short or of an unknown kind.
    pub fn parse(unit: &[u8]) -> Result<Self, Malformed> {
        let word = Reader(unit).u32()?;
        let kind = match word >> PLACE_BITS {
            0 => Kind::Data,
            1 => Kind::Begin,
            2 => Kind::End,
            3 => Kind::Probe,
            4 => Kind::Answer,
            _ => return Err(Malformed),
        };
        Ok(Self { kind, place: word & PLACE_MASK })
    }

    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let kind: u32 = match self.kind {
            Kind::Data => 0,
            Kind::Begin => 1,
            Kind::End => 2,
            Kind::Probe => 3,
            Kind::Answer => 4,
        };
        ((kind << PLACE_BITS) | (self.place & PLACE_MASK)).to_be_bytes()
    }

    /// The whole place nearest to `expected`; `None` when that would lie before 0.
    #[must_use]
    pub fn place_near(&self, expected: u64) -> Option<u64> {
        nearest(self.place, PLACE_BITS, expected)
    }
}

/// The body of a begin or end mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The epoch.
    pub epoch: u64,
    /// Begin: the number of the epoch's first unit. End: how many units the epoch had.
    pub number: u64,
}

impl Mark {
    /// Reads the body that follows the unit header.
    ///
    /// # Errors
    /// [`Malformed`] when it is too short.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        Ok(Self { epoch: reader.u64()?, number: reader.u64()? })
    }

    /// The bytes of the whole mark, the unit header included.
    #[must_use]
    pub fn emit(&self, header: Header) -> [u8; MARK_LEN] {
        let mut bytes = [0; MARK_LEN];
        let fields =
            [header.emit().as_slice(), &self.epoch.to_be_bytes(), &self.number.to_be_bytes()]
                .concat();
        for (to, from) in bytes.iter_mut().zip(fields) {
            *to = from;
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_and_parse_are_inverse() {
        for kind in [Kind::Data, Kind::Begin, Kind::End, Kind::Probe, Kind::Answer] {
            let header = Header::new(kind, 0x1234_5678_9ABC);
            assert_eq!(Header::parse(&header.emit()), Ok(header));
        }
        assert_eq!(Header::parse(&[0xF0, 0, 0, 0]), Err(Malformed));
        assert_eq!(Header::parse(&[0, 0, 0]), Err(Malformed));
    }

    #[test]
    fn a_mark_survives_the_wire() {
        let mark = Mark { epoch: 3, number: 1 << 40 };
        let bytes = mark.emit(Header::new(Kind::End, 9));
        assert_eq!(Mark::parse(&bytes[LEN..]), Ok(mark));
        assert_eq!(Mark::parse(&bytes[LEN..MARK_LEN - 1]), Err(Malformed));
    }

    #[test]
    fn a_place_is_extended_to_the_nearest() {
        let turn = 1_u64 << PLACE_BITS;
        for place in [0, 1, 1_000, turn - 1, turn, turn + 1, 5 * turn + 17] {
            let header = Header::new(Kind::Data, place);
            for expected in [place.saturating_sub(900), place, place + 900] {
                assert_eq!(header.place_near(expected), Some(place), "{place} {expected}");
            }
        }
        assert_eq!(Header::new(Kind::Data, turn - 1).place_near(0), None);
    }
}
