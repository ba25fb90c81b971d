//! [`Reader`]: sound by byte, out of a file in which it lies as it is played.
//!
//! ```text
//!   file   12 34 | 56 78 | 9A BC        samples, big-endian
//!   asked       `-----------'           any bytes: whole samples are read, turned, and cut
//!   given    12 | 78 56 | BC
//! ```
//!
//! Headers are the business of each container.
//!
//! Invariants: `data_len` is a multiple of the format's block and within the input; a call reads
//! at most 14 bytes more than it was asked for, and none where samples are not turned.
//!
//! Decoder: of the sound of WAV and AU files.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::{Container, order};
use crate::format::AudioFormat;
use crate::read::{Input, ReadAt};
use crate::warning::Warning;
use std::marker::PhantomData;

/// An open file of sound.
#[derive(Debug)]
pub struct Reader<R, C> {
    input: Input<R>,
    format: AudioFormat,
    data_at: u64,
    data_len: u64,
    warnings: Vec<Warning>,
    container: PhantomData<C>,
}

impl<R: ReadAt, C: Container> Reader<R, C> {
    /// Over the sound that begins at `data_at` and is said to be `len` bytes long, or to last
    /// until the file ends.
    pub(crate) fn over(
        input: Input<R>,
        format: AudioFormat,
        data_at: u64,
        len: Option<u64>,
    ) -> Self {
        let mut warnings = Vec::new();
        let exists = input.len().saturating_sub(data_at);
        let len = len.unwrap_or(exists);
        if len > exists {
            let missing = len.saturating_sub(exists);
            warnings.push(Warning::Truncated { offset: input.len(), missing });
        }
        let len = len.min(exists);
        let partial = len.checked_rem(u64::from(format.block_len())).unwrap_or(0);
        let data_len = len.saturating_sub(partial);
        if partial > 0 {
            let offset = data_at.saturating_add(data_len);
            warnings.push(Warning::PartialBlock { offset, len: partial });
        }
        Self { input, format, data_at, data_len, warnings, container: PhantomData }
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
    ) -> Result<(), C::Error> {
        out.clear();
        let end = byte_offset.saturating_add(len as u64).min(self.data_len);
        if byte_offset >= end {
            return Ok(());
        }
        // Whole samples around what is wanted; the sound ends with a whole one.
        let is_turned = C::IS_BIG_ENDIAN && order::is_turned(self.format.encoding);
        let unit_len = if is_turned { u64::from(self.format.encoding.byte_len()) } else { 1 };
        let before = byte_offset.checked_rem(unit_len).unwrap_or(0);
        let from = byte_offset.saturating_sub(before);
        let whole = end.saturating_sub(from).checked_next_multiple_of(unit_len);
        let whole = whole.and_then(|len| usize::try_from(len).ok()).unwrap_or(usize::MAX);
        self.input.append(self.data_at.saturating_add(from), whole, out)?;
        if is_turned {
            order::turn(self.format.encoding, out);
            let before = usize::try_from(before).unwrap_or(0).min(out.len());
            out.drain(..before);
            out.truncate(usize::try_from(end.saturating_sub(byte_offset)).unwrap_or(usize::MAX));
        }
        Ok(())
    }

    /// Gives back the input.
    pub fn into_inner(self) -> R {
        self.input.into_inner()
    }
}
