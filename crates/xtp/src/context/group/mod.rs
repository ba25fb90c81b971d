//! The transmitter's end of a reliable group.
//!
//! ```text
//!   FIRST  to all   until `members_first` have joined, again after WTIMER
//!   JCNTL  to one   an offer to who asks, an admission to who asks under the key offered to it
//!   DATA   to all   what is new, and what somebody lacks; the slowest member is the window
//!   CNTL   to one   a handshake asks one by one those who have not answered
//!   END    to all   when every member has said that it has everything, or is none any more
//! ```
//!
//! Invariant: whatever a member says or leaves unsaid ends its own membership at most; the
//! association ends when nobody is left, or fewer than the policy asks for.

mod output;

use super::Context;
use crate::config::Config;
use crate::event::{End, Events};
use crate::group::{GroupPolicy, Leaving, Member};
use crate::members::{Admission, Candidate, Due, Members, Parted, Waiting};
use crate::rate::smaller;
use crate::sender::Report;
use crate::table::{Input, State};
use crate::wire::{
    Body, Code, Control, Diagnostic, Header, Key, Limits, Options, Spans, TrafficControl,
};
use dacapo_base::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// What the transmitter of a reliable group keeps beyond what every context does.
#[derive(Debug)]
pub struct Group {
    pub members: Members,
    /// The latest request that all have answered.
    echo: Option<u32>,
    /// The latest request for delivery that all have answered.
    delivered: Option<u32>,
    /// What the rate takes for a full buffer: the most that it was.
    extra: Duration,
    buffer_len: usize,
}

impl Context {
    /// The context will transmit to a reliable group.
    pub fn gather(&mut self, config: &Config, policy: GroupPolicy) {
        let group = Group {
            members: Members::new(policy),
            echo: None,
            delivered: None,
            extra: self.rate.time_of(config.buffer_len),
            buffer_len: config.buffer_len,
        };
        self.group = Some(Box::new(group));
        // Nothing comes back but status.
        self.receiver.stop();
    }

    /// Whether a packet with this key may come from there.
    pub fn expects(&self, key: Key, from: SocketAddr) -> bool {
        match &self.group {
            // Anybody may ask to join.
            Some(_) if key.value() == self.addressing.own_key() || key == Key::own(0) => true,
            Some(group) => group.members.address_of(key.value()) == Some(from),
            None => self.addressing.peer() == from,
        }
    }

    /// Whether such a packet means anything here: members only know JCNTL, and only a request to
    /// join comes under the key that everybody in a group knows.
    pub fn understands(&self, input: Input, key: Key) -> bool {
        match (input, &self.group) {
            (Input::Join, _) => self.is_in_group(),
            (_, Some(_)) => key.value() != self.addressing.own_key(),
            _ => true,
        }
    }

    /// Whether it is one end of a reliable association with a group.
    pub const fn is_in_group(&self) -> bool {
        self.group.is_some() || self.membership.is_some()
    }

    /// Whether it transmits to one.
    pub const fn is_transmitter(&self) -> bool {
        self.group.is_some()
    }

    /// The members, where this is the transmitter of a reliable group.
    pub fn members(&self) -> Option<&Members> {
        self.group.as_ref().map(|group| &group.members)
    }

    /// Somebody asks to join, or says that it has the offer; `drawn` is a key for it.
    pub fn take_join(
        &mut self,
        now: Time,
        from: SocketAddr,
        header: &Header,
        (asks, limits): (&TrafficControl, Option<Limits>),
        drawn: u64,
    ) -> Admission {
        let (from_here, sync) = (self.sender.boundary(), self.requests.sync());
        let is_sent = self.lifecycle.state() == State::Open && self.sender.is_all_sent();
        let is_over = is_sent || self.lifecycle.end().is_some();
        let Some(group) = &mut self.group else { return Admission::Refused };
        let (offered, key) = (header.key.value(), Key::own(asks.xkey).value());
        if offered == self.addressing.own_key() {
            let candidate = Candidate { address: from, key, asked: header.sync };
            return group.members.handle_request(drawn, candidate, key != 0 && !is_over);
        }
        if is_over && group.members.entry(offered).is_none() {
            return Admission::Refused;
        }
        let window = asks.control.alloc.saturating_sub(asks.control.rseq);
        let alloc = from_here.saturating_add(window);
        let start = Control { rseq: from_here, alloc, echo: sync };
        let limits = limits.unwrap_or_default();
        let members = &mut group.members;
        let admission = members.handle_confirmation(now, offered, header.sync, &start, limits);
        if admission == Admission::Joined {
            let is_gathered = members.is_gathered();
            self.lifecycle.tell(Events::MEMBER);
            self.narrow(now);
            self.begin(is_gathered);
            self.settle_group(now);
        }
        admission
    }

