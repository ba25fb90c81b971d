//! What a TCP transport is asked for.

use dacapo_sys::tcp;

/// What a TCP transport is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes that a stream takes beyond those that the kernel has sent. Small, because what waits
    /// in the kernel cannot be dropped, overtaken or seen.
    pub unsent_bytes_max: u32,
    /// Bytes of receive buffer to ask for per stream; `None` lets the kernel find the size.
    pub recv_buffer_bytes: Option<usize>,
    /// Bytes of send buffer to ask for per stream; `None` lets the kernel find the size.
    pub send_buffer_bytes: Option<usize>,
    /// The most streams, up to [`crate::DATA_LANES_MAX`].
    pub streams_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        let socket = tcp::Config::default();
        Self {
            unsent_bytes_max: socket.unsent_bytes_max,
            recv_buffer_bytes: socket.recv_buffer_bytes,
            send_buffer_bytes: socket.send_buffer_bytes,
            streams_max: crate::DATA_LANES_MAX,
        }
    }
}

impl Config {
    pub(super) fn socket(&self) -> tcp::Config {
        tcp::Config {
            unsent_bytes_max: self.unsent_bytes_max,
            recv_buffer_bytes: self.recv_buffer_bytes,
            send_buffer_bytes: self.send_buffer_bytes,
        }
    }
}
