//! Records on a stream: reassembled from the pieces in which a stream delivers them.
//!
//! ```text
//!   0          2                  6               6 + length
//!  +----------+------------------+---------------+----------+---
//!  | type u16 | length u32       |     body      | type u16 | …
//!  +----------+------------------+---------------+----------+---
//!  type >= 0x8000: passed over when it is not known
//! ```
//!
//! Invariants: a [`Reader`] holds at most one record of the greatest length, and grows only as
//! bytes come. A type or length that is an error is one as soon as the header is there. After an
//! error there is no way on: the stream is to be reset.
//!
//! Source: docs/protocol.md, "Control connection".

use std::error::Error;
use std::fmt;

use crate::bytes;
use crate::limits::BODY_LEN_MAX;
use crate::message::{Message, MessageKind};
use crate::tlv::Tag;

/// The length of a record's header: type and length.
pub const HEADER_LEN: usize = 6;

/// The length of the longest record, its header included.
pub const LEN_MAX: usize = HEADER_LEN + BODY_LEN_MAX;

/// From this type on, records that are not known are passed over.
pub const TYPE_OPTIONAL_MIN: u16 = 0x8000;

/// The memory in bytes that an idle [`Reader`] keeps.
const KEPT_LEN: usize = 64;

/// Reassembles the records of one stream.
///
/// ```
/// # use dacapo_wire::{message::Message, record::Reader, session::Activate};
/// # let mut bytes = Vec::new();
/// # Message::from(Activate { request: 7 }).encode(&mut bytes)?;
/// let mut reader = Reader::default();
/// for piece in bytes.chunks(5) {
///     assert!(piece.len() <= reader.room());
///     reader.push(piece)?;
///     while let Some(message) = reader.next()? {
///         assert_eq!(message, Message::from(Activate { request: 7 }));
///     }
/// }
/// assert!(reader.is_between_records());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Reader {
    buffer: Vec<u8>,
    /// How many bytes at the front of the buffer were read.
    taken: usize,
    failed: Option<RecordError>,
}

impl Reader {
    /// How many bytes [`Self::push`] takes now; at least one when [`Self::next`] returned `None`.
    #[must_use]
    pub fn room(&self) -> usize {
        LEN_MAX.saturating_sub(self.pending().len())
    }

    /// How many bytes it holds of a record that is not whole.
    #[must_use]
    pub fn len(&self) -> usize {
        LEN_MAX.saturating_sub(self.room())
    }

    /// True when nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all bytes were read and none belong to a record that is not whole: where a stream
    /// may end.
    #[must_use]
    pub fn is_between_records(&self) -> bool {
        self.pending().is_empty()
    }

    /// Takes the next bytes of the stream.
    ///
    /// # Errors
    /// [`RecordError::Full`], and nothing is taken, when there are more than [`Self::room`]; the
    /// error of [`Self::next`] when there was one.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if bytes.len() > self.room() {
            return Err(RecordError::Full { len: bytes.len(), room: self.room() });
        }
        self.buffer.drain(..self.taken.min(self.buffer.len()));
        self.taken = 0;
        self.grow(bytes.len());
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next record that is whole; `None` when more bytes are needed.
    ///
    /// # Errors
    /// [`RecordError`], now and from now on: the stream is to be reset.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot end and go on")]
    pub fn next(&mut self) -> Result<Option<Message>, RecordError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let message = self.read();
        self.failed = message.as_ref().err().copied();
        if self.failed.is_some() || self.is_between_records() {
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_LEN);
            self.taken = 0;
        }
        message
    }

    fn pending(&self) -> &[u8] {
        self.buffer.get(self.taken..).unwrap_or_default()
    }

    /// Reads past records that are passed over, to one that is not.
    fn read(&mut self) -> Result<Option<Message>, RecordError> {
        while let Some((code, body)) = split(self.pending())? {
            let len = body.len().saturating_add(HEADER_LEN);
            let message = match Message::decode(code, body) {
                Err(RecordError::UnknownType(code)) if code >= TYPE_OPTIONAL_MIN => None,
                message => Some(message?),
            };
            self.taken = self.taken.saturating_add(len);
            if message.is_some() {
                return Ok(message);
            }
        }
        Ok(None)
    }

    /// Doubles the memory as it is needed, never beyond one record.
    fn grow(&mut self, added: usize) {
        let len = self.buffer.len().saturating_add(added);
        if len > self.buffer.capacity() {
            let capacity = self.buffer.capacity().saturating_mul(2).max(len).min(LEN_MAX);
            self.buffer.reserve_exact(capacity.saturating_sub(self.buffer.len()));
        }
    }
}

