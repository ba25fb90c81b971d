//! `WAVEFORMATEX` and `WAVEFORMATEXTENSIBLE`: how AVI and WAV describe their audio.
//!
//! ```text
//!   0 tag  2 channels  4 rate  8 bytes/s  12 block  14 bits | 16 extra  18 valid  20 mask  24 GUID
//!    `--------------------- classic, 16 bytes -------------' `--- extensible, 40 bytes ---------'
//! ```
//!
//! Companded sound has 18 bytes, the last two 0: everything but PCM says how much extra follows.
//!
//! Invariants: what is parsed passes [`AudioFormat::check`] and parses again from what is emitted.
//! Source: Microsoft `mmreg.h`.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use crate::codec;
use crate::format::{AudioFormat, FormatError, SampleEncoding, default_channel_mask};
use crate::riff::{Emitter, le_u16, le_u32};

const TAG_PCM: u16 = 1;
const TAG_FLOAT: u16 = 3;
const TAG_ALAW: u16 = 6;
const TAG_MULAW: u16 = 7;
const TAG_EXTENSIBLE: u16 = 0xFFFE;
const CLASSIC_LEN: usize = 16;
const EXTENSIBLE_LEN: usize = 40;
/// The part of a subformat GUID after its tag, the same for every tag of the classic header.
const GUID_TAIL: [u8; 14] = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71];

/// Reads a format description.
pub(crate) fn parse(bytes: &[u8]) -> Result<AudioFormat, FormatError> {
    let short = |expected| FormatError::Short { found: bytes.len(), expected };
    let u16_at = |at| le_u16(bytes, at).ok_or(short(CLASSIC_LEN));
    let (tag, channels, block_len, bits) = (u16_at(0)?, u16_at(2)?, u16_at(12)?, u16_at(14)?);
    let rate_hz = le_u32(bytes, 4).ok_or(short(CLASSIC_LEN))?;
    let (tag, valid_bits, channel_mask) = if tag == TAG_EXTENSIBLE {
        parse_extension(bytes).ok_or(short(EXTENSIBLE_LEN))??
    } else {
        (tag, bits, if channels <= 2 { default_channel_mask(channels) } else { 0 })
    };
    let encoding = encoding(tag, bits)?;
    // Some writers leave the valid bits of the extension empty, which means all of them.
    let is_all = valid_bits == 0 || encoding.is_companded();
    let valid_bits = if is_all { encoding.bits() } else { valid_bits };
    let format = AudioFormat { encoding, channels, rate_hz, channel_mask, valid_bits };
    format.check()?;
    if u32::from(block_len) != format.block_len() {
        return Err(FormatError::BlockLen { found: block_len, expected: format.block_len() });
    }
    Ok(format)
}

/// Tag, valid bits and channel mask of the extension; nothing when it is cut.
fn parse_extension(bytes: &[u8]) -> Option<Result<(u16, u16, u32), FormatError>> {
    let (valid_bits, mask, tag) = (le_u16(bytes, 18)?, le_u32(bytes, 20)?, le_u16(bytes, 24)?);
    if bytes.get(26..EXTENSIBLE_LEN)? != GUID_TAIL {
        return Some(Err(FormatError::Codec { name: "an unknown subformat".to_owned() }));
    }
    Some(Ok((tag, valid_bits, mask)))
}

fn encoding(tag: u16, bits: u16) -> Result<SampleEncoding, FormatError> {
    match (tag, bits) {
        // 12 or 20 valid bits live in the next whole number of bytes.
        (TAG_PCM, 1..=8) => Ok(SampleEncoding::U8),
        (TAG_PCM, 9..=16) => Ok(SampleEncoding::S16),
        (TAG_PCM, 17..=24) => Ok(SampleEncoding::S24),
        (TAG_PCM, 25..=32) => Ok(SampleEncoding::S32),
        (TAG_FLOAT, 32) => Ok(SampleEncoding::F32),
        (TAG_FLOAT, 64) => Ok(SampleEncoding::F64),
        (TAG_MULAW, 8) => Ok(SampleEncoding::MuLaw),
        (TAG_ALAW, 8) => Ok(SampleEncoding::ALaw),
        (TAG_PCM | TAG_FLOAT | TAG_MULAW | TAG_ALAW, found) => {
            Err(FormatError::SampleBits { found })
        }
        (tag, _) => Err(FormatError::Codec { name: codec::audio_name(tag) }),
    }
}

