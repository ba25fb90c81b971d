//! [`Writer`]: sound into a file, or a pipe, in which it lies as it is played.
//!
//! ```text
//!   create    header with lengths that are not known
//!   audio     … each sample turned into the file's order
//!   sync      header written again, with the lengths so far
//!   finish    pad byte, header written again
//! ```
//!
//! Invariants: at every moment the file is readable, up to where it was synced last, or all of it
//! before the first sync; after a failure nothing more is written.

use super::{Container, order};
use crate::format::AudioFormat;
use crate::sink::{Guarded, Pipe, Seekable, Sink};
use crate::write_error::WriteError;
use dacapo_base::failpoint;
use std::io::{Seek, Write};

/// A file of sound being written.
#[derive(Debug)]
pub struct Writer<S, C: Container> {
    sink: S,
    config: C::Config,
    format: AudioFormat,
    data_len: u64,
    /// Sound on its way into the file's order.
    turned: Vec<u8>,
    has_failed: bool,
}

impl<W: Write + Seek, C: Container> Writer<Seekable<W>, C> {
    /// Begins a file that can be corrected.
    ///
    /// # Errors
    /// A format that cannot be written, or the destination's error.
    pub fn create(out: W, format: &AudioFormat) -> Result<Self, WriteError> {
        Self::create_with(out, format, C::Config::default())
    }

    /// As [`Writer::create`], told more.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn create_with(
        out: W,
        format: &AudioFormat,
        config: C::Config,
    ) -> Result<Self, WriteError> {
        Self::begin(Seekable::new(out)?, format, config)
    }
}

impl<W: Write, C: Container> Writer<Pipe<W>, C> {
    /// Begins a stream into something that only goes forward, such as a pipe to a player.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn streaming(out: W, format: &AudioFormat) -> Result<Self, WriteError> {
        Self::begin(Pipe::new(out), format, C::Config::default())
    }
}

impl<S: Sink, C: Container> Writer<S, C> {
    fn begin(mut sink: S, format: &AudioFormat, config: C::Config) -> Result<Self, WriteError> {
        format.check().map_err(WriteError::Format)?;
        sink.append(&C::header(&config, format, S::CAN_PATCH, None))?;
        let (format, turned) = (format.clone(), Vec::new());
        Ok(Self { sink, config, format, data_len: 0, turned, has_failed: false })
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
            if C::IS_BIG_ENDIAN && order::is_turned(writer.format.encoding) {
                writer.turned.clear();
                writer.turned.extend_from_slice(sound);
                order::turn(writer.format.encoding, &mut writer.turned);
                writer.sink.append(&writer.turned)?;
            } else {
                writer.sink.append(sound)?;
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
            let data_len = Some(writer.data_len);
            let header = C::header(&writer.config, &writer.format, S::CAN_PATCH, data_len);
            writer.sink.patch(0, &header)?;
            Ok(writer.sink.flush()?)
        })
    }

    /// Writes the pad byte, where the container has one, and the true lengths, flushes, and gives
    /// back the destination.
    ///
    /// # Errors
    /// The destination's error.
    pub fn finish(mut self) -> Result<S::Inner, WriteError> {
        if C::IS_PADDED && S::CAN_PATCH && !self.data_len.is_multiple_of(2) {
            self.guard(|writer| Ok(writer.sink.append(&[0])?))?;
        }
        failpoint!("sound.trailer");
        self.sync()?;
        Ok(self.sink.into_inner())
    }

    /// Bytes written so far, header included.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.sink.position()
    }
}

impl<S: Sink, C: Container> Guarded for Writer<S, C> {
    type Error = WriteError;
    const FAILED: WriteError = WriteError::Failed;

    fn has_failed(&mut self) -> &mut bool {
        &mut self.has_failed
    }

    fn is_half_way(_: &WriteError) -> bool {
        true
    }
}
