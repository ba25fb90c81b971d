//! The header list of an AVI file: which streams there are and what is in them.
//!
//! ```text
//!   LIST hdrl
//!     avih           µs per picture, width, height, … (only a fallback: strh and strf win)
//!     LIST strl      one per stream, numbered in this order
//!       strh         kind (vids, auds), scale, rate
//!       strf         BITMAPINFOHEADER or WAVEFORMATEX
//!       [indx]       super index: where the stream's chunk indexes are
//! ```
//!
//! Invariants: every accepted video or audio stream has a format that passes its check.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::error::AviError;
use super::{INDEX_OF_CHUNKS, INDEX_OF_INDEXES};
use crate::format::{Format, FormatError, FourCc, VideoFormat};
use crate::read::Limits;
use crate::riff::{Chunk, Chunks, fourcc, le_u16, le_u32, le_u64};
use crate::wave_format;

/// One stream as its headers describe it.
#[derive(Debug)]
pub(super) struct StreamHeader {
    /// `vids`, `auds` or something else.
    pub kind: FourCc,
    /// What is in it; nothing when it is neither video nor audio.
    pub format: Option<Format>,
    /// Where its chunk indexes are, in bytes from the start of the file, when a super index says.
    pub index_offsets: Option<Vec<u64>>,
}

/// The `avih` fields that some writers fill in instead of those of the stream.
#[derive(Clone, Copy, Default)]
struct MainHeader {
    us_per_picture: u32,
    width: u32,
    height: u32,
}

/// Parses the body of the `hdrl` list, whose first chunk is at `offset` in the file.
pub(super) fn parse(
    body: &[u8],
    offset: u64,
    limits: &Limits,
) -> Result<Vec<StreamHeader>, AviError> {
    let mut main = MainHeader::default();
    let mut streams = Vec::new();
    for chunk in (Chunks { offset, rest: body }) {
        if chunk.id == FourCc(*b"avih") {
            main = parse_main(chunk.body);
        }
        let Some((FourCc(kind), chunks)) = chunk.list() else { continue };
        if &kind != b"strl" {
            continue;
        }
        if streams.len() >= limits.streams_max {
            let count_max = limits.streams_max;
            return Err(AviError::TooManyStreams { offset: chunk.offset, count_max });
        }
        streams.push(parse_stream(streams.len(), chunk.offset, chunks, main)?);
    }
    Ok(streams)
}

fn parse_main(body: &[u8]) -> MainHeader {
    let field = |at| le_u32(body, at).unwrap_or(0);
    MainHeader { us_per_picture: field(0), width: field(32), height: field(36) }
}

fn parse_stream(
    stream: usize,
    offset: u64,
    chunks: Chunks<'_>,
    main: MainHeader,
) -> Result<StreamHeader, AviError> {
    let (mut strh, mut strf, mut index_offsets) = (None, None, None);
    for chunk in chunks {
        match &chunk.id.0 {
            b"strh" => strh = Some(chunk),
            b"strf" => strf = Some(chunk),
            b"indx" => index_offsets = parse_super_index(&chunk),
            _ => {}
        }
    }
    let strh = strh.ok_or(AviError::Missing { offset, expected: "a strh chunk" })?;
    let kind = fourcc(strh.body, 0)
        .ok_or(AviError::Missing { offset: strh.offset, expected: "a strh chunk of 56 bytes" })?;
    let is_medium = matches!(&kind.0, b"vids" | b"auds");
    let format = match strf {
        Some(strf) if is_medium => {
            Some(parse_format(kind, &strh, &strf, main).map_err(|source| AviError::Format {
                stream,
                offset: strf.offset,
                source,
            })?)
        }
        None if is_medium => {
            return Err(AviError::Missing { offset, expected: "a strf chunk" });
        }
        _ => None,
    };
    Ok(StreamHeader { kind, format, index_offsets })
}

fn parse_format(
    kind: FourCc,
    strh: &Chunk<'_>,
    strf: &Chunk<'_>,
    main: MainHeader,
) -> Result<Format, FormatError> {
    if &kind.0 == b"auds" {
        return wave_format::parse(strf.body).map(Format::Audio);
    }
    let video = parse_video(strh.body, strf.body, main)?;
    video.check()?;
    Ok(Format::Video(video))
}

/// From `strh` (scale at 20, rate at 24) and the `BITMAPINFOHEADER` in `strf`.
fn parse_video(strh: &[u8], strf: &[u8], main: MainHeader) -> Result<VideoFormat, FormatError> {
    let short = FormatError::Short { found: strf.len(), expected: 40 };
    let fourcc = fourcc(strf, 16).ok_or(short.clone())?;
    let width = le_u32(strf, 4).ok_or(short.clone())?;
    // A negative height means that the first row is the top one; JPEG does not care.
    let height = le_u32(strf, 8).ok_or(short)?.cast_signed().unsigned_abs();
    let (scale, rate) = match (le_u32(strh, 20).unwrap_or(0), le_u32(strh, 24).unwrap_or(0)) {
        (0, _) | (_, 0) => (main.us_per_picture, 1_000_000),
        given => given,
    };
    let or_main = |own, main| if own == 0 { main } else { own };
    Ok(VideoFormat {
        fourcc,
        width: or_main(width, main.width),
        height: or_main(height, main.height),
        rate,
        scale,
        frame_count: 0,
    })
}

/// Where the chunk indexes of a stream are: those that `indx` points to, or `indx` itself.
fn parse_super_index(indx: &Chunk<'_>) -> Option<Vec<u64>> {
    match (*indx.body.get(3)?, le_u16(indx.body, 0)?) {
        (INDEX_OF_CHUNKS, _) => Some(vec![indx.offset]),
        (INDEX_OF_INDEXES, 4) => {
            let count = le_u32(indx.body, 4).unwrap_or(0) as usize;
            let entries = indx.body.get(24..).unwrap_or_default().as_chunks::<16>().0;
            let offsets = entries.iter().take(count).filter_map(|entry| le_u64(entry, 0));
            Some(offsets.filter(|offset| *offset != 0).collect())
        }
        _ => None,
    }
}
