//! Reads the two kinds of index that an AVI file can have.
//!
//! ```text
//!   idx1    id  flags  offset  len                    offset from 'movi', or from the file's start
//!   ix##    head: base offset, count | offset  len    offset from the base
//! ```
//!
//! What an index says is checked against the file once (does a chunk of that stream begin where the
//! first entry points?), then believed within the bounds of the file: a wrong entry gives a wrong
//! picture, not a wrong read.
//!
//! Invariants: entries are read from bytes that exist, in blocks; reading stops at the limit.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::ops::ControlFlow;

use super::error::AviError;
use super::header::StreamHeader;
use super::layout::{Layout, Span, chunk_at};
use super::scan::scan;
use super::tracks::Tracks;
use super::{INDEX_OF_CHUNKS, SIZE_DELTA};
use crate::format::FourCc;
use crate::read::{Input, Limits, ReadAt, ReadError};
use crate::riff::{HEADER_LEN, le_u16, le_u32, le_u64};
use crate::warning::Warning;

/// Warnings that are kept; a file of many broken segments could have one for each.
const WARNINGS_MAX: usize = 16;

/// Entries of `idx1` that must fit the media before all are believed; one fits by accident.
const SAMPLE_COUNT: usize = 4;

/// Why an index is not used.
#[derive(Debug)]
enum Unusable {
    /// There is none, or it does not cover the file.
    Missing,
    /// It is wrong.
    Wrong { offset: u64, expected: &'static str },
    /// The file could not be read.
    Fatal(AviError),
}

impl From<AviError> for Unusable {
    fn from(error: AviError) -> Self {
        Self::Fatal(error)
    }
}

impl From<ReadError> for Unusable {
    fn from(error: ReadError) -> Self {
        Self::Fatal(error.into())
    }
}

/// Finds every chunk: by the OpenDML index, else by `idx1`, else by going through the media.
pub(super) fn load<R: ReadAt>(
    input: &mut Input<R>,
    layout: &Layout,
    limits: &Limits,
    warnings: &mut Vec<Warning>,
) -> Result<Tracks, AviError> {
    let len = input.len();
    let fresh = || Tracks::new(&layout.streams, len, limits.index_entries_max);
    let offset = layout.movi.first().map_or(0, |movi| movi.start);
    // Without a known end, whatever index there is was written before the end was: not complete.
    if layout.is_end_known {
        for load in [load_open_dml, load_idx1] {
            let mut tracks = fresh();
            match load(input, layout, &mut tracks).and_then(|()| require_inside(&tracks, offset)) {
                Ok(()) => return Ok(finish(tracks, limits, warnings)),
                Err(Unusable::Missing) => {}
                Err(Unusable::Wrong { offset, expected }) => {
                    warnings.push(Warning::IndexUnusable { offset, expected });
                }
                Err(Unusable::Fatal(error)) => return Err(error),
            }
        }
    }
    match layout.missing {
        0 if warnings.is_empty() => warnings.push(Warning::IndexMissing { offset }),
        0 => {}
        missing => warnings.push(Warning::Truncated { offset: len, missing }),
    }
    let mut tracks = fresh();
    for span in &layout.movi {
        let stopped = scan(input, *span, limits.index_entries_max, &mut tracks)?;
        if warnings.len() < WARNINGS_MAX {
            warnings.extend(stopped);
        }
    }
    Ok(finish(tracks, limits, warnings))
}

fn finish(tracks: Tracks, limits: &Limits, warnings: &mut Vec<Warning>) -> Tracks {
    if tracks.outside_count > 0 {
        warnings.push(Warning::PicturesOutside { count: tracks.outside_count });
    }
    if tracks.is_full {
        warnings.push(Warning::IndexFull { count_max: limits.index_entries_max });
    }
    tracks
}

/// An index without entries is believed only when there is nothing to index.
fn require_entries(tracks: &Tracks, layout: &Layout) -> Result<(), Unusable> {
    let has_media = layout.movi.iter().any(|movi| movi.end > movi.start);
    if tracks.is_empty() && has_media { Err(Unusable::Missing) } else { Ok(()) }
}

/// When all media are within the file, an index that says otherwise is wrong elsewhere too.
fn require_inside(tracks: &Tracks, offset: u64) -> Result<(), Unusable> {
    let expected = "an index of chunks within the file";
    if tracks.outside_count > 0 { Err(Unusable::Wrong { offset, expected }) } else { Ok(()) }
}

fn load_open_dml<R: ReadAt>(
    input: &mut Input<R>,
    layout: &Layout,
    tracks: &mut Tracks,
) -> Result<(), Unusable> {
    if !is_covered(layout) {
        return Err(Unusable::Missing);
    }
    for (stream, header) in layout.streams.iter().enumerate() {
        for offset in header.index_offsets.iter().flatten() {
            load_chunk_index(input, *offset, stream, tracks)?;
        }
    }
    require_entries(tracks, layout)
}

/// Whether every stream has a super index, and every media list has a chunk index inside.
fn is_covered(layout: &Layout) -> bool {
    let is_medium = |header: &&StreamHeader| header.format.is_some();
    let has_super = |header: &StreamHeader| header.index_offsets.is_some();
    let offsets = layout.streams.iter().flat_map(|header| header.index_offsets.iter().flatten());
    let mut offsets: Vec<u64> = offsets.copied().collect();
    offsets.sort_unstable();
    let has_inside = |movi: &Span| {
        let first = offsets.partition_point(|at| *at < movi.start);
        offsets.get(first).is_some_and(|at| *at < movi.end)
    };
    layout.streams.iter().filter(is_medium).all(has_super)
        && layout.movi.iter().all(|movi| movi.start == movi.end || has_inside(movi))
}

/// The head of an `ix##` chunk.
struct ChunkIndexHead {
    longs: u16,
    count: u64,
    base: u64,
}

impl ChunkIndexHead {
    const LEN: usize = 32;

