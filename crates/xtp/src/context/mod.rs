//! [`Context`]: one end of an association, which routes between its parts.
//!
//! ```text
//!   take(packet) --> inbound    what has come        --> read
//!        |           requests   what was asked           events: lifecycle
//!        +---------> outbound   what has arrived     <-- write
//!                        |      role: of a group, who is in it
//!   poll(buffer) <-- FIRST | END | request | status | data     in this order, as composer says it
//!                    addressing: keys, and whether the peer may be sent so much
//! ```
//!
//! Each part owns its fields and takes what it must know as input; here is only what one says to
//! another.
//!
//! Invariants: a peer that has not shown that it hears what is sent to its address gets at most
//! three times what came from there; status is asked for with every packet after which nothing more
//! can go, so a sender never waits for nothing.

mod addressing;
mod composer;
mod inbound;
mod input;
mod length;
mod lifecycle;
mod outbound;
mod output;
mod replies;
mod role;
mod terms;

use addressing::Addressing;
use composer::Composer;
use inbound::Inbound;
use lifecycle::Lifecycle;
use outbound::Outbound;
use replies::Replies;
use role::{Role, Said};
use terms::Terms;

use crate::arrival::{Message, Read};
use crate::config::{Config, Mode, Open};
use crate::event::{ContextId, End, Event, Events};
use crate::group::{GroupPolicy, Join};
use crate::members::{Members, Parted};
use crate::rate::Rate;
use crate::requests::{Expiry, Requests};
use crate::table::{Input, State};
use crate::wire::{Header, Limits, Service};
use dacapo_base::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// What the user of a context wants, besides reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// There is room for so many bytes more (reservation).
    Post(usize),
    /// No more is sent.
    Finish,
    /// No more is read.
    StopReading,
    /// Other limits hold from now on.
    SetLimits(Limits),
    /// A peer that does not answer is waited for as long as this.
    SetGiveUp(Duration),
    /// Packets of more bytes do not get through.
    Shorten(usize),
    /// The association is given up.
    Abort,
}

/// One end of an association.
#[derive(Debug)]
pub struct Context {
    lifecycle: Lifecycle,
    addressing: Addressing,
    terms: Terms,
    outbound: Outbound,
    requests: Requests,
    inbound: Inbound,
    replies: Replies,
    role: Role,
}

impl Context {
    /// The end that opens; with a policy the one that transmits to a reliable group.
    pub fn opening(
        now: Time,
        config: &Config,
        open: &Open,
        policy: Option<GroupPolicy>,
        (key, sync): (u64, u32),
    ) -> Self {
        let addressing = Addressing::opening(open.peer, key, open.ends);
        let lifecycle = Lifecycle::begun(Input::UserOpens);
        let terms = Terms::new(open.service, open.mode);
        let role = policy.map_or(Role::Unicast, |policy| {
            let (len, limits) = (config.buffer_len, open.mode.limits);
            let rate = Rate::new(now, limits.out_rate, limits.out_burst);
            Role::Transmitter(Box::new(Members::new(policy, len, rate.time_of(len))))
        });
        let mut context = Self::new(now, config, terms, addressing, lifecycle, role, (sync, 0));
        context.requests.want_first();
        if terms.is_quiet() {
            context.outbound.confirm();
        }
        if terms.is_quiet() || policy.is_some() {
            // Nothing comes back, or nothing but status.
            context.inbound.stop();
        }
        context
    }

    /// The end that accepts; the packet is taken afterwards like any other. With a salt, which is
    /// any number, another for each, it becomes a member of a reliable group.
    pub fn accepting(
        now: Time,
        config: &Config,
        mode: Mode,
        (peer, header): (SocketAddr, &Header),
        (key, sync, salt): (u64, u32, Option<u32>),
    ) -> Self {
        let addressing = Addressing::accepting(peer, key, header.key);
        let lifecycle = Lifecycle::new(State::Listening);
        let terms = Terms::new(Service::Unspecified, mode);
        let role = salt.map_or(Role::Unicast, |salt| Role::member(config, salt, None));
        let numbers = (sync, header.seq);
        let mut context = Self::new(now, config, terms, addressing, lifecycle, role, numbers);
        context.replies.handle_start(header);
        context.lifecycle.tell(Events::INCOMING);
        context
    }

