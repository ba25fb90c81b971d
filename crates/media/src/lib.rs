//! Media containers, test media and the playout clock: engines without devices.
//!
//! Readers and writers of the containers that carry media without a decoder (AVI with Motion JPEG
//! and PCM, WAV and AU with PCM), a reader of JPEG pictures, single ones and many one after the
//! other, a generator of test movies, and the clock that says when a media frame that arrived is to
//! be shown.
//!
//! Readers take a [`ReadAt`], writers a `std::io::Write`, the clock takes the time as an argument;
//! other codecs are refused with the `ffmpeg` line that converts them.
//!
//! ```text
//!   file ──ReadAt──> avi::Reader, mjpeg::Reader, wav::Reader, au::Reader ─┐
//!                                                                         ├─> pictures, PCM
//!   TestMovie ──> Generator ──────────────────────────────────────────────┘      │
//!                                                                                v
//!   file or pipe <── avi::Writer, wav::Writer, au::Writer <── Playout <────── a flow
//! ```
//!
//! Invariants: bytes of a file never panic, never make a buffer larger than [`Limits`] or than
//! the bytes that really exist, and every loop over them moves forward.

pub mod au;
pub mod avi;
pub mod codec;
pub mod format;
pub mod mjpeg;
pub mod playout;
pub mod read;
pub mod sink;
pub mod sniff;
pub mod sound;
pub mod testmovie;
pub mod warning;
pub mod wav;

mod riff;
mod wave_format;
mod write_error;

pub use format::{AudioFormat, Format, FormatError, FourCc, SampleEncoding, VideoFormat};
pub use playout::{Playout, PlayoutStats, Verdict};
pub use read::{FileInput, Limits, ReadAt, ReadError};
pub use sink::{Pipe, Seekable, Sink};
pub use sniff::{Kind, SniffError, sniff};
pub use testmovie::TestMovie;
pub use warning::Warning;
