//! AU: sound behind a short header, as Sun and NeXT wrote it (`.au`, `.snd`).
//!
//! A [`Reader`] whose sound comes in the byte order of every other container here, and a [`Writer`]
//! whose files any player reads.
//!
//! ```text
//!   0 ".snd"  4 where the sound begins  8 its length  12 encoding  16 rate  20 channels
//!   24 annotation, any text            then the sound; numbers and samples are big-endian
//! ```
//!
//! | encoding | in the file | as it is read |
//! |---|---|---|
//! | 1, 27 | mu-law, A-law | the same bytes |
//! | 2 | signed 8 bit | unsigned 8 bit |
//! | 3, 4, 5 | 16, 24, 32 bit | the bytes of each sample turned round |
//! | 6, 7 | 32, 64 bit float | the bytes of each sample turned round |
//!
//! A length of all ones is one that its writer could not go back and fill in, or that is beyond
//! 4 GiB: the sound lasts until the file ends.
//!
//! Sources: Sun `audio_filehdr.h`; NeXT `soundstruct.h`.

mod error;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

pub use crate::write_error::WriteError;
pub use error::AuError;

use crate::format::SampleEncoding;
use crate::sound;

/// The container, as a type.
#[derive(Debug)]
pub enum Au {}

/// An open AU file.
pub type Reader<R> = sound::Reader<R, Au>;
/// An AU file being written.
pub type Writer<S> = sound::Writer<S, Au>;

const MAGIC: [u8; 4] = *b".snd";
/// Bytes before the annotation.
const HEADER_LEN: u32 = 24;
const LEN_UNKNOWN: u32 = u32::MAX;

/// The numbers of the encodings.
const CODES: [(u32, SampleEncoding); 8] = [
    (1, SampleEncoding::MuLaw),
    (2, SampleEncoding::U8),
    (3, SampleEncoding::S16),
    (4, SampleEncoding::S24),
    (5, SampleEncoding::S32),
    (6, SampleEncoding::F32),
    (7, SampleEncoding::F64),
    (27, SampleEncoding::ALaw),
];
