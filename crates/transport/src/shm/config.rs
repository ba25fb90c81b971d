//! What a transport over shared memory is asked for, and why it could not start.

use std::io;
use std::net::SocketAddr;

/// The bytes of a ring when nothing else is said. A writer goes round the whole ring, however
/// little waits in it. In one that is smaller than what the reader's processor has of caches for
/// itself, each line that is written is still held there, and has to be taken away first: 256 KiB
/// cost 0.11 s/GB to write, 1 MiB 0.04.
const RING_BYTES: usize = 1 << 20;

/// What a transport over shared memory is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of each of the two rings of a stream that is dialed; a power of two from
    /// [`super::ring::CAPACITY_MIN`] to [`super::ring::CAPACITY_MAX`], or the next one. Their pages
    /// are there from the beginning, and are of who dials.
    pub ring_bytes: usize,
    /// The most streams, up to [`crate::DATA_LANES_MAX`].
    pub streams_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { ring_bytes: RING_BYTES, streams_max: crate::DATA_LANES_MAX }
    }
}

/// In words of who is to do something about it.
pub(super) fn serve_error(address: SocketAddr, error: &io::Error) -> io::Error {
    let text = match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "shared memory: somebody serves at {address} on this host already, maybe another user"
        ),
        _ => format!("shared memory: cannot serve at {address}: {error}"),
    };
    io::Error::new(error.kind(), text)
}

/// The same of a dial.
pub(super) fn dial_error(remote: SocketAddr, error: &io::Error) -> io::Error {
    let text = match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("shared memory: nobody serves at {remote} on this host")
        }
        io::ErrorKind::WouldBlock => {
            format!("shared memory: too many wait at {remote}: try again")
        }
        _ => format!("shared memory: cannot reach {remote}: {error}"),
    };
    io::Error::new(error.kind(), text)
}
