//! Opening an AU file: where its sound is, and what it is.
//!
//! Invariants: the sound begins behind the header and within the input.
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
use super::{CODES, HEADER_LEN, LEN_UNKNOWN, MAGIC, Reader};
use crate::codec;
use crate::format::{AudioFormat, FormatError};
use crate::read::{Input, ReadAt};

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
        // Nothing follows the sound, so what is behind a length of 0 is sound all the same.
        let is_known = !matches!(header.data_len, 0 | LEN_UNKNOWN);
        let len = is_known.then_some(u64::from(header.data_len));
        Ok(Self::over(input, format, data_at, len))
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