    fn parse(bytes: &[u8; Self::LEN], room: u64) -> Option<Self> {
        let (longs, kind, count) = (le_u16(bytes, 8)?, *bytes.get(11)?, le_u32(bytes, 12)?);
        let head = Self { longs, count: u64::from(count), base: le_u64(bytes, 20)? };
        let len = u64::from(le_u32(bytes, 4)?);
        let entries_len = head.count.checked_mul(u64::from(longs))?.checked_mul(4)?;
        let is_sound = kind == INDEX_OF_CHUNKS
            && matches!(longs, 2 | 3)
            && entries_len.checked_add(24)? <= len
            && len.checked_add(HEADER_LEN)? <= room;
        is_sound.then_some(head)
    }
}

fn load_chunk_index<R: ReadAt>(
    input: &mut Input<R>,
    at: u64,
    stream: usize,
    tracks: &mut Tracks,
) -> Result<(), Unusable> {
    let wrong = |expected| Unusable::Wrong { offset: at, expected };
    let room = input.len().saturating_sub(at);
    let bytes = input.array(at)?.ok_or_else(|| wrong("an index of chunks, found the end"))?;
    let head = ChunkIndexHead::parse(&bytes, room).ok_or_else(|| wrong("an index of chunks"))?;
    let entries = at.saturating_add(ChunkIndexHead::LEN as u64);
    if let Some(first) = input.array::<4>(entries)?.filter(|_| head.count > 0) {
        let body = head.base.saturating_add(u64::from(u32::from_le_bytes(first)));
        if !is_chunk_of(input, body.saturating_sub(HEADER_LEN), stream, tracks)? {
            return Err(wrong("an index whose first entry is a chunk of its stream"));
        }
    }
    let mut push = |offset: u32, len: u32| {
        let body = head.base.saturating_add(u64::from(offset));
        tracks.push(stream, body, len & !SIZE_DELTA);
        if tracks.is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    if head.longs == 2 {
        input.records::<8>(entries, head.count, |_, [a, b, c, d, e, f, g, h]| {
            Ok(push(u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])))
        })?;
    } else {
        // Interlaced: the third word is where the second field begins within the chunk.
        input.records::<12>(entries, head.count, |_, [a, b, c, d, e, f, g, h, ..]| {
            Ok(push(u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])))
        })?;
    }
    Ok(())
}