    /// The stream begins once enough members have joined.
    fn begin(&mut self, is_gathered: bool) {
        if is_gathered && self.lifecycle.enter(Input::Gathered) {
            self.wants.first = false;
            self.requests.clear();
            self.sender.confirm();
        }
    }

    /// The narrowest limits of all members hold.
    fn narrow(&mut self, now: Time) {
        let Some(group) = &mut self.group else { return };
        let most = Limits { data_len_max: u32::MAX, ..Limits::default() };
        let narrowest = group.members.limits().fold(most, |least, limits| Limits {
            data_len_max: smaller(least.data_len_max, limits.data_len_max),
            in_rate: smaller(least.in_rate, limits.in_rate),
            in_burst: smaller(least.in_burst, limits.in_burst),
            ..least
        });
        self.adopt(now, narrowest);
        if let Some(group) = &mut self.group {
            group.extra = group.extra.max(self.rate.time_of(group.buffer_len));
        }
    }

    /// A member says something, under the key that was offered to it.
    pub(super) fn take_from_member(&mut self, now: Time, header: &Header, body: &Body<'_>) {
        let offered = header.key.value();
        let Some(group) = &mut self.group else { return };
        let Some(entry) = group.members.entry_mut(offered) else { return };
        let (control, spans) = match body {
            Body::Cntl(control) => (control, None),
            Body::Ecntl(control, spans) => (control, Some(*spans)),
            Body::Tcntl(said, traffic) => {
                entry.limits = traffic.limits.unwrap_or_default();
                self.narrow(now);
                (&said.control, None)
            }
            Body::Diag(diagnostic) => return self.take_complaint(now, offered, diagnostic),
            _ => return,
        };
        self.take_member_status(now, header, control, spans);
        let options = header.options;
        if options.has_any(Options::END | Options::RCLOSE) {
            let is_whole = self.sender.is_finished() && control.rseq == self.sender.end();
            let how = if is_whole { Leaving::Complete } else { Leaving::Left };
            self.part(now, offered, how, options.has(Options::END));
        } else if options.has(Options::SREQ)
            && let Some(group) = &mut self.group
        {
            if let Some(entry) = group.members.entry_mut(offered) {
                entry.asked = header.sync;
            }
            group.members.want(Due::Status, offered);
        }
        self.settle_group(now);
    }

    fn take_member_status(
        &mut self,
        now: Time,
        header: &Header,
        control: &Control,
        spans: Option<Spans<'_>>,
    ) {
        let (offered, sync) = (header.key.value(), self.requests.sync());
        let may_resend = !self.requests.is_in_handshake() || control.echo == sync;
        let report = Report {
            control: *control,
            spans,
            asked_up_to: self.requests.up_to(control.echo),
            may_resend,
        };
        self.sender.handle_member_report(&report);
        let Some(group) = &mut self.group else { return };
        group.members.handle_status(now, offered, control, (self.sender.next(), sync));
        if self.requests.is_delivery(control.echo)
            && let Some(entry) = group.members.entry_mut(offered)
        {
            entry.delivered = control.echo;
        }
    }

    fn take_complaint(&mut self, now: Time, offered: u64, diagnostic: &Diagnostic<'_>) {
        let (code, reason) = (diagnostic.code, diagnostic.reason);
        match code {
            Code::CONTEXT_REFUSED | Code::CONTEXT_ABANDONED | Code::INVALID_CONTEXT => {
                self.part(now, offered, Leaving::Refused(code, reason), true);
                self.settle_group(now);
            }
            _ => self.lifecycle.handle_remark(code, reason),
        }
    }

