//! [`Writer`]: sound into a WAV file or a pipe.
//!
//! ```text
//!   create    RIFF of unknown length, JUNK, fmt, [fact], data of unknown length
//!   audio     …
//!   sync      lengths patched; above the limit RIFF becomes RF64 and JUNK becomes ds64
//!   finish    pad byte, lengths patched
//! ```
//!
//! What it is not: a converter; bytes go into the file as they come.
//!
//! Invariants: at every moment the file is readable, up to where it was synced last. Source: as
//! in [`crate::wav`].

use std::io::{Seek, Write};

use super::DS64_LEN;
use crate::format::AudioFormat;
use crate::riff::{Emitter, LEN_UNKNOWN};
use crate::sink::{Pipe, Seekable, Sink};
use crate::wave_format;
use crate::write_error::WriteError;
use dacapo_base::failpoint;

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

/// A WAV file being written.
#[derive(Debug)]
pub struct Writer<S> {
    sink: S,
    config: WriterConfig,
    format: AudioFormat,
    header_len: u64,
    data_len: u64,
    has_failed: bool,
}

impl<W: Write + Seek> Writer<Seekable<W>> {
    /// Begins a file that can be corrected.
    ///
    /// # Errors
    /// A format that cannot be written, or the destination's error.
    pub fn create(out: W, format: &AudioFormat) -> Result<Self, WriteError> {
        Self::create_with(out, format, WriterConfig::default())
    }

    /// As [`Writer::create`], told more.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn create_with(
        out: W,
        format: &AudioFormat,
        config: WriterConfig,
    ) -> Result<Self, WriteError> {
        Self::begin(Seekable::new(out)?, format, config)
    }
}

impl<W: Write> Writer<Pipe<W>> {
    /// Begins a stream into something that only goes forward, such as a pipe to a player.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn streaming(out: W, format: &AudioFormat) -> Result<Self, WriteError> {
        Self::begin(Pipe::new(out), format, WriterConfig::default())
    }
}

impl<S: Sink> Writer<S> {
    fn begin(mut sink: S, format: &AudioFormat, config: WriterConfig) -> Result<Self, WriteError> {
        format.check().map_err(WriteError::Format)?;
        let header = header(format, S::CAN_PATCH, None, &config);
        sink.append(&header)?;
        Ok(Self {
            sink,
            config,
            format: format.clone(),
            header_len: header.len() as u64,
            data_len: 0,
            has_failed: false,
        })
    }

    /// Writes the next piece of sound, whole samples of every channel.
    ///
    /// # Errors
    /// Part of a sample, or the destination's error.
    pub fn audio(&mut self, sound: &[u8]) -> Result<(), WriteError> {
        let block_len = self.format.block_len();
        if !sound.len().is_multiple_of(block_len as usize) {
            return Err(WriteError::PartialBlock { len: sound.len(), block_len });
        }
        self.guard(|writer| {
            writer.sink.append(sound)?;
            writer.data_len += sound.len() as u64;
            Ok(())
        })
    }

    /// Puts the length so far in the header and flushes, so that a crash loses only what comes
    /// after. Once in a few seconds is often enough.
    ///
    /// # Errors
    /// The destination's error.
    pub fn sync(&mut self) -> Result<(), WriteError> {
        self.guard(|writer| {
            let data_len = Some(writer.data_len);
            let header = header(&writer.format, S::CAN_PATCH, data_len, &writer.config);
            writer.sink.patch(0, &header)?;
            Ok(writer.sink.flush()?)
        })
    }

    /// Writes the pad byte and the true lengths, flushes, and gives back the destination.
    ///
    /// # Errors
    /// The destination's error.
    pub fn finish(mut self) -> Result<S::Inner, WriteError> {
        if S::CAN_PATCH && !self.data_len.is_multiple_of(2) {
            self.guard(|writer| Ok(writer.sink.append(&[0])?))?;
        }
        failpoint!("sound.trailer");
        self.sync()?;
        Ok(self.sink.into_inner())
    }

    /// Bytes written so far, header included.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.header_len + self.data_len
    }

    fn guard(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        if self.has_failed {
            return Err(WriteError::Failed);
        }
        let done = act(self);
        self.has_failed = done.is_err();
        done
    }
}

/// Everything before the sound; the same length whatever `data_len` is, unknown when not given.
fn header(
    format: &AudioFormat,
    can_patch: bool,
    data_len: Option<u64>,
    config: &WriterConfig,
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
