//! [`WriteError`]: what can go wrong when a file of sound is written.

use crate::format::FormatError;
use std::fmt;
use std::io;

/// Why something cannot be written to a file of sound.
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
            Self::Io(error) => write!(f, "writing the file failed: {error}"),
            Self::Failed => write!(f, "the file cannot go on after an earlier write failed"),
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
