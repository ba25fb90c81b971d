//! Finds the chunks of a file whose index is missing or wrong, by going from one to the next.
//!
//! Invariants: each step moves at least 8 bytes forward and there are at most as many steps as
//! the limit on index entries allows.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::error::AviError;
use super::layout::{Span, chunk_at};
use super::tracks::Tracks;
use crate::read::{Input, ReadAt};
use crate::riff::{ChunkHeader, HEADER_LEN};
use crate::warning::Warning;

/// Adds every chunk of media within `span` to `tracks`, lists and further segments included.
pub(super) fn scan<R: ReadAt>(
    input: &mut Input<R>,
    span: Span,
    steps_max: usize,
    tracks: &mut Tracks,
) -> Result<Option<Warning>, AviError> {
    let (mut at, mut steps) = (span.start, 0_usize);
    let mut is_after_odd = false;
    while at.saturating_add(HEADER_LEN) <= span.end && !tracks.is_full {
        if steps >= steps_max {
            return Ok(Some(Warning::IndexFull { count_max: steps_max }));
        }
        steps = steps.saturating_add(1);
        let Some((start, chunk)) = find(input, at, is_after_odd, tracks)? else {
            let expected = "the name of a chunk";
            return Ok(Some(Warning::ScanStopped { offset: at, expected }));
        };
        at = start.saturating_add(step_into(&chunk));
        is_after_odd = chunk.len % 2 == 1;
        if let Some(stream) = tracks.stream_of(chunk.id) {
            tracks.push(stream, start.saturating_add(HEADER_LEN), chunk.len);
        }
    }
    Ok(None)
}

/// How far the next chunk is: inside for lists of media, behind everything else.
fn step_into(chunk: &ChunkHeader) -> u64 {
    match (&chunk.id.0, &chunk.kind.0) {
        (b"RIFF", _) | (b"LIST", b"movi" | b"rec ") => 12,
        _ => chunk.padded_len(),
    }
}

/// The chunk at `at`, or one byte before it: some writers leave out the pad byte. Where both could
/// be names of chunks, the one that belongs into a media list is it.
fn find<R: ReadAt>(
    input: &mut Input<R>,
    at: u64,
    is_after_odd: bool,
    tracks: &Tracks,
) -> Result<Option<(u64, ChunkHeader)>, AviError> {
    let padded = named_chunk_at(input, at)?;
    if !is_after_odd || padded.is_some_and(|chunk| is_usual(&chunk, tracks)) {
        return Ok(padded.map(|chunk| (at, chunk)));
    }
    let before = at.saturating_sub(1);
    let unpadded = named_chunk_at(input, before)?.filter(|chunk| is_usual(chunk, tracks));
    Ok(unpadded.map(|chunk| (before, chunk)).or(padded.map(|chunk| (at, chunk))))
}

fn named_chunk_at<R: ReadAt>(
    input: &mut Input<R>,
    at: u64,
) -> Result<Option<ChunkHeader>, AviError> {
    Ok(chunk_at(input, at)?.filter(|chunk| chunk.id.is_printable()))
}

fn is_usual(chunk: &ChunkHeader, tracks: &Tracks) -> bool {
    matches!(&chunk.id.0, b"LIST" | b"RIFF" | b"JUNK" | b"idx1" | [b'i', b'x', _, _])
        || tracks.stream_of(chunk.id).is_some()
}
