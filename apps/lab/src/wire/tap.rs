//! [`Tap`]: a transport that is listened to: what goes in and out, and a few datagrams of flows.
//!
//! What it is not: a change; everything passes as it is.

use dacapo_base::Time;
use dacapo_packet::Pool;
use dacapo_transport::{
    Capabilities, Incoming, JoinError, Membership, Outgoing, RecvOutcome, SendError, Sent,
    Transport, TransportStats,
};
use dacapo_wire::data::TYPE_DATA;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// So many datagrams of flows are kept.
const SAMPLES: usize = 16;

/// What a tap has heard.
#[derive(Debug, Default)]
pub struct Heard {
    /// Datagrams that came from strangers.
    pub strange_datagrams: AtomicU64,
    /// Bytes of them.
    pub strange_bytes_in: AtomicU64,
    /// Bytes that went to strangers.
    pub strange_bytes_out: AtomicU64,
    samples: Mutex<Vec<Vec<u8>>>,
    stats: Mutex<TransportStats>,
}

impl Heard {
    /// The first datagrams of flows that went out.
    #[must_use]
    pub fn samples(&self) -> Vec<Vec<u8>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The transport's own counters, as they were not long ago.
    #[must_use]
    pub fn stats(&self) -> TransportStats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, outgoing: &Outgoing<'_>) {
        let datagram = outgoing.bytes.get(..outgoing.datagram_len()).unwrap_or_default();
        if datagram.first() == Some(&TYPE_DATA) {
            let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
            if samples.len() < SAMPLES {
                samples.push(datagram.to_vec());
            }
        }
    }
}

/// True for the addresses that junk comes from: of loopback, but not 127.0.0.x.
#[must_use]
pub fn is_strange(remote: SocketAddr) -> bool {
    match remote.ip() {
        IpAddr::V4(ip) => ip.is_loopback() && ip.octets()[1] != 0,
        IpAddr::V6(_) => false,
    }
}

/// The address of the stranger of this number, up to 16 million of them.
#[must_use]
pub fn stranger(number: usize) -> SocketAddr {
    let (b, c, d) = (1 + number / 62_500, number / 250 % 250, 1 + number % 250);
    let ip = Ipv4Addr::new(127, (b % 255).max(1) as u8, c as u8, d as u8);
    SocketAddr::from((ip, 0))
}

/// A transport that is listened to.
pub struct Tap<T> {
    inner: T,
    heard: Arc<Heard>,
    calls: u32,
    reads: u32,
}

impl<T> Tap<T> {
    /// Listens to a transport.
    #[must_use]
    pub fn new(inner: T, heard: &Arc<Heard>) -> Self {
        Self { inner, heard: Arc::clone(heard), calls: 0, reads: 0 }
    }
}

impl<T: Transport> Transport for Tap<T> {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn local_addrs(&self) -> &[SocketAddr] {
        self.inner.local_addrs()
    }

    fn open_data(&mut self, remote: SocketAddr) -> io::Result<SocketAddr> {
        self.inner.open_data(remote)
    }

    fn close_data(&mut self, remote: SocketAddr) {
        self.inner.close_data(remote);
    }

    fn join(&mut self, wanted: &Membership) -> Result<(), JoinError> {
        self.inner.join(wanted)
    }

    fn leave(&mut self, membership: &Membership) {
        self.inner.leave(membership);
    }

    fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        let sent = self.inner.send(outgoing);
        if is_strange(outgoing.remote) && matches!(sent, Ok(Sent::All)) {
            self.heard.strange_bytes_out.fetch_add(outgoing.bytes.len() as u64, Relaxed);
        }
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(16) {
            self.heard.keep(outgoing);
        }
        sent
    }

    fn recv(&mut self, now: Time, pool: &mut Pool, into: &mut Vec<Incoming>) -> RecvOutcome {
        let before = into.len();
        let outcome = self.inner.recv(now, pool, into);
        let came = into.get(before..).unwrap_or_default();
        let strange = came.iter().filter(|it| is_strange(it.remote));
        let (mut datagrams, mut bytes) = (0, 0);
        for incoming in strange {
            datagrams += incoming.packet.segment_count() as u64;
            bytes += incoming.packet.payload_len() as u64;
        }
        self.heard.strange_datagrams.fetch_add(datagrams, Relaxed);
        self.heard.strange_bytes_in.fetch_add(bytes, Relaxed);
        self.reads = self.reads.wrapping_add(1);
        if self.reads.is_multiple_of(64) {
            *self.heard.stats.lock().unwrap_or_else(PoisonError::into_inner) = self.inner.stats();
        }
        outcome
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.fd()
    }

    fn stats(&self) -> TransportStats {
        self.inner.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn strangers_are_all_different_and_known_as_such() {
        let all: BTreeSet<SocketAddr> = (0..100_000).map(stranger).collect();
        assert_eq!(all.len(), 100_000);
        assert!(all.iter().all(|address| is_strange(*address)));
        assert!(!is_strange(SocketAddr::from(([127, 0, 0, 1], 9))));
        assert!(!is_strange(SocketAddr::from(([10, 77, 0, 1], 9))));
    }
}
