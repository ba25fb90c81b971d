//! [`Ending`]: why a stream ended, in words for whoever used it.

use super::{CLOSE_WAIT, DIAL_WAIT, PREFACE_WAIT, RECORD_LEN_MAX};
use std::fmt;
use std::io;

/// Why a stream ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ending {
    /// The other end closed it after a whole record.
    Closed,
    /// The other end closed it within a record or a length.
    WithinRecord {
        /// Bytes of the datagram that came.
        received: usize,
        /// Bytes of the datagram, when its length came.
        len: Option<usize>,
    },
    /// The other end closed it within the preface or before it.
    WithinPreface,
    /// A length above [`RECORD_LEN_MAX`].
    RecordTooLong {
        /// The length in bytes that was said.
        len: u32,
    },
    /// The first bytes are not a preface.
    WrongPreface,
    /// Nobody expects this token, or no longer.
    UnknownToken,
    /// The listener already has as many streams as it may have.
    TooManyStreams {
        /// How many that is.
        limit: usize,
    },
    /// A stream with the same remote address is open.
    SameRemote,
    /// No whole preface in time.
    Late,
    /// Too many streams without a preface came after this one.
    Displaced,
    /// The listener did not answer the preface in time.
    NoAnswer,
    /// It was closed here, and the other end did not follow in time.
    CloseTimedOut,
    /// Nobody listens at the remote port.
    Refused,
    /// The other end broke the stream off.
    Reset,
    /// The network did not carry it in time.
    TimedOut,
    /// There is no way to the remote address.
    Unreachable,
    /// The protocol below the stream ended it: what it says.
    Protocol(io::Error),
    /// Another error of the system.
    Other(io::Error),
}

impl Ending {
    /// The ending that an error of reading or writing means.
    #[must_use]
    pub fn of(error: io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::ConnectionRefused => Self::Refused,
            Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => Self::Reset,
            Kind::NotConnected => Self::Reset,
            Kind::TimedOut => Self::TimedOut,
            Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown => {
                Self::Unreachable
            }
            Kind::InvalidData => Self::Protocol(error),
            _ => Self::Other(error),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the remote closed the stream"),
            Self::WithinRecord { received, len: Some(len) } => {
                write!(
                    f,
                    "the remote ended the stream within a datagram, {received} of {len} bytes"
                )
            }
            Self::WithinRecord { len: None, .. } => {
                f.write_str("the remote ended the stream within the length of a datagram")
            }
            Self::WithinPreface => f.write_str(
                "the remote ended the stream before it was open: it does not expect it, or is no \
                 dacapo",
            ),
            Self::RecordTooLong { len } => write!(
                f,
                "the remote announced a datagram of {len} bytes, {RECORD_LEN_MAX} are the most"
            ),
            Self::WrongPreface => {
                f.write_str("the remote port speaks another protocol: check address and port")
            }
            Self::UnknownToken => f.write_str("nobody expects this stream, or no longer"),
            Self::TooManyStreams { limit } => {
                write!(f, "{limit} streams are open or expected: close one first")
            }
            Self::SameRemote => f.write_str("a stream with the same remote address is open"),
            Self::Late => write!(f, "no preface came within {} s", PREFACE_WAIT.as_secs()),
            Self::Displaced => f.write_str("too many streams without a preface came after it"),
            Self::NoAnswer => {
                write!(f, "the remote port did not answer within {} s", DIAL_WAIT.as_secs())
            }
            Self::CloseTimedOut => {
                write!(f, "the remote did not close within {} s", CLOSE_WAIT.as_secs())
            }
            Self::Refused => f.write_str("nobody listens at the remote port: start the peer first"),
            Self::Reset => f.write_str("the remote broke the stream off: its program may be gone"),
            Self::TimedOut => f.write_str("the remote did not answer in time: check the network"),
            Self::Unreachable => f.write_str(
                "there is no way to the remote address from here: check the address and the \
                 network",
            ),
            Self::Protocol(error) => write!(f, "it could not be kept up: {error}"),
            Self::Other(error) => write!(f, "the system ended the stream: {error}"),
        }
    }
}
