//! [`Writer`]: sound into an AU file or a pipe.
//!
//! ```text
//!   create    header with a length that is not known, an empty annotation
//!   audio     … each sample turned into the file's order
//!   sync      length patched, as long as 32 bits hold it
//!   finish    the same
//! ```
//!
//! What it is not: a converter; samples go into the file with the values that they come with. The
//! speakers and valid bits of a format have no place in a header and are left out.
//!
//! Invariants: at every moment the file is readable, up to where it was synced last, or all of it
//! before the first sync and above 4 GiB. Source: as in [`crate::au`].

use std::io::{Seek, Write};

use super::{CODES, HEADER_LEN, LEN_UNKNOWN, MAGIC, order};
use crate::format::AudioFormat;
use crate::sink::{Pipe, Seekable, Sink};
use crate::write_error::WriteError;

/// Bytes of the annotation, at least four by the book: none of them a character.
const ANNOTATION: [u8; 4] = [0; 4];
/// Where the length of the sound is.
const LEN_AT: u64 = 8;

/// An AU file being written.
#[derive(Debug)]
pub struct Writer<S> {
    sink: S,
    format: AudioFormat,
    data_len: u64,
    /// Sound on its way into the file's order.
    turned: Vec<u8>,
    has_failed: bool,
}

impl<W: Write + Seek> Writer<Seekable<W>> {
    /// Begins a file that can be corrected.
    ///
    /// # Errors
    /// A format that cannot be written, or the destination's error.
    pub fn create(out: W, format: &AudioFormat) -> Result<Self, WriteError> {
        Self::begin(Seekable::new(out)?, format)
    }
}

impl<W: Write> Writer<Pipe<W>> {
    /// Begins a stream into something that only goes forward, such as a pipe to a player.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn streaming(out: W, format: &AudioFormat) -> Result<Self, WriteError> {
        Self::begin(Pipe::new(out), format)
    }
}

impl<S: Sink> Writer<S> {
    fn begin(mut sink: S, format: &AudioFormat) -> Result<Self, WriteError> {
        format.check().map_err(WriteError::Format)?;
        sink.append(&header(format))?;
        let format = format.clone();
        Ok(Self { sink, format, data_len: 0, turned: Vec::new(), has_failed: false })
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
            if writer.format.encoding.is_companded() {
                writer.sink.append(sound)?;
            } else {
                writer.turned.clear();
                writer.turned.extend_from_slice(sound);
                order::turn(writer.format.encoding, &mut writer.turned);
                writer.sink.append(&writer.turned)?;
            }
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
            // No sound yet is not known to be none; beyond 32 bits the file's end says it.
            let len = u32::try_from(writer.data_len).ok().filter(|len| *len > 0);
            writer.sink.patch(LEN_AT, &len.unwrap_or(LEN_UNKNOWN).to_be_bytes())?;
            Ok(writer.sink.flush()?)
        })
    }

    /// Writes the true length, flushes, and gives back the destination.
    ///
    /// # Errors
    /// The destination's error.
    pub fn finish(mut self) -> Result<S::Inner, WriteError> {
        self.sync()?;
        Ok(self.sink.into_inner())
    }

    /// Bytes written so far, header included.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.sink.position()
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

/// Everything before the sound.
fn header(format: &AudioFormat) -> Vec<u8> {
    let code = CODES.iter().find(|(_, encoding)| *encoding == format.encoding);
    let code = code.map_or(0, |(code, _)| *code);
    let data_at = HEADER_LEN + ANNOTATION.len() as u32;
    let mut out = MAGIC.to_vec();
    for field in [data_at, LEN_UNKNOWN, code, format.rate_hz, u32::from(format.channels)] {
        out.extend_from_slice(&field.to_be_bytes());
    }
    out.extend_from_slice(&ANNOTATION);
    out
}
