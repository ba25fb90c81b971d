//! Groups of a [`World`]: who has joined which, and where a datagram to one goes.
//!
//! A network that brings a datagram to every member, over the link to each by itself.

use super::{Datagram, World};
use crate::NodeId;
use dacapo_core::{GroupAsk, NetworkEvent};
use dacapo_link::Ecn;
use dacapo_transport::{Membership, TrafficClass};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Who has joined what.
#[derive(Debug, Default)]
pub(super) struct Groups {
    members: BTreeSet<(NodeId, Membership)>,
    /// Nodes that cannot join.
    refusing: BTreeSet<NodeId>,
}

impl World {
    /// From now on a node can join no group, or can again.
    pub fn refuse_groups(&mut self, node: NodeId, refuses: bool) {
        if refuses {
            self.groups.refusing.insert(node);
        } else {
            self.groups.refusing.remove(&node);
        }
    }

    /// What a node has joined.
    pub fn memberships(&self, node: NodeId) -> impl Iterator<Item = Membership> {
        self.groups.members.iter().filter(move |(at, _)| *at == node).map(|(_, it)| *it)
    }

    /// Does what a core asks about groups.
    pub(super) fn ask_group(&mut self, node: NodeId, ask: GroupAsk) {
        match ask {
            GroupAsk::Leave(membership) => {
                self.groups.members.remove(&(node, membership));
            }
            GroupAsk::Join(membership) => {
                let result = if self.groups.refusing.contains(&node) {
                    Err(format!("cannot join group {}: no such device", membership.group))
                } else {
                    self.groups.members.insert((node, membership));
                    Ok(())
                };
                let local = self.local(node);
                self.nodes[node.0]
                    .core
                    .handle_network(local, NetworkEvent::Joined(membership, result));
            }
        }
    }

    /// Sends a datagram to each member of a group.
    pub(super) fn send_to_group(
        &mut self,
        node: NodeId,
        lane: TrafficClass,
        from: SocketAddr,
        group: SocketAddr,
        bytes: &[u8],
    ) {
        let is_for = |it: &Membership| it.group == group && it.source == from;
        let members = self.groups.members.iter().filter(|(_, it)| is_for(it));
        let members: Vec<NodeId> = members.map(|(at, _)| *at).collect();
        for member in members {
            let (to, bytes) = (group, bytes.to_vec());
            self.cross(node, member, lane, Datagram { from, to, bytes, ecn: Ecn::NotEct });
        }
    }
}
