//! Reliable groups: who opens and joins them, and whom the keys of members lead to.
//!
//! ```text
//!   key of the group     -> transmitter: requests to join, from anywhere
//!   key offered to one   -> transmitter: that member, from its address only
//!   key 0                -> transmitter, by the group's address: FIRST in answer
//!   FIRST, unknown key   -> who waits to join that group
//! ```
//!
//! Invariants: a request with key 0 leaves nothing behind, and its answer is shorter than it is; of
//! a member that has parted what is left is what is left of every association that is over.

use super::inactive::Gone;
use super::input::Came;
use super::{Engine, OpenError, UserError};
use crate::config::Open;
use crate::context::Context;
use crate::event::ContextId;
use crate::group::{GroupPolicy, Join, Leaving, Member};
use crate::members::{Admission, Parted};
use crate::wire::{
    Address, Body, Code, Diagnostic, Format, Header, Key, Options, Reason, Service, Writer,
};
use dacapo_base::Time;
use std::net::SocketAddr;

impl Engine {
    /// Opens a reliable association with a group, whatever service `open` names. Data is sent when
    /// enough members have joined; every one of them gets every byte from then on, or
    /// [`crate::Event::Left`] says that it did not. Nothing is read.
    ///
    /// # Errors
    /// [`OpenError::Full`], [`OpenError::Policy`].
    pub fn open_group(
        &mut self,
        now: Time,
        open: &Open,
        policy: &GroupPolicy,
    ) -> Result<ContextId, OpenError> {
        if !policy.is_sound() {
            return Err(OpenError::Policy(*policy));
        }
        let (key, sync) = (self.draw_key(), self.random.next_u32());
        let mut open = Open { service: Service::ReliableMulticast, ..*open };
        open.mode.without_repair = false;
        let context = Context::gathering(now, &self.config, &open, *policy, (key, sync));
        let id = self.begin(now, context)?;
        if let Some((destination, _)) = open.ends {
            self.groups.insert((destination, id.slot));
        }
        Ok(id)
    }

    /// Asks to join a reliable group whose association may have begun: its stream is heard from
    /// where the transmitter says, and nothing before. [`crate::Event::Opened`] says that it is so,
    /// [`crate::Event::Ended`] that it is not.
    ///
    /// # Errors
    /// [`OpenError::Full`].
    pub fn join(&mut self, now: Time, join: &Join) -> Result<ContextId, OpenError> {
        let numbers = (self.random.next_u32(), self.random.next_u32());
        let key = self.draw_key();
        let context = Context::joining(now, &self.config, join, key, numbers);
        let id = self.begin(now, context)?;
        self.joins.insert((join.ends.0, id.slot));
        Ok(id)
    }

