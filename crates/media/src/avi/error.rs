//! What can go wrong with an AVI file, reading and writing.

use std::fmt;
use std::io;

use crate::format::FormatError;
use crate::read::ReadError;

/// Why an AVI file, or a part of it, cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum AviError {
    /// Bytes that should be there could not be read.
    Read(ReadError),
    /// The file does not begin as an AVI file does.
    NotAvi {
        /// The first bytes, as many as there are up to 12.
        head: Vec<u8>,
    },
    /// A part of the headers is missing or cut.
    Missing {
        /// Where it was expected, in bytes.
        offset: u64,
        /// What was expected.
        expected: &'static str,
    },
    /// A header list that is larger than the limit.
    HeaderTooLarge {
        /// Where it is, in bytes.
        offset: u64,
        /// Its length in bytes.
        len: u64,
        /// The limit in bytes.
        len_max: u32,
    },
    /// More streams than the limit.
    TooManyStreams {
        /// Where the first one too many is, in bytes.
        offset: u64,
        /// The limit.
        count_max: usize,
    },
    /// A stream whose format is not supported or makes no sense.
    Format {
        /// Which stream, from 0.
        stream: usize,
        /// Where its format is, in bytes.
        offset: u64,
        /// What is wrong.
        source: FormatError,
    },
    /// No stream of that number.
    NoSuchStream {
        /// The number asked for.
        stream: usize,
        /// How many there are.
        count: usize,
    },
    /// Pictures were asked of a stream without pictures, or sound of one without.
    WrongKind {
        /// Which stream.
        stream: usize,
        /// What was expected.
        expected: &'static str,
    },
    /// No picture of that index.
    NoSuchPicture {
        /// The index asked for.
        index: u64,
        /// How many there are.
        count: u64,
    },
    /// A picture larger than the limit.
    PictureTooLarge {
        /// Where it is, in bytes.
        offset: u64,
        /// Its length in bytes.
        len: u32,
        /// The limit in bytes.
        len_max: u32,
    },
}

const CONVERT: &str = "ffmpeg -i in.avi -c:v mjpeg -q:v 3 -c:a pcm_s16le out.avi";

impl fmt::Display for AviError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "{error}"),
            Self::NotAvi { head } => {
                write!(f, "expected RIFF and AVI at byte 0, found \"{}\"", head.escape_ascii())
            }
            Self::Missing { offset, expected } => {
                write!(f, "expected {expected} at byte {offset}; the file is cut or damaged")
            }
            Self::HeaderTooLarge { offset, len, len_max } => {
                write!(f, "a header list of {len} bytes at byte {offset}, expected at most ")?;
                write!(f, "{len_max}")
            }
            Self::TooManyStreams { offset, count_max } => {
                write!(f, "one more stream at byte {offset}, expected at most {count_max}")
            }
            Self::Format { stream, offset, source } => {
                write!(f, "stream {stream} (format at byte {offset}): {source}; ")?;
                write!(f, "convert it with: {CONVERT}")
            }
            Self::NoSuchStream { stream, count } => {
                write!(f, "no stream {stream}; the file has {count}, counted from 0")
            }
            Self::WrongKind { stream, expected } => {
                write!(f, "stream {stream} is not {expected}")
            }
            Self::NoSuchPicture { index, count } => {
                write!(f, "no picture {index}; the stream has {count}, counted from 0")
            }
            Self::PictureTooLarge { offset, len, len_max } => {
                write!(f, "a picture of {len} bytes at byte {offset}, expected at most {len_max}")
            }
        }
    }
}

impl std::error::Error for AviError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Format { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<ReadError> for AviError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Why something cannot be written to an AVI file.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The destination refused bytes. What was written before is as after a crash: readable.
    Io(io::Error),
    /// An earlier call failed, so it is not known what the destination holds.
    Failed,
    /// A format that cannot be written.
    Format {
        /// Which stream, from 0.
        stream: usize,
        /// What is wrong.
        source: FormatError,
    },
    /// No streams, or more than an AVI file can number.
    StreamCount {
        /// How many were asked for.
        count: usize,
    },
    /// Pictures for a stream without pictures, sound for one without, or no such stream.
    WrongStream {
        /// Which stream.
        stream: usize,
        /// What was expected.
        expected: &'static str,
    },
    /// One picture or piece of sound with too many bytes.
    TooLarge {
        /// Bytes given.
        len: usize,
        /// The limit.
        len_max: usize,
    },
    /// Sound that does not end with a whole sample of every channel.
    PartialBlock {
        /// Bytes given.
        len: usize,
        /// Bytes of a whole sample of every channel.
        block_len: u32,
    },
    /// The file has as many segments as its header has room for; finish it and begin another.
    Full {
        /// The number of segments.
        segment_count: u32,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "writing the AVI file failed: {error}"),
            Self::Failed => write!(f, "the AVI file cannot go on after an earlier write failed"),
            Self::Format { stream, source } => write!(f, "stream {stream}: {source}"),
            Self::StreamCount { count } => {
                write!(f, "{count} streams, an AVI file is written with 1 to 16")
            }
            Self::WrongStream { stream, expected } => {
                write!(f, "stream {stream} is not {expected}")
            }
            Self::TooLarge { len, len_max } => {
                write!(f, "{len} bytes in one piece, at most {len_max} are written")
            }
            Self::PartialBlock { len, block_len } => {
                write!(f, "{len} bytes of sound are no multiple of {block_len}")
            }
            Self::Full { segment_count } => {
                write!(f, "the AVI file is full ({segment_count} segments); finish it and ")?;
                write!(f, "begin another")
            }
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Format { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
