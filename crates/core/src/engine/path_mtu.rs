//! The length of datagrams while flows run: what the path takes is told to flows and application.
//!
//! ```text
//!   what was sent, EMSGSIZE, ICMP -> prober -> a length -> senders cut their next unit so
//!                                                       -> an event for each session
//! ```
//!
//! Invariant: what the system or the network says of lengths changes nothing by itself.

use super::{Core, CoreEvent, SessionId};
use crate::peer::{Peer, PeerId};
use crate::session::FlowEnd;
use dacapo_base::Time;
use std::net::SocketAddr;

impl Core {
    /// The system or the network says that datagrams to an address are too long, and perhaps how
    /// long they may be. Anybody can say so; it is tried out.
    pub fn handle_too_large(&mut self, now: Time, remote: SocketAddr, len: Option<usize>) {
        self.touch();
        let is_there = |(_, peer): &(&PeerId, &Peer)| peer.data_remote == Some(remote);
        let there: Vec<PeerId> = self.peers.iter().filter(is_there).map(|(id, _)| *id).collect();
        for id in there {
            if let Some(prober) = self.peers.get_mut(&id).and_then(|peer| peer.prober.as_mut()) {
                prober.handle_too_large(now, len);
            }
        }
    }

    /// The longest datagrams that the path of a session takes now, in bytes of UDP payload; `None`
    /// until that is known, and when there is no such session.
    #[must_use]
    pub fn path_mtu(&self, id: SessionId) -> Option<usize> {
        self.peers.get(&self.sessions.get(&id)?.peer)?.prober.as_ref()?.settled_len()
    }

    /// Tells flows and application what the path takes, when that is not what they know.
    pub(super) fn tell_datagram_len(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        // Until the opening is over nothing is agreed.
        let Some(len) = peer.prober.as_ref().and_then(dacapo_path::Prober::settled_len) else {
            return;
        };
        let told = peer.told_len.replace(len);
        if told == Some(len) {
            return;
        }
        let catalogue = &self.config.catalogue;
        let is_stream = |id| catalogue.transport(id).is_some_and(|spec| spec.streams);
        let (mut changed, mut members) = (Vec::new(), Vec::new());
        for session in self.sessions_with(id) {
            let Some(it) = self.sessions.get_mut(&session) else { continue };
            let mut has_datagrams = false;
            let flows = it.flows.iter_mut().enumerate();
            for (index, flow) in flows.filter(|(_, it)| !is_stream(it.offer.transport)) {
                has_datagrams |= !matches!(flow.end, FlowEnd::None);
                if let FlowEnd::Sender(sender) = &mut flow.end {
                    sender.set_datagram_len(&mut self.pool, len);
                }
                if let FlowEnd::Member(member) = &flow.end {
                    members.push((member.cast, (session, index)));
                }
            }
            if has_datagrams && it.was_ready {
                changed.push(session);
            }
        }
        for (cast, member) in members {
            self.note_member_len(cast, member, len);
        }
        for (session, from) in changed.into_iter().filter_map(|it| Some((it, told?))) {
            self.event(CoreEvent::PathMtuChanged { session, from, to: len });
        }
    }
}
