//! [`InProc`]: datagrams between the parts of one process.
//!
//! A [`Switchboard`] with named endpoints and a bounded queue per traffic class, under one lock;
//! endpoints may live in different threads. For two cores in one process and for tests without a
//! network.
//!
//! ```text
//!   endpoint "a"  --send-->  [ control queue of "b"      ]  --recv-->  endpoint "b"
//!                 --send-->  [ data queue of "b" for "a" ]  --recv-->
//!                               wakes fd() of "b"
//! ```
//!
//! Invariants
//! - The lock is held for one send or one recv, never across a call to anything else.
//! - sent = received + dropped + waiting, in datagrams, for every endpoint that nobody left.
//! - Addresses are of the prefix 100::/64, which no network routes (RFC 6666): they cannot be
//!   mistaken for real ones.

mod config;
mod recv;
mod send;
mod switchboard;

pub use config::{Config, EndpointError, Full};
pub use switchboard::Switchboard;

use crate::{Capabilities, Incoming, Outgoing, RecvOutcome, SendError, Sent};
use crate::{Transport, TransportStats};
use dacapo_base::Time;
use dacapo_packet::Pool;
use dacapo_sys::poll::Waker;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// A hub whose queues drop when they are full, otherwise as [`Config::default`].
#[must_use]
pub fn hub() -> Switchboard {
    Switchboard::new(&Config::default())
}

/// An endpoint of a [`Switchboard`].
#[derive(Debug)]
pub struct InProc {
    hub: Switchboard,
    capabilities: Capabilities,
    local_addrs: [SocketAddr; 1],
    waker: Arc<Waker>,
    /// Data lanes with something to read, in turn.
    ready: VecDeque<SocketAddr>,
    stats: TransportStats,
}

impl InProc {
    fn local(&self) -> SocketAddr {
        self.local_addrs[0]
    }
}

impl Transport for InProc {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn local_addrs(&self) -> &[SocketAddr] {
        &self.local_addrs
    }

    fn open_data(&mut self, remote: SocketAddr) -> io::Result<SocketAddr> {
        let limit = self.hub.config().data_lanes_max.min(crate::DATA_LANES_MAX);
        self.hub.state().open_lane(self.local(), remote, limit)?;
        Ok(self.local())
    }

    fn close_data(&mut self, remote: SocketAddr) {
        self.ready.retain(|&lane| lane != remote);
        self.hub.state().close_lane(self.local(), remote);
    }

    fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        self.send_to_hub(outgoing)
    }

    fn recv(&mut self, now: Time, pool: &mut Pool, into: &mut Vec<Incoming>) -> RecvOutcome {
        self.recv_from_hub(now, pool, into)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.waker.as_fd())
    }

    fn stats(&self) -> TransportStats {
        let mut stats = self.stats;
        stats.drops = self.hub.state().drops(self.local());
        stats
    }
}

impl Drop for InProc {
    fn drop(&mut self) {
        self.hub.state().leave(self.local());
    }
}

fn capabilities(config: &Config) -> Capabilities {
    // What is longer than a queue or a body would wait for ever.
    let longest = config.queue_bytes_max.min(dacapo_packet::TRAIN_BYTES_MAX);
    Capabilities {
        name: "inproc",
        lanes: true,
        datagram_len_max: config.datagram_len_max.min(longest),
        reliable: config.full == Full::Block,
        ordered: true,
        boundaries: true,
        duplicates: false,
        integrity: true,
        multicast: false,
        trains: true,
    }
}
