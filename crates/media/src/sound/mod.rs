//! Sound that lies in a file as it is played: what [`crate::wav`] and [`crate::au`] have in common.
//!
//! One [`Reader`] and one [`Writer`], told by a [`Container`] where the sound is and in which order
//! of bytes.
//!
//! ```text
//!   header, of the container | sound: blocks, one after the other | anything
//!                            ^ data_at            data_len         ^
//! ```

mod order;
mod reader;
#[cfg(test)]
pub(crate) mod testing;
mod writer;

pub use crate::write_error::WriteError;
pub use reader::Reader;
pub use writer::Writer;

use crate::format::AudioFormat;
use crate::read::ReadError;

/// What one kind of file does in its own way.
pub trait Container {
    /// Why a file, or a part of it, cannot be read.
    type Error: From<ReadError>;
    /// What a writer can be told.
    type Config: Clone + Default;
    /// Whether samples are big-endian in the file, and those of 8 bits signed.
    const IS_BIG_ENDIAN: bool;
    /// Whether a byte follows sound of an odd length.
    const IS_PADDED: bool;

    /// Everything before the sound; the same length whatever `data_len` is, in bytes, unknown when
    /// not given.
    fn header(
        config: &Self::Config,
        format: &AudioFormat,
        can_patch: bool,
        data_len: Option<u64>,
    ) -> Vec<u8>;
}