fn tag(encoding: SampleEncoding) -> u16 {
    match encoding {
        SampleEncoding::F32 | SampleEncoding::F64 => TAG_FLOAT,
        SampleEncoding::MuLaw => TAG_MULAW,
        SampleEncoding::ALaw => TAG_ALAW,
        _ => TAG_PCM,
    }
}

/// Whether the 16 classic bytes say everything about `format`.
fn is_classic(format: &AudioFormat) -> bool {
    let usual = [0, default_channel_mask(format.channels)];
    let is_plain = matches!(format.encoding, SampleEncoding::U8 | SampleEncoding::S16);
    (is_plain || format.encoding.is_companded())
        && format.channels <= 2
        && usual.contains(&format.channel_mask)
        && format.valid_bits == format.encoding.bits()
}

/// Writes a format description: classic where that says everything, else extensible.
pub(crate) fn emit(format: &AudioFormat, out: &mut Emitter) {
    let classic_tag = tag(format.encoding);
    let is_classic = is_classic(format);
    let per_second = u32::try_from(format.bytes_per_second()).unwrap_or(u32::MAX);
    out.u16(if is_classic { classic_tag } else { TAG_EXTENSIBLE }).u16(format.channels);
    out.u32(format.rate_hz).u32(per_second);
    out.u16(u16::try_from(format.block_len()).unwrap_or(u16::MAX)).u16(format.encoding.bits());
    if !is_classic {
        out.u16(22).u16(format.valid_bits).u32(format.channel_mask);
        out.u16(classic_tag).bytes(&GUID_TAIL);
    } else if format.encoding.is_companded() {
        out.u16(0);
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    #[test]
    fn every_format_that_is_emitted_parses_to_itself() {
        for encoding in SampleEncoding::ALL {
            for channels in [1, 2, 3, 6, 8, 256] {
                for rate_hz in [1, 8_000, 44_100, 96_000, 4_000_000] {
                    let format = AudioFormat::new(encoding, channels, rate_hz);
                    let mut out = Emitter::default();
                    emit(&format, &mut out);
                    assert_eq!(parse(&out.0), Ok(format));
                }
            }
        }
    }

    #[test]
    fn valid_bits_and_a_strange_mask_survive_in_the_extension() {
        let mut format = AudioFormat::new(SampleEncoding::S24, 2, 48_000);
        format.valid_bits = 20;
        format.channel_mask = 0x600;
        let mut out = Emitter::default();
        emit(&format, &mut out);
        assert_eq!(out.0.len(), EXTENSIBLE_LEN);
        assert_eq!(parse(&out.0), Ok(format));
    }

    #[test]
    fn a_cut_description_names_the_length_it_needs() {
        let mut out = Emitter::default();
        emit(&AudioFormat::new(SampleEncoding::F32, 6, 48_000), &mut out);
        for len in 0..out.0.len() {
            let expected = if len < 16 { CLASSIC_LEN } else { EXTENSIBLE_LEN };
            assert_eq!(parse(&out.0[..len]), Err(FormatError::Short { found: len, expected }));
        }
    }

    #[test]
    fn compressed_and_impossible_formats_are_named() {
        let mut out = Emitter::default();
        emit(&AudioFormat::new(SampleEncoding::S16, 2, 44_100), &mut out);
        let patched = |at: usize, value: u16| {
            let mut bytes = out.0.clone();
            bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
            parse(&bytes).unwrap_err().to_string()
        };
        assert!(patched(0, 0x55).contains("MP3"));
        assert!(patched(2, 0).contains("0 channels"));
        assert!(patched(2, 257).contains("257 channels"));
        assert!(patched(12, 5).contains("block align of 5 bytes, expected 4"));
        assert!(patched(14, 33).contains("33 bits"));
        assert!(patched(6, 0xFFFF).contains("Hz"));
    }
}
