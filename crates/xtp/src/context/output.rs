//! What a context sends, in the order in which it does.

use super::Context;
use super::composer::{CNTL_LEN, CONTROL_LEN};
use super::outbound::Wait;
use super::role::Role;
use crate::event::Events;
use crate::table::State;
use crate::wire::{Options, Service};
use dacapo_base::Time;
use std::net::SocketAddr;

impl Context {
    /// Appends the next packet to `into` and gives its destination; `None` when there is none now.
    pub fn poll(&mut self, now: Time, into: &mut Vec<u8>) -> Option<SocketAddr> {
        let start = into.len();
        self.outbound.forget_wait();
        // The last word of a member of a group keeps to its slot, as others do.
        let is_early = self.role.is_member() && self.replies.is_early(now);
        if self.lifecycle.is_end_due() && !is_early {
            return self.say_end(into).then_some(self.addressing.peer());
        }
        if self.role.is_transmitter() {
            return self.poll_group(now, into);
        }
        let is_one = match self.lifecycle.state() {
            State::Opening if self.requests.take_first() => self.send_first(now, into),
            State::Opening => self.send_data(now, into),
            State::Joining => self.poll_joining(now, into),
            State::Open => self.poll_open(now, into),
            _ => false,
        };
        self.addressing.handle_sent(into.len().saturating_sub(start));
        // What is not kept for sending again makes room as it leaves.
        self.lifecycle.tell_if(self.outbound.take_capacity(), Events::WRITABLE);
        is_one.then_some(self.addressing.peer())
    }

    fn poll_open(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        // Whoever hears a datagram or a group says nothing.
        if self.terms.is_quiet() || !self.addressing.affords(CNTL_LEN) {
            return false;
        }
        if let Some(remark) = self.replies.take_remark() {
            return self.composer().remark(remark, into);
        }
        if self.requests.is_control_due() && self.addressing.affords(CONTROL_LEN) {
            return self.send_request(now, Options::SREQ, into);
        }
        if self.replies.status_at() <= now && self.composer().affords_status() {
            return self.send_status(into);
        }
        self.send_data(now, into)
    }

    /// FIRST, with as much data as it holds; again, with the same.
    fn send_first(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        let segment_len = self.addressing.segment().len();
        let piece = self.outbound.take_front(now, &self.terms, segment_len, &mut self.requests);
        let (options, is_written) = self.composer().first(&piece, into);
        self.outbound.handle_front_sent(now, &piece, options, self.requests.sync());
        self.lifecycle.handle_sent(options);
        is_written
    }

    /// END: the last packet of this end, where it is to be said to anybody.
    pub fn say_end(&mut self, into: &mut Vec<u8>) -> bool {
        self.lifecycle.close();
        // Of a member whose transmitter is not known nobody has heard.
        let is_unknown = self.role.is_member() && self.addressing.known_as().is_none();
        let is_silent = self.terms.is_quiet() && !self.addressing.is_initiator();
        if is_unknown || is_silent || !self.addressing.affords(CNTL_LEN) {
            return false;
        }
        self.inbound.tell_alloc();
        self.composer().cntl(Options::END, into)
    }

    /// A request that is not on data: of the handshake, of new limits, of delivery.
    fn send_request(&mut self, now: Time, option: Options, into: &mut Vec<u8>) -> bool {
        let up_to = self.outbound.sender().next();
        let is_traffic = self.requests.ask_control(now, up_to, option == Options::DREQ);
        self.inbound.tell_alloc();
        if is_traffic {
            return self.composer().tcntl(option, into);
        }
        self.replies.clear_status();
        self.composer().cntl(option, into)
    }

    /// Status: TCNTL in answer to a FIRST, ECNTL when bytes lack, else CNTL.
    fn send_status(&mut self, into: &mut Vec<u8>) -> bool {
        self.inbound.tell_alloc();
        if self.replies.take_traffic() {
            // What lacks is said behind it in a packet of its own.
            if !self.inbound.lacks() {
                self.replies.clear_status();
            }
            return self.composer().tcntl(Options::NONE, into);
        }
        let (is_written, has_more) = self.composer().status(self.replies.packets(), into);
        self.replies.handle_sent(has_more);
        is_written
    }

    /// Unless a handshake runs: a request for delivery, or DATA: what lacks, what is new, or the
    /// end of the stream.
    fn send_data(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        if self.requests.is_in_handshake() {
            return false;
        }
        if self.requests.take_delivery() {
            return self.send_request(now, Options::DREQ, into);
        }
        let is_repaired = !self.terms.mode().without_repair;
        let affords = |len| self.addressing.affords(len);
        let piece = match self.outbound.take_piece(now, is_repaired, affords) {
            Ok(piece) => piece,
            Err(Wait::Nothing) => return false,
            Err(Wait::Proof) => {
                // A peer that has not shown that it gets what is sent is asked for any answer.
                let is_waiting = self.requests.is_waiting();
                let may_ask = !is_waiting && self.addressing.affords(CONTROL_LEN);
                return may_ask && self.send_request(now, Options::SREQ, into);
            }
        };
        let closes = self.composer().close_options(piece.end());
        let last = (&piece, closes.has(Options::WCLOSE));
        let asked = self.outbound.ask_with(now, last, &self.terms, &mut self.requests);
        let (options, is_written) = self.composer().data(&piece, asked.options, into);
        self.inbound.handle_sent(closes);
        if closes.has(Options::RCLOSE) && self.terms.service() == Service::Transaction {
            // The response says what status would.
            self.replies.clear_status();
        }
        if is_repaired && !self.role.is_transmitter() {
            self.outbound.expect_report(&piece, asked.sync);
        }
        self.outbound.handle_sent(&piece, closes, asked.sync);
        self.lifecycle.handle_sent(options);
        is_written
    }

    /// JCNTL, when it is time.
    fn poll_joining(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        let is_due = self.replies.status_at() <= now;
        let is_asked = is_due || self.requests.is_due();
        if !is_asked || !self.composer().affords_request_to_join() {
            return false;
        }
        let Role::Member(member) = &mut self.role else { return false };
        self.replies.clear_status();
        let sync = self.requests.ask(now, 0, false);
        if member.is_in_vain() && self.addressing.forget_offer() {
            member.handle_key();
        }
        member.handle_asked(sync);
        self.composer().request_to_join(sync, into)
    }

    /// The next packet of a transmitter, and where it goes.
    fn poll_group(&mut self, now: Time, into: &mut Vec<u8>) -> Option<SocketAddr> {
        let state = self.lifecycle.state();
        let Role::Transmitter(group) = &mut self.role else { return None };
        if state == State::Open {
            group.ask_each(now, self.outbound.sender().next(), &mut self.requests);
        }
        let word = group.pop_word();
        if let Some(word) = word.filter(|word| self.composer().word(word, into)) {
            return Some(word.to);
        }
        let is_one = match state {
            State::Opening if self.requests.take_first() => {
                self.requests.ask(now, self.outbound.sender().next(), false);
                self.composer().invitation(into)
            }
            State::Open => {
                // What this end takes concerns nobody: nothing is sent to it.
                self.requests.skip_traffic();
                self.send_data(now, into)
            }
            _ => false,
        };
        if let Role::Transmitter(group) = &mut self.role
            && !is_one
        {
            group.watch_stream(now, self.outbound.sender(), &self.requests);
        }
        is_one.then_some(self.addressing.peer())
    }
}
