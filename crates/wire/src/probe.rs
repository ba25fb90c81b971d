//! Path probes: what opens a data path, measures it and shows that it lives.
//!
//! ```text
//!   0        1        2                 4                              12                   20
//!  +--------+--------+-----------------+------------------------------+--------------------+
//!  | 0x81   | flags  | size of question| connection (64)              | number (64)        |
//!  +--------+--------+--------+--------+-----------+------------------+--------------------+
//!  | asked (ns)               | received (ns)      | answered (ns)    | tag (64) | padding …
//!  +--------------------------+--------------------+------------------+----------+
//!  flags: 1 = answer
//!
//!  in the padding, where the sender counts:
//!  +--------+-----------------+--------------------+--------------------+
//!  | 0x01   | marked (24)     | packets (32)       | tag (64)           |
//!  +--------+-----------------+--------------------+--------------------+
//! ```
//!
//! The listener gives the dialer a token over the control connection. `connection` is derived from
//! it and goes in clear; `tag` is a keyed hash over all fields before it, with the token as the
//! key, so an answer comes from the peer and is unaltered. A question is answered once, with an
//! answer that is never longer than it. The times give the round trip and the offset of the clocks
//! as in RFC 5905, section 8. A question says how many packets of flows have left before it, an
//! answer to such a one how many had come before the question: the difference of two of each is
//! what the path has lost between them, without a number in each packet; and how many of them came
//! with a mark of congestion (RFC 3168, CE). Who does not know of counts takes them for padding.

use crate::Malformed;
use crate::bytes::Reader;

/// The type byte of a path probe.
pub const TYPE_PROBE: u8 = 0x81;

/// Length in bytes, without padding.
pub const LEN: usize = 52;

/// How many bytes the tag covers.
pub const COVERED_LEN: usize = 44;

const ANSWER: u8 = 1;

/// Length in bytes of a count.
pub const COUNT_LEN: usize = 16;

const COUNT: u8 = 1;

/// How many marked packets a count tells apart.
pub const MARKED_RANGE: u32 = 1 << 24;

/// How many packets of flows have left, or come, since the path was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The low 32 bits of their number.
    pub packets: u32,
    /// The low 24 bits of how many of them came with a mark of congestion; 0 of those that left.
    pub marked: u32,
    /// The keyed hash over the probe's tag and the fields before.
    pub tag: u64,
}

impl Count {
    /// The bytes before its tag.
    #[must_use]
    pub fn covered(&self) -> [u8; COUNT_LEN - 8] {
        let head = (u32::from(COUNT) << 24) | (self.marked % MARKED_RANGE);
        ((u64::from(head) << 32) | u64::from(self.packets)).to_be_bytes()
    }

    /// What lies in the padding, if it is one.
    fn parse(reader: &mut Reader<'_>) -> Option<Self> {
        let head = reader.u32().ok()?;
        let marked = head % MARKED_RANGE;
        let count = Self { packets: reader.u32().ok()?, marked, tag: reader.u64().ok()? };
        (head >> 24 == u32::from(COUNT)).then_some(count)
    }
}

/// The legal form of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// True for the answer.
    pub answer: bool,
    /// The question's length in bytes, padding included, as sent (question) or as received
    /// (answer).
    pub size: u16,
    /// Which connection it belongs to.
    pub connection: u64,
    /// The asker's number for this question.
    pub number: u64,
    /// The asker's clock when it asked, in nanoseconds.
    pub asked_ns: u64,
    /// The answerer's clock when the question came; 0 in a question.
    pub received_ns: u64,
    /// The answerer's clock when it answered; 0 in a question.
    pub answered_ns: u64,
    /// The keyed hash over the fields before it.
    pub tag: u64,
    /// What its sender has counted.
    pub count: Option<Count>,
}

impl Probe {
    /// Reads a probe; what follows it is padding.
    ///
    /// # Errors
    /// [`Malformed`] when the datagram is too short or of another type.
    pub fn parse(datagram: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(datagram);
        if reader.u8()? != TYPE_PROBE {
            return Err(Malformed);
        }
        Ok(Self {
            answer: reader.u8()? & ANSWER != 0,
            size: reader.u16()?,
            connection: reader.u64()?,
            number: reader.u64()?,
            asked_ns: reader.u64()?,
            received_ns: reader.u64()?,
            answered_ns: reader.u64()?,
            tag: reader.u64()?,
            count: Count::parse(&mut reader),
        })
    }

    /// The bytes that the tag covers: all fields before it.
    #[must_use]
    pub fn covered(&self) -> [u8; COVERED_LEN] {
        let flags = u64::from(TYPE_PROBE) << 8 | if self.answer { u64::from(ANSWER) } else { 0 };
        let head = (flags << 16 | u64::from(self.size)) as u32;
        let words =
            [self.connection, self.number, self.asked_ns, self.received_ns, self.answered_ns];
        let mut bytes = [0; COVERED_LEN];
        if let Some((first, rest)) = bytes.split_first_chunk_mut::<4>() {
            *first = head.to_be_bytes();
            for (to, word) in rest.chunks_exact_mut(8).zip(words) {
                to.copy_from_slice(&word.to_be_bytes());
            }
        }
        bytes
    }

    /// Appends the bytes, and padding up to `len` bytes in all.
    pub fn emit(&self, len: usize, into: &mut Vec<u8>) {
        let start = into.len();
        into.extend_from_slice(&self.covered());
        into.extend_from_slice(&self.tag.to_be_bytes());
        if let Some(count) = &self.count {
            into.extend_from_slice(&count.covered());
            into.extend_from_slice(&count.tag.to_be_bytes());
        }
        into.resize(into.len().max(start.saturating_add(len)), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_and_parse_are_inverse_and_padding_is_ignored() {
        let probe = Probe {
            answer: true,
            size: 1_452,
            connection: 7,
            number: 1,
            asked_ns: 2,
            received_ns: 3,
            answered_ns: 4,
            tag: 5,
            count: None,
        };
        let mut bytes = Vec::new();
        probe.emit(0, &mut bytes);
        assert_eq!(bytes.len(), LEN);
        assert_eq!(Probe::parse(&bytes), Ok(probe));
        probe.emit(300, &mut bytes);
        assert_eq!(bytes.len(), LEN + 300);
        assert_eq!(Probe::parse(&bytes[LEN..]), Ok(probe), "padding is no count");
        assert_eq!(Probe::parse(&bytes[..LEN - 1]), Err(Malformed));
        assert_eq!(Probe::parse(&[0x80; LEN]), Err(Malformed));
    }

    #[test]
    fn a_count_lies_in_the_padding_and_one_that_is_cut_short_or_of_another_kind_is_none() {
        let count = Some(Count { packets: u32::MAX - 1, marked: MARKED_RANGE - 2, tag: 9 });
        let plain = Probe {
            answer: false,
            size: 0,
            connection: 7,
            number: 1,
            asked_ns: 2,
            received_ns: 0,
            answered_ns: 0,
            tag: 5,
            count: None,
        };
        let counted = Probe { count, ..plain };
        for len in [0, LEN, LEN + COUNT_LEN, 300] {
            let mut bytes = Vec::new();
            counted.emit(len, &mut bytes);
            assert_eq!(bytes.len(), len.max(LEN + COUNT_LEN));
            assert_eq!(Probe::parse(&bytes), Ok(counted));
            assert_eq!(Probe::parse(&bytes[..LEN + COUNT_LEN - 1]), Ok(plain));
            bytes[LEN] = 2;
            assert_eq!(Probe::parse(&bytes), Ok(plain));
        }
    }
}
