//! What an in-process hub is asked for, and why an address could not be given.

use std::fmt;

/// What a full queue does with what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// It is dropped and counted, as a network does.
    Drop,
    /// It stays with the sender, who is told when there is room.
    Block,
}

/// What an in-process hub is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// What a full queue does.
    pub full: Full,
    /// The most datagrams that wait in the queue of one lane.
    pub queue_datagrams_max: usize,
    /// The most bytes that wait in the queue of one lane.
    pub queue_bytes_max: usize,
    /// The longest datagram in bytes.
    pub datagram_len_max: usize,
    /// The most data lanes per endpoint, up to [`crate::DATA_LANES_MAX`].
    pub data_lanes_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            full: Full::Drop,
            queue_datagrams_max: 4_096,
            queue_bytes_max: 4 * 1024 * 1024,
            datagram_len_max: dacapo_packet::TRAIN_BYTES_MAX,
            data_lanes_max: crate::DATA_LANES_MAX,
        }
    }
}

/// Why an endpoint could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum EndpointError {
    /// An endpoint with this name lives.
    NameInUse {
        /// The name.
        name: String,
    },
    /// There is no descriptor left to wake the endpoint with.
    NoWaker(std::io::Error),
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameInUse { name } => {
                write!(f, "the hub has an endpoint named {name:?}: choose another name")
            }
            Self::NoWaker(error) => {
                write!(f, "no descriptor to wake the endpoint with: {error}: close some")
            }
        }
    }
}

impl std::error::Error for EndpointError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoWaker(error) => Some(error),
            Self::NameInUse { .. } => None,
        }
    }
}
