//! What a packet does to a context.

use super::Context;
use super::role::Role;
use crate::event::{End, Events};
use crate::group::Leaving;
use crate::members::{Admission, Asked, Heard};
use crate::sender::Report;
use crate::table::{Act, Input, State};
use crate::wire::{
    Body, Code, Control, Diagnostic, Header, Key, Limits, Options, Payload, Reason, Service, Spans,
    TrafficControl,
};
use dacapo_base::Time;
use std::net::SocketAddr;
use std::time::Duration;

impl Context {
    /// Takes a packet that the table lets it take; `len` is its length in bytes.
    pub fn take(&mut self, now: Time, header: &Header, body: &Body<'_>, len: usize) {
        self.addressing.handle_received(len, header.key);
        let input = Input::of_packet(header, body);
        let Some((next, act)) = self.lifecycle.step(input) else { return };
        if self.role.is_transmitter() {
            return self.take_from_member(now, header, body);
        }
        if let Body::Diag(diagnostic) = body {
            return self.take_diagnostic(now, header, diagnostic, act);
        }
        self.requests.handle_sign_of_life(now);
        self.replies.set_delay(self.role.delay(header));
        if next != State::Joining && self.lifecycle.state() != State::Joining {
            self.take_open(now, header, body, (input, act));
        } else if act == Act::Leave {
            // The transmitter let go before this end was a member, or said no.
            self.lifecycle.leave(End::Aborted);
        } else {
            self.take_joining(now, header, body);
        }
        self.replies.set_delay(Duration::ZERO);
    }

    fn take_open(
        &mut self,
        now: Time,
        header: &Header,
        body: &Body<'_>,
        (input, act): (Input, Act),
    ) {
        let was = self.lifecycle.state();
        self.lifecycle.enter(input);
        if self.lifecycle.state() == State::Open {
            self.outbound.confirm();
        }
        let packet_end = self.take_body(now, header, body, was);
        self.take_close(now, header.options, packet_end);
        self.take_requests(now, header, packet_end);
        if act == Act::Leave || header.options.has(Options::END) {
            let is_complete = self.outbound.is_over() && self.inbound.receiver().is_complete();
            self.lifecycle.leave(if is_complete { End::Complete } else { End::Aborted });
        }
        self.tell_room();
    }

    /// Takes the segments; returns one past the last byte of the packet.
    fn take_body(&mut self, now: Time, header: &Header, body: &Body<'_>, was: State) -> u64 {
        match body {
            Body::Data(payload) => return self.take_data(now, header, payload),
            Body::First(_, traffic, payload) => {
                if was == State::Listening {
                    self.terms.handle_service(traffic.service);
                    traffic.limits.into_iter().for_each(|limits| self.adopt(now, limits));
                }
                self.replies.handle_first(header.options);
                let end = self.take_data(now, header, payload);
                if was == State::Listening && self.inbound.handle_empty(header, payload) {
                    self.lifecycle.tell(Events::READABLE);
                }
                return end;
            }
            Body::Cntl(control) => self.take_status(now, header, control, None),
            Body::Ecntl(control, spans) => self.take_status(now, header, control, Some(*spans)),
            Body::Tcntl(traffic_control, traffic) => {
                self.addressing.handle_xkey(traffic_control.xkey);
                traffic.limits.into_iter().for_each(|limits| self.adopt(now, limits));
                self.take_status(now, header, &traffic_control.control, None);
            }
            Body::Join(_) | Body::Jcntl(..) | Body::Diag(_) => {}
        }
        header.seq
    }

    fn take_data(&mut self, now: Time, header: &Header, payload: &Payload<'_>) -> u64 {
        let outcome = self.inbound.handle_data(header, payload);
        if outcome.is_violation {
            self.replies.remark(Code::PROTOCOL_ERROR, Reason::UNSPECIFIED);
        }
        if outcome.is_readable {
            self.lifecycle.tell(Events::READABLE);
        }
        if outcome.is_gap_new {
            self.replies.reply(now);
        }
        header.seq.saturating_add(payload.data.len() as u64)
    }

    fn take_status(
        &mut self,
        now: Time,
        header: &Header,
        control: &Control,
        spans: Option<Spans<'_>>,
    ) {
        if self.inbound.handle_request(header) {
            self.lifecycle.tell(Events::READABLE);
        }
        let answer = self.requests.handle_status(now, control.echo);
        self.addressing.handle_proof(answer.up_to.is_some());
        let report = Report {
            control: *control,
            spans,
            asked_up_to: answer.up_to,
            may_resend: answer.is_free,
        };
        if self.outbound.handle_report(&report) {
            let is_shorter = self.length.handle_report(&report);
            self.ask_for_length(is_shorter);
        } else {
            self.replies.remark(Code::PROTOCOL_ERROR, Reason::RETRANSMISSION);
        }
        if answer.is_delivered {
            self.lifecycle.tell(Events::DELIVERED);
        }
        self.lifecycle.handle_status();
        self.watch_window(now);
    }

