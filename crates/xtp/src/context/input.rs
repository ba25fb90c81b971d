//! What a packet does to a context.

use super::Context;
use super::role::{Role, Said, Settlement};
use crate::event::{End, Events};
use crate::members::{Admission, Asked};
use crate::table::{Act, Input, State};
use crate::wire::{
    Body, Code, Control, Diagnostic, Header, Key, Limits, Options, Payload, Reason, Service, Spans,
    TrafficControl,
};
use dacapo_base::Time;
use std::net::SocketAddr;
use std::time::Duration;

impl Context {
    /// Takes a packet that the table lets it take; `len` is its length in bytes. By `left` bytes
    /// all contexts may keep more than now, which changes with what this one does. Returns how
    /// many packets with a tag were lost for want of room.
    pub fn take(
        &mut self,
        now: Time,
        header: &Header,
        body: &Body<'_>,
        (len, left): (usize, &mut usize),
    ) -> u64 {
        self.addressing.handle_received(len, header.key);
        let input = Input::of_packet(header, body);
        match (self.lifecycle.step(input), &mut self.role, body) {
            (None, ..) => {}
            (Some(_), Role::Transmitter(group), _) => {
                let parts = (&mut self.outbound, &self.requests, &mut self.terms);
                let said = group.handle_packet(now, header, body, parts);
                self.heed_group(now, said);
            }
            (Some((_, act)), _, Body::Diag(diagnostic)) => {
                self.take_diagnostic(now, header, diagnostic, act);
            }
            (Some((next, act)), ..) => {
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
        }
        // What goes to a group is kept until the slowest has it: a longer window helps nobody.
        if matches!(self.role, Role::Unicast) {
            self.inbound.adjust(now, left);
            let grows = self.outbound.grow(self.inbound.receiver().capacity_max(), left);
            self.lifecycle.tell_if(grows && self.outbound.take_capacity(), Events::WRITABLE);
        }
        self.inbound.take_refused()
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
        self.take_options(now, header, packet_end);
        if act == Act::Leave || header.options.has(Options::END) {
            let is_complete = self.role.is_over(&self.outbound, &self.inbound);
            self.lifecycle.leave(if is_complete { End::Complete } else { End::Aborted });
        }
        self.lifecycle.tell_if(self.outbound.take_capacity(), Events::WRITABLE);
    }

    /// Takes the segments; returns one past the last byte of the packet.
    fn take_body(&mut self, now: Time, header: &Header, body: &Body<'_>, was: State) -> u64 {
        match body {
            Body::Data(payload) => return self.take_data(now, header, payload),
            Body::First(_, traffic, payload) => {
                if was == State::Listening {
                    self.terms.handle_service(traffic.service);
                    self.outbound.adopt(now, &mut self.terms, traffic.limits);
                }
                self.replies.handle_first(header.options);
                let end = self.take_data(now, header, payload);
                let is_one = was == State::Listening && self.inbound.handle_empty(header, payload);
                self.lifecycle.tell_if(is_one, Events::READABLE);
                return end;
            }
            Body::Cntl(control) => self.take_status(now, header, control, None),
            Body::Ecntl(control, spans) => self.take_status(now, header, control, Some(*spans)),
            Body::Tcntl(traffic_control, traffic) => {
                self.addressing.handle_xkey(traffic_control.xkey);
                self.outbound.adopt(now, &mut self.terms, traffic.limits);
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
        self.lifecycle.tell_if(outcome.is_readable, Events::READABLE);
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
        let is_readable = self.inbound.handle_request(header);
        self.lifecycle.tell_if(is_readable, Events::READABLE);
        let told = self.outbound.handle_status(now, control, spans, &mut self.requests);
        self.addressing.handle_proof(told.is_answer);
        if !told.is_sound {
            self.replies.remark(Code::PROTOCOL_ERROR, Reason::RETRANSMISSION);
        }
        self.lifecycle.tell_if(told.is_delivered, Events::DELIVERED);
        self.lifecycle.handle_status();
    }

    /// The close bits and the requests of a packet that ends at `packet_end`.
    fn take_options(&mut self, now: Time, header: &Header, packet_end: u64) {
        if !self.inbound.handle_close(header.options, packet_end) {
            self.replies.remark(Code::PROTOCOL_ERROR, Reason::UNSPECIFIED);
        }
        if header.options.has(Options::RCLOSE) && self.outbound.handle_close() {
            self.requests.clear();
        }
        // Status waits for the response of a transaction, which says the same.
        let is_asked = !self.addressing.is_initiator();
        let is_one = is_asked && self.terms.service() == Service::Transaction;
        let waits = is_one && self.outbound.is_open();
        if self.inbound.take_close() {
            self.lifecycle.tell(Events::READABLE);
            self.replies.reply_closing(now, waits);
        }
        self.check_over();
        let receiver = self.inbound.receiver();
        let waits = receiver.is_complete() && waits;
        let is_delivered = |place| receiver.is_delivered(place);
        self.replies.handle_requests(now, header, packet_end, waits, is_delivered);
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
                let sync = self.requests.sync();
                if self.lifecycle.handle_disowned(header.sync, sync, end) {
                    self.requests.begin_handshake(now);
                }
            }
            (Act::Take, Code::PACKET_SIZE) => {
                self.terms.handle_data_len(self.outbound.handle_complaint(diagnostic.message));
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
            self.replies.clear_status();
            self.replies.handle_start(header);
            self.requests.clear();
            self.take_options(now, header, header.seq);
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
        let is_sent = self.lifecycle.state() == State::Open && self.outbound.sender().is_all_sent();
        let is_over = is_sent || self.lifecycle.end().is_some();
        let Role::Transmitter(group) = &mut self.role else { return Admission::Refused };
        let is_first = header.key.value() == self.addressing.own_key();
        let asked = Asked { from, header, asks, limits, drawn, is_first };
        let start = (self.outbound.sender().boundary(), self.requests.sync());
        let admission = group.handle_join(now, &asked, start, is_over);
        if admission == Admission::Joined {
            self.heed_group(now, Said::Joined);
        }
        admission
    }

    /// What all members together have said now, and what that does to the association.
    pub(super) fn heed_group(&mut self, now: Time, said: Said) {
        let Role::Transmitter(group) = &mut self.role else { return };
        match said {
            Said::Nothing => return,
            Said::Remark(code, reason) => return self.lifecycle.handle_remark(code, reason),
            Said::Joined | Said::Parted => {
                self.lifecycle.tell(Events::MEMBER);
                group.narrow(now, &mut self.outbound, &mut self.terms);
            }
            Said::Status => {}
        }
        // The stream begins once enough members have joined.
        let is_gathered = said == Said::Joined && group.is_gathered();
        if is_gathered && self.lifecycle.enter(Input::Gathered) {
            self.requests.clear();
            self.outbound.confirm();
        }
        let State::Open = self.lifecycle.state() else { return };
        match group.settle_stream(now, &mut self.outbound, &mut self.requests) {
            Settlement::TooFew => return self.give_up(Input::GivenUp, End::TooFewMembers),
            Settlement::Nobody => {}
            Settlement::Settled { is_delivered } => {
                self.lifecycle.tell_if(is_delivered, Events::DELIVERED);
                self.lifecycle.tell_if(self.outbound.take_capacity(), Events::WRITABLE);
            }
        }
        self.check_over();
    }
}
