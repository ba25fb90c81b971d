//! What an XTP transport is asked for, and how its engine is told of it.

use super::label::HEAD_LEN;
use crate::stream::{PATIENCE, UNCLAIMED_MAX};
use crate::{DATA_LANES_MAX, sockets};
use dacapo_xtp::Timers;
use std::net::IpAddr;
use std::time::Duration;

/// The longest datagram in bytes of the unreliable mode: one packet that every path takes on which
/// flows go (1,200 bytes) has room for it behind label (5), header (32) and tag (8).
pub const DATAGRAM_LEN_MAX: usize = 1_150;

/// The longest datagram of UDP in bytes where nothing is known of the path; that of QUIC, too.
pub(super) const PATH_LEN: u16 = 1_200;

/// The longest on loopback.
const LOOPBACK_LEN: u16 = 16_384;

/// Bytes that a stream keeps each way where nothing else is said.
pub(super) const BUFFER_LEN: usize = 1 << 20;

/// So many times as much it keeps at most: 16 MiB, twice what a path of 1 Gbit/s holds whose round
/// trip takes 67 ms.
const GROWTH_OF_ONE: usize = 16;

/// The most where nothing else is said.
pub(super) const BUFFER_LEN_MAX: usize = GROWTH_OF_ONE * BUFFER_LEN;

/// So many times as much all streams of a transport keep at most beyond what each keeps at first.
const GROWTH_OF_ALL: usize = 64;

/// What an XTP transport is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its sockets.
    pub udp: sockets::Config,
    /// Bytes that a stream takes beyond those that have arrived, and that it may bring beyond those
    /// that were read, at first. On a long path it grows to 16 times that, and of all streams of
    /// the transport together by 64 times.
    pub buffer_len: usize,
    /// The most streams, up to [`crate::DATA_LANES_MAX`].
    pub streams_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            udp: sockets::Config::default(),
            buffer_len: BUFFER_LEN,
            streams_max: DATA_LANES_MAX,
        }
    }
}

/// How long things are waited for.
fn timers() -> Timers {
    Timers {
        // After an outage it goes on within that.
        wait_max: Duration::from_secs(2),
        // The time alone says when a peer is given up.
        retries_max: u32::MAX,
        give_up: PATIENCE,
        // Keeps a way through routers open.
        silence: Duration::from_secs(10),
        ..Timers::default()
    }
}

/// What the engine of a transport is told; `packet_len` is that of the longest packet, in bytes.
pub(super) fn engine(config: &Config, packet_len: usize) -> dacapo_xtp::Config {
    let streams = config.streams_max.min(DATA_LANES_MAX);
    dacapo_xtp::Config {
        // Those that are open, that are being closed, that linger, and that have shown no token.
        contexts_max: 3 * streams + 2 * UNCLAIMED_MAX,
        inactive_max: 4 * DATA_LANES_MAX,
        packet_len_max: packet_len,
        packet_len_base: usize::from(PATH_LEN) - HEAD_LEN,
        buffer_len: config.buffer_len,
        buffer_len_max: config.buffer_len.saturating_mul(GROWTH_OF_ONE),
        growth_max: config.buffer_len.saturating_mul(GROWTH_OF_ALL),
        first_window: (config.buffer_len as u64).min(64 << 10),
        timers: timers(),
    }
}

/// The longest packet of who listens: the dialer knows the path, and says what it takes.
pub(super) const fn listener_packet_len() -> usize {
    LOOPBACK_LEN as usize - HEAD_LEN
}

/// The longest packet on the way to a remote, where `path_len` bytes of UDP are known to get there.
pub(super) fn dialer_packet_len(remote: IpAddr, path_len: Option<u16>) -> usize {
    let len = match path_len {
        _ if remote.is_loopback() => LOOPBACK_LEN,
        Some(len) => len.clamp(PATH_LEN, LOOPBACK_LEN),
        None => PATH_LEN,
    };
    usize::from(len) - HEAD_LEN
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_packet_is_as_long_as_the_path_takes() {
        let far = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(dialer_packet_len(far, None), 1_195);
        assert_eq!(dialer_packet_len(far, Some(1_452)), 1_447);
        assert_eq!(dialer_packet_len(far, Some(500)), 1_195, "no path of flows takes less");
        assert_eq!(dialer_packet_len(IpAddr::V4(Ipv4Addr::LOCALHOST), None), 16_379);
    }

    #[test]
    fn every_path_takes_a_datagram_of_the_longest_length() {
        let data_len = dialer_packet_len(IpAddr::V4(Ipv4Addr::BROADCAST), None) - 32 - 8;
        assert!(DATAGRAM_LEN_MAX <= data_len, "{data_len}");
    }
}
