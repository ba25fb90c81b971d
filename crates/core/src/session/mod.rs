//! [`Session`]: flows between a Creator and a Participant, and the states of its stream.
//!
//! ```text
//!   message, command, time, contact --> Session { state, flows, pending } --> effects
//!     setup     JOIN OFFER ANSWER ACCEPT            running   ACTIVATE, CONTROL
//!     change    PREPARE READY SWITCHED DONE         closing   END REPORT CLOSE CLOSED
//! ```
//!
//! What it must know of its peer comes with each call ([`SessionCx`]); what it wants of others goes
//! out as effects.

mod change;
mod channels;
mod closing;
mod data;
mod flow;
mod pending;
mod running;
mod set;
mod setup;
pub mod table;
#[cfg(test)]
mod tests;

pub(crate) use flow::{Flow, FlowEnd};
pub(crate) use pending::{Asker, Awaited, Pending};
pub(crate) use set::Sessions;
pub(crate) use setup::{check_names, named};

use crate::config::{ANSWER_MAX, GIVE_UP_AFTER};
use crate::effect::Out;
use crate::error::{Code, Error};
use crate::fanout::{FanOuts, Part};
use crate::flow::{Context, PathTimes};
use crate::ids::{PeerId, SessionId};
use crate::labels::Target;
use crate::peer::Peer;
use crate::port::Port;
use crate::ready_table::Due;
use crate::shared::Shared;
use dacapo_base::{Time, earlier};
use quinn_proto::StreamId;
use std::time::Duration;
use table::{Role, State};

pub(crate) fn no_session(id: SessionId) -> Error {
    Error::new(Code::NoSuchThing, format!("session {}", id.0))
}

/// What a call into a session is given.
pub(crate) struct SessionCx<'a> {
    pub now: Time,
    pub shared: &'a mut Shared,
    pub fan_outs: &'a mut FanOuts,
    /// The peer, while it is there.
    pub peer: Option<&'a Peer>,
}

impl SessionCx<'_> {
    pub fn flow(&mut self) -> Context<'_> {
        self.shared.flow(self.now)
    }

    /// What the path knows of its times.
    pub fn times(&self) -> PathTimes {
        self.peer.map(Peer::times).unwrap_or_default()
    }

    pub fn is_suspended(&self) -> bool {
        self.peer.is_some_and(Peer::is_suspended)
    }
}

/// A session at this end.
pub(crate) struct Session {
    id: SessionId,
    peer: PeerId,
    stream: StreamId,
    role: Role,
    state: State,
    /// Creator: empty until it is known which is asked for.
    name: String,
    flows: Vec<Flow>,
    pending: Pending,
    /// The access modules of its flows, until these are built with them.
    ports: Option<Vec<Option<Port>>>,
    /// Creator: the modules that the Participant has said it has; none when it has not.
    modules: Vec<u16>,
    /// The application has answered the offer.
    is_answered: bool,
    /// The set-up was completed.
    was_ready: bool,
    /// The application has not been told yet, because streams of flows are opening.
    ready_waits: bool,
    /// The peer's wish to close is to be answered with CLOSED when all flows are accounted for.
    close_asked_by_peer: bool,
    /// The application has been told that the session is over.
    told: bool,
    /// How long this end's application waits for contact to come back, if it has said so.
    give_up_wish: Option<Duration>,
    /// How long contact may be lost before the session is given up.
    give_up_after: Duration,
    transcript: [u8; 32],
}

impl Session {
    fn new(id: SessionId, peer: PeerId, stream: StreamId, role: Role, state: State) -> Self {
        Self {
            id,
            peer,
            stream,
            role,
            state,
            name: String::new(),
            flows: Vec::new(),
            pending: Pending::default(),
            ports: None,
            modules: Vec::new(),
            is_answered: false,
            was_ready: false,
            ready_waits: false,
            close_asked_by_peer: false,
            told: false,
            give_up_wish: None,
            give_up_after: GIVE_UP_AFTER,
            transcript: [0; 32],
        }
    }

    /// One that this end asks for, by its name.
    pub fn joining(now: Time, id: SessionId, peer: PeerId, stream: StreamId, name: &str) -> Self {
        let mut session = Self::new(id, peer, stream, Role::Participant, State::Joining);
        name.clone_into(&mut session.name);
        session.pending.add(now + ANSWER_MAX, Awaited::Offer);
        session
    }

    /// One for which a peer has opened a stream.
    pub fn asked_for(now: Time, id: SessionId, peer: PeerId, stream: StreamId) -> Self {
        let mut session = Self::new(id, peer, stream, Role::Creator, State::Idle);
        session.pending.add(now + ANSWER_MAX, Awaited::Answer);
        session
    }

    pub fn id(&self) -> SessionId {
        self.id
    }

    pub fn peer(&self) -> PeerId {
        self.peer
    }