    fn part(&mut self, now: Time, offered: u64, how: Leaving, has_said_end: bool) {
        if let Some(group) = &mut self.group {
            group.members.part(offered, how, has_said_end);
            self.lifecycle.tell(Events::MEMBER);
            self.narrow(now);
        }
    }

    /// What all members together have said now: of what has arrived, of windows, of requests.
    fn settle_group(&mut self, now: Time) {
        let State::Open = self.lifecycle.state() else { return };
        let Some(group) = &mut self.group else { return };
        if group.members.is_too_few() {
            return self.give_up(Input::GivenUp, End::TooFewMembers);
        }
        if let Some(floor) = group.members.floor() {
            self.sender.settle(&floor);
            if let Some(heard) = group.members.heard() {
                self.requests.handle_sign_of_life(heard);
            }
            let delivered = group.members.delivered();
            let is_echo_new = group.echo.replace(floor.echo) != Some(floor.echo);
            let is_delivery_new = std::mem::replace(&mut group.delivered, delivered) != delivered;
            if is_echo_new && !self.requests.is_delivery(floor.echo) {
                let answer = self.requests.handle_echo(now, floor.echo);
                self.wants.delivery |= answer.is_delivery_asked_anew;
            }
            let answered = delivered.filter(|_| is_delivery_new);
            if answered.is_some_and(|echo| self.requests.handle_echo(now, echo).is_delivered) {
                self.lifecycle.tell(Events::DELIVERED);
            }
            self.watch_window(now);
            self.tell_room();
        }
        self.watch_members(now);
        self.check_over();
    }

    /// Looks who holds up the others.
    pub(super) fn watch_members(&mut self, now: Time) {
        let Some(group) = &mut self.group else { return };
        let is_asked = self.requests.is_in_handshake();
        let waiting = Waiting {
            next: self.sender.next(),
            is_blocked: self.sender.is_blocked(),
            step: (group.buffer_len / 4) as u64,
            asked: is_asked.then_some(self.requests.sync()),
        };
        group.members.watch(now, &waiting);
    }

    /// Whether every member has everything, or is none any more.
    pub(super) fn is_group_over(&self) -> bool {
        let is_empty = self.members().is_some_and(|members| members.len() == 0);
        is_empty && self.sender.is_all_sent()
    }

    /// Members that have held up the others for too long are none any more.
    pub(super) fn drop_the_late(&mut self, now: Time) {
        let Some(group) = &mut self.group else { return };
        let late = group.members.overdue(now, group.extra);
        if late.is_empty() {
            return;
        }
        late.into_iter().for_each(|(key, how)| self.part(now, key, how, false));
        self.settle_group(now);
    }

    /// A handshake has come to its last turn: who has not answered does not hold up the rest.
    pub(super) fn drop_the_silent(&mut self, now: Time) {
        let Some(group) = &mut self.group else { return };
        if self.lifecycle.state() == State::Opening {
            return self.give_up(Input::GivenUp, End::TooFewMembers);
        }
        let silent = group.members.behind(self.requests.sync());
        silent.into_iter().for_each(|key| self.part(now, key, Leaving::Silent, false));
        self.requests.clear();
        self.settle_group(now);
    }

    /// When somebody has held up the others for too long.
    pub(super) fn group_deadline(&self) -> Time {
        self.group.as_ref().map_or(Time::NEVER, |group| group.members.deadline(group.extra))
    }

    /// What the user is told next of a member.
    pub fn pop_member_event(&mut self) -> Option<(Member, Option<Leaving>)> {
        let members = &mut self.group.as_mut()?.members;
        let event = members.pop_event();
        if members.has_events() {
            self.lifecycle.tell(Events::MEMBER);
        }
        event
    }

    /// Who is no member or candidate any more, for who finds contexts by keys.
    pub fn pop_parted(&mut self) -> Option<Parted> {
        self.group.as_mut()?.members.pop_parted()
    }

    /// The association is over: nobody is a member any more.
    pub(super) fn dismiss_all(&mut self) {
        if let Some(group) = &mut self.group {
            group.members.part_all();
            if group.members.has_events() {
                self.lifecycle.tell(Events::MEMBER);
            }
        }
    }
}
