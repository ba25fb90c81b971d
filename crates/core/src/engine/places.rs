//! From where a flow to a group goes out: once from each place at which its members have come in.
//!
//! ```text
//!   A came in at port 1 --.
//!   B came in at port 1 --+--> packet --> group, from port 1     A and B take it
//!   C came in at port 2 --'           '-> group, from port 2     C takes it
//! ```
//!
//! A Participant takes what comes from the address that it knows of its Creator, and nothing else;
//! and where that address is in another network, only what goes out there reaches it.
//!
//! Invariants: the copies of one packet wait at most, and go before the next packet of any flow; a
//! place at which nobody takes part any more is sent from no longer, unless it is the last.

use super::{Core, Local, Payload, SessionId, Transmit, Way};
use crate::error::{Code, Error};
use crate::flow::FlowOut;
use crate::session::FlowEnd;
use dacapo_base::Time;
use dacapo_packet::Packet;
use std::collections::BTreeSet;
use std::net::SocketAddr;

impl Core {
    /// Finds out anew from where a cast sends.
    pub(super) fn note_places(&mut self, id: SessionId) {
        let Some(cast) = self.sessions.get(&id).and_then(|it| it.cast.as_ref()) else { return };
        let taking_part = cast.members.keys().filter(|member| self.is_sent_to(**member));
        let places = taking_part.filter_map(|(member, _)| self.place_of(*member));
        let places: BTreeSet<Local> = places.collect();
        let cast = self.sessions.get_resting_mut(&id).and_then(|it| it.cast.as_mut());
        if let Some(cast) = cast.filter(|_| !places.is_empty()) {
            cast.places = places.into_iter().collect();
        }
    }

    /// Whether a member takes part: END has not been said.
    fn is_sent_to(&self, (id, index): (SessionId, usize)) -> bool {
        let flow = self.sessions.get(&id).and_then(|session| session.flows.get(index));
        matches!(flow.map(|flow| &flow.end), Some(FlowEnd::Member(member)) if member.runs())
    }

    /// Where the participant of a session has come in.
    fn place_of(&self, id: SessionId) -> Option<Local> {
        self.sessions.get(&id).and_then(|session| self.peers.get(&session.peer))?.local
    }

    /// Keeps a copy of a packet of a cast for each of its places but the first, from which the
    /// packet itself goes.
    pub(super) fn copy_out(&mut self, id: SessionId, packet: &mut Packet) {
        let Some(cast) = self.sessions.get(&id).and_then(|it| it.cast.as_ref()) else { return };
        let Some(remote) = cast.group else { return };
        for place in cast.places.iter().skip(1) {
            let payload = Payload::Packet(self.pool.share(packet));
            let transmit = Transmit { way: Way::Data, local: Some(*place), remote, payload };
            self.outbox.copies.push_back(transmit);
        }
    }

    /// A group cannot be sent to from a place, for this reason: the flows to it end, for those who
    /// have come in there; all when it is not said where.
    pub fn handle_group_closed(
        &mut self,
        now: Time,
        local: Option<Local>,
        group: SocketAddr,
        why: &str,
    ) {
        self.touch();
        let casts = self.sessions.iter().filter(|(_, it)| it.is_cast_to(group));
        let casts: Vec<SessionId> = casts.map(|(id, _)| *id).collect();
        let error = Error::new(Code::NoDataPath, format!("cannot send to group {group}: {why}"));
        for id in casts {
            self.close_place(now, id, local, &error);
        }
        self.drain_control(now);
    }

    /// A cast cannot send from a place: those who have come in there get nothing any more; the cast
    /// is over when they are all.
    fn close_place(&mut self, now: Time, id: SessionId, local: Option<Local>, error: &Error) {
        let cast = self.sessions.get(&id).and_then(|it| it.cast.as_ref());
        let members = cast.into_iter().flat_map(|it| it.members.keys().copied());
        let (here, others): (Vec<_>, Vec<_>) = members
            .filter(|member| self.is_sent_to(*member))
            .partition(|(member, _)| local.is_none() || self.place_of(*member) == local);
        if !others.is_empty() {
            return here
                .into_iter()
                .for_each(|(member, index)| self.lose_member(now, member, index, error));
        }
        let mut out = FlowOut::default();
        self.with_session(now, id, |session, around| {
            if let Some(FlowEnd::Sender(it)) = session.flows.first_mut().map(|it| &mut it.end) {
                it.lose_way(around, error, &mut out);
            }
        });
        self.apply_cast_out(now, id, out);
    }
}
