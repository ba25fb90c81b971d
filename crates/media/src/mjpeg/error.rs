//! What can go wrong with a file of JPEG pictures.

use std::fmt;

use crate::format::FormatError;
use crate::read::ReadError;

/// Why a file of JPEG pictures, or one of them, cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum MjpegError {
    /// Bytes that should be there could not be read.
    Read(ReadError),
    /// The file does not begin as a JPEG picture does.
    NotJpeg {
        /// The first bytes, as many as there are up to 4.
        head: Vec<u8>,
    },
    /// There is no whole picture with a size in it.
    NoPicture {
        /// Where the search ended, in bytes.
        offset: u64,
    },
    /// A rate that makes no sense.
    Format(FormatError),
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
    /// Something else is now where a picture was found.
    Changed {
        /// Where, in bytes.
        offset: u64,
    },
}

const CONVERT: &str = "ffmpeg -i in.mjpg -c:v mjpeg -q:v 3 out.avi";

impl fmt::Display for MjpegError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "{error}"),
            Self::NotJpeg { head } => {
                write!(f, "expected FF D8 FF at byte 0, found \"{}\"", head.escape_ascii())
            }
            Self::NoPicture { offset } => {
                write!(
                    f,
                    "expected a whole JPEG picture before byte {offset}; the file is cut or "
                )?;
                write!(f, "damaged; if ffmpeg can read it: {CONVERT}")
            }
            Self::Format(source) => write!(f, "{source}"),
            Self::NoSuchPicture { index, count } => {
                write!(f, "no picture {index}; the file has {count}, counted from 0")
            }
            Self::PictureTooLarge { offset, len, len_max } => {
                write!(f, "a picture of {len} bytes at byte {offset}, expected at most {len_max}")
            }
            Self::Changed { offset } => {
                write!(
                    f,
                    "the picture at byte {offset} is no longer there: the file has changed "
                )?;
                write!(f, "since it was searched; open it anew")
            }
        }
    }
}

impl std::error::Error for MjpegError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Format(source) => Some(source),
            _ => None,
        }
    }
}

impl From<ReadError> for MjpegError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}
