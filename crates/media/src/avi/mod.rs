//! AVI: Motion JPEG pictures and PCM sound, linear or companded, in RIFF chunks with an index.
//!
//! A [`Reader`] that finds every picture and every audio byte of a file, and a [`Writer`] whose
//! files any player reads.
//!
//! ```text
//!   RIFF 'AVI '
//!     LIST hdrl   avih, LIST strl (strh strf [indx]) per stream, [LIST odml]
//!     LIST movi   00dc 01wb 00dc …  [LIST 'rec ' …]  [ix00 ix01]
//!     idx1        one entry per chunk of this movi
//!   RIFF 'AVIX'                       OpenDML: more of the same, beyond about 1 GiB
//!     LIST movi   00dc 01wb …  ix00 ix01
//!
//!   indx ──> ix00 of the first movi, ix00 of the second …  ──> every chunk of stream 0
//! ```
//!
//! Sources: Microsoft "AVI RIFF File Reference"; Matrox "OpenDML AVI File Format Extensions" 1.02.

mod error;
mod header;
mod index;
mod layout;
mod reader;
mod scan;
mod segment;
mod tracks;
mod writer;

#[cfg(test)]
mod tests;

pub use error::{AviError, WriteError};
pub use reader::{Reader, Stream};
pub use writer::{Writer, WriterConfig};

/// `AVIIF_KEYFRAME` in `idx1`.
const FLAG_KEY: u32 = 0x10;
/// Bit 31 of a size in `ix##`: not a key picture.
const SIZE_DELTA: u32 = 0x8000_0000;
/// `bIndexType` of an index of indexes.
const INDEX_OF_INDEXES: u8 = 0;
/// `bIndexType` of an index of chunks.
const INDEX_OF_CHUNKS: u8 = 1;