    /// The members of a reliable group to which this context transmits, in no order; of any other
    /// context none.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn members(&self, id: ContextId) -> Result<Vec<Member>, UserError> {
        Ok(self.context(id)?.members().map(crate::members::Members::list).unwrap_or_default())
    }

    /// The transmitter that a request without a key is for, by the address in it.
    pub(super) fn find_group(&self, body: &Body<'_>) -> Option<u32> {
        let Body::Jcntl(_, segment, _) = body else { return None };
        let Address::Internet { destination, .. } = segment.address else { return None };
        let first = self.groups.range((destination, 0)..).next();
        first.filter(|(group, _)| *group == destination).map(|(_, slot)| *slot)
    }

    /// Who waits to join the group of an invitation; it follows its transmitter from now on.
    pub(super) fn follow(&mut self, came: &Came<'_>) -> Option<u32> {
        let Body::First(segment, ..) = &came.body else { return None };
        let Address::Internet { destination, .. } = segment.address else { return None };
        let waiting: Vec<u32> = self
            .joins
            .range((destination, 0)..=(destination, u32::MAX))
            .map(|(_, slot)| *slot)
            .collect();
        let is_meant = |slot: &u32| {
            self.context_ref(*slot).is_some_and(|context| context.role().admits(came.from))
        };
        let slot = waiting.into_iter().find(is_meant)?;
        self.joins.remove(&(destination, slot));
        self.context_at(slot)?.follow(came.from, &came.header);
        self.learn(slot);
        Some(slot)
    }

    /// A JCNTL has come for a transmitter.
    pub(super) fn handle_join(&mut self, now: Time, slot: u32, came: &Came<'_>) {
        let Body::Jcntl(asks, _, traffic) = &came.body else { return };
        if came.header.key == Key::own(0) {
            return self.invite(now, slot, came.from);
        }
        let drawn = self.draw_key();
        let Some(context) = self.context_at(slot) else { return };
        let (xkey, asks) = (asks.xkey, (asks, traffic.limits));
        match context.take_join(now, came.from, &came.header, asks, drawn) {
            Admission::Offered => {
                self.by_key.insert(drawn, slot);
            }
            Admission::Refused => {
                self.counters.refused = self.counters.refused.saturating_add(1);
                let (code, reason) = (Code::JOIN_REFUSED, Reason::JOIN_DENIED);
                // The answer carries the key of who asks.
                let about = Header { key: Key::own(xkey), ..came.header };
                self.diagnose(now, came.from, &about, code, reason);
            }
            Admission::Known | Admission::Joined => {}
        }
        self.touch(now, slot);
    }

    /// FIRST to who has asked for it, as often as diagnostics.
    fn invite(&mut self, now: Time, slot: u32, to: SocketAddr) {
        if !self.limiter.admits(now, to.ip()) {
            self.counters.withheld = self.counters.withheld.saturating_add(1);
            return;
        }
        let mut packet = Vec::new();
        let is_one = self.context_at(slot).is_some_and(|context| context.invite(&mut packet));
        if is_one {
            self.push_answer(to, packet);
        }
    }

    /// Keys of those who are no members any more lead to what answers late packets.
    pub(super) fn bury_parted(&mut self, now: Time, slot: u32) {
        while let Some(parted) = self.context_at(slot).and_then(Context::pop_parted) {
            let Parted { offered, address, key, rseq, how, has_said_end } = parted;
            self.by_key.remove(&offered);
            let Some(how) = how else { continue };
            let is_complete = how == Leaving::Complete;
            let key = Key::returned(key);
            let peer = address;
            let known_as = None;
            let gone = Gone { peer, own_key: offered, known_as, key, seq: 0, rseq, is_complete };
            let config = self.config;
            let period = self.context_at(slot).map(|context| context.inactive_period(&config));
            self.inactive.insert(now + period.unwrap_or_default(), gone);
            match how {
                Leaving::Silent | Leaving::Slow => self.push_answer(address, abandon(key, how)),
                Leaving::Complete | Leaving::Left if !has_said_end => {
                    self.push_answer(address, gone.end(0, Options::MULTI));
                }
                _ => {}
            }
        }
    }

    /// A context is over, or nobody's any more: nobody asks for its group.
    pub(super) fn forget_group(&mut self, slot: u32) {
        let Some(context) = self.context_ref(slot) else { return };
        let destination = match context.addressing().destination() {
            Some(destination) if context.role().is_in_group() => destination,
            _ => return,
        };
        self.groups.remove(&(destination, slot));
        self.joins.remove(&(destination, slot));
    }
}

/// DIAG 2 to a member that is dropped.
fn abandon(key: Key, how: Leaving) -> Vec<u8> {
    let is_slow = how == Leaving::Slow;
    let reason = if is_slow { Reason::NO_RESOURCE } else { Reason::UNSPECIFIED };
    let message = how.to_string();
    let (code, message) = (Code::CONTEXT_ABANDONED, message.as_bytes());
    let header = Header { options: Options::MULTI, ..Header::new(key, Format::Diag) };
    let mut packet = Vec::new();
    // A diagnostic of ours is never too long.
    let _ = Writer::packet(&header, &Body::Diag(Diagnostic { code, reason, message }), &mut packet);
    packet
}
