//! RIFF: the chunks that AVI and WAV are made of.
//!
//! Chunk headers out of bytes, an iterator over chunks in memory, and an emitter of nested chunks.
//!
//! ```text
//!   +----+--------+----------------+---+      +------+--------+------+--------------+
//!   | id | length | length bytes   |pad|      | LIST | length | kind | chunks ...   |
//!   +----+--------+----------------+---+      +------+--------+------+--------------+
//!     4      4 (LE)                 0/1         4        4       4
//! ```
//!
//! Invariants: an iteration step takes at least the 8 bytes of a header; a body is cut at the end
//! of the bytes that exist. Source: Microsoft, Multimedia Programming Interface 1.0 (RIFF).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use crate::format::FourCc;

/// Bytes of a chunk header.
pub(crate) const HEADER_LEN: u64 = 8;
/// A length that says that its writer could not go back and fill it in.
pub(crate) const LEN_UNKNOWN: u32 = u32::MAX;

pub(crate) fn le_u16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|raw| u16::from_le_bytes(*raw))
}

pub(crate) fn le_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|raw| u32::from_le_bytes(*raw))
}

pub(crate) fn le_u64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|raw| u64::from_le_bytes(*raw))
}

pub(crate) fn fourcc(bytes: &[u8], at: usize) -> Option<FourCc> {
    bytes.get(at..)?.first_chunk().map(|raw| FourCc(*raw))
}

/// The header of a chunk in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkHeader {
    /// Name of the chunk.
    pub id: FourCc,
    /// Length of its body in bytes, as written.
    pub len: u32,
    /// The first four bytes of the body: the kind, when the chunk is a list.
    pub kind: FourCc,
}

impl ChunkHeader {
    /// From the first 12 bytes of a chunk; the last 4 may be missing and are then zero.
    pub(crate) fn parse(bytes: &[u8; 12]) -> Self {
        let [i0, i1, i2, i3, l0, l1, l2, l3, k0, k1, k2, k3] = *bytes;
        Self {
            id: FourCc([i0, i1, i2, i3]),
            len: u32::from_le_bytes([l0, l1, l2, l3]),
            kind: FourCc([k0, k1, k2, k3]),
        }
    }

    /// Length of header, body and pad byte.
    pub(crate) fn padded_len(&self) -> u64 {
        padded(self.len).saturating_add(HEADER_LEN)
    }
}

/// A body's length with its pad byte.
pub(crate) fn padded(len: u32) -> u64 {
    u64::from(len).saturating_add(u64::from(len & 1))
}

/// A chunk in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'a> {
    /// Where its header is, in bytes from the start of the file.
    pub offset: u64,
    /// Name of the chunk.
    pub id: FourCc,
    /// Its body, as much as exists.
    pub body: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Kind and chunks, when this is a list.
    pub(crate) fn list(&self) -> Option<(FourCc, Chunks<'a>)> {
        let kind = fourcc(self.body, 0).filter(|_| self.id == FourCc(*b"LIST"))?;
        let offset = self.offset.saturating_add(12);
        Some((kind, Chunks { offset, rest: self.body.get(4..)? }))
    }
}

/// The chunks in a piece of memory, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Chunks<'a> {
    /// Where `rest` begins, in bytes from the start of the file.
    pub offset: u64,
    /// What has not been looked at yet.
    pub rest: &'a [u8],
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
        let (id, len) = (fourcc(self.rest, 0)?, le_u32(self.rest, 4)?);
        let body = self.rest.get(8..)?;
        let cut = usize::try_from(len).unwrap_or(usize::MAX).min(body.len());
        let chunk = Chunk { offset: self.offset, id, body: body.get(..cut)? };
        let step = usize::try_from(padded(len)).unwrap_or(usize::MAX).min(body.len());
        self.rest = body.get(step..).unwrap_or_default();
        self.offset = self.offset.saturating_add(HEADER_LEN).saturating_add(step as u64);
        Some(chunk)
    }
}

/// Builds nested chunks in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Emitter(pub Vec<u8>);

impl Emitter {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn zeros(&mut self, count: usize) -> &mut Self {
        self.0.resize(self.0.len().saturating_add(count), 0);
        self
    }

    /// A chunk whose body `build` writes; its length and its pad byte are filled in.
    pub(crate) fn chunk(&mut self, id: &[u8; 4], build: impl FnOnce(&mut Self)) -> &mut Self {
        self.bytes(id).u32(0);
        let start = self.0.len();
        build(self);
        let len = u32::try_from(self.0.len().saturating_sub(start)).unwrap_or(u32::MAX);
        let field = self.0.get_mut(start.saturating_sub(4)..).and_then(|tail| tail.get_mut(..4));
        if let Some(field) = field {
            field.copy_from_slice(&len.to_le_bytes());
        }
        self.zeros((len & 1) as usize)
    }

    /// A list of that kind whose chunks `build` writes.
    pub(crate) fn list(&mut self, kind: &[u8; 4], build: impl FnOnce(&mut Self)) -> &mut Self {
        self.chunk(b"LIST", |list| {
            list.bytes(kind);
            build(list);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_emitted_is_iterated() {
        let mut out = Emitter::default();
        out.list(b"outr", |list| {
            list.chunk(b"odd ", |chunk| {
                chunk.bytes(b"abc");
            });
            list.chunk(b"nil ", |_| {});
        });
        let mut chunks = Chunks { offset: 100, rest: &out.0 };
        let (kind, inner) = chunks.next().unwrap().list().unwrap();
        assert_eq!(kind, FourCc(*b"outr"));
        let inner: Vec<_> = inner.map(|chunk| (chunk.offset, chunk.id.0, chunk.body)).collect();
        assert_eq!(inner, [(112, *b"odd ", &b"abc"[..]), (124, *b"nil ", &b""[..])]);
        assert!(chunks.next().is_none());
    }

    #[test]
    fn a_lying_length_is_cut_and_ends_the_iteration() {
        let bytes = [b'a', b'b', b'c', b'd', 0xFF, 0xFF, 0xFF, 0xFF, 1, 2];
        let mut chunks = Chunks { offset: 0, rest: &bytes };
        assert_eq!(chunks.next().unwrap().body, [1, 2]);
        assert!(chunks.next().is_none());
    }
}