/// The record at the front; `None` when it is not whole.
fn split(pending: &[u8]) -> Result<Option<(u16, &[u8])>, RecordError> {
    let mut reader = bytes::Reader(pending);
    let (Ok(kind), Ok(len)) = (reader.u16(), reader.u32()) else { return Ok(None) };
    if MessageKind::from_code(kind).is_none() && kind < TYPE_OPTIONAL_MIN {
        return Err(RecordError::UnknownType(kind));
    }
    match usize::try_from(len) {
        Ok(body_len) if body_len <= BODY_LEN_MAX => {
            Ok(reader.take(body_len).ok().map(|body| (kind, body)))
        }
        _ => Err(RecordError::TooLong { kind, len }),
    }
}

/// Bytes that are not records of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The caller, not the peer: more bytes were pushed than there is room.
    Full {
        /// How many.
        len: usize,
        /// How many there was room for.
        room: usize,
    },
    /// A type that is not known and must not be passed over.
    UnknownType(u16),
    /// A length beyond [`BODY_LEN_MAX`].
    TooLong {
        /// The type.
        kind: u16,
        /// The length of the body in bytes.
        len: u32,
    },
    /// A body that is not of its record's form.
    Malformed {
        /// The type.
        kind: u16,
        /// The tag of the field, also within an element of a list; 0 when it could not be read.
        field: u16,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Full { len, room } => {
                write!(f, "{len} bytes for a reader with room for {room}; ")?;
                f.write_str("read the records first and push at most what there is room for")
            }
            Self::UnknownType(code) => {
                write!(f, "a record of type {code:#06x}, which this version does not know; ")?;
                f.write_str("reset the stream")
            }
            Self::TooLong { kind, len } => {
                write!(f, "{} of {len} bytes, more than {BODY_LEN_MAX}; ", Kind(kind))?;
                f.write_str("reset the stream")
            }
            Self::Malformed { kind, field, what } => {
                write!(f, "{}, {}: {what}; reset the stream", Kind(kind), Field(field))
            }
        }
    }
}

impl Error for RecordError {}

/// A [`Message`] that has no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The parts are legal, but together they are longer than [`BODY_LEN_MAX`].
    TooLong {
        /// What it is.
        kind: MessageKind,
        /// The length of the body in bytes.
        len: usize,
    },
    /// A field is not legal.
    Field {
        /// What it is.
        kind: MessageKind,
        /// The tag of the field, also within an element of a list.
        field: u16,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooLong { kind, len } => {
                write!(f, "{} of {len} bytes, more than {BODY_LEN_MAX}; ", kind.name())?;
                f.write_str("use fewer or shorter elements")
            }
            Self::Field { kind, field, what } => {
                write!(f, "{}, {}: {what}; not sent", kind.name(), Field(field))
            }
        }
    }
}

impl Error for EncodeError {}

struct Kind(u16);

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match MessageKind::from_code(self.0) {
            Some(kind) => f.write_str(kind.name()),
            None => write!(f, "a record of type {:#06x}", self.0),
        }
    }
}

