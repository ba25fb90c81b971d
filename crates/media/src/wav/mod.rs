//! WAV: PCM, linear or companded, in RIFF chunks, beyond 4 GiB too.
//!
//! A [`Reader`] of RIFF/WAVE and RF64 files, and a [`Writer`] whose files any player reads.
//!
//! ```text
//!   RIFF 'WAVE'                       RF64 'WAVE'          above 4 GiB
//!     JUNK (28 bytes, room for ds64)    ds64               the true lengths, 64 bits
//!     fmt  WAVEFORMATEX                 fmt
//!     [fact]  samples, if not integer   [fact]
//!     data ...                          data (length -1) ...
//! ```
//!
//! Sources: Microsoft "Multiple Channel Audio Data and WAVE Files"; EBU Tech 3306 (RF64), ITU-R
//! BS.2088 (BW64).

mod error;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

pub use crate::write_error::WriteError;
pub use error::WavError;
pub use writer::WriterConfig;

use crate::sound;

/// The container, as a type.
#[derive(Debug)]
pub enum Wav {}

/// An open WAV file.
pub type Reader<R> = sound::Reader<R, Wav>;
/// A WAV file being written.
pub type Writer<S> = sound::Writer<S, Wav>;

/// Bytes of the body of a `ds64` chunk without a table.
const DS64_LEN: u32 = 28;
