//! Path probes: what opens a data path, measures it and shows that it lives.
//!
//! ```text
//!   0        1        2                 4                         20                28
//!  +--------+--------+-----------------+-------------------------+-----------------+
//!  | 0x81   | flags  | size of question| token (128 bits)         | number (64)     |
//!  +--------+--------+-----------------+-------------------------+-----------------+
//!  | sent by the asker (ns)            | received (ns)            | answered (ns)   | padding …
//!  +-----------------------------------+-------------------------+-----------------+
//!  flags: 1 = answer
//! ```
//!
//! The token names the connection of two cores; the listener gave it over the control connection, so
//! who knows it is the peer or reads the path. A question is answered once, with an answer that is
//! never longer than it. The three times give the round trip and the offset of the clocks as in
//! RFC 5905, section 8.

use crate::Malformed;
use crate::bytes::Reader;

/// The type byte of a path probe.
pub const TYPE_PROBE: u8 = 0x81;

/// Length in bytes, without padding.
pub const LEN: usize = 52;

const ANSWER: u8 = 1;

/// The legal form of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// True for the answer.
    pub answer: bool,
    /// The question's length in bytes, padding included, as sent (question) or as received (answer).
    pub size: u16,
    /// Which connection it belongs to.
    pub token: [u8; 16],
    /// The asker's number for this question.
    pub number: u64,
    /// The asker's clock when it asked, in nanoseconds.
    pub asked_ns: u64,
    /// The answerer's clock when the question came; 0 in a question.
    pub received_ns: u64,
    /// The answerer's clock when it answered; 0 in a question.
    pub answered_ns: u64,
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
            token: reader.bytes16()?,
            number: reader.u64()?,
            asked_ns: reader.u64()?,
            received_ns: reader.u64()?,
            answered_ns: reader.u64()?,
        })
    }

    /// Appends the bytes, and padding up to `len` bytes in all.
    pub fn emit(&self, len: usize, into: &mut Vec<u8>) {
        let start = into.len();
        into.extend_from_slice(&[TYPE_PROBE, if self.answer { ANSWER } else { 0 }]);
        into.extend_from_slice(&self.size.to_be_bytes());
        into.extend_from_slice(&self.token);
        for word in [self.number, self.asked_ns, self.received_ns, self.answered_ns] {
            into.extend_from_slice(&word.to_be_bytes());
        }
        into.resize(start.saturating_add(len.max(LEN)), 0);
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
            token: [7; 16],
            number: 1,
            asked_ns: 2,
            received_ns: 3,
            answered_ns: 4,
        };
        let mut bytes = Vec::new();
        probe.emit(0, &mut bytes);
        assert_eq!(bytes.len(), LEN);
        assert_eq!(Probe::parse(&bytes), Ok(probe));
        probe.emit(300, &mut bytes);
        assert_eq!(bytes.len(), LEN + 300);
        assert_eq!(Probe::parse(&bytes[..LEN - 1]), Err(Malformed));
        assert_eq!(Probe::parse(&[0x80; LEN]), Err(Malformed));
    }
}
