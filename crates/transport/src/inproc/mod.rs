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
mod spec;
mod switchboard;

pub use config::{Config, EndpointError, Full};
pub(crate) use spec::UNLISTED;
pub use switchboard::Switchboard;

use crate::{Incoming, Outgoing, RecvOutcome, SendError, Sent};
use crate::{Transport, TransportStats};
use dacapo_base::{Address, Time};
use dacapo_lift::TransportSpec;
use dacapo_packet::{Pool, TRAIN_BYTES_MAX};
use dacapo_sys::poll::Waker;
use spec::{BLOCKS, DROPS};
use std::collections::VecDeque;
use std::io;
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
    local_addrs: [Address; 1],
    waker: Arc<Waker>,
    /// Data lanes with something to read, in turn.
    ready: VecDeque<Address>,
    stats: TransportStats,
}

impl InProc {
    fn local(&self) -> Address {
        self.local_addrs[0]
    }
}

impl Transport for InProc {
    fn spec(&self) -> &'static TransportSpec {
        match self.hub.config().full {
            Full::Drop => &DROPS,
            Full::Block => &BLOCKS,
        }
    }

    fn datagram_len_max(&self) -> usize {
        let config = self.hub.config();
        // What is longer than a queue or a body would wait for ever.
        config.datagram_len_max.min(config.queue_bytes_max).min(TRAIN_BYTES_MAX)
    }

    fn local_addrs(&self) -> &[Address] {
        &self.local_addrs
    }

    fn open_data(&mut self, remote: Address) -> io::Result<Address> {
        let limit = self.hub.config().data_lanes_max.min(crate::DATA_LANES_MAX);
        self.hub.state().open_lane(self.local(), remote, limit)?;
        Ok(self.local())
    }

    fn close_data(&mut self, remote: Address) {
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