    /// The end that asks to join; `salt` is as above.
    pub fn joining(now: Time, config: &Config, join: &Join, key: u64, numbers: (u32, u32)) -> Self {
        let (sync, salt) = numbers;
        let addressing = Addressing::joining(join.peer, key, join.ends);
        let lifecycle = Lifecycle::begun(Input::UserJoins);
        let terms = Terms::new(Service::ReliableMulticast, join.mode);
        let is_known = !join.peer.ip().is_multicast();
        let role = Role::member(config, salt, is_known.then_some(join.peer));
        let mut context = Self::new(now, config, terms, addressing, lifecycle, role, (sync, 0));
        context.replies.reply(now);
        context
    }

    fn new(
        now: Time,
        config: &Config,
        mut terms: Terms,
        addressing: Addressing,
        lifecycle: Lifecycle,
        role: Role,
        (sync, start): (u32, u64),
    ) -> Self {
        let mut outbound = Outbound::new(now, config, terms.mode());
        if role.is_member() {
            // It hears a group, and says nothing but status.
            terms.handle_service(Service::ReliableMulticast as u8);
            outbound.disuse();
        }
        let requests = Requests::new(now, config.timers, sync);
        let inbound = Inbound::new(start, config, terms.mode());
        let replies = Replies::new(config.timers.response_wait);
        Self { lifecycle, addressing, terms, outbound, requests, inbound, replies, role }
    }

    /// State, end and events.
    pub const fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// Where the peer is, and keys.
    pub const fn addressing(&self) -> &Addressing {
        &self.addressing
    }

    /// Service and options.
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The stream that is sent.
    pub const fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    /// What it is in a group.
    pub const fn role(&self) -> &Role {
        &self.role
    }

