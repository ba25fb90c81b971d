//! Casts: flows with one sender for all Participants who agreed on the same: sent once to a group,
//! or to the stream of each.
//!
//! A session without a peer, with one flow that this end sends; who agreed on it with a Participant
//! has a [`FanOutMember`] there in place of a sender. One source, one graph, one path part; one
//! account and one END per member.
//!
//! ```text
//!   JOIN ---> a cast of this flow runs? -- yes --> its next member
//!                                       '- no ---> publisher.open -> source -> a cast
//!   ANSWER -> Member { base: units fed so far } --> ACCEPT (label of the cast, base)
//!   runs while a member is active and in contact      END, REPORT: per member
//! ```
//!
//! Invariants: a cast has members and is gone with the last; no member holds up another: who is
//! slow loses, who pauses or is silent does not stop the source while another runs; the label is
//! the sender's and the same for all; a graph is not changed, and nothing comes back to it.

use super::{Core, Local, SESSIONS_MAX, SessionId};
use crate::error::{Code, Error};
use crate::flow::FlowParams;
use crate::flow::epoch::TxEpoch;
use crate::flow::fanout_member::{BACKLOG_BYTES_MAX, FanOutMember, Fed};
use crate::flow::sender::Sender;
use crate::flow::{FlowEvent, FlowOut};
use crate::labels::Target;
use crate::peer::PeerId;
use crate::port::{Port, Source};
use crate::session::table::{Role, State};
use crate::session::{Flow, FlowEnd};
use dacapo_base::Time;
use dacapo_packet::Packet;
use dacapo_wire::message::Message;
use dacapo_wire::session::FlowOffer;
use quinn_proto::{Dir, Side, StreamId};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The peer of sessions that have none; no peer gets this number.
const NOBODY: PeerId = PeerId(0);

/// Packets of a cast that are given to streams before other flows have their turn.
const FAN_OUT_PACKETS_MAX: usize = 64;

/// What makes a session a cast.
#[derive(Debug)]
pub(crate) struct Cast {
    /// The session that is served, by name.
    name: String,
    /// Where it is sent to; none: to the stream of each member.
    pub group: Option<SocketAddr>,
    /// Its members: session and flow there, and the longest datagrams that their paths take.
    pub members: BTreeMap<(SessionId, usize), usize>,
    /// From where it is sent to the group.
    pub places: Vec<Local>,
}

impl Core {
    /// Opens what a flow that is served is made with: nothing, where a cast of it runs already.
    pub(super) fn running_cast(&self, name: &str, offer: &FlowOffer) -> Option<SessionId> {
        if !self.is_shared(offer.transport) {
            return None;
        }
        let casts = self.sessions.iter().filter(|(_, it)| {
            let is_it = it.cast.as_ref().is_some_and(|cast| cast.name == name);
            is_it && it.flows.first().is_some_and(|flow| flow.offer == *offer)
        });
        let goes_on = casts.filter(|(_, it)| {
            matches!(it.flows.first().map(|flow| &flow.end),
                Some(FlowEnd::Sender(sender)) if sender.may_change())
        });
        goes_on.map(|(id, _)| *id).next()
    }

    /// The flows of a session that go to groups are those of casts, which are begun where none
    /// runs.
    pub(super) fn enter_casts(
        &mut self,
        now: Time,
        id: SessionId,
        ports: &mut [Option<Port>],
    ) -> Result<(), Error> {
        for (index, port) in ports.iter_mut().enumerate() {
            let Some(session) = self.sessions.get(&id) else { return Ok(()) };
            let Some(offer) = session.flows.get(index).map(|flow| flow.offer.clone()) else {
                continue;
            };
            if !self.is_shared(offer.transport) {
                continue;
            }
            let name = session.name.clone();
            let cast = match (self.running_cast(&name, &offer), port.take()) {
                (Some(cast), _) => cast,
                (None, Some(Port::Source(source))) => self.begin_cast(now, name, offer, source)?,
                (None, _) => {
                    return Err(Error::new(Code::AccessFailed, "a flow to a group has no source"));
                }
            };
            if let Some(cast) = self.sessions.get_mut(&cast).and_then(|it| it.cast.as_mut()) {
                cast.members.insert((id, index), usize::MAX);
            }
            let flow = self.sessions.get_mut(&id).and_then(|it| it.flows.get_mut(index));
            flow.into_iter().for_each(|flow| flow.cast = Some(cast));
        }
        Ok(())
    }

