//! What can go wrong when an AU file is read.

use std::fmt;

use crate::format::FormatError;
use crate::read::ReadError;

/// Why an AU file, or a part of it, cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum AuError {
    /// Bytes that should be there could not be read.
    Read(ReadError),
    /// The file does not begin as an AU file does.
    NotAu {
        /// The first bytes, as many as there are up to 4.
        head: Vec<u8>,
    },
    /// A part of the file is missing or cut.
    Missing {
        /// Where it was expected, in bytes.
        offset: u64,
        /// What was expected.
        expected: &'static str,
    },
    /// The header says that the sound begins within the header.
    SoundInHeader {
        /// Where it is said to begin, in bytes.
        found: u32,
    },
    /// A format that is not supported or makes no sense.
    Format {
        /// Where it is, in bytes.
        offset: u64,
        /// What is wrong.
        source: FormatError,
    },
}

const CONVERT: &str = "ffmpeg -i in.au -c:a pcm_s16be out.au";

impl fmt::Display for AuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "{error}"),
            Self::NotAu { head } => {
                write!(f, "expected .snd at byte 0, found \"{}\"", head.escape_ascii())
            }
            Self::Missing { offset, expected } => {
                write!(f, "expected {expected} at byte {offset}; the file is cut or damaged")
            }
            Self::SoundInHeader { found } => {
                write!(f, "the sound is said to begin at byte {found} (at byte 4), expected at ")?;
                write!(f, "least 24; the file is damaged")
            }
            Self::Format { offset, source } => {
                write!(f, "the format at byte {offset}: {source}; convert it with: {CONVERT}")
            }
        }
    }
}

impl std::error::Error for AuError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Format { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<ReadError> for AuError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}