    /// What its packets say.
    pub const fn composer(&self) -> Composer<'_> {
        let Self { addressing, terms, outbound, requests, inbound, replies, .. } = self;
        let is_aborting = self.lifecycle.is_aborting();
        Composer { addressing, terms, outbound, requests, inbound, replies, is_aborting }
    }

    /// Takes the first thing that the user is to be told of this context, whose name is `id`, and
    /// whom the listener of `port` let in.
    pub fn take_event(&mut self, id: ContextId, port: u16) -> Option<Event> {
        Some(match self.lifecycle.take_event()? {
            Events::INCOMING => Event::Incoming { port, id },
            Events::OPENED => Event::Opened(id),
            Events::READABLE => Event::Readable(id),
            Events::WRITABLE => Event::Writable(id),
            Events::DELIVERED => Event::Delivered(id),
            Events::MEMBER => {
                let Role::Transmitter(group) = &mut self.role else { return None };
                let ((member, how), has_more) = group.pop_event()?;
                self.lifecycle.tell_if(has_more, Events::MEMBER);
                how.map_or(Event::Joined(id, member), |how| Event::Left(id, member, how))
            }
            Events::REMARK => {
                let (code, reason) = self.lifecycle.remark()?;
                Event::Remark(id, code, reason)
            }
            _ => Event::Ended(id, self.lifecycle.end()?),
        })
    }

    /// Who is no member or candidate any more, for who finds contexts by keys.
    pub fn pop_parted(&mut self) -> Option<Parted> {
        if let Role::Transmitter(group) = &mut self.role { group.pop_parted() } else { None }
    }

    /// Takes as much of a message as there is room for.
    pub fn write(&mut self, now: Time, message: &Message<'_>) -> usize {
        let taken = self.outbound.write(now, message);
        if self.lifecycle.state() == State::Open {
            // The window may have closed before there was anything to send.
            let (is_waiting, timeout) = (self.requests.is_waiting(), self.requests.timeout());
            self.outbound.watch_window(now, is_waiting, timeout);
        }
        taken
    }

    /// Gives the user what is next.
    pub fn read(&mut self, now: Time, into: &mut [u8]) -> Read {
        let read = self.inbound.read(into);
        if self.lifecycle.state().is_live() {
            let receiver = self.inbound.receiver();
            self.replies.handle_delivered(now, |place| receiver.is_delivered(place));
            if receiver.has_news_of_window() {
                self.replies.reply(now);
            }
        }
        read
    }

    /// Does what the user wants.
    pub fn handle_command(&mut self, now: Time, command: Command) {
        match command {
            Command::Post(len) => {
                self.inbound.post(len);
                self.replies.reply(now);
            }
            Command::Finish => self.outbound.finish(),
            Command::StopReading => {
                if self.inbound.stop() {
                    self.replies.reply(now);
                }
            }
            Command::SetLimits(limits) => {
                self.terms.set_limits(limits);
                let theirs = self.terms.theirs();
                self.outbound.adopt(now, &mut self.terms, Some(theirs));
                self.requests.want_traffic(true);
            }
            Command::SetGiveUp(give_up) => self.requests.set_give_up(give_up),
            Command::Shorten(len) => {
                // The peer, whose way is mostly the same, is asked for as much, if it sends any.
                let is_told = !self.terms.is_quiet() && !self.role.is_transmitter();
                let is_shorter = self.outbound.shorten(len);
                self.requests.want_traffic(is_shorter && is_told);
            }
            Command::Abort => self.give_up(Input::UserAborts, End::Abandoned),
        }
    }

    /// Time goes on.
    pub fn handle_time(&mut self, now: Time) {
        if !self.lifecycle.state().is_live() {
            return;
        }
        self.outbound.handle_time(now);
        if self.terms.is_quiet() {
            if self.requests.quiet_until(self.addressing.is_initiator()) <= now {
                self.lifecycle.leave(End::TimedOut);
            }
            return;
        }
        if self.outbound.take_probe(now) {
            self.requests.begin_handshake(now);
        }
        if let Role::Transmitter(group) = &mut self.role
            && group.drop_the_late(now)
        {
            self.heed_group(now, Said::Parted);
        }
        if self.requests.handle_time(now) != Expiry::GiveUp {
            return;
        }
        match &mut self.role {
            Role::Transmitter(_) if self.lifecycle.state() == State::Opening => {
                self.give_up(Input::GivenUp, End::TooFewMembers);
            }
            Role::Transmitter(group) => {
                // The handshake has come to its last turn.
                let is_one = group.drop_the_silent(self.requests.sync());
                self.requests.clear();
                self.heed_group(now, if is_one { Said::Parted } else { Said::Status });
            }
            Role::Unicast | Role::Member(_) => self.give_up(Input::GivenUp, End::TimedOut),
        }
    }

    /// When [`Context::handle_time`] or [`Context::poll`] has something to do again.
    pub fn deadline(&self) -> Time {
        if !self.lifecycle.state().is_live() {
            return Time::NEVER;
        }
        let data_at = self.outbound.data_at();
        if self.terms.is_quiet() {
            return data_at.min(self.requests.quiet_until(self.addressing.is_initiator()));
        }
        let may_answer = match self.lifecycle.state() {
            State::Open => self.composer().affords_status(),
            State::Joining => self.composer().affords_request_to_join(),
            _ => false,
        };
        let status_at = if may_answer { self.replies.status_at() } else { Time::NEVER };
        let asked_at = self.requests.deadline().min(self.outbound.window_at());
        data_at.min(asked_at).min(status_at).min(self.role.deadline())
    }

    /// The association ends by a decision here, the first that is made; END is still to be sent.
    pub fn give_up(&mut self, input: Input, end: End) {
        if !self.lifecycle.give_up(input, end) {
            return;
        }
        if let Role::Transmitter(group) = &mut self.role {
            self.lifecycle.tell_if(group.dismiss(), Events::MEMBER);
        }
        self.outbound.stop();
    }

    /// The association is over when both streams are.
    pub fn check_over(&mut self) {
        if self.lifecycle.state() == State::Open && self.role.is_over(&self.outbound, &self.inbound)
        {
            self.give_up(Input::BothClosed, End::Complete);
        }
    }

    /// The context has ended: what was to be sent is given back.
    pub fn let_go(&mut self) {
        self.outbound.stop();
        self.requests.clear();
        self.replies.clear_status();
        self.lifecycle.let_go();
    }
}
