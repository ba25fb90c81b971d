//! [`Context`]: one end of an association.
//!
//! ```text
//!   take(packet) --> receiver.rs  what has come        --> read
//!        |           requests.rs  what was asked           events
//!        +---------> sender.rs    what has arrived     <-- write
//!                        |
//!   poll(buffer) <-- FIRST | END | request | status | data     in this order
//! ```
//!
//! Invariants: a peer that has not shown that it hears what is sent to its address gets at most
//! three times what came from there; status is asked for with every packet after which nothing more
//! can go, so a sender never waits for nothing.

mod addressing;
mod close;
mod group;
mod input;
mod join;
mod length;
mod lifecycle;
mod output;
mod replies;
mod user;

use addressing::Addressing;
use length::Length;
use lifecycle::Lifecycle;
use output::write;
use replies::Replies;

use crate::config::{Config, Mode, Open};
use crate::event::{End, Events};
use crate::flush_timer::FlushTimer;
use crate::rate::{Rate, smaller};
use crate::receiver::Receiver;
use crate::requests::{Alarm, Requests};
use crate::sender::Sender;
use crate::table::{Input, State};
use crate::wire::{HEADER_LEN, Header, Limits, Service, Traffic};
use dacapo_base::Time;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// Status is asked for after so many bytes at the latest, a quarter of a megabyte, however wide the
/// window: what was lost when it was sent again is known only by what is answered after that.
const ASK_LEN_MAX: usize = 256 << 10;

/// What is to be asked beyond what data asks.
#[derive(Debug, Default)]
struct Wants {
    first: bool,
    delivery: bool,
    /// The request with which a new traffic specification went out, while it is not answered.
    traffic: Option<u32>,
    is_traffic_due: bool,
    /// When a closed window is asked for, and how long was waited for it.
    window_at: Option<Time>,
    window_wait: Duration,
}

/// One end of an association.
#[derive(Debug)]
pub struct Context {
    lifecycle: Lifecycle,
    addressing: Addressing,
    pub service: Service,
    pub sort: Option<u16>,
    mode: Mode,
    /// What the peer has said of its own, or of all members the narrowest.
    their_limits: Limits,
    sender: Sender,
    receiver: Receiver,
    requests: Requests,
    rate: Rate,
    /// When there is credit for what waits for nothing else; else `NEVER`.
    credit_at: Time,
    length: Length,
    ask_len: u64,
    unasked: u64,
    edge: bool,
    peer_is_lossy: bool,
    is_rclose_received: bool,
    is_wclose_told: bool,
    is_rclose_told: bool,
    wants_room: bool,
    /// When what waits for more that was announced goes out without it.
    flush_timer: FlushTimer,
    /// Places up to which the user wants to know of delivery.
    deliveries: VecDeque<u64>,
    replies: Replies,
    wants: Wants,
    /// Packets with a tag that had no room and are not sent again.
    pub refused: u64,
    /// The members, at the transmitter of a reliable group.
    group: Option<Box<group::Group>>,
    /// What a member of a reliable group keeps.
    membership: Option<Box<join::Membership>>,
}

impl Context {
    /// The end that opens.
    pub fn opening(now: Time, config: &Config, open: &Open, key: u64, sync: u32) -> Self {
        let addressing = Addressing::opening(open.peer, key, open.ends);
        let lifecycle = Lifecycle::begun(Input::UserOpens);
        let mut context = Self::new(now, config, open.mode, addressing, lifecycle, sync);
        context.service = open.service;
        context.wants.first = true;
        if context.is_quiet() {
            context.sender.confirm();
            context.receiver.stop();
        }
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
        let mut context = Self::new(now, config, mode, addressing, lifecycle, sync);
        context.receiver = Self::receiver_from(header.seq, config, mode);
        context.replies.handle_start(header);
        context.lifecycle.tell(Events::INCOMING);
        context
    }

    fn receiver_from(start: u64, config: &Config, mode: Mode) -> Receiver {
        let is_selective = mode.retransmission == crate::Retransmission::Selective;
        Receiver::new(start, config.buffer_len, is_selective, mode.reserve)
    }

    fn new(
        now: Time,
        config: &Config,
        mode: Mode,
        addressing: Addressing,
        lifecycle: Lifecycle,
        sync: u32,
    ) -> Self {
        let sender = Sender::new(
            config.buffer_len,
            config.first_window,
            mode.without_repair,
            mode.without_window,
        );
        Self {
            lifecycle,
            addressing,
            service: Service::Unspecified,
            sort: mode.sort,
            mode,
            their_limits: Limits::default(),
            sender,
            receiver: Self::receiver_from(0, config, mode),
            requests: Requests::new(now, config.timers, sync),
            rate: Rate::new(now, mode.limits.out_rate, mode.limits.out_burst),
            credit_at: Time::NEVER,
            length: Length::new(config),
            ask_len: (config.buffer_len / 4).min(ASK_LEN_MAX) as u64,
            unasked: 0,
            edge: false,
            peer_is_lossy: false,
            is_rclose_received: false,
            is_wclose_told: false,
            is_rclose_told: false,
            wants_room: false,
            flush_timer: FlushTimer::default(),
            deliveries: VecDeque::new(),
            replies: Replies::new(config.timers.response_wait),
            wants: Wants::default(),
            refused: 0,
            group: None,
            membership: None,
        }
    }