    pub fn stream(&self) -> StreamId {
        self.stream
    }

    pub fn role(&self) -> Role {
        self.role
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The application has been told that it is over.
    pub fn is_over(&self) -> bool {
        self.told
    }

    /// Its offer waits for the data path, or a group.
    pub fn is_unanswered(&self) -> bool {
        self.is_answered && self.ports.is_some()
    }

    /// How long contact may be lost before it is given up.
    pub fn give_up_after(&self) -> Duration {
        self.give_up_after
    }

    /// How long contact may be lost before this end gives it up, whatever was offered.
    pub fn set_give_up_after(&mut self, after: Duration) {
        (self.give_up_wish, self.give_up_after) = (Some(after), after);
    }

    fn index_of(&self, flow: u16) -> Option<usize> {
        self.flows.iter().position(|it| it.offer.flow == flow)
    }

    /// When it is due. Of one that may rest this does not depend on `now`, and changes with its
    /// peer only when contact is lost or back, or the data path is known: then it is told.
    pub fn due(&self, now: Time, peer: Option<&Peer>) -> Due {
        let is_suspended = peer.is_some_and(Peer::is_suspended);
        let times = peer.map(Peer::times).unwrap_or_default();
        let datagrams = peer.is_some_and(|peer| peer.data().remote().is_some());
        let awaited = self.pending.due().filter(|_| !is_suspended);
        let flows = self.flows.iter().map(|it| it.due(now, datagrams, !is_suspended, times));
        let next = flows.fold(awaited, earlier);
        let closes = matches!(self.state, State::Closing | State::Closed);
        let may_rest = !closes && self.flows.iter().all(|flow| flow.end.may_rest());
        if may_rest { Due::resting(next) } else { Due::Now(next) }
    }

    /// Looks at what is due.
    pub fn handle_timeout(&mut self, cx: &mut SessionCx<'_>, out: &mut Out) {
        let is_suspended = cx.is_suspended();
        if !is_suspended {
            self.watch_channels(cx, out);
        }
        let times = cx.times();
        for index in 0..self.flows.len() {
            self.with_flow(cx, index, out, |end, cx, told| end.handle_timeout(cx, times, told));
        }
        self.answer_closed_if_settled(cx, out);
        if !is_suspended {
            for awaited in self.pending.expire(cx.now) {
                self.handle_no_answer(cx, awaited, out);
            }
        }
    }

    /// This end did not run for so long.
    pub fn shift(&mut self, by: Duration) {
        self.shift_pending(by);
        self.flows.iter_mut().for_each(|flow| flow.end.shift(by));
    }

    /// The time without contact, or in which this end did not run, does not count for what is
    /// waited for.
    fn shift_pending(&mut self, by: Duration) {
        self.pending.shift(by);
        let channels = self.flows.iter_mut().filter_map(|flow| flow.channel.as_mut());
        channels.for_each(|channel| channel.shift(by));
    }

    /// Contact is lost: whether it waits for it.
    pub fn lose_contact(&mut self, cx: &mut SessionCx<'_>) -> bool {
        let may_wait = self.was_ready && self.state != State::Closing;
        let is_live = self.flows.iter().any(|flow| flow.end.is_live());
        if !may_wait || self.give_up_after.is_zero() || !is_live {
            return false;
        }
        self.flows.iter_mut().for_each(|flow| flow.end.set_suspended(cx.now, true));
        self.lengthen_patience(cx, self.give_up_after);
        true
    }

    /// Contact is back, after this time.
    pub fn restore_contact(&mut self, now: Time, after: Duration) {
        self.shift_pending(after);
        self.flows.iter_mut().for_each(|flow| flow.end.set_suspended(now, false));
    }

    /// What its fan-outs are to know of its part in them, when that has changed.
    pub fn tell_fan_outs(&mut self, cx: &mut SessionCx<'_>) {
        let is_running = self.state == State::Active && !cx.is_suspended();
        let origin = cx.peer.and_then(Peer::local);
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let Some((id, told)) = &mut flow.fan_out else { continue };
            let is_sent_to = matches!(&flow.end, FlowEnd::Member(member) if member.runs());
            let part = Part { is_running: is_running && is_sent_to, is_sent_to, origin };
            if told.replace(part) != Some(part) {
                cx.fan_outs.note(cx.now, *id, (self.id, index), part);
            }
        }
    }

    /// A label for an epoch of a flow.
    fn allot(&self, cx: &mut SessionCx<'_>, flow: usize, epoch: u64) -> Result<u32, Error> {
        let target = Target { session: self.id.0, flow, epoch };
        let label = cx.shared.allot(cx.now, target, self.peer);
        let too_many = "labels, for flows with this peer or in all";
        label.ok_or_else(|| Error::new(Code::TooMany, too_many))
    }
}
