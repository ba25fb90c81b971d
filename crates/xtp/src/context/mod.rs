//! [`Context`]: one end of an association, which routes between its parts.
//!
//! ```text
//!   take(packet) --> inbound    what has come        --> read
//!        |           requests   what was asked           events: lifecycle
//!        +---------> outbound   what has arrived     <-- write
//!                        |      role: of a group, who is in it
//!   poll(buffer) <-- FIRST | END | request | status | data     in this order
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
use inbound::Inbound;
use length::Length;
use lifecycle::Lifecycle;
use outbound::Outbound;
use replies::Replies;
use role::{Membership, Role};
use terms::Terms;

use crate::arrival::{Message, Read};
use crate::config::{Config, Mode, Open};
use crate::event::{ContextId, End, Event, Events};
use crate::group::{GroupPolicy, Join};
use crate::members::{Members, Parted};
use crate::rate::Rate;
use crate::requests::{Alarm, Requests};
use crate::table::{Input, State};
use crate::wire::{Header, Limits, Service};
use dacapo_base::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// One end of an association.
#[derive(Debug)]
pub struct Context {
    lifecycle: Lifecycle,
    addressing: Addressing,
    terms: Terms,
    outbound: Outbound,
    inbound: Inbound,
    requests: Requests,
    replies: Replies,
    rate: Rate,
    length: Length,
    role: Role,
}

impl Context {
    /// The end that opens.
    pub fn opening(now: Time, config: &Config, open: &Open, (key, sync): (u64, u32)) -> Self {
        let addressing = Addressing::opening(open.peer, key, open.ends);
        let lifecycle = Lifecycle::begun(Input::UserOpens);
        let terms = Terms::new(open.service, open.mode);
        let mut context = Self::new(now, config, terms, addressing, lifecycle, (sync, 0));
        context.requests.want_first();
        if terms.is_quiet() {
            context.outbound.confirm();
            context.inbound.stop();
        }
        context
    }

    /// The end that transmits to a reliable group.
    pub fn gathering(
        now: Time,
        config: &Config,
        open: &Open,
        policy: GroupPolicy,
        numbers: (u64, u32),
    ) -> Self {
        let mut context = Self::opening(now, config, open, numbers);
        let extra = context.rate.time_of(config.buffer_len);
        let group = Members::new(policy, config.buffer_len, extra);
        context.role = Role::Transmitter(Box::new(group));
        // Nothing comes back but status.
        context.inbound.stop();
        context
    }

    /// The end that accepts; the packet is taken afterwards like any other.
    pub fn accepting(
        now: Time,
        config: &Config,
        mode: Mode,
        (peer, header): (SocketAddr, &Header),
        (key, sync): (u64, u32),
    ) -> Self {
        let addressing = Addressing::accepting(peer, key, header.key);
        let lifecycle = Lifecycle::new(State::Listening);
        let terms = Terms::new(Service::Unspecified, mode);
        let mut context = Self::new(now, config, terms, addressing, lifecycle, (sync, header.seq));
        context.replies.handle_start(header);
        context.lifecycle.tell(Events::INCOMING);
        context
    }

    /// The end that asks to join; `salt` is any number, another for each member.
    pub fn joining(now: Time, config: &Config, join: &Join, key: u64, numbers: (u32, u32)) -> Self {
        let (sync, salt) = numbers;
        let addressing = Addressing::joining(join.peer, key, join.ends);
        let lifecycle = Lifecycle::begun(Input::UserJoins);
        let terms = Terms::new(Service::ReliableMulticast, join.mode);
        let mut context = Self::new(now, config, terms, addressing, lifecycle, (sync, 0));
        let is_known = !join.peer.ip().is_multicast();
        context.become_member(config, salt, is_known.then_some(join.peer));
        context.replies.reply(now);
        context
    }

    /// The context will hear a reliable group, and say nothing but status.
    pub fn become_member(&mut self, config: &Config, salt: u32, transmitter: Option<SocketAddr>) {
        self.terms.handle_service(Service::ReliableMulticast as u8);
        self.outbound.disuse();
        let membership = Membership::new(config.timers.slot, salt, transmitter);
        self.role = Role::Member(Box::new(membership));
    }

