//! What can go wrong when a WAV file is read.

use std::fmt;

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
