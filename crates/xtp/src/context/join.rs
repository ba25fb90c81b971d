//! A member's end of a reliable group.
//!
//! ```text
//!   FIRST to all, or JCNTL with key 0 to the group and FIRST in answer
//!     -> JCNTL under the transmitter's key       <- JCNTL: an offer of another key
//!     -> JCNTL under the key that was offered    <- JCNTL: where the stream begins
//! ```
//!
//! Invariants: nothing is taken before the transmitter has said where the stream begins; what went
//! to all is answered within a slot, at a time of this member's own, so that answers of many do not
//! come at once.

use super::{Addressing, Context, Lifecycle, write};
use crate::config::Config;
use crate::group::Join;
use crate::serial::is_at_least;
use crate::table::{Input, State};
use crate::wire::{
    Body, Control, Format, HEADER_LEN, Header, Key, Options, Service, TrafficControl,
};
use dacapo_base::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// How often is asked under a key that was offered, before the one that is known is tried again.
const ASKED_MAX: u32 = 3;

/// What a member keeps beyond what every context does.
#[derive(Debug)]
pub struct Membership {
    slot: Duration,
    salt: u32,
    /// The first request to join under the key that is known now.
    asked: Option<u32>,
    /// How many there were.
    asked_count: u32,
    /// Whom the transmitter has to be; `None`: whoever answers.
    transmitter: Option<SocketAddr>,
}

impl Membership {
    /// What went to all is answered later than what went to this member.
    pub(super) fn delay(&self, header: &Header) -> Duration {
        if header.key.is_returned() {
            return Duration::ZERO;
        }
        let mixed = u64::from(self.salt ^ header.sync).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let nanos = (self.slot.as_nanos() * u128::from(mixed >> 32)) >> 32;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Context {
    /// The end that asks to join; `salt` is any number, another for each member.
    pub fn joining(now: Time, config: &Config, join: &Join, key: u64, numbers: (u32, u32)) -> Self {
        let (sync, salt) = numbers;
        let addressing = Addressing::joining(join.peer, key, join.ends);
        let lifecycle = Lifecycle::begun(Input::UserJoins);
        let mut context = Self::new(now, config, join.mode, addressing, lifecycle, sync);
        context.become_member(config, salt);
        if let Some(membership) = &mut context.membership {
            let is_known = !join.peer.ip().is_multicast();
            membership.transmitter = is_known.then_some(join.peer);
        }
        context.replies.reply(now);
        context
    }

    /// The context will hear a reliable group, and say nothing but status.
    pub fn become_member(&mut self, config: &Config, salt: u32) {
        self.service = Service::ReliableMulticast;
        self.sender.stop();
        self.is_wclose_told = true;
        let slot = config.timers.slot;
        let membership = Membership { slot, salt, asked: None, asked_count: 0, transmitter: None };
        self.membership = Some(Box::new(membership));
    }

    /// The group that is to be joined, while its transmitter is not known.
    pub fn awaited(&self) -> Option<SocketAddr> {
        let is_awaited = self.membership.is_some() && self.addressing.known_as().is_none();
        self.addressing.destination().filter(|_| is_awaited)
    }

    /// Whether an invitation from there is one that was asked for.
    pub fn admits_transmitter(&self, from: SocketAddr) -> bool {
        let membership = self.membership.as_ref();
        membership.is_some_and(|it| it.transmitter.is_none_or(|known| known == from))
    }

    /// The transmitter of the group is known from its FIRST.
    pub fn follow(&mut self, from: SocketAddr, header: &Header) {
        self.addressing.follow(from, header.key);
    }

    /// Takes what leads to membership.
    pub(super) fn take_joining(&mut self, now: Time, header: &Header, body: &Body<'_>) {
        match body {
            Body::First(segment, ..) => {
                if self.lifecycle.state() == State::Listening {
                    self.addressing.handle_invitation(segment);
                    self.lifecycle.enter(Input::Invitation);
                }
                self.replies.reply(now);
            }
            Body::Jcntl(said, ..) => self.take_answer(now, header, said),
            _ => {}
        }
    }

    /// An answer of the transmitter: under the key that is known it admits, with another it offers.
    fn take_answer(&mut self, now: Time, header: &Header, said: &TrafficControl) {
        let (echo, key) = (said.control.echo, Key::returned(said.xkey));
        self.addressing.handle_proof(true);
        self.requests.handle_echo(now, echo);
        let Some(membership) = &mut self.membership else { return };
        let is_answer = membership.asked.is_some_and(|asked| is_at_least(echo, asked));
        if !is_answer || key.value() == 0 {
            return;
        }
        if self.addressing.handle_offer(key) {
            (membership.asked, membership.asked_count) = (None, 0);
            return self.replies.reply(now);
        }
        self.admit(now, header);
    }

    fn admit(&mut self, now: Time, header: &Header) {
        if !self.lifecycle.enter(Input::Admitted) {
            return;
        }
        self.receiver.restart(header.seq);
        self.requests.clear();
        self.replies.clear_status();
        self.replies.handle_start(header);
        self.take_close(now, header.options, header.seq);
        self.take_requests(now, header, header.seq);
    }

    /// JCNTL, when it is time.
    pub(super) fn poll_joining(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        let is_asked = self.replies.status_at() <= now;
        if !(is_asked || self.requests.is_due()) || !self.addressing.affords(self.join_len()) {
            return false;
        }
        self.replies.clear_status();
        let sync = self.requests.ask(now, 0, false);
        if let Some(membership) = &mut self.membership {
            // The offer may have been forgotten.
            if membership.asked_count >= ASKED_MAX && self.addressing.forget_offer() {
                (membership.asked, membership.asked_count) = (None, 0);
            }
            membership.asked.get_or_insert(sync);
            membership.asked_count = membership.asked_count.saturating_add(1);
        }
        let options = Options::SREQ
            | Options::MULTI
            | Options::SORT.when(self.sort.is_some())
            | Options::RES.when(self.mode.reserve);
        let sort = self.sort.unwrap_or(0);
        let header = Header {
            options,
            sync,
            sort,
            ..Header::new(self.addressing.peer_key(), Format::Jcntl)
        };
        let (rseq, alloc) = (self.receiver.rseq(), self.receiver.alloc());
        let control = Control { rseq, alloc, echo: self.replies.echo() };
        let control = TrafficControl { control, xkey: self.addressing.own_key() };
        write(&header, &Body::Jcntl(control, *self.addressing.segment(), self.traffic()), into)
    }

    fn join_len(&self) -> usize {
        HEADER_LEN + TrafficControl::LEN + self.addressing.segment().len() + self.traffic().len()
    }

    pub(super) fn affords_joining(&self) -> bool {
        self.addressing.affords(self.join_len())
    }
}
