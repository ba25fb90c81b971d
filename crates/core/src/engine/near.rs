//! Peers on this host: the transports that exist only where both ends are on one.
//!
//! ```text
//!   WELCOME, one clock, a loopback address  --Look(transport, remote)-->  who drives the core
//!   JOIN names the transport  <--handle_found--------------------------   found: same user, memory
//! ```
//!
//! The dialer looks once, before the application hears of the peer; what it has found it says in
//! every JOIN, and what a JOIN does not say is not offered. A listener believes a JOIN when clock
//! and address fit.
//!
//! Invariant: at most one look per peer and transport waits to be polled.

use super::Core;
use crate::peer::PeerId;
use dacapo_lift::TransportSpec;
use std::net::SocketAddr;

/// Whether a peer can be reached by a transport of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The peer.
    pub peer: PeerId,
    /// The number of the transport.
    pub transport: u16,
    /// The address of the peer's control port.
    pub remote: SocketAddr,
}

impl Core {
    /// What is to be looked for, one by one; [`Core::handle_found`] says that it was found.
    pub fn poll_look(&mut self) -> Option<Look> {
        self.looks.pop_front()
    }

    /// A peer is reached by a transport of one host.
    pub fn handle_found(&mut self, look: Look) {
        self.touch();
        if let Some(peer) = self.peers.get_mut(&look.peer) {
            peer.near.push(look.transport);
        }
    }

    /// Asks whether a peer that was dialed can be reached by what needs one host. Anew with each
    /// connection, because it may be another process by now.
    pub(super) fn look_near(&mut self, id: PeerId) {
        self.looks.retain(|look| look.peer != id);
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.near.clear();
        if peer.is_here() {
            let remote = peer.remote;
            let specs = self.config.catalogue.transports().iter().filter(|spec| spec.same_host);
            let look = |spec: &&TransportSpec| Look { peer: id, transport: spec.id, remote };
            self.looks.extend(specs.map(look));
        }
    }

    /// Whether a transport may be named to a peer: any that goes between hosts, or by which it was
    /// found.
    pub(super) fn has_found(&self, id: PeerId, spec: &TransportSpec) -> bool {
        let is_near = |id| self.peers.get(&id).is_some_and(|peer| peer.near.contains(&spec.id));
        !spec.same_host || is_near(id)
    }
}
