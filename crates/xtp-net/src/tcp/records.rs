//! Decoder: [`Records`], the bytes of a connection: its preface, and records that hold a packet
//! each.
//!
//! ```text
//!   who dials   "dXTP" | version 2 | port 2      at which it can be dialed itself
//!   both ends   length 2 | packet                0 is no length
//! ```
//!
//! What it is not: a socket, or a decision what is done to one whose bytes are none of these.
//!
//! Invariant: no more is kept than what was pushed last and a record that is not whole.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::fmt;

const MAGIC: [u8; 4] = *b"dXTP";
const VERSION: u16 = 1;
/// Bytes of a preface.
pub const PREFACE_LEN: usize = 8;
const HEAD_LEN: usize = 2;

/// What came is not what a connection says; nothing after it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRecords;

impl fmt::Display for NotRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a connection are no preface and no records of XTP packets")
    }
}

impl std::error::Error for NotRecords {}

/// Bytes that came by a connection and were not taken.
#[derive(Debug, Default)]
pub struct Records {
    /// From `at` on.
    came: Vec<u8>,
    at: usize,
    /// The preface was taken, and said this port.
    port: Option<u16>,
}

impl Records {
    /// More bytes came.
    pub fn push(&mut self, bytes: &[u8]) {
        // What was taken goes, so that no more than a record is kept.
        self.came.drain(..self.at.min(self.came.len()));
        self.at = 0;
        self.came.extend_from_slice(bytes);
    }

    /// The port of the preface, which is taken the first time; `None` while it is not whole.
    ///
    /// # Errors
    /// [`NotRecords`]: another magic or version, or no port.
    pub fn preface(&mut self) -> Result<Option<u16>, NotRecords> {
        if self.port.is_some() {
            return Ok(self.port);
        }
        let Some(&[a, b, c, d, v0, v1, p0, p1]) = self.came.first_chunk::<PREFACE_LEN>() else {
            return Ok(None);
        };
        let port = u16::from_be_bytes([p0, p1]);
        self.at = PREFACE_LEN;
        let is_one = [a, b, c, d] == MAGIC && u16::from_be_bytes([v0, v1]) == VERSION && port != 0;
        self.port = is_one.then_some(port);
        self.port.map(Some).ok_or(NotRecords)
    }

    /// The length of the next record, which is taken and copied to the front of `into`; `None`
    /// while it is not whole.
    ///
    /// # Errors
    /// [`NotRecords`]: a length of 0, or one that `into` has no room for.
    pub fn record(&mut self, into: &mut [u8]) -> Result<Option<usize>, NotRecords> {
        let rest = self.came.get(self.at..).unwrap_or_default();
        let Some((len, rest)) = rest.split_first_chunk::<HEAD_LEN>() else { return Ok(None) };
        let len = usize::from(u16::from_be_bytes(*len));
        let Some(room) = into.get_mut(..len).filter(|_| len > 0) else { return Err(NotRecords) };
        let Some(packet) = rest.get(..len) else { return Ok(None) };
        room.copy_from_slice(packet);
        self.at = self.at.saturating_add(HEAD_LEN).saturating_add(len);
        Ok(Some(len))
    }
}

/// What an end that dials says first: at which port it listens.
#[must_use]
pub fn preface_of(port: u16) -> [u8; PREFACE_LEN] {
    let ([a, b, c, d], [v0, v1], [p0, p1]) = (MAGIC, VERSION.to_be_bytes(), port.to_be_bytes());
    [a, b, c, d, v0, v1, p0, p1]
}

/// What goes before a packet of this length.
#[must_use]
pub const fn record_head(len: u16) -> [u8; HEAD_LEN] {
    len.to_be_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    fn with(bytes: &[u8]) -> Records {
        let mut records = Records::default();
        records.push(bytes);
        records
    }

    #[test]
    fn records_come_one_by_one_and_only_when_they_are_whole() {
        let bytes = [&[0, 3][..], b"one", &[0, 1], b"2", &[0, 9], b"half"].concat();
        let mut records = with(&bytes);
        let mut into = [0; 16];
        assert_eq!(records.record(&mut into), Ok(Some(3)));
        assert_eq!(&into[..3], b"one");
        assert_eq!(records.record(&mut into), Ok(Some(1)));
        assert_eq!(records.record(&mut into), Ok(None));
        records.push(b" more");
        assert_eq!(records.record(&mut into), Ok(Some(9)));
        assert_eq!(&into[..9], b"half more");
        assert_eq!(with(&[0, 0]).record(&mut into), Err(NotRecords), "a packet has a byte");
        assert_eq!(with(&[0, 17]).record(&mut into), Err(NotRecords), "longer than the room");
    }

    #[test]
    fn a_preface_is_taken_once() {
        let bytes = [&preface_of(7)[..], &[0, 1], b"a", &[0, 1], b"b"].concat();
        let (mut records, mut into) = (with(&bytes), [0; 4]);
        for packet in *b"ab" {
            assert_eq!(records.preface(), Ok(Some(7)));
            assert_eq!((records.record(&mut into), into[0]), (Ok(Some(1)), packet));
        }
        assert_eq!(records.record(&mut into), Ok(None));
    }

    #[test]
    fn a_preface_is_one_or_is_none() {
        assert_eq!(with(&preface_of(4_040)).preface(), Ok(Some(4_040)));
        assert_eq!(with(&preface_of(4_040)[..7]).preface(), Ok(None));
        assert_eq!(with(&preface_of(0)).preface(), Err(NotRecords));
        let mut random = Random::from_number(1);
        for at in 0..6 {
            let mut bytes = preface_of(7);
            bytes[at] ^= 1 + random.below(255) as u8;
            assert_eq!(with(&bytes).preface(), Err(NotRecords), "byte {at}");
        }
    }
}