    /// A window that stays closed is asked for.
    pub(super) fn watch_window(&mut self, now: Time) {
        let (is_waiting, timeout) = (self.requests.is_waiting(), self.requests.timeout());
        self.outbound.watch_window(now, is_waiting, timeout);
    }

    /// There is room again for what could not be written.
    pub(super) fn tell_room(&mut self) {
        if self.outbound.take_room() {
            self.lifecycle.tell(Events::WRITABLE);
        }
    }

    /// The close bits of a packet that ends at `packet_end`.
    fn take_close(&mut self, now: Time, options: Options, packet_end: u64) {
        if !self.inbound.handle_close(options, packet_end) {
            self.replies.remark(Code::PROTOCOL_ERROR, Reason::UNSPECIFIED);
        }
        if options.has(Options::RCLOSE) && self.outbound.handle_close() {
            self.requests.clear();
        }
        if self.inbound.take_close() {
            self.lifecycle.tell(Events::READABLE);
            self.replies.reply_closing(now, self.waits_for_response());
        }
        if self.outbound.is_over() && self.inbound.receiver().is_complete() {
            self.give_up(Input::BothClosed, End::Complete);
        }
    }

    fn take_requests(&mut self, now: Time, header: &Header, packet_end: u64) {
        let receiver = self.inbound.receiver();
        let waits = receiver.is_complete() && self.waits_for_response();
        let is_delivered = |place| receiver.is_delivered(place);
        self.replies.handle_requests(now, header, packet_end, waits, is_delivered);
    }

    /// Whether status waits for the response of a transaction, which says the same.
    fn waits_for_response(&self) -> bool {
        let is_asked = !self.addressing.is_initiator();
        let is_one = is_asked && self.terms.service() == Service::Transaction;
        is_one && !self.outbound.sender().is_finished() && !self.outbound.is_closed()
    }

    fn take_diagnostic(
        &mut self,
        now: Time,
        header: &Header,
        diagnostic: &Diagnostic<'_>,
        act: Act,
    ) {
        let (code, reason) = (diagnostic.code, diagnostic.reason);
        match (act, code) {
            (Act::Leave, _) => self.lifecycle.leave(End::Refused(code, reason)),
            (Act::Take, Code::INVALID_CONTEXT) => {
                let sender = self.outbound.sender();
                let is_sent = sender.is_all_sent() && !sender.has_unacknowledged();
                let lacks_only_end = is_sent && self.inbound.receiver().is_complete();
                let end = if lacks_only_end { End::Complete } else { End::Disowned };
                if self.lifecycle.handle_disowned(header.sync, self.requests.sync(), end) {
                    self.requests.begin_handshake(now);
                }
            }
            (Act::Take, Code::PACKET_SIZE) => {
                self.terms.handle_data_len(self.length.handle_complaint(diagnostic.message));
            }
            (Act::Take, _) => self.lifecycle.handle_remark(code, reason),
            _ => {}
        }
    }

    /// The transmitter of the group is known from its FIRST.
    pub fn follow(&mut self, from: SocketAddr, header: &Header) {
        self.addressing.follow(from, header.key);
    }

