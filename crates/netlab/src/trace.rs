//! [`Trace`]: what happened in a world, so that two runs can be compared.
//!
//! A digest over every datagram that was sent (time, from, to, bytes) in order, and the count.

use dacapo_base::Time;
use std::net::SocketAddr;

/// The running digest of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Datagrams sent.
    pub count: u64,
    /// The digest: FNV-1a over 64 bits, which is enough to tell runs apart and fast.
    pub digest: u64,
}

impl Default for Trace {
    fn default() -> Self {
        Self { count: 0, digest: 0xCBF2_9CE4_8422_2325 }
    }
}

impl Trace {
    /// Takes a datagram in.
    pub fn record(&mut self, now: Time, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.count += 1;
        self.add(&now.as_nanos().to_be_bytes());
        self.add(&[from.port().to_be_bytes(), to.port().to_be_bytes()].concat());
        self.add(bytes);
    }

    fn add(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word =
                chunk.iter().fold(chunk.len() as u64, |word, &byte| (word << 8) ^ u64::from(byte));
            self.digest = (self.digest ^ word).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }
}
