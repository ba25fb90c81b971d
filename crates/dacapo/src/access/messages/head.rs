//! Decoder: [`Head`], what stands before the bytes of a message in each of its units.
//!
//! ```text
//!   0         1          2          4        12       20       28
//!   | version | reserved | priority | number | length | offset | bytes of the message …
//! ```
//!
//! Integers are big-endian; `version` is 1; what is reserved is written as 0 and not looked at.
//! First and last units need no marks: `offset` is 0, or `offset` and the bytes make the length.
//! Decided here: of the original no format is published.
//!
//! Invariant: a head that was read with its bytes lies within its message, and brings something of
//! it: no bytes only where the message has none.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

/// Length of a head in bytes.
pub const HEAD_LEN: usize = 28;

/// The version of the format.
const VERSION: u8 = 1;

/// A unit is no unit of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// What stands before the bytes of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The sender's priority; smaller is more urgent.
    pub priority: u16,
    /// The number of the message in its flow, from 0, in the order in which they begin.
    pub number: u64,
    /// Length of the whole message in bytes.
    pub len: u64,
    /// The place of the unit's first byte in the message.
    pub offset: u64,
}

impl Head {
    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; HEAD_LEN] {
        let mut bytes = [0; HEAD_LEN];
        let fields = [self.number, self.len, self.offset].map(u64::to_be_bytes);
        let all = [VERSION, 0].into_iter().chain(self.priority.to_be_bytes());
        let all = all.chain(fields.into_iter().flatten());
        bytes.iter_mut().zip(all).for_each(|(at, byte)| *at = byte);
        bytes
    }

    /// Takes a unit apart.
    ///
    /// # Errors
    /// It is too short, of another version, reaches beyond its message, or brings nothing.
    pub fn parse(unit: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (version, rest) = take::<1>(unit)?;
        if version != [VERSION] {
            return Err(Malformed);
        }
        let (_, rest) = take::<1>(rest)?;
        let (priority, rest) = take(rest)?;
        let (number, rest) = take(rest)?;
        let (len, rest) = take(rest)?;
        let (offset, bytes) = take(rest)?;
        let head = Self {
            priority: u16::from_be_bytes(priority),
            number: u64::from_be_bytes(number),
            len: u64::from_be_bytes(len),
            offset: u64::from_be_bytes(offset),
        };
        let end = head.offset.checked_add(bytes.len() as u64).ok_or(Malformed)?;
        let is_sound = end <= head.len && bytes.is_empty() == (head.len == 0);
        if is_sound { Ok((head, bytes)) } else { Err(Malformed) }
    }
}

fn take<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), Malformed> {
    let (taken, rest) = bytes.split_first_chunk::<N>().ok_or(Malformed)?;
    Ok((*taken, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Head = Head { priority: 0x0102, number: 3, len: 1_000, offset: 997 };

    #[test]
    fn a_head_has_the_bytes_of_the_picture_and_reads_back() {
        let bytes = HEAD.emit();
        let mut expected = vec![1, 0, 1, 2];
        expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 3]);
        expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 3, 0xE8]);
        expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 3, 0xE5]);
        assert_eq!(bytes.as_slice(), expected);
        let unit = [&bytes[..], b"end"].concat();
        assert_eq!(Head::parse(&unit), Ok((HEAD, b"end".as_slice())));
        let marked = [&[1, 0xFF], &unit[2..]].concat();
        assert!(Head::parse(&marked).is_ok(), "what is reserved may mean something later");
        let empty = Head { len: 0, offset: 0, ..HEAD };
        assert_eq!(Head::parse(&empty.emit()), Ok((empty, b"".as_slice())));
    }

    #[test]
    fn every_truncation_other_versions_and_lies_about_lengths_are_refused() {
        let unit = [&HEAD.emit()[..], b"end"].concat();
        for len in 0..=HEAD_LEN {
            assert_eq!(Head::parse(&unit[..len]), Err(Malformed), "{len}");
        }
        let lies = [
            Head { offset: 998, ..HEAD },
            Head { offset: u64::MAX - 2, len: u64::MAX, ..HEAD },
            Head { offset: u64::MAX, ..HEAD },
            Head { len: 0, offset: 0, ..HEAD },
        ];
        for head in lies {
            let unit = [&head.emit()[..], b"end"].concat();
            let is_within = head.offset.checked_add(3).is_some_and(|end| end <= head.len);
            assert_eq!(Head::parse(&unit).is_ok(), is_within, "{head:?}");
        }
        let beyond = Head { len: 0, offset: 1, ..HEAD };
        assert_eq!(Head::parse(&beyond.emit()), Err(Malformed));
        let later = [&[2], &unit[1..]].concat();
        assert_eq!(Head::parse(&later), Err(Malformed));
    }
}
