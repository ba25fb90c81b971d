//! [`Reader`]: sound by byte, out of an AU file.
//!
//! ```text
//!   file   12 34 | 56 78 | 9A BC        samples, big-endian
//!   asked       `-----------'           any bytes: whole samples are read, turned, and cut
//!   given    12 | 78 56 | BC
//! ```
//!
//! What it is not: a decoder; samples come with the values that they have in the file, in the
//! order of bytes that [`crate::SampleEncoding`] says.
//!
//! Invariants: `data_len` is a multiple of the format's block and within the input; a call reads
//! at most 14 bytes more than it was asked for.
//!
//! Decoder: of AU files.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::error::AuError;
use super::{CODES, HEADER_LEN, LEN_UNKNOWN, MAGIC, order};
use crate::codec;
use crate::format::{AudioFormat, FormatError};
use crate::read::{Input, ReadAt};
use crate::warning::Warning;

/// An open AU file.
#[derive(Debug)]
pub struct Reader<R> {
    input: Input<R>,
    format: AudioFormat,
    data_at: u64,
    data_len: u64,
    warnings: Vec<Warning>,
}

/// The header as it is in the file.
#[derive(Clone, Copy)]
struct Header {
    data_at: u32,
    data_len: u32,
    encoding: u32,
    rate_hz: u32,
    channels: u32,
}

impl<R: ReadAt> Reader<R> {
    /// Opens a file.
    ///
    /// # Errors
    /// When it is not AU, it is cut before its sound, or the sound is compressed.
    pub fn open(input: R) -> Result<Self, AuError> {
        let mut input = Input::new(input);
        let header = read_header(&mut input)?;
        let format = format_of(&header)?;
        let data_at = u64::from(header.data_at);
        if header.data_at < HEADER_LEN {
            return Err(AuError::SoundInHeader { found: header.data_at });
        }
        if data_at > input.len() {
            let offset = input.len();
            return Err(AuError::Missing { offset, expected: "the rest of the annotation" });
        }
        let mut warnings = Vec::new();
        let len = clip(input.len(), header, &mut warnings);
        let partial = len.checked_rem(u64::from(format.block_len())).unwrap_or(0);
        let data_len = len.saturating_sub(partial);
        if partial > 0 {
            let offset = data_at.saturating_add(data_len);
            warnings.push(Warning::PartialBlock { offset, len: partial });
        }
        Ok(Self { input, format, data_at, data_len, warnings })
    }

    /// What the sound is.
    #[must_use]
    pub fn format(&self) -> &AudioFormat {
        &self.format
    }

    /// Bytes of sound, whole samples only.
    #[must_use]
    pub fn audio_len(&self) -> u64 {
        self.data_len
    }

    /// Samples of each channel.
    #[must_use]
    pub fn sample_count(&self) -> u64 {
        self.data_len.checked_div(u64::from(self.format.block_len())).unwrap_or(0)
    }

    /// Time from the beginning to the end, in nanoseconds.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.format.time_ns(self.data_len)
    }

    /// What was noticed while opening.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Puts up to `len` bytes of sound from `byte_offset` on in `out`: fewer where the sound ends,
    /// none behind its end.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn audio_bytes(
        &mut self,
        byte_offset: u64,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), AuError> {
        out.clear();
        let end = byte_offset.saturating_add(len as u64).min(self.data_len);
        if byte_offset >= end {
            return Ok(());
        }
        // Whole samples around what is wanted; the sound ends with a whole one.
        let sample_len = u64::from(self.format.encoding.byte_len());
        let before = byte_offset.checked_rem(sample_len).unwrap_or(0);
        let from = byte_offset.saturating_sub(before);
        let whole = end.saturating_sub(from).checked_next_multiple_of(sample_len);
        let whole = whole.and_then(|len| usize::try_from(len).ok()).unwrap_or(usize::MAX);
        self.input.append(self.data_at.saturating_add(from), whole, out)?;
        order::turn(self.format.encoding, out);
        let before = usize::try_from(before).unwrap_or(0).min(out.len());
        out.drain(..before);
        out.truncate(usize::try_from(end.saturating_sub(byte_offset)).unwrap_or(usize::MAX));
        Ok(())
    }

    /// Gives back the input.
    pub fn into_inner(self) -> R {
        self.input.into_inner()
    }
}

fn read_header<R: ReadAt>(input: &mut Input<R>) -> Result<Header, AuError> {
    let mut head = [0; HEADER_LEN as usize];
    let len = input.fill(0, &mut head)?;
    let head = head.get(..len).unwrap_or_default();
    if !head.starts_with(&MAGIC) {
        let head = head.get(..4).unwrap_or(head).to_vec();
        return Err(AuError::NotAu { head });
    }
    let mut fields = head.as_chunks::<4>().0.iter().skip(1).map(|raw| u32::from_be_bytes(*raw));
    let mut field = || {
        let missing = AuError::Missing { offset: len as u64, expected: "a header of 24 bytes" };
        fields.next().ok_or(missing)
    };
    Ok(Header {
        data_at: field()?,
        data_len: field()?,
        encoding: field()?,
        rate_hz: field()?,
        channels: field()?,
    })
}

fn format_of(header: &Header) -> Result<AudioFormat, AuError> {
    let known = CODES.iter().find(|(code, _)| *code == header.encoding);
    let Some((_, encoding)) = known else {
        let source = FormatError::Codec { name: codec::au_name(header.encoding) };
        return Err(AuError::Format { offset: 12, source });
    };
    let channels = u16::try_from(header.channels).unwrap_or(u16::MAX);
    let format = AudioFormat::new(*encoding, channels, header.rate_hz);
    let checked = format.check().map(|()| format);
    checked.map_err(|source| {
        let offset = if matches!(source, FormatError::SampleRate { .. }) { 16 } else { 20 };
        AuError::Format { offset, source }
    })
}

/// How much of the sound there is, whatever the header says.
fn clip(input_len: u64, header: Header, warnings: &mut Vec<Warning>) -> u64 {
    let exists = input_len.saturating_sub(u64::from(header.data_at));
    // Nothing follows the sound, so what is behind a length of 0 is sound all the same.
    if matches!(header.data_len, 0 | LEN_UNKNOWN) {
        return exists;
    }
    let len = u64::from(header.data_len);
    if len > exists {
        let missing = len.saturating_sub(exists);
        warnings.push(Warning::Truncated { offset: input_len, missing });
    }
    len.min(exists)
}
