//! What a packet does to a context.

use super::Context;
use crate::arrival::Arrival;
use crate::event::{End, Events};
use crate::sender::Report;
use crate::serial::is_newer;
use crate::table::{Act, Input, State};
use crate::wire::{
    Body, Code, Control, Diagnostic, Header, Options, Payload, Reason, Service, Spans, Traffic,
};
use dacapo_base::Time;
use std::time::Duration;

impl Context {
    /// Takes a packet that the table lets it take; `len` is its length in bytes.
    pub fn take(&mut self, now: Time, header: &Header, body: &Body<'_>, len: usize) {
        self.addressing.handle_received(len, header.key);
        let input = Input::of_packet(header, body);
        let Some((next, act)) = self.lifecycle.step(input) else { return };
        if self.group.is_some() {
            return self.take_from_member(now, header, body);
        }
        if let Body::Diag(diagnostic) = body {
            return self.take_diagnostic(now, header, diagnostic, act);
        }
        self.requests.handle_sign_of_life(now);
        let delay = self.membership.as_ref().map_or(Duration::ZERO, |it| it.delay(header));
        self.replies.set_delay(delay);
        if next == State::Joining || self.lifecycle.state() == State::Joining {
            if act == Act::Leave {
                // The transmitter let go before this end was a member, or said no.
                self.lifecycle.leave(End::Aborted);
            } else {
                self.take_joining(now, header, body);
            }
        } else {
            self.take_open(now, header, body, (input, act));
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
            self.sender.confirm();
        }
        let packet_end = self.take_body(now, header, body, was);
        self.take_close(now, header.options, packet_end);
        self.take_requests(now, header, packet_end);
        if act == Act::Leave || header.options.has(Options::END) {
            self.lifecycle.leave(self.end_by_peer());
        }
        self.tell_room();
    }

    /// Takes the segments; returns one past the last byte of the packet.
    fn take_body(&mut self, now: Time, header: &Header, body: &Body<'_>, was: State) -> u64 {
        match body {
            Body::Data(payload) => self.take_data(now, header, payload),
            Body::First(_, traffic, payload) => {
                self.take_first(now, header, traffic, was);
                self.take_data(now, header, payload);
                if was == State::Listening && payload.data.is_empty() {
                    self.take_empty_message(header, payload);
                }
                header.seq.saturating_add(payload.data.len() as u64)
            }
            Body::Cntl(control) => self.take_status(now, header, control, None),
            Body::Ecntl(control, spans) => self.take_status(now, header, control, Some(*spans)),
            Body::Tcntl(traffic_control, traffic) => {
                self.addressing.handle_xkey(traffic_control.xkey);
                if let Some(limits) = traffic.limits {
                    self.adopt(now, limits);
                }
                self.take_status(now, header, &traffic_control.control, None)
            }
            Body::Join(_) | Body::Jcntl(..) | Body::Diag(_) => header.seq,
        }
    }

    fn take_first(&mut self, now: Time, header: &Header, traffic: &Traffic, was: State) {
        if was == State::Listening {
            self.service = Service::from_number(traffic.service).unwrap_or(Service::Unspecified);
            if let Some(limits) = traffic.limits {
                self.adopt(now, limits);
            }
        }
        self.replies.handle_first(header.options);
    }

    /// An empty message can only be carried by the packet that opens, which is sent until it is
    /// answered; elsewhere it could get lost without a gap.
    fn take_empty_message(&mut self, header: &Header, payload: &Payload<'_>) {
        if header.options.has(Options::EOM) {
            self.receiver.mark_empty(payload.tag);
            self.lifecycle.tell(Events::READABLE);
        }
    }

    fn take_data(&mut self, now: Time, header: &Header, payload: &Payload<'_>) -> u64 {
        let options = header.options;
        self.peer_is_lossy = options.has(Options::NOERR);
        let outcome = self.receiver.accept(&Arrival {
            seq: header.seq,
            data: payload.data,
            tag: payload.tag,
            is_end: options.has(Options::EOM),
            is_lossy: self.peer_is_lossy,
            is_unbounded: options.has(Options::NOFLOW),
        });
        if outcome.is_violation {
            self.replies.remark(Code::PROTOCOL_ERROR, Reason::UNSPECIFIED);
        }
        if outcome.is_readable {
            self.lifecycle.tell(Events::READABLE);
        }
        // What is sent again comes again.
        let is_lost = outcome.is_refused && self.peer_is_lossy;
        self.refused += u64::from(is_lost && payload.tag.is_some());
        if outcome.is_gap_new && options.has(Options::FASTNAK) && !self.peer_is_lossy {
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
    ) -> u64 {
        // Who sends nothing again asks after a silence: what it sent before is here or lost.
        if header.options.has(Options::NOERR | Options::SREQ) {
            self.receiver.skip_to(header.seq);
            self.lifecycle.tell(Events::READABLE);
        }
        let answer = self.requests.handle_echo(now, control.echo);
        self.addressing.handle_proof(answer.up_to.is_some());
        let report = Report {
            control: *control,
            spans,
            asked_up_to: answer.up_to,
            may_resend: answer.is_free,
        };
        if self.sender.handle_report(&report) {
            let is_shorter = self.length.handle_report(&report);
            self.ask_for_length(is_shorter);
        } else {
            self.replies.remark(Code::PROTOCOL_ERROR, Reason::RETRANSMISSION);
        }
        if answer.is_delivered {
            self.lifecycle.tell(Events::DELIVERED);
        }
        self.wants.delivery |= answer.is_delivery_asked_anew;
        if self.wants.traffic.is_some_and(|sync| !is_newer(sync, control.echo)) {
            self.wants.traffic = None;
        }
        self.lifecycle.handle_status();
        self.watch_window(now);
        header.seq
    }

    /// A window that stays closed is asked for, less and less often.
    pub(super) fn watch_window(&mut self, now: Time) {
        if !self.sender.is_blocked() {
            self.wants.window_at = None;
            self.wants.window_wait = Duration::ZERO;
        } else if self.wants.window_at.is_none() && !self.requests.is_waiting() {
            let wait = (self.wants.window_wait * 2).max(self.requests.timeout());
            self.wants.window_wait = wait.min(Duration::from_secs(60));
            self.wants.window_at = Some(now + self.wants.window_wait);
        }
    }

    pub(super) fn take_requests(&mut self, now: Time, header: &Header, packet_end: u64) {
        let waits = self.receiver.is_complete() && self.waits_for_response();
        let receiver = &self.receiver;
        let is_delivered = |place| receiver.is_delivered(place);
        self.replies.handle_requests(now, header, packet_end, waits, is_delivered);
    }

    /// Whether status waits for the response of a transaction, which says the same.
    pub(super) fn waits_for_response(&self) -> bool {
        let is_asked = self.service == Service::Transaction && !self.addressing.is_initiator();
        is_asked && !self.sender.is_finished() && !self.is_rclose_received
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
                let end = if self.lacks_only_end() { End::Complete } else { End::Disowned };
                if self.lifecycle.handle_disowned(header.sync, self.requests.sync(), end) {
                    self.requests.begin_handshake(now);
                }
            }
            (Act::Take, Code::PACKET_SIZE) => {
                self.their_limits.data_len_max = self.length.handle_complaint(diagnostic.message);
            }
            (Act::Take, _) => self.lifecycle.handle_remark(code, reason),
            _ => {}
        }
    }
}