    fn begin_cast(
        &mut self,
        now: Time,
        name: String,
        offer: FlowOffer,
        source: Box<dyn Source>,
    ) -> Result<SessionId, Error> {
        if self.sessions.len() >= SESSIONS_MAX {
            return Err(Error::new(Code::TooMany, "sessions"));
        }
        let (len, unit_len_max) = (usize::from(offer.datagram_len), offer.unit_len_max as usize);
        let built = self.build_graph(&offer.graph, len, unit_len_max)?;
        let stream = StreamId::new(Side::Server, Dir::Bi, 0);
        let id = self.add_session(NOBODY, stream, Role::Creator, State::Active);
        // It is taken, and names nothing here: nothing comes back to who sends to a group.
        let target = Target { session: id.0, flow: usize::MAX, epoch: 0 };
        let Some(label) = self.labels.allot(now, &mut self.random, target, NOBODY) else {
            self.sessions.remove(&id);
            return Err(Error::new(Code::TooMany, "labels, for flows to groups or in all"));
        };
        let terms = FlowParams { id: offer.flow, unit_len_max, digest: offer.digest };
        let pace = self.pace(&offer, false);
        let epoch = TxEpoch::new(0, built, label);
        let mut sender = Sender::new(now, terms, source, epoch, pace, self.config.queues);
        sender.set_label_tx(label);
        let Some(session) = self.sessions.get_mut(&id) else { return Ok(id) };
        let (members, places) = (BTreeMap::new(), Vec::new());
        session.cast = Some(Cast { name, group: offer.multicast, members, places });
        if offer.multicast.is_none() {
            self.stream_casts.push(id);
        }
        let mut flow = Flow::new(offer);
        (flow.label_tx, flow.end) = (label, FlowEnd::Sender(Box::new(sender)));
        session.flows = vec![flow];
        Ok(id)
    }

    /// Whether a flow of a session is that of a cast.
    pub(super) fn has_cast(&self, id: SessionId, index: usize) -> bool {
        let flow = self.sessions.get(&id).and_then(|session| session.flows.get(index));
        flow.is_some_and(|flow| flow.cast.is_some())
    }

    /// A Participant takes part in a flow to a group from now on: the label of its packets.
    pub(super) fn begin_member(
        &mut self,
        id: SessionId,
        index: usize,
        datagram_len: usize,
    ) -> Result<(), Error> {
        let flow = self.sessions.get(&id).and_then(|session| session.flows.get(index));
        let cast = flow.and_then(|flow| flow.cast);
        let gone = || Error::new(Code::Internal, "the flow to the group is gone");
        let cast = cast.ok_or_else(gone)?;
        let (fed, label) = self.fed(cast).ok_or_else(gone)?;
        self.note_member_len(cast, (id, index), datagram_len);
        let session = self.sessions.get_mut(&id).ok_or_else(gone)?;
        let flow = session.flows.get_mut(index).ok_or_else(gone)?;
        flow.label_rx = label;
        flow.end = FlowEnd::Member(FanOutMember::new(cast, flow.offer.flow, fed));
        self.note_places(cast);
        Ok(())
    }

    /// The path to a member takes datagrams of this length: units are cut for the shortest.
    pub(super) fn note_member_len(
        &mut self,
        cast: SessionId,
        member: (SessionId, usize),
        len: usize,
    ) {
        let Some(session) = self.sessions.get_mut(&cast) else { return };
        let Some(cast) = &mut session.cast else { return };
        cast.members.insert(member, len);
        let shortest = cast.members.values().copied().min().unwrap_or(len);
        if let Some(FlowEnd::Sender(sender)) = session.flows.first_mut().map(|it| &mut it.end)
            && sender.datagram_len() != shortest
        {
            sender.set_datagram_len(&mut self.pool, shortest);
        }
    }