struct Field(u16);

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Tag::from_code(self.0) {
            Some(tag) => write!(f, "field {} ({})", self.0, tag.name()),
            None if self.0 == 0 => f.write_str("a field"),
            None => write!(f, "field {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Activate, Closed};

    fn record(kind: u16, body: &[u8]) -> Vec<u8> {
        let len = u32::try_from(body.len()).expect("short");
        [&kind.to_be_bytes()[..], &len.to_be_bytes(), body].concat()
    }

    #[test]
    fn an_unknown_record_is_passed_over_from_0x8000_on() {
        let mut reader = Reader::default();
        let known = Message::from(Closed);
        let mut bytes = record(0x8000, &[1, 2, 3]);
        bytes.extend(record(0xFFFF, &[]));
        known.encode(&mut bytes).expect("legal");
        reader.push(&bytes).expect("room");
        assert_eq!(reader.next(), Ok(Some(known)));
        assert_eq!(reader.next(), Ok(None));
        for kind in [0, 7, 0x0014, 0x7FFF] {
            let mut reader = Reader::default();
            reader.push(&record(kind, &[])).expect("room");
            assert_eq!(reader.next(), Err(RecordError::UnknownType(kind)));
        }
    }

    #[test]
    fn a_length_beyond_the_bound_is_refused_before_its_bytes_come() {
        for kind in [0x0011_u16, 0x8001] {
            let mut reader = Reader::default();
            reader.push(&kind.to_be_bytes()).expect("room");
            reader.push(&65_537_u32.to_be_bytes()).expect("room");
            assert_eq!(reader.next(), Err(RecordError::TooLong { kind, len: 65_537 }));
        }
    }

    #[test]
    fn an_error_stays() {
        let mut reader = Reader::default();
        reader.push(&record(0x0015, &[0, 10, 0, 1, 5])).expect("room");
        let error = reader.next().expect_err("request is a u32");
        assert_eq!(
            error.to_string(),
            "ACTIVATE, field 10 (request): the value has the wrong length; reset the stream"
        );
        assert_eq!(reader.next(), Err(error));
        assert_eq!(reader.push(&[0]), Err(error));
    }

    #[test]
    fn the_memory_is_bounded_by_one_record_and_given_back() {
        let mut reader = Reader::default();
        let bytes = record(0x8000, &vec![0; BODY_LEN_MAX]);
        assert_eq!((reader.room(), bytes.len()), (LEN_MAX, LEN_MAX));
        let error = RecordError::Full { len: LEN_MAX + 1, room: LEN_MAX };
        assert_eq!(reader.push(&vec![0; LEN_MAX + 1]), Err(error));
        for (count, byte) in bytes.iter().enumerate() {
            reader.push(&[*byte]).expect("room");
            let held = reader.buffer.capacity();
            assert!(held <= LEN_MAX && held <= 2 * (count + 1).max(4), "{count}: {held}");
        }
        assert_eq!((reader.room(), reader.is_between_records()), (0, false));
        assert_eq!(reader.next(), Ok(None));
        assert_eq!((reader.room(), reader.is_between_records()), (LEN_MAX, true));
        assert!(reader.buffer.capacity() <= KEPT_LEN);
    }

    #[test]
    fn there_is_always_room_when_no_record_is_whole() {
        let mut reader = Reader::default();
        let long = record(0x8000, &vec![0; BODY_LEN_MAX]);
        reader.push(&long[..LEN_MAX - 1]).expect("room");
        assert_eq!((reader.next(), reader.room()), (Ok(None), 1));
        reader.push(&[0]).expect("room");
        assert_eq!((reader.next(), reader.room()), (Ok(None), LEN_MAX));
    }

    #[test]
    fn errors_name_the_record_and_the_field() {
        let malformed =
            |kind, field| RecordError::Malformed { kind, field, what: "so" }.to_string();
        assert_eq!(malformed(0x11, 36), "OFFER, field 36 (graph): so; reset the stream");
        assert_eq!(malformed(0x11, 99), "OFFER, field 99: so; reset the stream");
        assert_eq!(malformed(0x11, 0), "OFFER, a field: so; reset the stream");
        let too_long = RecordError::TooLong { kind: 0x9000, len: 70_000 }.to_string();
        assert!(too_long.starts_with("a record of type 0x9000 of 70000 bytes, more than 65536"));
        let error = EncodeError::Field { kind: MessageKind::Join, field: 11, what: "so" };
        assert_eq!(error.to_string(), "JOIN, field 11 (name): so; not sent");
        assert!(Message::from(Activate { request: 0 }).encode(&mut Vec::new()).is_ok());
    }
}