/// Whether a chunk of media of `stream` begins at `at`.
fn is_chunk_of<R: ReadAt>(
    input: &mut Input<R>,
    at: u64,
    stream: usize,
    tracks: &Tracks,
) -> Result<bool, AviError> {
    let chunk = chunk_at(input, at)?;
    Ok(chunk.is_some_and(|chunk| tracks.stream_of(chunk.id) == Some(stream)))
}

/// An entry of `idx1`.
struct OldEntry {
    id: FourCc,
    offset: u32,
    len: u32,
}

impl OldEntry {
    const LEN: u64 = 16;

    fn parse([i0, i1, i2, i3, _, _, _, _, o0, o1, o2, o3, l0, l1, l2, l3]: [u8; 16]) -> Self {
        Self {
            id: FourCc([i0, i1, i2, i3]),
            offset: u32::from_le_bytes([o0, o1, o2, o3]),
            len: u32::from_le_bytes([l0, l1, l2, l3]),
        }
    }
}

fn load_idx1<R: ReadAt>(
    input: &mut Input<R>,
    layout: &Layout,
    tracks: &mut Tracks,
) -> Result<(), Unusable> {
    // The old index knows the first segment only.
    let (Some(idx1), [movi]) = (layout.idx1, layout.movi.as_slice()) else {
        return Err(Unusable::Missing);
    };
    let count = idx1.end.saturating_sub(idx1.start) / OldEntry::LEN;
    let samples = sample_entries(input, idx1.start, count, tracks)?;
    if samples.is_empty() {
        return require_entries(tracks, layout);
    }
    let base = base_of(input, movi, &samples, tracks)?.ok_or(Unusable::Wrong {
        offset: idx1.start,
        expected: "idx1 entries that point to chunks of their streams",
    })?;
    input.records(idx1.start, count, |_, record| {
        let entry = OldEntry::parse(record);
        if let Some(stream) = tracks.stream_of(entry.id) {
            let chunk = base.saturating_add(u64::from(entry.offset));
            tracks.push(stream, chunk.saturating_add(HEADER_LEN), entry.len);
        }
        Ok(if tracks.is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    require_entries(tracks, layout)
}

/// Stream and offset of the first few entries that have media.
fn sample_entries<R: ReadAt>(
    input: &mut Input<R>,
    start: u64,
    count: u64,
    tracks: &Tracks,
) -> Result<Vec<(usize, u32)>, ReadError> {
    let mut samples = Vec::new();
    input.records(start, count, |_, record| {
        let entry = OldEntry::parse(record);
        // Where an empty chunk is said to be is anybody's guess, as nobody ever looks.
        let stream = tracks.stream_of(entry.id).filter(|_| entry.len > 0);
        samples.extend(stream.map(|stream| (stream, entry.offset)));
        let is_enough = samples.len() >= SAMPLE_COUNT;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(samples)
}

/// What offsets in `idx1` count from: the word `movi` by the book; the start of the file, or the
/// byte after that word, in files in the wild.
fn base_of<R: ReadAt>(
    input: &mut Input<R>,
    movi: &Span,
    samples: &[(usize, u32)],
    tracks: &Tracks,
) -> Result<Option<u64>, AviError> {
    'bases: for base in [movi.start.saturating_sub(4), 0, movi.start] {
        for (stream, offset) in samples {
            let at = base.saturating_add(u64::from(*offset));
            if !is_chunk_of(input, at, *stream, tracks)? {
                continue 'bases;
            }
        }
        return Ok(Some(base));
    }
    Ok(None)
}
