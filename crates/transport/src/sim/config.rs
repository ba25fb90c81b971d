//! What a simulated byte stream is like.

use std::time::Duration;

/// What a simulated byte stream is like, each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most bytes that were written and not read; beyond it writing blocks. At least 1.
    pub buffer_bytes: usize,
    /// How long a byte is on its way at least.
    pub delay: Duration,
    /// How much longer it may be; bytes never overtake each other.
    pub jitter: Duration,
    /// Reads and writes take random parts, and what was written together arrives apart.
    pub is_split: bool,
    /// The most streams of a transport, up to [`crate::DATA_LANES_MAX`].
    pub streams_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            buffer_bytes: 256 * 1024,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            is_split: true,
            streams_max: crate::DATA_LANES_MAX,
        }
    }
}