    /// Takes what leads to membership: nothing else is taken before the transmitter has said where
    /// the stream begins. Under the key that is known it admits, with another it offers.
    fn take_joining(&mut self, now: Time, header: &Header, body: &Body<'_>) {
        let said = match body {
            Body::First(segment, ..) => {
                if self.lifecycle.state() == State::Listening {
                    self.addressing.handle_invitation(segment);
                    self.lifecycle.enter(Input::Invitation);
                }
                return self.replies.reply(now);
            }
            Body::Jcntl(said, ..) => said,
            _ => return,
        };
        let (echo, key) = (said.control.echo, Key::returned(said.xkey));
        self.addressing.handle_proof(true);
        self.requests.handle_echo(now, echo);
        let Role::Member(member) = &mut self.role else { return };
        if !member.is_answer(echo) || key.value() == 0 {
            return;
        }
        if self.addressing.handle_offer(key) {
            member.handle_key();
            return self.replies.reply(now);
        }
        if self.lifecycle.enter(Input::Admitted) {
            self.inbound.restart(header.seq);
            self.requests.clear();
            self.replies.clear_status();
            self.replies.handle_start(header);
            self.take_close(now, header.options, header.seq);
            self.take_requests(now, header, header.seq);
        }
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
        let sender = self.outbound.sender();
        let is_sent = self.lifecycle.state() == State::Open && sender.is_all_sent();
        let is_over = is_sent || self.lifecycle.end().is_some();
        let start = (sender.boundary(), self.requests.sync());
        let Role::Transmitter(group) = &mut self.role else { return Admission::Refused };
        let is_first = header.key.value() == self.addressing.own_key();
        let asked = Asked { from, header, asks, limits, drawn, is_first };
        let admission = group.handle_join(now, &asked, start, is_over);
        if admission == Admission::Joined {
            let is_gathered = group.is_gathered();
            self.lifecycle.tell(Events::MEMBER);
            self.narrow(now);
            // The stream begins once enough members have joined.
            if is_gathered && self.lifecycle.enter(Input::Gathered) {
                self.requests.clear();
                self.outbound.confirm();
            }
            self.settle_group(now);
        }
        admission
    }

    /// The narrowest limits of all members hold.
    fn narrow(&mut self, now: Time) {
        let Role::Transmitter(group) = &self.role else { return };
        self.adopt(now, group.narrowest());
        if let Role::Transmitter(group) = &mut self.role {
            group.handle_rate(&self.rate);
        }
    }

    /// A member says something, under the key that was offered to it.
    fn take_from_member(&mut self, now: Time, header: &Header, body: &Body<'_>) {
        let Role::Transmitter(group) = &mut self.role else { return };
        let offered = header.key.value();
        if !group.has(offered) {
            return;
        }
        let (control, spans) = match body {
            Body::Cntl(control) => (control, None),
            Body::Ecntl(control, spans) => (control, Some(*spans)),
            Body::Tcntl(said, traffic) => {
                group.handle_limits(offered, traffic.limits.unwrap_or_default());
                self.narrow(now);
                (&said.control, None)
            }
            Body::Diag(Diagnostic { code, reason, .. }) => match *code {
                Code::CONTEXT_REFUSED | Code::CONTEXT_ABANDONED | Code::INVALID_CONTEXT => {
                    group.part(offered, Leaving::Refused(*code, *reason), true);
                    return self.handle_parted(now);
                }
                _ => return self.lifecycle.handle_remark(*code, *reason),
            },
            _ => return,
        };
        if self.take_member_status(now, header, control, spans) {
            self.handle_parted(now);
        } else {
            self.settle_group(now);
        }
    }

    /// True when it is no member any more.
    fn take_member_status(
        &mut self,
        now: Time,
        header: &Header,
        control: &Control,
        spans: Option<Spans<'_>>,
    ) -> bool {
        let sync = self.requests.sync();
        let report = Report {
            control: *control,
            spans,
            asked_up_to: self.requests.up_to(control.echo),
            may_resend: !self.requests.is_in_handshake() || control.echo == sync,
        };
        self.outbound.handle_member_report(&report);
        let sender = self.outbound.sender();
        let end = sender.is_finished().then(|| sender.end());
        let is_delivery = self.requests.is_delivery(control.echo);
        let heard = Heard { next: sender.next(), end, sync, is_delivery };
        let Role::Transmitter(group) = &mut self.role else { return false };
        group.handle_status(now, header, control, &heard)
    }

    /// Somebody is no member any more.
    pub(super) fn handle_parted(&mut self, now: Time) {
        self.lifecycle.tell(Events::MEMBER);
        self.narrow(now);
        self.settle_group(now);
    }

    /// What all members together have said now: of what has arrived, of windows, of requests.
    pub(super) fn settle_group(&mut self, now: Time) {
        let State::Open = self.lifecycle.state() else { return };
        let Role::Transmitter(group) = &mut self.role else { return };
        if group.is_too_few() {
            return self.give_up(Input::GivenUp, End::TooFewMembers);
        }
        if let Some(settled) = group.settle() {
            self.outbound.settle(&settled.floor);
            if let Some(heard) = settled.heard {
                self.requests.handle_sign_of_life(heard);
            }
            if let Some(echo) = settled.echo.filter(|echo| !self.requests.is_delivery(*echo)) {
                self.requests.handle_status(now, echo);
            }
            let answered = settled.delivered;
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
        let Role::Transmitter(group) = &mut self.role else { return };
        let sender = self.outbound.sender();
        let asked = self.requests.is_in_handshake().then_some(self.requests.sync());
        group.watch(now, sender.next(), sender.is_blocked(), asked);
    }
}