    fn new(
        now: Time,
        config: &Config,
        terms: Terms,
        addressing: Addressing,
        lifecycle: Lifecycle,
        (sync, start): (u32, u64),
    ) -> Self {
        let mode = terms.mode();
        Self {
            lifecycle,
            addressing,
            outbound: Outbound::new(config, mode),
            inbound: Inbound::new(start, config, mode),
            requests: Requests::new(now, config.timers, sync),
            replies: Replies::new(config.timers.response_wait),
            rate: Rate::new(now, mode.limits.out_rate, mode.limits.out_burst),
            length: Length::new(config),
            role: Role::Unicast,
            terms,
        }
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

    /// What it is in a group.
    pub const fn role(&self) -> &Role {
        &self.role
    }

    /// The longest packet, bytes.
    pub const fn packet_len_max(&self) -> usize {
        self.length.packet_max()
    }

    /// The members, where this is the transmitter of a reliable group.
    pub fn members(&self) -> Option<&Members> {
        if let Role::Transmitter(group) = &self.role { Some(group) } else { None }
    }

    /// The numbers that a context which is over still says: `seq`, `rseq`.
    pub const fn last_numbers(&self) -> (u64, u64) {
        (self.outbound.sender().next(), self.inbound.receiver().rseq())
    }

    /// How long the peer may ask after this end has let go.
    pub fn inactive_period(&self, config: &Config) -> Duration {
        let wait = self.requests.timeout() * 2;
        wait.max(config.timers.inactive_min).min(config.timers.give_up)
    }

    /// Takes how many packets with a tag were lost for want of room.
    pub fn take_refused(&mut self) -> u64 {
        self.inbound.take_refused()
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
                if has_more {
                    self.lifecycle.tell(Events::MEMBER);
                }
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

    /// The peer's limits hold from now on, where they are narrower than ours.
    fn adopt(&mut self, now: Time, limits: Limits) {
        self.terms.handle_limits(limits);
        let (rate, burst) = self.terms.pace();
        self.rate.set(now, rate, burst);
        self.length.handle_limit(limits.data_len_max);
    }

    /// Where packets have become shorter the peer, whose way is mostly the same, is asked for as
    /// much.
    fn ask_for_length(&mut self, is_shorter: bool) {
        let has_one = !self.terms.is_quiet() && !self.role.is_transmitter();
        self.requests.want_traffic(is_shorter && has_one);
    }

    /// Whether the user can still send.
    pub fn takes_data(&self) -> bool {
        self.lifecycle.end().is_none() && !self.outbound.sender().is_finished()
    }

    /// Takes as much of a message as there is room for.
    pub fn write(&mut self, now: Time, message: &Message<'_>) -> usize {
        let taken = self.outbound.write(now, message);
        if self.lifecycle.state() == State::Open {
            // The window may have closed before there was anything to send.
            self.watch_window(now);
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

    /// The user has room for more (reservation).
    pub fn post(&mut self, now: Time, len: usize) {
        self.inbound.post(len);
        self.replies.reply(now);
    }

    /// The user sends no more.
    pub fn finish(&mut self) {
        self.outbound.finish();
    }

    /// The user reads no more.
    pub fn stop_reading(&mut self, now: Time) {
        if self.inbound.stop() {
            self.replies.reply(now);
        }
    }

    /// The user has other limits from now on.
    pub fn set_limits(&mut self, now: Time, limits: Limits) {
        self.terms.set_limits(limits);
        let theirs = self.terms.theirs();
        self.adopt(now, theirs);
        self.requests.want_traffic(true);
    }

    /// A peer that does not answer is waited for as long as this.
    pub fn set_give_up(&mut self, give_up: Duration) {
        self.requests.set_give_up(give_up);
    }

    /// Packets of more than `len` bytes do not get through.
    pub fn shorten(&mut self, len: usize) {
        let is_shorter = self.length.shorten(len);
        self.ask_for_length(is_shorter);
    }

    /// Time goes on.
    pub fn handle_time(&mut self, now: Time) {
        if !self.lifecycle.state().is_live() {
            return;
        }
        self.outbound.handle_time(now);
        if self.terms.is_quiet() {
            if self.quiet_deadline() <= now {
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
            self.handle_parted(now);
        }
        if self.requests.handle_time(now) != Alarm::GiveUp {
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
                if is_one {
                    self.handle_parted(now);
                } else {
                    self.settle_group(now);
                }
            }
            Role::Unicast | Role::Member(_) => self.give_up(Input::GivenUp, End::TimedOut),
        }
    }

    /// Whoever only hears is over after a silence; whoever is never answered waits for nothing.
    fn quiet_deadline(&self) -> Time {
        let is_heard = self.addressing.is_initiator();
        if is_heard { Time::NEVER } else { self.requests.silence_ends() }
    }

    /// When [`Context::handle_time`] or [`Context::poll`] has something to do again.
    pub fn deadline(&self) -> Time {
        if !self.lifecycle.state().is_live() {
            return Time::NEVER;
        }
        let data_at = self.rate.awaited().min(self.outbound.flush_at());
        if self.terms.is_quiet() {
            return data_at.min(self.quiet_deadline());
        }
        let may_answer = match self.lifecycle.state() {
            State::Open => self.affords_status(),
            State::Joining => self.addressing.affords(self.join_len()),
            _ => false,
        };
        let status_at = if may_answer { self.replies.status_at() } else { Time::NEVER };
        let group_at = match &self.role {
            Role::Transmitter(group) => group.deadline(),
            Role::Unicast | Role::Member(_) => Time::NEVER,
        };
        let asked_at = self.requests.deadline().min(self.outbound.window_at());
        data_at.min(asked_at).min(status_at).min(group_at)
    }

    /// The association ends by a decision here, the first that is made; END is still to be sent.
    pub fn give_up(&mut self, input: Input, end: End) {
        if !self.lifecycle.give_up(input, end) {
            return;
        }
        if let Role::Transmitter(group) = &mut self.role
            && group.dismiss()
        {
            self.lifecycle.tell(Events::MEMBER);
        }
        self.outbound.stop();
    }

    /// The association is over when both streams have come to their end, and both ends know it; of
    /// a group when every member has everything, or is none any more.
    pub fn check_over(&mut self) {
        let is_over = match &self.role {
            Role::Transmitter(group) => group.len() == 0 && self.outbound.sender().is_all_sent(),
            Role::Unicast | Role::Member(_) => {
                self.outbound.is_over() && self.inbound.receiver().is_complete()
            }
        };
        if is_over && self.lifecycle.state() == State::Open {
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
