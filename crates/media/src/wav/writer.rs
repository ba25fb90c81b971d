//! What a writer puts before the sound of WAV files.
//!
//! ```text
//!   create    RIFF of unknown length, JUNK, fmt, [fact], data of unknown length
//!   sync      lengths so far; above the limit RIFF becomes RF64 and JUNK becomes ds64
//! ```
//!
//! Invariants: at every moment the file is readable, up to where it was synced last. Source: as
//! in [`crate::wav`].

use super::{DS64_LEN, Wav, WavError};
use crate::format::AudioFormat;
use crate::riff::{Emitter, LEN_UNKNOWN};
use crate::sound::Container;
use crate::wave_format;

/// What a writer can be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriterConfig {
    /// Length in bytes above which a file is RF64 and no longer RIFF; at most 4 GiB - 2.
    pub riff_bytes_max: u32,
}

impl Default for WriterConfig {
    /// As late as possible.
    fn default() -> Self {
        Self { riff_bytes_max: LEN_UNKNOWN - 1 }
    }
}

impl Container for Wav {
    type Error = WavError;
    type Config = WriterConfig;
    const IS_BIG_ENDIAN: bool = false;
    const IS_PADDED: bool = true;

    fn header(
        config: &WriterConfig,
        format: &AudioFormat,
        can_patch: bool,
        data_len: Option<u64>,
    ) -> Vec<u8> {
        let mut out = Emitter::default();
        out.bytes(b"RIFF").u32(LEN_UNKNOWN).bytes(b"WAVE");
        if can_patch {
            out.chunk(b"JUNK", |junk| {
                junk.zeros(DS64_LEN as usize);
            });
        }
        out.chunk(b"fmt ", |fmt| wave_format::emit(format, fmt));
        let sample_count = data_len.map(|len| len / u64::from(format.block_len()));
        // Everything but linear whole numbers says how many samples there are.
        if format.encoding.is_float() || format.encoding.is_companded() {
            let count = sample_count.and_then(|count| u32::try_from(count).ok());
            out.chunk(b"fact", |fact| {
                fact.u32(count.unwrap_or(LEN_UNKNOWN));
            });
        }
        out.bytes(b"data").u32(LEN_UNKNOWN);
        if let (Some(data_len), Some(sample_count), true) = (data_len, sample_count, can_patch) {
            patch_lengths(&mut out.0, data_len, sample_count, config);
        }
        out.0
    }
}

fn patch_lengths(header: &mut [u8], data_len: u64, sample_count: u64, config: &WriterConfig) {
    let header_len = header.len();
    let riff_len = header_len as u64 - 8 + data_len + data_len % 2;
    let len_max = config.riff_bytes_max.min(LEN_UNKNOWN - 1);
    if riff_len + 8 <= u64::from(len_max) {
        header[4..8].copy_from_slice(&(riff_len as u32).to_le_bytes());
        header[header_len - 4..].copy_from_slice(&(data_len as u32).to_le_bytes());
        return;
    }
    let mut ds64 = Emitter::default();
    ds64.chunk(b"ds64", |ds64| {
        ds64.u64(riff_len).u64(data_len).u64(sample_count).u32(0);
    });
    header[..4].copy_from_slice(b"RF64");
    header[12..12 + ds64.0.len()].copy_from_slice(&ds64.0);
}
