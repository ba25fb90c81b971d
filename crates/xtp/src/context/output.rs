//! What a context sends, in the order in which it does.

use super::Context;
use super::length::{DATA_LEN_MIN, SPANS_AT};
use super::outbound::Question;
use super::role::Role;
use crate::event::End;
use crate::members::Due;
use crate::sender::Piece;
use crate::table::State;
use crate::wire::{
    Body, Control, Diagnostic, Format, HEADER_LEN, Header, Key, Options, Payload, SPAN_LEN,
    Service, Spans, TAG_LEN, TrafficControl, Writer,
};
use dacapo_base::Time;
use std::net::SocketAddr;

/// What a control packet has at most, besides spans and messages.
const CONTROL_LEN: usize = HEADER_LEN + 32 + 24;
/// A CNTL; and a DIAG of ours, which is shorter.
const CNTL_LEN: usize = HEADER_LEN + Control::LEN;

impl Context {
    /// Appends the next packet to `into` and gives its destination; `None` when there is none now.
    pub fn poll(&mut self, now: Time, into: &mut Vec<u8>) -> Option<SocketAddr> {
        let (start, state) = (into.len(), self.lifecycle.state());
        self.rate.wait(false);
        // The last word of a member of a group keeps to its slot, as others do.
        let is_early = self.role.is_member() && self.replies.is_early(now);
        if self.lifecycle.is_end_due() && state.is_live() && !is_early {
            return self.say_end(into).then_some(self.addressing.peer());
        }
        if self.role.is_transmitter() {
            return self.poll_group(now, into);
        }
        let is_one = match state {
            State::Opening if self.requests.take_first() => self.send_first(now, into),
            State::Opening => !self.requests.is_in_handshake() && self.send_data(now, into),
            State::Joining => self.poll_joining(now, into),
            State::Open => self.poll_open(now, into),
            _ => false,
        };
        self.addressing.handle_sent(into.len().saturating_sub(start));
        // What is not kept for sending again makes room as it leaves.
        self.tell_room();
        is_one.then_some(self.addressing.peer())
    }

    fn poll_open(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        // Whoever hears a datagram or a group says nothing.
        if self.terms.is_quiet() || !self.addressing.affords(CNTL_LEN) {
            return false;
        }
        if let Some((code, reason)) = self.replies.take_remark() {
            let body = Body::Diag(Diagnostic { code, reason, message: b"" });
            return write(&Header::new(self.addressing.peer_key(), Format::Diag), &body, into);
        }
        if self.requests.is_control_due() && self.addressing.affords(CONTROL_LEN) {
            return self.send_request(now, Options::SREQ, into);
        }
        if self.replies.status_at() <= now && self.affords_status() {
            return self.send_status(into);
        }
        self.poll_stream(now, into)
    }

    /// What goes unless a handshake runs: a request for delivery, or data.
    fn poll_stream(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        if self.requests.is_in_handshake() {
            return false;
        }
        if self.requests.take_delivery() {
            return self.send_request(now, Options::DREQ, into);
        }
        self.send_data(now, into)
    }

    /// What every packet of this context says: priority and close bits.
    fn header(&self, format: Format, options: Options, seq: u64, packet_end: u64) -> Header {
        Header {
            key: self.addressing.peer_key(),
            options: options | self.terms.options() | self.close_options(packet_end),
            format,
            sort: self.terms.sort().unwrap_or(0),
            sync: self.requests.sync(),
            seq,
        }
    }

    /// RCLOSE, and WCLOSE where the packet ends at the end of the stream.
    fn close_options(&self, packet_end: u64) -> Options {
        if self.lifecycle.is_aborting() {
            // What was not sent never will be: this is no orderly end.
            return Options::NONE;
        }
        let rclose = Options::RCLOSE.when(self.inbound.is_closed());
        self.outbound.close_options(packet_end) | rclose
    }

    fn data_options(&self) -> Options {
        self.terms.data_options() | Options::EDGE.when(self.outbound.edge())
    }

    fn control_header(&self, format: Format, options: Options) -> Header {
        let next = self.outbound.sender().next();
        let edge = Options::EDGE.when(self.outbound.edge());
        self.header(format, options | self.terms.control_options() | edge, next, next)
    }

    fn control(&mut self) -> Control {
        let alloc = self.inbound.tell_alloc();
        Control { rseq: self.inbound.receiver().rseq(), alloc, echo: self.replies.echo() }
    }