    /// What this end says of its traffic.
    fn traffic(&self) -> Traffic {
        let mut limits = self.mode.limits;
        limits.data_len_max = self.length.packet_max().saturating_sub(HEADER_LEN) as u32;
        Traffic { service: self.service as u8, limits: Some(limits) }
    }

    /// The peer's limits hold from now on, where they are narrower than ours.
    fn adopt(&mut self, now: Time, limits: Limits) {
        self.their_limits = limits;
        let own = self.mode.limits;
        let rate = smaller(own.out_rate, limits.in_rate);
        let burst = smaller(own.out_burst, limits.in_burst);
        self.rate.set(now, rate, if burst == u32::MAX { 0 } else { burst });
        self.length.handle_limit(limits.data_len_max);
    }

    /// Packets of more than `len` bytes do not get through.
    pub fn shorten(&mut self, len: usize) {
        let is_shorter = self.length.shorten(len);
        self.ask_for_length(is_shorter);
    }

    /// The longest packet, bytes.
    pub const fn packet_len_max(&self) -> usize {
        self.length.packet_max()
    }

    /// Where packets have become shorter the peer, whose way is mostly the same, is asked for as
    /// much.
    fn ask_for_length(&mut self, is_shorter: bool) {
        self.wants.is_traffic_due |= is_shorter && !self.is_quiet() && self.group.is_none();
    }

    /// Whether the service lets nothing come back.
    const fn is_quiet(&self) -> bool {
        matches!(self.service, Service::Datagram | Service::Multicast)
    }

    /// Whoever only hears is over after a silence; whoever is never answered waits for nothing.
    fn quiet_deadline(&self) -> Time {
        if self.addressing.is_initiator() { Time::NEVER } else { self.requests.silence_ends() }
    }

    /// Time goes on.
    pub fn handle_time(&mut self, now: Time) {
        if !self.lifecycle.state().is_live() {
            return;
        }
        self.release_late(now);
        if self.is_quiet() {
            if self.quiet_deadline() <= now {
                self.lifecycle.leave(End::TimedOut);
            }
            return;
        }
        if self.wants.window_at.is_some_and(|at| at <= now) {
            self.wants.window_at = None;
            self.sender.allow_probe();
            self.requests.begin_handshake(now);
        }
        self.drop_the_late(now);
        match self.requests.handle_time(now) {
            Alarm::GiveUp if self.group.is_some() => self.drop_the_silent(now),
            Alarm::GiveUp => self.give_up(Input::GivenUp, End::TimedOut),
            Alarm::None | Alarm::Ask => {}
        }
    }

    /// When [`Context::handle_time`] or [`Context::poll`] has something to do again.
    pub fn deadline(&self) -> Time {
        if !self.lifecycle.state().is_live() {
            return Time::NEVER;
        }
        if self.is_quiet() {
            return self.quiet_deadline().min(self.credit_at).min(self.flush_timer.until());
        }
        let mut at = self.requests.deadline().min(self.flush_timer.until());
        at = at.min(self.wants.window_at.unwrap_or(Time::NEVER));
        let may_answer = match self.lifecycle.state() {
            State::Open => self.affords_status(),
            State::Joining => self.affords_joining(),
            _ => false,
        };
        if may_answer {
            at = at.min(self.replies.status_at());
        }
        at.min(self.credit_at).min(self.group_deadline())
    }

    /// How long the peer may ask after this end has let go.
    pub fn inactive_period(&self, config: &Config) -> Duration {
        let wait = self.requests.timeout() * 2;
        wait.max(config.timers.inactive_min).min(config.timers.give_up)
    }

    /// The numbers that a context which is over still says: `seq`, `rseq`.
    pub fn last_numbers(&self) -> (u64, u64) {
        (self.sender.next(), self.receiver.rseq())
    }

    /// The association ends by a decision here, the first that is made; END is still to be sent.
    pub fn give_up(&mut self, input: Input, end: End) {
        if self.lifecycle.give_up(input, end) {
            self.dismiss_all();
            self.sender.stop();
            self.flush_timer.clear();
        }
    }

    /// Where the peer is, and keys.
    pub const fn addressing(&self) -> &Addressing {
        &self.addressing
    }

    /// State, end and events.
    pub const fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// Takes the first thing that the user is to be told.
    pub fn take_event(&mut self) -> Option<u8> {
        self.lifecycle.take_event()
    }
}
