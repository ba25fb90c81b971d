//! The outline of an AVI file: where headers, media and the old index are.
//!
//! ```text
//!   RIFF AVI | LIST hdrl | JUNK … | LIST movi | idx1 | RIFF AVIX | LIST movi | …
//!              `- streams            `- span    `- span             `- span
//! ```
//!
//! The lengths of RIFF headers are not needed and not believed; those of lists are, when the file
//! is long enough for them.
//!
//! Invariants: each step moves at least 8 bytes forward, and there are at most
//! [`OUTLINE_CHUNKS_MAX`] steps.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::error::AviError;
use super::header::{self, StreamHeader};
use crate::read::{Input, Limits, ReadAt};
use crate::riff::{ChunkHeader, HEADER_LEN, LEN_UNKNOWN};

/// Chunks of the outline that are looked at; a file of 1 TiB has about four thousand.
const OUTLINE_CHUNKS_MAX: u32 = 65_536;

/// A piece of the file, in bytes from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub start: u64,
    pub end: u64,
}

/// The outline.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub streams: Vec<StreamHeader>,
    /// The media lists, from the byte after `movi` on.
    pub movi: Vec<Span>,
    /// Whether the last media list says how long it is, and the file is that long.
    pub is_end_known: bool,
    /// Bytes that the last media list promises beyond the end of the file.
    pub missing: u64,
    /// The entries of the old index.
    pub idx1: Option<Span>,
}

/// Goes through the outline of a file.
pub(super) fn read<R: ReadAt>(input: &mut Input<R>, limits: &Limits) -> Result<Layout, AviError> {
    check_start(input)?;
    let mut layout = Layout { is_end_known: true, ..Layout::default() };
    let mut has_header = false;
    let mut at = 12_u64;
    for _ in 0..OUTLINE_CHUNKS_MAX {
        let Some(chunk) = chunk_at(input, at)? else { break };
        match (&chunk.id.0, &chunk.kind.0) {
            (b"RIFF", _) => {
                at = at.saturating_add(12);
                continue;
            }
            (b"LIST", b"hdrl") if !has_header => {
                layout.streams = read_header(input, at, &chunk, limits)?;
                has_header = true;
            }
            (b"LIST", b"movi") => push_movi(&mut layout, at, &chunk, input.len()),
            (b"idx1", _) if layout.idx1.is_none() => {
                let start = at.saturating_add(HEADER_LEN);
                let end = start.saturating_add(u64::from(chunk.len));
                // A cut index says nothing about the rest, so it is as good as none.
                layout.idx1 = (end <= input.len()).then_some(Span { start, end });
            }
            _ if !chunk.id.is_printable() => break,
            _ => {}
        }
        if !layout.is_end_known {
            break;
        }
        at = at.saturating_add(chunk.padded_len());
    }
    let offset = at.min(input.len());
    if !has_header {
        return Err(AviError::Missing { offset, expected: "a header list (LIST hdrl)" });
    }
    if layout.movi.is_empty() {
        return Err(AviError::Missing { offset, expected: "a media list (LIST movi)" });
    }
    Ok(layout)
}

fn check_start<R: ReadAt>(input: &mut Input<R>) -> Result<(), AviError> {
    let mut head = [0; 12];
    let len = input.fill(0, &mut head)?;
    let chunk = ChunkHeader::parse(&head);
    if len == 12 && &chunk.id.0 == b"RIFF" && &chunk.kind.0 == b"AVI " {
        return Ok(());
    }
    Err(AviError::NotAvi { head: head.get(..len).unwrap_or_default().to_vec() })
}

/// The chunk header at `at`, or nothing when the input ends before it.
pub(super) fn chunk_at<R: ReadAt>(
    input: &mut Input<R>,
    at: u64,
) -> Result<Option<ChunkHeader>, AviError> {
    let mut bytes = [0; 12];
    let len = input.fill(at, &mut bytes)?;
    Ok((len as u64 >= HEADER_LEN).then(|| ChunkHeader::parse(&bytes)))
}

fn read_header<R: ReadAt>(
    input: &mut Input<R>,
    at: u64,
    chunk: &ChunkHeader,
    limits: &Limits,
) -> Result<Vec<StreamHeader>, AviError> {
    let start = at.saturating_add(12);
    let len = u64::from(chunk.len).saturating_sub(4);
    let exists = len.min(input.len().saturating_sub(start));
    if exists > u64::from(limits.header_bytes_max) {
        let len_max = limits.header_bytes_max;
        return Err(AviError::HeaderTooLarge { offset: at, len, len_max });
    }
    let mut body = Vec::new();
    input.append(start, usize::try_from(exists).unwrap_or(0), &mut body)?;
    header::parse(&body, start, limits)
}

fn push_movi(layout: &mut Layout, at: u64, chunk: &ChunkHeader, input_len: u64) {
    let start = at.saturating_add(12);
    let end = at.saturating_add(HEADER_LEN).saturating_add(u64::from(chunk.len));
    // Less than its own kind, or all ones: its writer could not go back to fill it in.
    let is_streamed = chunk.len < 4 || chunk.len == LEN_UNKNOWN;
    if is_streamed || end > input_len {
        layout.is_end_known = false;
        layout.missing = if is_streamed { 0 } else { end.saturating_sub(input_len) };
        layout.movi.push(Span { start, end: input_len.max(start) });
    } else {
        layout.movi.push(Span { start, end });
    }
}
