//! [`Session`]: flows between a Creator and a Participant, and the states of its stream.
//!
//! ```text
//!   message, command, time, contact --> enter --> Session { state, flows, pending } --> effects
//!     setup     JOIN OFFER ANSWER ACCEPT            running   ACTIVATE, CONTROL
//!     closing   CLOSE CLOSED                        flows     PREPARE … DONE, END REPORT, streams
//! ```
//!
//! What it must know of its peer comes with each call ([`SessionCx`]); what it wants of others goes
//! out as effects. What follows from what has happened to its flows (READY, CLOSED, what modules
//! ask, what fan-outs are to know) is seen to in one place, as [`Session::enter`] ends.

mod closing;
mod epochs;
mod flow;
mod flows;
mod pending;
mod running;
mod set;
mod setup;
pub mod table;
#[cfg(test)]
mod tests;
mod way;

pub(crate) use flow::{Flow, FlowEnd};
pub(crate) use flows::Flows;
pub(crate) use pending::{Asker, Awaited, Pending};
pub(crate) use set::Sessions;
pub(crate) use setup::{check_names, named};

use crate::config::{ANSWER_MAX, GIVE_UP_AFTER};
use crate::effect::Out;
use crate::error::{Code, Error};
use crate::events::CoreEvent;
use crate::fanout::FanOuts;
use crate::flow::{Context, FlowOut, PathTimes};
use crate::ids::{PeerId, SessionId};
use crate::network::ChannelEvent;
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
    flows: Flows,
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
            flows: Flows::new(id, peer, role, &[]),
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
        self.flows.as_slice()
    }

    /// Runs `body` over one of its flows; `None` when there is no such.
    pub fn on_flow<R>(&mut self, index: usize, body: impl FnOnce(&mut Flow) -> R) -> Option<R> {
        self.flows.on(index, body)
    }

    /// Runs `body` over its flows.
    pub fn on_flows<R>(&mut self, body: impl FnOnce(&mut Flows) -> R) -> R {
        body(&mut self.flows)
    }

    /// Runs `body` over it, and sees to what follows from that, whatever it was: nobody else does.
    pub fn enter<R>(
        &mut self,
        cx: &mut SessionCx<'_>,
        out: &mut Out,
        body: impl FnOnce(&mut Self, &mut SessionCx<'_>, &mut Out) -> R,
    ) -> R {
        let result = body(self, cx, out);
        self.settle(cx, out);
        result
    }

    #[inline]
    fn settle(&mut self, cx: &mut SessionCx<'_>, out: &mut Out) {
        // A module that is refused may ask again, but not for ever: so often a second.
        while self.flows.has_asks() {
            self.pass_asks(cx, out);
        }
        self.answer_closed_if_settled(cx, out);
        self.tell_ready_if_open(out);
        let is_running = self.state == State::Active && !cx.is_suspended();
        self.flows.for_each(|flow| flow.tell_fan_out(cx, is_running));
    }

    /// The session is set up; the Participant hears of it when every stream is open or given up, so
    /// that all flows begin together.
    #[inline]
    fn tell_ready_if_open(&mut self, out: &mut Out) {
        if !self.ready_waits || self.flows.iter().any(Flow::is_opening) {
            return;
        }
        self.ready_waits = false;
        // Who has closed meanwhile is not told that it may begin.
        if self.state.is_running() {
            out.event(CoreEvent::Ready { session: self.id });
        }
    }

    /// Runs `body` over one of its flows and does what the flow tells.
    pub fn with_flow(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        out: &mut Out,
        body: impl FnOnce(&mut Flow, &mut SessionCx<'_>, &mut FlowOut),
    ) {
        self.flows.with_flow(cx, index, out, body);
    }

    /// Something has happened to the stream of a flow.
    pub fn handle_channel(
        &mut self,
        cx: &mut SessionCx<'_>,
        (index, stream): (usize, crate::ids::StreamId),
        event: ChannelEvent,
        out: &mut Out,
    ) {
        let closed = self.flows.handle_channel(cx, (index, stream), event, out);
        // While contact is lost nothing is waited for when the last way is gone too.
        if let Some(error) = closed
            && cx.is_suspended()
            && !self.flows.iter().any(|flow| flow.end.is_live())
        {
            self.fail(cx, error, out);
        }
    }

    /// The path takes datagrams of another length; whether the application is to hear of it.
    pub fn handle_path_len(&mut self, cx: &mut SessionCx<'_>, len: usize) -> bool {
        self.flows.handle_path_len(cx, len) && self.was_ready
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

    /// When it is due. Of one that may rest this does not depend on `now`, and changes with its
    /// peer only when contact is lost or back, or the data path is known: then it is told.
    pub fn due(&self, now: Time, peer: Option<&Peer>) -> Due {
        let is_suspended = peer.is_some_and(Peer::is_suspended);
        let times = peer.map(Peer::times).unwrap_or_default();
        let datagrams = peer.is_some_and(Peer::is_reached);
        let awaited = self.pending.due().filter(|_| !is_suspended);
        let next = earlier(awaited, self.flows.due(now, datagrams, !is_suspended, times));
        let closes = matches!(self.state, State::Closing | State::Closed);
        let may_rest = !closes && self.flows.iter().all(|flow| flow.end.may_rest());
        if may_rest { Due::resting(next) } else { Due::Now(next) }
    }

    /// Looks at what is due.
    #[inline]
    pub fn handle_timeout(&mut self, cx: &mut SessionCx<'_>, out: &mut Out) {
        let is_suspended = cx.is_suspended();
        if !is_suspended {
            self.flows.watch_channels(cx, out);
        }
        self.flows.handle_timeout(cx, out);
        // What has ended in time is not given up by what follows.
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
        self.flows.for_each(|flow| flow.end.shift(by));
    }

    /// The time without contact, or in which this end did not run, does not count for what is
    /// waited for.
    fn shift_pending(&mut self, by: Duration) {
        self.pending.shift(by);
        self.flows.for_each(|flow| {
            flow.channel.iter_mut().for_each(|channel| channel.shift(by));
        });
    }

    /// Contact is lost: whether it waits for it.
    pub fn lose_contact(&mut self, cx: &mut SessionCx<'_>) -> bool {
        let may_wait = self.was_ready && self.state != State::Closing;
        let is_live = self.flows.iter().any(|flow| flow.end.is_live());
        if !may_wait || self.give_up_after.is_zero() || !is_live {
            return false;
        }
        self.flows.for_each(|flow| flow.end.set_suspended(cx.now, true));
        self.flows.lengthen_patience(cx, self.give_up_after);
        true
    }

    /// Contact is back, after this time.
    pub fn restore_contact(&mut self, now: Time, after: Duration) {
        self.shift_pending(after);
        self.flows.for_each(|flow| flow.end.set_suspended(now, false));
    }
}
