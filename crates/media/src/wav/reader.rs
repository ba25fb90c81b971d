//! Opening a WAV file: where its sound is, and what it is.
//!
//! Invariants: at most [`CHUNKS_MAX`] chunk headers are looked at, each at least 8 bytes behind
//! the one before.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::Reader;
use super::error::WavError;
use crate::format::AudioFormat;
use crate::read::{Input, ReadAt};
use crate::riff::{ChunkHeader, HEADER_LEN, LEN_UNKNOWN, le_u64};
use crate::wave_format;

/// Chunks that are looked at before `data` is found.
const CHUNKS_MAX: u32 = 4_096;
/// Bytes of a `fmt` chunk that mean something.
const FORMAT_LEN_MAX: u64 = 40;

/// The first 12 bytes of a file, and of an RF64 file the lengths behind them.
#[derive(Clone, Copy)]
struct Start {
    riff_len: u64,
    /// Length of the data, where 32 bits are not enough.
    data_len_wide: Option<u64>,
}

/// The body of a chunk: where it begins and how long it says it is.
#[derive(Clone, Copy)]
struct Body {
    offset: u64,
    len: u64,
}

impl<R: ReadAt> Reader<R> {
    /// Opens a file.
    ///
    /// # Errors
    /// When it is not WAV, it is cut before its sound, or the sound is not PCM.
    pub fn open(input: R) -> Result<Self, WavError> {
        let mut input = Input::new(input);
        let start = read_start(&mut input)?;
        let (format, data) = find_chunks(&mut input)?;
        let (format_offset, format) = (format.offset, read_format(&mut input, format));
        let format =
            format?.map_err(|source| WavError::Format { offset: format_offset, source })?;
        let len = len_said(input.len(), start, data);
        Ok(Self::over(input, format, data.offset, len))
    }
}

fn read_start<R: ReadAt>(input: &mut Input<R>) -> Result<Start, WavError> {
    let mut head = [0; 12];
    let len = input.fill(0, &mut head)?;
    let chunk = ChunkHeader::parse(&head);
    let start = Start { riff_len: u64::from(chunk.len), data_len_wide: None };
    match (len, &chunk.id.0, &chunk.kind.0) {
        (12, b"RIFF", b"WAVE") => Ok(start),
        (12, b"RF64" | b"BW64", b"WAVE") => read_wide(input),
        _ => Err(WavError::NotWav { head: head.get(..len).unwrap_or_default().to_vec() }),
    }
}

fn read_wide<R: ReadAt>(input: &mut Input<R>) -> Result<Start, WavError> {
    let missing = || WavError::Missing { offset: 12, expected: "a ds64 chunk of 28 bytes" };
    let bytes = input.array::<24>(12)?.ok_or_else(missing)?;
    let (riff_len, data_len) = (le_u64(&bytes, 8), le_u64(&bytes, 16));
    match (bytes.first_chunk(), riff_len, data_len) {
        (Some(b"ds64"), Some(riff_len), data_len_wide) => Ok(Start { riff_len, data_len_wide }),
        _ => Err(missing()),
    }
}

/// The bodies of `fmt` and `data`.
fn find_chunks<R: ReadAt>(input: &mut Input<R>) -> Result<(Body, Body), WavError> {
    let mut format = None;
    let mut at = 12_u64;
    for _ in 0..CHUNKS_MAX {
        let Some(bytes) = input.array(at)? else { break };
        let [i0, i1, i2, i3, l0, l1, l2, l3] = bytes;
        let chunk = ChunkHeader::parse(&[i0, i1, i2, i3, l0, l1, l2, l3, 0, 0, 0, 0]);
        let offset = at.saturating_add(HEADER_LEN);
        let body = Body { offset, len: u64::from(chunk.len) };
        match (&chunk.id.0, format) {
            (b"fmt ", None) => format = Some(body),
            (b"data", Some(format)) => return Ok((format, body)),
            (b"data", None) => {
                return Err(WavError::Missing { offset: at, expected: "a fmt chunk before data" });
            }
            _ => {}
        }
        at = at.saturating_add(chunk.padded_len());
    }
    let expected = if format.is_some() { "a data chunk" } else { "a fmt chunk" };
    Err(WavError::Missing { offset: at.min(input.len()), expected })
}

fn read_format<R: ReadAt>(
    input: &mut Input<R>,
    body: Body,
) -> Result<Result<AudioFormat, crate::format::FormatError>, WavError> {
    let mut bytes = Vec::new();
    let len = body.len.min(FORMAT_LEN_MAX);
    input.append(body.offset, usize::try_from(len).unwrap_or(0), &mut bytes)?;
    Ok(wave_format::parse(&bytes))
}

/// How long the data are by the headers, or nothing when they last until the file ends.
fn len_said(input_len: u64, start: Start, data: Body) -> Option<u64> {
    let is_unknown = data.len == u64::from(LEN_UNKNOWN);
    let len = match start.data_len_wide {
        Some(wide) if is_unknown => wide,
        _ => data.len,
    };
    // Written to a pipe: 0 or all ones, and then the length of the RIFF makes no sense either.
    let riff_end = start.riff_len.saturating_add(HEADER_LEN);
    let is_riff_sound = (data.offset..=input_len).contains(&riff_end);
    let is_piped = (len == 0 && !is_riff_sound) || (is_unknown && start.data_len_wide.is_none());
    (!is_piped).then_some(len)
}
