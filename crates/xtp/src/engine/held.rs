//! [`Held`]: peers to whom the network below has no room for packets, and whose contexts wait for
//! it.
//!
//! Invariant: a context waits once, however often it has something to say meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Peers without room.
#[derive(Debug, Default)]
pub struct Held(BTreeMap<SocketAddr, BTreeSet<u32>>);

impl Held {
    /// There is no room for packets to this peer.
    pub fn hold(&mut self, peer: SocketAddr) {
        self.0.entry(peer).or_default();
    }

    /// There is room again; gives the contexts that have waited for it.
    pub fn release(&mut self, peer: SocketAddr) -> BTreeSet<u32> {
        self.0.remove(&peer).unwrap_or_default()
    }

    /// Whether nobody is held.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a context with this peer has to wait; it is remembered when it has.
    pub fn makes_wait(&mut self, peer: SocketAddr, slot: u32) -> bool {
        let waiting = self.0.get_mut(&peer);
        waiting.map(|slots| slots.insert(slot)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_peer_is_given_back_once_and_others_do_not_wait() {
        let peer = |port| SocketAddr::from(([192, 0, 2, 1], port));
        let mut held = Held::default();
        assert!(held.is_empty() && !held.makes_wait(peer(1), 7));
        held.hold(peer(1));
        assert!(held.makes_wait(peer(1), 7) && held.makes_wait(peer(1), 7));
        assert!(held.makes_wait(peer(1), 8) && !held.makes_wait(peer(2), 9));
        assert!(held.release(peer(1)).into_iter().eq([7, 8]));
        assert!(held.is_empty() && held.release(peer(1)).is_empty());
    }
}
