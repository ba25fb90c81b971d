//! Decoder: [`Spans`], which stretches of the stream an error control packet names.
//!
//! ```text
//!   0        4                12               20
//!  +--------+----------------+----------------+----
//!  | nspan  | left edge      | right edge     | …     bytes left .. right
//!  +--------+----------------+----------------+----
//! ```

use super::Fault;
use dacapo_wire::bytes::Reader;
use std::ops::Range;

/// The most spans of a packet (decided here). 4,096 of them have 64 KiB, more than a packet.
pub const SPANS_MAX: u32 = 4_096;

/// Bytes of a span.
pub(crate) const SPAN_LEN: usize = 16;

/// Bytes from `left` up to, and without, `right`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The number of the first byte.
    pub left: u64,
    /// One past the number of the last byte.
    pub right: u64,
}

impl Span {
    /// The numbers of its bytes.
    pub(crate) fn range(self) -> Range<u64> {
        self.left..self.right
    }
}

/// Spans, in a packet or in memory.
#[derive(Clone, Copy, Debug)]
pub enum Spans<'a> {
    /// As they came; the length is a multiple of 16.
    Bytes(&'a [u8]),
    /// To be written.
    List(&'a [Span]),
}

impl<'a> Spans<'a> {
    /// Reads `nspan` and the spans; nothing may follow them.
    ///
    /// # Errors
    /// [`Fault::Control`] without a number; [`Fault::Spans`] when the spans are not as many as it
    /// says, or more than [`SPANS_MAX`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Fault> {
        let mut reader = Reader(bytes);
        let count = reader.u32().or(Err(Fault::Control))?;
        // In 64 bits: 16 * 0x10000000 is 0 in 32.
        let len = u64::from(count).saturating_mul(SPAN_LEN as u64);
        if count > SPANS_MAX || len != reader.0.len() as u64 {
            return Err(Fault::Spans);
        }
        Ok(Self::Bytes(reader.0))
    }

    /// The spans in their order.
    pub fn iter(&self) -> impl Iterator<Item = Span> + use<'a> {
        let (bytes, list): (&[u8], &[Span]) = match self {
            Self::Bytes(bytes) => (bytes, &[]),
            Self::List(list) => (&[], list),
        };
        bytes.as_chunks::<SPAN_LEN>().0.iter().map(parse_span).chain(list.iter().copied())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len().checked_div(SPAN_LEN).unwrap_or(0),
            Self::List(list) => list.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether each has bytes, and each lies beyond the one before it and does not overlap it.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        let mut end = 0;
        self.iter().all(|span| {
            let is_next = span.left >= end && span.left < span.right;
            end = span.right;
            is_next
        })
    }

    /// Appends the bytes; of more than [`SPANS_MAX`] the first.
    pub fn emit(&self, into: &mut Vec<u8>) {
        let count = self.len().min(SPANS_MAX as usize);
        into.extend_from_slice(&(count as u32).to_be_bytes());
        for span in self.iter().take(count) {
            into.extend_from_slice(&span.left.to_be_bytes());
            into.extend_from_slice(&span.right.to_be_bytes());
        }
    }
}

impl PartialEq for Spans<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Spans<'_> {}

fn parse_span(bytes: &[u8; SPAN_LEN]) -> Span {
    let number = u128::from_be_bytes(*bytes);
    Span { left: (number >> 64) as u64, right: number as u64 }
}