    fn traffic_control(&mut self) -> Body<'static> {
        let control = TrafficControl { control: self.control(), xkey: self.addressing.own_key() };
        Body::Tcntl(control, self.terms.traffic(self.length.packet_max()))
    }

    /// FIRST, with as much data as it holds; again, with the same.
    fn send_first(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        let is_shorter = self.length.shorten_unanswered(self.requests.turns());
        self.ask_for_length(is_shorter);
        let traffic = self.terms.traffic(self.length.packet_max());
        let segment = *self.addressing.segment();
        let head_len = HEADER_LEN + TAG_LEN + segment.len() + traffic.len();
        let sender = self.outbound.sender();
        let is_again = sender.next() > 0 || self.requests.is_in_handshake();
        let piece = sender.peek_first(self.length.first_room(head_len, is_again));
        self.length.handle_first(piece.len);
        let up_to = sender.next().max(piece.end());
        let is_finished = sender.is_finished();
        // A message without bytes is one that opens and finishes with nothing between.
        let is_message = !matches!(self.terms.service(), Service::Stream | Service::Unspecified);
        let is_empty = is_message && is_finished && sender.end() == 0;
        let mut options = self.data_options()
            | Options::EOM.when(piece.is_end || is_empty)
            | Options::BTAG.when(piece.tag.is_some());
        if self.terms.is_quiet() {
            options |= Options::END.when(is_finished && up_to == sender.end());
        } else {
            options |= Options::SREQ;
            self.requests.ask(now, up_to, false);
        }
        let header = self.header(Format::First, options, piece.seq, piece.end());
        let mut writer = Writer::begin(&header, into);
        segment.emit(writer.bytes());
        traffic.emit(writer.bytes());
        writer.bytes().extend_from_slice(piece.tag.as_ref().map_or(&[], |tag| &tag[..]));
        self.outbound.sender().copy(&piece, writer.bytes());
        let is_written = writer.finish().is_ok();
        self.outbound.handle_sent(&piece, header.options, self.requests.sync());
        self.rate.take(now, piece.len);
        self.end_quietly(header.options);
        is_written
    }

    /// The last packet of a service that lets nothing come back is the end.
    fn end_quietly(&mut self, options: Options) {
        if options.has(Options::END) {
            self.lifecycle.leave(End::Complete);
        }
    }

    /// END: the last packet of this end.
    fn say_end(&mut self, into: &mut Vec<u8>) -> bool {
        self.lifecycle.close();
        // Of a member whose transmitter is not known nobody has heard.
        let is_unknown = self.role.is_member() && self.addressing.known_as().is_none();
        let is_silent = self.terms.is_quiet() && !self.addressing.is_initiator();
        if is_unknown || is_silent || !self.addressing.affords(CNTL_LEN) {
            return false;
        }
        let control = self.control();
        write(&self.control_header(Format::Cntl, Options::END), &Body::Cntl(control), into)
    }

    /// The END of a context that is given up and released at once.
    pub fn poll_last(&mut self, into: &mut Vec<u8>) -> bool {
        self.lifecycle.is_end_due() && self.lifecycle.state().is_live() && self.say_end(into)
    }

    /// A request that is not on data: of the handshake, of new limits, of delivery.
    fn send_request(&mut self, now: Time, option: Options, into: &mut Vec<u8>) -> bool {
        let up_to = self.outbound.sender().next();
        if self.requests.ask_control(now, up_to, option == Options::DREQ) {
            let body = self.traffic_control();
            return write(&self.control_header(Format::Tcntl, option), &body, into);
        }
        let control = self.control();
        self.replies.clear_status();
        write(&self.control_header(Format::Cntl, option), &Body::Cntl(control), into)
    }

    /// Status: TCNTL in answer to a FIRST, ECNTL when bytes lack, else CNTL.
    fn send_status(&mut self, into: &mut Vec<u8>) -> bool {
        if self.replies.take_traffic() {
            // What lacks is said in a packet of its own.
            if !self.inbound.lacks() {
                self.replies.clear_status();
            }
            let body = self.traffic_control();
            return write(&self.control_header(Format::Tcntl, Options::NONE), &body, into);
        }
        self.replies.clear_status();
        let control = self.control();
        if !self.inbound.lacks() {
            let header = self.control_header(Format::Cntl, Options::NONE);
            return write(&header, &Body::Cntl(control), into);
        }
        let spans = self.inbound.spans(self.length.spans_max());
        let header = self.control_header(Format::Ecntl, Options::NONE);
        write(&header, &Body::Ecntl(control, Spans::List(&spans)), into)
    }

    /// Whether the next status may go to a peer that has not shown its address.
    pub(super) fn affords_status(&self) -> bool {
        let len = || {
            if self.replies.is_traffic_due() {
                CONTROL_LEN
            } else if self.inbound.lacks() {
                let count = self.inbound.receiver().spans().len().min(self.length.spans_max());
                SPANS_AT.saturating_add(count.saturating_mul(SPAN_LEN))
            } else {
                CNTL_LEN
            }
        };
        self.addressing.is_proven() || self.addressing.affords(len())
    }

    /// DATA: what lacks, what is new, or the end of the stream.
    fn send_data(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        let Some(piece) = self.outbound.sender().peek(self.length.data_max()) else {
            let end = self.outbound.empty_end();
            return end.is_some_and(|end| self.write_data(now, &end, into));
        };
        if !self.addressing.affords(HEADER_LEN + TAG_LEN + piece.len) {
            // A peer that has not shown that it gets what is sent to it is asked for any answer.
            let may_ask = !self.requests.is_waiting() && self.addressing.affords(CONTROL_LEN);
            return may_ask && self.send_request(now, Options::SREQ, into);
        }
        let Some(piece) = self.within_credit(now, piece) else {
            self.rate.wait(true);
            return false;
        };
        self.rate.take(now, piece.len);
        self.write_data(now, &piece, into)
    }

    /// What of a piece may leave now. Credit that is left for less than a packet would be gone with
    /// its period: what is repaired is cut to it. What is not repaired is left whole, because two
    /// packets are lost more often than one.
    fn within_credit(&mut self, now: Time, piece: Piece) -> Option<Piece> {
        if self.rate.covers(now, piece.len) {
            return Some(piece);
        }
        let left = self.rate.left(now);
        let is_worth_it = left >= DATA_LEN_MIN && !self.terms.mode().without_repair;
        is_worth_it.then(|| self.outbound.sender().peek(left))?
    }

    fn write_data(&mut self, now: Time, piece: &Piece, into: &mut Vec<u8>) -> bool {
        let end = piece.end();
        let closes = self.close_options(end);
        let before = self.requests.sync();
        let request = self.request_with(now, piece, closes.has(Options::WCLOSE));
        let sender = self.outbound.sender();
        let ends = self.terms.is_quiet() && sender.is_finished() && end == sender.end();
        // What has no room there is refused, which looks as if it had vanished; of what is not sent
        // again nobody says what has arrived.
        let is_repaired = !self.terms.mode().without_repair && !self.role.is_transmitter();
        let is_telling = is_repaired && sender.is_within_window(end);
        let options = self.data_options()
            | request
            | Options::END.when(ends)
            | Options::EOM.when(piece.is_end)
            | Options::BTAG.when(piece.tag.is_some());
        let header = self.header(Format::Data, options, piece.seq, end);
        self.inbound.handle_sent(closes);
        if closes.has(Options::RCLOSE) && self.terms.service() == Service::Transaction {
            // The response says what status would.
            self.replies.clear_status();
        }
        let mut writer = Writer::begin(&header, into);
        writer.bytes().extend_from_slice(piece.tag.as_ref().map_or(&[], |tag| &tag[..]));
        self.outbound.sender().copy(piece, writer.bytes());
        let is_written = writer.finish().is_ok();
        let sync = self.requests.sync();
        let sync = if sync == before { sync.wrapping_add(1) } else { sync };
        if is_telling {
            self.length.handle_sent(piece, sync);
        }
        self.outbound.handle_sent(piece, closes, sync);
        self.end_quietly(options);
        is_written
    }

    /// The request that goes with a piece.
    fn request_with(&mut self, now: Time, piece: &Piece, closes: bool) -> Options {
        if self.terms.is_quiet() {
            return Options::NONE;
        }
        let mode = self.terms.mode();
        let question = self.outbound.take_question(piece, mode, closes);
        if question != Question::None {
            let up_to = self.outbound.sender().next().max(piece.end());
            self.requests.ask(now, up_to, question == Question::Delivery);
        }
        match question {
            Question::Delivery => Options::DREQ,
            Question::Status => Options::SREQ.when(!mode.edge),
            Question::None => Options::NONE,
        }
    }

    /// JCNTL, when it is time.
    fn poll_joining(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        let is_asked = self.replies.status_at() <= now || self.requests.is_due();
        if !is_asked || !self.addressing.affords(self.join_len()) {
            return false;
        }
        let Role::Member(member) = &mut self.role else { return false };
        self.replies.clear_status();
        let sync = self.requests.ask(now, 0, false);
        if member.is_in_vain() && self.addressing.forget_offer() {
            member.handle_key();
        }
        member.handle_asked(sync);
        let mode = self.terms.mode();
        let options = Options::SREQ
            | Options::MULTI
            | Options::SORT.when(mode.sort.is_some())
            | Options::RES.when(mode.reserve);
        let (sort, key) = (mode.sort.unwrap_or(0), self.addressing.peer_key());
        let header = Header { options, sync, sort, ..Header::new(key, Format::Jcntl) };
        let receiver = self.inbound.receiver();
        let (rseq, alloc, echo) = (receiver.rseq(), receiver.alloc(), self.replies.echo());
        let control = Control { rseq, alloc, echo };
        let control = TrafficControl { control, xkey: self.addressing.own_key() };
        let traffic = self.terms.traffic(self.length.packet_max());
        write(&header, &Body::Jcntl(control, *self.addressing.segment(), traffic), into)
    }

    /// The length of a request to join, bytes.
    pub(super) fn join_len(&self) -> usize {
        let traffic = self.terms.traffic(self.length.packet_max());
        HEADER_LEN + TrafficControl::LEN + self.addressing.segment().len() + traffic.len()
    }

    /// The next packet of a transmitter, and where it goes.
    fn poll_group(&mut self, now: Time, into: &mut Vec<u8>) -> Option<SocketAddr> {
        let state = self.lifecycle.state();
        if let Role::Transmitter(group) = &mut self.role
            && self.requests.is_due()
            && state == State::Open
        {
            let sync = self.requests.ask_each(now, self.outbound.sender().next());
            group.ask_those_behind(sync);
        }
        if let Some(to) = self.poll_member(into) {
            return Some(to);
        }
        let is_one = match state {
            State::Opening if self.requests.take_first() => {
                self.requests.ask(now, self.outbound.sender().next(), false);
                self.invite(into)
            }
            State::Open => {
                // What this end takes concerns nobody: nothing is sent to it.
                self.requests.skip_traffic();
                self.poll_stream(now, into)
            }
            _ => false,
        };
        if !is_one {
            self.watch_members(now);
        }
        is_one.then_some(self.addressing.peer())
    }

    /// FIRST, without data: members begin with what is sent after they have joined.
    pub fn invite(&mut self, into: &mut Vec<u8>) -> bool {
        let next = self.outbound.sender().next();
        let header = self.header(Format::First, self.data_options() | Options::SREQ, next, next);
        let traffic = self.terms.traffic(self.length.packet_max());
        let body = Body::First(*self.addressing.segment(), traffic, Payload::default());
        write(&header, &body, into)
    }

    /// What goes to one member or candidate.
    fn poll_member(&mut self, into: &mut Vec<u8>) -> Option<SocketAddr> {
        let Role::Transmitter(group) = &mut self.role else { return None };
        let word = group.pop_word()?;
        let header = match word.due {
            Due::Offer => self.control_header(Format::Jcntl, Options::NONE),
            Due::Admission => {
                let options = Options::SREQ | Options::EDGE.when(self.outbound.edge());
                self.header(Format::Jcntl, options, word.start, word.start)
            }
            Due::Status => self.control_header(Format::Cntl, Options::NONE),
            Due::Question => self.control_header(Format::Cntl, Options::SREQ),
        };
        let header = Header { key: Key::returned(word.key), ..header };
        let control = Control { rseq: 0, alloc: 0, echo: word.asked };
        let body = if header.format == Format::Jcntl {
            let control = TrafficControl { control, xkey: word.offered };
            let traffic = self.terms.traffic(self.length.packet_max());
            Body::Jcntl(control, *self.addressing.segment(), traffic)
        } else {
            Body::Cntl(control)
        };
        write(&header, &body, into).then_some(word.to)
    }
}

fn write(header: &Header, body: &Body<'_>, into: &mut Vec<u8>) -> bool {
    Writer::packet(header, body, into).is_ok()
}
