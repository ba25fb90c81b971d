//! [`FurtherPaths`]: where further paths of peers are, and what control does by them.
//!
//! ```text
//!   control --> first path -- silent?      QUIC knows the first address alone:
//!      '------> carrier ----------> there, where it passes for what came by the first
//! ```
//!
//! Invariant: an address is that of a further path only while it is proved to be one; who has been
//! dialed there himself keeps it.

use super::Peers;
use crate::effect::{Effect, Out, PeerNews};
use crate::ids::PeerId;
use crate::peer::Peer;
use crate::ready_table::ReadyTable;
use crate::transmit::{ListenerId, Way};
use dacapo_base::{Address, Time};
use std::collections::BTreeMap;

/// What is known of further paths by address.
#[derive(Default)]
pub(super) struct FurtherPaths {
    /// Where further paths of peers are.
    at: BTreeMap<Address, PeerId>,
    /// Peers whose first path is silent and another not, by the address of their control port.
    silent: BTreeMap<Address, PeerId>,
    /// A peer has had some.
    pub has_any: bool,
}

impl FurtherPaths {
    /// A path goes to another address from now on.
    pub fn note_moved(&mut self, id: PeerId, before: Option<Address>, now_at: Address) {
        before.map(|before| self.at.remove(&before));
        self.at.insert(now_at, id);
    }

    /// Looks anew at which paths to a peer carry.
    pub fn settle(
        &mut self,
        all: &mut ReadyTable<PeerId, Peer>,
        now: Time,
        id: PeerId,
        out: &mut Out,
    ) {
        if !self.has_any || all.get(id).is_none_or(|peer| peer.further.is_empty()) {
            return;
        }
        let settled =
            all.adjust(id, |peer| (peer.settle(now), peer.further.carrier() > 0, peer.remote));
        let Some((true, is_moved, remote)) = settled else { return };
        match is_moved {
            true => self.silent.insert(remote, id),
            false => self.silent.remove(&remote),
        };
        // What one path did not let out another may.
        out.peer(id, PeerNews::Room);
    }

    /// A peer is gone.
    pub fn forget(&mut self, id: PeerId, peer: &Peer, out: &mut Out) {
        self.silent.remove(&peer.remote);
        self.at.retain(|_, of| *of != id);
        for remote in peer.further.remotes() {
            out.push(Effect::CloseData(remote));
        }
    }
}

/// How control goes that is meant for an address: by a further path, where the first is silent.
pub(crate) fn control_way(
    peers: &Peers,
    local: Option<ListenerId>,
    remote: Address,
) -> (Way, Option<ListenerId>, Address) {
    if !peers.further.has_any {
        return (Way::Control, local, remote);
    }
    let peer = peers.further.silent.get(&remote).and_then(|id| peers.get(*id));
    match peer.and_then(|peer| peer.way_by(peer.further.carrier())) {
        Some((local, remote)) => (Way::Data, local, remote),
        None => (Way::Control, local, remote),
    }
}

/// For whom control passes that has come from an address: for the first path of the peer of whom
/// that is a further one.
pub(crate) fn control_origin(
    peers: &Peers,
    local: ListenerId,
    remote: Address,
) -> (ListenerId, Address) {
    if !peers.further.has_any {
        return (local, remote);
    }
    let peer = peers.further.at.get(&remote).and_then(|id| peers.get(*id));
    let is_dialed_itself = || peers.all.iter().any(|(_, peer)| peer.remote == remote);
    match peer.filter(|_| !is_dialed_itself()) {
        Some(peer) => (peer.local.or(peer.place).unwrap_or(local), peer.remote),
        None => (local, remote),
    }
}
