//! What a context sends, in the order in which it does.

use super::Context;
use super::length::{DATA_LEN_MIN, SPANS_AT};
use crate::event::End;
use crate::sender::Piece;
use crate::table::{Input, State};
use crate::wire::{
    Body, Control, Diagnostic, Format, HEADER_LEN, Header, Options, SPAN_LEN, Service, Span, Spans,
    TAG_LEN, TrafficControl, Writer,
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
        let start = into.len();
        self.credit_at = Time::NEVER;
        if self.lifecycle.is_end_due() && self.may_close(now) {
            return self.say_end(into).then_some(self.addressing.peer());
        }
        if self.group.is_some() {
            return self.poll_group(now, into);
        }
        let is_one = match self.lifecycle.state() {
            State::Opening => self.poll_opening(now, into),
            State::Joining => self.poll_joining(now, into),
            State::Open => self.poll_open(now, into),
            _ => false,
        };
        self.addressing.handle_sent(into.len().saturating_sub(start));
        // What is not kept for sending again makes room as it leaves.
        self.tell_room();
        is_one.then_some(self.addressing.peer())
    }

    /// The last word of a member of a group keeps to its slot, as others do.
    fn may_close(&self, now: Time) -> bool {
        let is_early = self.membership.is_some() && self.replies.is_early(now);
        self.lifecycle.state().is_live() && !is_early
    }

    fn poll_opening(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        if self.wants.first || self.requests.is_due() {
            self.wants.first = false;
            return self.send_first(now, into);
        }
        !self.requests.is_in_handshake() && self.send_data(now, into)
    }

    fn poll_open(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        if self.is_quiet() {
            // Whoever hears a datagram or a group says nothing.
            return false;
        }
        if !self.addressing.affords(CNTL_LEN) {
            return false;
        }
        if let Some((code, reason)) = self.replies.take_remark() {
            let diagnostic = Diagnostic { code, reason, message: b"" };
            let body = Body::Diag(diagnostic);
            return write(&Header::new(self.addressing.peer_key(), Format::Diag), &body, into);
        }
        let is_asked = self.requests.is_due() || self.wants.is_traffic_due;
        if is_asked && self.addressing.affords(CONTROL_LEN) {
            return self.send_request(now, Options::SREQ, into);
        }
        if self.replies.status_at() <= now && self.affords_status() {
            return self.send_status(into);
        }
        if self.requests.is_in_handshake() {
            return false;
        }
        if std::mem::take(&mut self.wants.delivery) {
            return self.send_request(now, Options::DREQ, into);
        }
        self.send_data(now, into)
    }

    /// What every packet of this context says: priority and close bits.
    pub(super) fn header(
        &self,
        format: Format,
        options: Options,
        seq: u64,
        packet_end: u64,
    ) -> Header {
        Header {
            key: self.addressing.peer_key(),
            options: options
                | Options::SORT.when(self.sort.is_some())
                | Options::MULTI.when(self.service.is_to_group())
                | self.close_options(packet_end),
            format,
            sort: self.sort.unwrap_or(0),
            sync: self.requests.sync(),
            seq,
        }
    }

    /// The options of data, by the user's choice.
    pub(super) fn data_options(&self) -> Options {
        Options::NOCHECK.when(self.mode.without_check)
            | Options::NOERR.when(self.mode.without_repair)
            | Options::NOFLOW.when(self.mode.without_window)
            | Options::FASTNAK.when(self.mode.fast_report)
            | Options::EDGE.when(self.edge)
    }

    pub(super) fn control_header(&self, format: Format, options: Options) -> Header {
        let next = self.sender.next();
        let options = options
            | Options::RES.when(self.mode.reserve)
            | Options::NOERR.when(self.mode.without_repair);
        self.header(format, options | Options::EDGE.when(self.edge), next, next)
    }

    fn control(&mut self) -> Control {
        let (rseq, alloc) = (self.receiver.rseq(), self.receiver.tell_alloc());
        Control { rseq, alloc, echo: self.replies.echo() }
    }

    fn traffic_control(&mut self) -> Body<'static> {
        let control = TrafficControl { control: self.control(), xkey: self.addressing.own_key() };
        Body::Tcntl(control, self.traffic())
    }

    /// FIRST, with as much data as it holds; again, with the same.
    fn send_first(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        let is_shorter = self.length.shorten_unanswered(self.requests.turns());
        self.ask_for_length(is_shorter);
        let traffic = self.traffic();
        let fixed = HEADER_LEN + TAG_LEN + self.addressing.segment().len() + traffic.len();
        let is_again = self.sender.next() > 0 || self.requests.is_in_handshake();
        let piece = self.sender.peek_first(self.length.first_room(fixed, is_again));
        self.length.handle_first(piece.len);
        let end = piece.end();
        let up_to = self.sender.next().max(end);
        let mut options = self.data_options()
            | Options::EOM.when(piece.is_end || self.is_empty_message())
            | Options::BTAG.when(piece.tag.is_some());
        if self.is_quiet() {
            options |= Options::END.when(self.sender.is_finished() && up_to == self.sender.end());
        } else {
            options |= Options::SREQ;
            self.requests.ask(now, up_to, false);
        }
        let header = self.header(Format::First, options, piece.seq, end);
        self.is_wclose_told |= header.options.has(Options::WCLOSE);
        let mut writer = Writer::begin(&header, into);
        self.addressing.segment().emit(writer.bytes());
        traffic.emit(writer.bytes());
        writer.bytes().extend_from_slice(piece.tag.as_ref().map_or(&[], |tag| &tag[..]));
        self.sender.copy(&piece, writer.bytes());
        let is_written = writer.finish().is_ok();
        self.sender.sent(&piece, self.requests.sync());
        self.rate.take(now, piece.len);
        self.end_quietly(header.options.has(Options::END));
        is_written
    }

    /// The last packet of a service that lets nothing come back is the end.
    fn end_quietly(&mut self, is_over: bool) {
        if is_over {
            self.lifecycle.leave(End::Complete);
        }
    }

    /// A message without bytes is one that opens and finishes with nothing between.
    fn is_empty_message(&self) -> bool {
        let is_message = !matches!(self.service, Service::Stream | Service::Unspecified);
        is_message && self.sender.is_finished() && self.sender.end() == 0
    }

    /// END: the last packet of this end.
    fn say_end(&mut self, into: &mut Vec<u8>) -> bool {
        self.lifecycle.close();
        if self.awaited().is_some() {
            // Nobody has heard of this end.
            return false;
        }
        if !self.addressing.affords(CNTL_LEN) || self.is_quiet() && !self.addressing.is_initiator()
        {
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
    pub(super) fn send_request(&mut self, now: Time, option: Options, into: &mut Vec<u8>) -> bool {
        let is_new = std::mem::take(&mut self.wants.is_traffic_due);
        let sync = self.requests.ask(now, self.sender.next(), option == Options::DREQ);
        if is_new || self.wants.traffic.is_some() {
            self.wants.traffic = Some(sync);
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
            if !self.lacks() {
                self.replies.clear_status();
            }
            let body = self.traffic_control();
            return write(&self.control_header(Format::Tcntl, Options::NONE), &body, into);
        }
        self.replies.clear_status();
        let control = self.control();
        if !self.lacks() {
            let header = self.control_header(Format::Cntl, Options::NONE);
            return write(&header, &Body::Cntl(control), into);
        }
        let mut spans = self.receiver.spans();
        keep_longest(&mut spans, self.length.spans_max());
        let header = self.control_header(Format::Ecntl, Options::NONE);
        write(&header, &Body::Ecntl(control, Spans::List(&spans)), into)
    }

    /// Whether the next status may go to a peer that has not shown its address.
    pub(super) fn affords_status(&self) -> bool {
        let len = || {
            if self.replies.is_traffic_due() {
                CONTROL_LEN
            } else if self.lacks() {
                let count = self.receiver.spans().len().min(self.length.spans_max());
                SPANS_AT.saturating_add(count.saturating_mul(SPAN_LEN))
            } else {
                CNTL_LEN
            }
        };
        self.addressing.is_proven() || self.addressing.affords(len())
    }

    fn lacks(&self) -> bool {
        self.receiver.has_gap() && !self.peer_is_lossy
    }

    /// DATA: what lacks, what is new, or the end of the stream.
    pub(super) fn send_data(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        let piece = self.sender.peek(self.length.data_max());
        let Some(piece) = piece else { return self.send_empty_end(now, into) };
        if !self.addressing.affords(HEADER_LEN + TAG_LEN + piece.len) {
            return self.ask_for_proof(now, into);
        }
        let Some(piece) = self.within_credit(now, piece) else {
            self.credit_at = self.rate.next_credit();
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
        let is_worth_it = left >= DATA_LEN_MIN && !self.mode.without_repair;
        is_worth_it.then(|| self.sender.peek(left))?
    }

    /// A peer that has not shown that it gets what is sent to it is asked for any answer.
    fn ask_for_proof(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        if self.requests.is_waiting() || !self.addressing.affords(CONTROL_LEN) {
            return false;
        }
        self.send_request(now, Options::SREQ, into)
    }

    /// The end of the stream in a packet without data, when the last data did not say it.
    fn send_empty_end(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        if !self.sender.is_all_sent() || self.is_wclose_told {
            return false;
        }
        let seq = self.sender.next();
        self.write_data(
            now,
            &Piece { seq, len: 0, is_end: false, tag: None, is_again: false },
            into,
        )
    }

    fn write_data(&mut self, now: Time, piece: &Piece, into: &mut Vec<u8>) -> bool {
        let end = piece.end();
        let closes = self.close_options(end);
        let before = self.requests.sync();
        let request = self.request_with(now, piece, end, closes.has(Options::WCLOSE));
        let ends = self.is_quiet() && self.sender.is_finished() && end == self.sender.end();
        let options = self.data_options()
            | request
            | Options::END.when(ends)
            | Options::EOM.when(piece.is_end)
            | Options::BTAG.when(piece.tag.is_some());
        let header = self.header(Format::Data, options, piece.seq, end);
        self.is_wclose_told |= closes.has(Options::WCLOSE);
        self.is_rclose_told |= closes.has(Options::RCLOSE);
        if closes.has(Options::RCLOSE) && self.service == Service::Transaction {
            // The response says what status would.
            self.replies.clear_status();
        }
        let mut writer = Writer::begin(&header, into);
        writer.bytes().extend_from_slice(piece.tag.as_ref().map_or(&[], |tag| &tag[..]));
        self.sender.copy(piece, writer.bytes());
        let is_written = writer.finish().is_ok();
        let sync = self.requests.sync();
        let sync = if sync == before { sync.wrapping_add(1) } else { sync };
        // What has no room there is refused, which looks as if it had vanished; of what is not sent
        // again nobody says what has arrived.
        let is_telling = !self.mode.without_repair && self.sender.is_within_window(end);
        if is_telling && self.group.is_none() {
            self.length.handle_sent(piece, sync);
        }
        self.sender.sent(piece, sync);
        self.end_quietly(ends);
        is_written
    }

    /// The request that goes with a piece. Asked is after enough bytes, and with every packet after
    /// which nothing more can go; who neither repairs nor heeds a window asks at the end only.
    fn request_with(&mut self, now: Time, piece: &Piece, end: u64, closes: bool) -> Options {
        self.unasked = self.unasked.saturating_add(piece.len as u64);
        let is_blast = self.mode.without_repair && self.mode.without_window;
        let is_full = self.unasked >= self.ask_len || self.sender.is_last(piece);
        let is_delivery = self.deliveries.front().is_some_and(|place| *place <= end);
        if self.is_quiet() || !(closes || is_delivery || is_full && !is_blast) {
            return Options::NONE;
        }
        while self.deliveries.front().is_some_and(|place| *place <= end) {
            self.deliveries.pop_front();
        }
        self.unasked = 0;
        self.requests.ask(now, self.sender.next().max(end), is_delivery);
        if is_delivery {
            Options::DREQ
        } else if self.mode.edge {
            self.edge = !self.edge;
            Options::NONE
        } else {
            Options::SREQ
        }
    }

    /// The association is over when the last of the four words goes out.
    pub fn check_over(&mut self) {
        if self.lifecycle.state() == State::Open && self.is_over() {
            self.give_up(Input::BothClosed, End::Complete);
        }
    }
}

/// Of more spans than a packet holds the longest are named, not the first: all behind the last that
/// is named counts as lost, so the least is sent needlessly (decided here).
fn keep_longest(spans: &mut Vec<Span>, count: usize) {
    let Some(excess) = spans.len().checked_sub(count).filter(|excess| *excess > 0) else { return };
    let len = |span: &Span| span.right.saturating_sub(span.left);
    let mut lens: Vec<u64> = spans.iter().map(len).collect();
    let (shorter, bound, _) = lens.select_nth_unstable(excess.saturating_sub(1));
    let bound = *bound;
    // Those that are as long as the bound go from the front on, until enough are gone.
    let mut of_bound = excess.saturating_sub(shorter.iter().filter(|len| **len < bound).count());
    spans.retain(|span| {
        let is_dropped = len(span) < bound || len(span) == bound && of_bound > 0;
        of_bound = of_bound.saturating_sub(usize::from(len(span) == bound));
        !is_dropped
    });
}

pub(super) fn write(header: &Header, body: &Body<'_>, into: &mut Vec<u8>) -> bool {
    Writer::packet(header, body, into).is_ok()
}
