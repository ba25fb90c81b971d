//! What can go wrong with a WAV file, reading and writing.
//!
//! What it is not: a list of what is merely odd; that is [`crate::Warning`].

use std::fmt;
use std::io;

use crate::format::FormatError;
use crate::read::ReadError;

/// Why a WAV file, or a part of it, cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum WavError {
    /// Bytes that should be there could not be read.
    Read(ReadError),
    /// The file does not begin as a WAV file does.
    NotWav {
        /// The first bytes, as many as there are up to 12.
        head: Vec<u8>,
    },
    /// A chunk is missing or cut.
    Missing {
        /// Where it was expected, in bytes.
        offset: u64,
        /// What was expected.
        expected: &'static str,
    },
    /// A format that is not supported or makes no sense.
    Format {
        /// Where it is, in bytes.
        offset: u64,
        /// What is wrong.
        source: FormatError,
    },
}

const CONVERT: &str = "ffmpeg -i in.wav -c:a pcm_s16le out.wav";

impl fmt::Display for WavError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "{error}"),
            Self::NotWav { head } => {
                write!(f, "expected RIFF and WAVE at byte 0, found \"{}\"", head.escape_ascii())
            }
            Self::Missing { offset, expected } => {
                write!(f, "expected {expected} at byte {offset}; the file is cut or damaged")
            }
            Self::Format { offset, source } => {
                write!(f, "the format at byte {offset}: {source}; convert it with: {CONVERT}")
            }
        }
    }
}

impl std::error::Error for WavError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Format { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<ReadError> for WavError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Why something cannot be written to a WAV file.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The destination refused bytes. What was written before is readable.
    Io(io::Error),
    /// An earlier call failed, so it is not known what the destination holds.
    Failed,
    /// A format that cannot be written.
    Format(FormatError),
    /// Sound that does not end with a whole sample of every channel.
    PartialBlock {
        /// Bytes given.
        len: usize,
        /// Bytes of a whole sample of every channel.
        block_len: u32,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "writing the WAV file failed: {error}"),
            Self::Failed => write!(f, "the WAV file cannot go on after an earlier write failed"),
            Self::Format(source) => write!(f, "{source}"),
            Self::PartialBlock { len, block_len } => {
                write!(f, "{len} bytes of sound are no multiple of {block_len}")
            }
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Format(source) => Some(source),
            _ => None,
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
