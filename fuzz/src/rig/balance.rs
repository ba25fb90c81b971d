//! [`Balance`]: what a core sends to addresses that nobody has proved, beside what came from them.
//!
//! Invariant: at most three times what came goes back (RFC 9000, section 8.1).

use super::Rig;
use dacapo_base::Address;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What was received from and sent to each address, in bytes.
#[derive(Default)]
pub struct Balance(BTreeMap<Address, (usize, usize)>);

impl Balance {
    /// Gives the core a datagram and takes what it answers.
    ///
    /// # Panics
    /// As [`Balance::check`].
    pub fn give(&mut self, rig: &mut Rig, from: SocketAddr, bytes: &[u8]) {
        self.give_frames(rig, from, bytes, &[]);
    }

    /// The same with the frames that it was sealed with.
    ///
    /// # Panics
    /// As [`Balance::check`].
    pub fn give_frames(&mut self, rig: &mut Rig, from: SocketAddr, bytes: &[u8], frames: &[u8]) {
        self.0.entry(from.into()).or_default().0 += bytes.len();
        rig.handle_frames(from, bytes, frames);
        self.collect(rig);
    }

    /// Takes what the core sends now.
    ///
    /// # Panics
    /// As [`Balance::check`].
    pub fn collect(&mut self, rig: &mut Rig) {
        rig.settle();
        for sent in rig.take_sent() {
            self.0.entry(sent.remote).or_default().1 += sent.bytes.len();
        }
        self.check();
    }

    /// Checks every address.
    ///
    /// # Panics
    /// More than three times what came from an address was sent to it.
    pub fn check(&self) {
        for (address, (received, sent)) in &self.0 {
            assert!(*sent <= 3 * received, "{sent} bytes to {address} for {received} from it");
        }
    }
}