    /// Whether a session has no peer, and sends for others.
    pub(super) fn is_cast(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|session| session.cast.is_some())
    }

    /// What a cast has fed, and its label.
    fn fed(&self, cast: SessionId) -> Option<(Fed, u32)> {
        let flow = self.sessions.get(&cast)?.flows.first()?;
        match &flow.end {
            FlowEnd::Sender(sender) => Some((sender.fed(), flow.label_tx)),
            _ => None,
        }
    }

    /// The session and the flow that send a flow of a session: its cast's, where it has one.
    pub(super) fn sending(&self, id: SessionId, index: usize) -> (SessionId, usize) {
        let flow = self.sessions.get(&id).and_then(|session| session.flows.get(index));
        match flow.map(|flow| &flow.end) {
            Some(FlowEnd::Member(member)) => (member.cast, 0),
            _ => (id, index),
        }
    }

    /// The casts in which a session takes part.
    fn casts_of(&self, id: SessionId) -> Vec<(usize, SessionId)> {
        let flows = self.sessions.get(&id).map(|it| it.flows.as_slice()).unwrap_or_default();
        let cast = |(index, flow): (usize, &Flow)| Some((index, flow.cast?));
        flows.iter().enumerate().filter_map(cast).collect()
    }

    /// Something has changed that decides whether the casts of a session run.
    pub(super) fn update_casts(&mut self, now: Time, id: SessionId) {
        for (_, cast) in self.casts_of(id) {
            self.update_cast(now, cast);
        }
    }

    /// A cast runs while a member is active and in contact.
    fn update_cast(&mut self, now: Time, id: SessionId) {
        self.note_places(id);
        let cast = self.sessions.get(&id).and_then(|session| session.cast.as_ref());
        let Some(cast) = cast else { return };
        let runs = cast.members.keys().any(|(member, index)| {
            let session = self.sessions.get(member);
            let flow = session.and_then(|it| it.flows.get(*index));
            session.is_some_and(|it| it.state == State::Active)
                && !self.is_suspended(*member)
                && matches!(flow.map(|it| &it.end), Some(FlowEnd::Member(it)) if it.runs())
        });
        let flow = self.sessions.get_mut(&id).and_then(|it| it.flows.first_mut());
        if let Some(FlowEnd::Sender(sender)) = flow.map(|flow| &mut flow.end) {
            if runs { sender.start(now) } else { sender.stop(now) }
        }
    }

    /// Says END to the member of a flow, if it is one: it gets nothing that is fed from now on.
    pub(super) fn end_member(
        &mut self,
        now: Time,
        id: SessionId,
        index: usize,
        failure: Option<&Error>,
    ) {
        let fed = self.fed(self.sending(id, index).0);
        let mut out = FlowOut::default();
        let flow = self.sessions.get_mut(&id).and_then(|it| it.flows.get_mut(index));
        if let (Some(FlowEnd::Member(member)), Some((fed, _))) = (flow.map(|it| &mut it.end), fed) {
            member.end(&fed, failure, &mut out);
            self.apply_out(now, id, index, out);
        }
    }

    /// Says END to the members of a session: all of them, or those whose cast has ended.
    pub(super) fn end_members(&mut self, now: Time, id: SessionId, all: bool) {
        for (index, cast) in self.casts_of(id) {
            let flow = self.sessions.get(&cast).and_then(|it| it.flows.first());
            let has_ended = matches!(flow.map(|it| &it.end),
                Some(FlowEnd::Sender(it)) if it.awaits_report());
            if all || has_ended {
                self.end_member(now, id, index, None);
            }
        }
        self.update_casts(now, id);
    }

    /// Does what the sender of a cast tells: for every member.
    pub(super) fn apply_cast_out(&mut self, now: Time, id: SessionId, out: FlowOut) {
        let cast = self.sessions.get(&id).and_then(|session| session.cast.as_ref());
        let members: Vec<_> = cast.iter().flat_map(|it| it.members.keys().copied()).collect();
        for event in out.events {
            match event {
                FlowEvent::Failed(error) => {
                    for (session, flow) in &members {
                        let (session, flow, error) = (*session, *flow, error.clone());
                        self.event(super::CoreEvent::FlowFailed { session, flow, error });
                    }
                }
                FlowEvent::Retire(label) => self.labels.retire(now, label),
                // The accounts are the members'; a cast has no changes.
                FlowEvent::Ended { .. }
                | FlowEvent::Changed { .. }
                | FlowEvent::ChangeFailed(_) => {}
            }
        }
        for message in out.messages {
            let Message::End(end) = message else { continue };
            let failure = (end.code != dacapo_wire::session::CODE_SUCCESS)
                .then(|| Error::from_peer(end.code, &end.text));
            for (session, index) in &members {
                self.end_member(now, *session, *index, failure.as_ref());
            }
        }
    }

    /// Gives what casts over streams have to the streams of their members: a view for each.
    pub(super) fn fan_out(&mut self, now: Time) {
        let casts = std::mem::take(&mut self.stream_casts);
        for id in &casts {
            for _ in 0..FAN_OUT_PACKETS_MAX {
                let is_awake = self.sessions.get(id).is_some_and(|it| it.idle.is_awake());
                let packet = if is_awake { self.poll_flow(now, *id, 0) } else { None };
                let Some(packet) = packet else { break };
                self.share_out(now, *id, packet);
            }
        }
        // None was begun meanwhile, and one that ended is found to be gone.
        self.stream_casts = casts;
    }

    fn share_out(&mut self, now: Time, cast: SessionId, mut packet: Packet) {
        let cast = self.sessions.get(&cast).and_then(|session| session.cast.as_ref());
        let members: Vec<_> = cast.iter().flat_map(|it| it.members.keys().copied()).collect();
        let mut behind = Vec::new();
        for (id, index) in members {
            let flow = self.sessions.get_mut(&id).and_then(|it| it.flows.get_mut(index));
            if let Some(FlowEnd::Member(member)) = flow.map(|flow| &mut flow.end)
                && member.runs()
                && let Err(view) = member.push(self.pool.share(&mut packet))
            {
                self.pool.free(view);
                behind.push((id, index));
            }
        }
        self.pool.free(packet);
        let most = BACKLOG_BYTES_MAX >> 20;
        let text = format!("the participant is {most} MiB behind what is sent to all");
        for (id, index) in behind {
            self.lose_member(now, id, index, &Error::new(Code::ContactLost, text.as_str()));
            self.close_stream(id, index);
        }
    }

    /// A member gets nothing any more, for this reason.
    pub(super) fn lose_member(&mut self, now: Time, id: SessionId, index: usize, error: &Error) {
        let flow = self.sessions.get_mut(&id).and_then(|it| it.flows.get_mut(index));
        let Some(FlowEnd::Member(member)) = flow.map(|flow| &mut flow.end) else { return };
        member.flush(&mut self.pool);
        if member.runs() {
            self.event(super::CoreEvent::FlowFailed {
                session: id,
                flow: index,
                error: error.clone(),
            });
        }
        self.end_member(now, id, index, Some(error));
        self.update_casts(now, id);
    }

    /// Books what the members of a session have not been accounted for: it ended abnormally.
    pub(super) fn give_up_members(&mut self, now: Time, id: SessionId) {
        for (index, cast) in self.casts_of(id) {
            let fed = self.fed(cast).map(|(fed, _)| fed).unwrap_or_default();
            let mut out = FlowOut::default();
            let flow = self.sessions.get_mut(&id).and_then(|it| it.flows.get_mut(index));
            if let Some(FlowEnd::Member(member)) = flow.map(|flow| &mut flow.end) {
                member.give_up(&fed, &mut out);
                member.flush(&mut self.pool);
            }
            self.apply_out(now, id, index, out);
        }
    }

    /// A session takes part in its casts no longer; those that nobody is left of are over.
    pub(super) fn leave_casts(&mut self, now: Time, id: SessionId) {
        for (index, cast) in self.casts_of(id) {
            let flow = self.sessions.get_mut(&id).and_then(|it| it.flows.get_mut(index));
            flow.into_iter().for_each(|flow| flow.cast = None);
            let session = self.sessions.get_mut(&cast);
            let Some(it) = session.and_then(|session| session.cast.as_mut()) else { continue };
            it.members.remove(&(id, index));
            if it.members.is_empty() {
                self.end_cast(now, cast);
            } else {
                self.update_cast(now, cast);
            }
        }
    }

    /// Gives back everything of a cast.
    fn end_cast(&mut self, now: Time, id: SessionId) {
        let labels = self.with_session(now, id, |session, around| {
            match session.flows.first_mut().map(|flow| &mut flow.end) {
                Some(FlowEnd::Sender(sender)) => {
                    sender.flush(around);
                    sender.labels()
                }
                _ => Vec::new(),
            }
        });
        labels.into_iter().flatten().for_each(|label| self.labels.retire(now, label));
        let group = self.sessions.get(&id).and_then(|it| it.cast.as_ref()?.group);
        self.stream_casts.retain(|it| *it != id);
        self.sessions.remove(&id);
        let is_used = |group| self.sessions.iter().any(|(_, it)| it.is_cast_to(group));
        let unused = group.filter(|group| !is_used(*group));
        self.outbox.closed_data.extend(unused);
    }

    /// Gives a command to the sources of a session's casts, when nobody else takes part in them.
    pub(super) fn command_cast(
        &mut self,
        now: Time,
        cast: SessionId,
        payload: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let session = self.sessions.get_mut(&cast);
        let Some((session, count)) =
            session.and_then(|it| Some(it.cast.as_ref()?.members.len()).map(|count| (it, count)))
        else {
            return Err(Error::new(Code::NoSuchThing, "the flow to the group is gone"));
        };
        if count > 1 {
            let text = format!("the flow goes to {count} participants, and would change for all");
            return Err(Error::new(Code::Refused, text));
        }
        match session.flows.first_mut().map(|flow| &mut flow.end) {
            Some(FlowEnd::Sender(sender)) => sender.command(now, payload),
            _ => Err(Error::new(Code::NoSuchThing, "the flow to the group has ended")),
        }
    }
}
