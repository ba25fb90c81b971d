//! What a transmitter sends, to all and to one.

use super::super::{Context, write};
use crate::members::{Candidate, Due, Entry};
use crate::table::State;
use crate::wire::{Body, Control, Format, Header, Key, Options, Payload, TrafficControl};
use dacapo_base::Time;
use std::net::SocketAddr;

impl Context {
    /// The next packet of a transmitter, and where it goes.
    pub(in crate::context) fn poll_group(
        &mut self,
        now: Time,
        into: &mut Vec<u8>,
    ) -> Option<SocketAddr> {
        if self.requests.is_due() && self.lifecycle.state() == State::Open {
            let sync = self.requests.ask_each(now, self.sender.next());
            if let Some(group) = &mut self.group {
                group.members.ask_those_behind(sync);
            }
        }
        if let Some(to) = self.poll_member(into) {
            return Some(to);
        }
        let is_one = match self.lifecycle.state() {
            State::Opening => self.poll_gathering(now, into),
            State::Open => self.poll_to_all(now, into),
            _ => false,
        };
        if !is_one {
            self.watch_members(now);
        }
        is_one.then_some(self.addressing.peer())
    }

    fn poll_gathering(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        if !self.wants.first && !self.requests.is_due() {
            return false;
        }
        self.wants.first = false;
        self.requests.ask(now, self.sender.next(), false);
        self.invite(into)
    }

    fn poll_to_all(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        // What this end takes concerns nobody: nothing is sent to it.
        self.wants.is_traffic_due = false;
        if self.requests.is_in_handshake() {
            return false;
        }
        if std::mem::take(&mut self.wants.delivery) {
            return self.send_request(now, Options::DREQ, into);
        }
        self.send_data(now, into)
    }

    /// FIRST, without data: members begin with what is sent after they have joined.
    pub fn invite(&mut self, into: &mut Vec<u8>) -> bool {
        let next = self.sender.next();
        let header = self.header(Format::First, self.data_options() | Options::SREQ, next, next);
        let body = Body::First(*self.addressing.segment(), self.traffic(), Payload::default());
        write(&header, &body, into)
    }

    /// What goes to one member or candidate.
    fn poll_member(&mut self, into: &mut Vec<u8>) -> Option<SocketAddr> {
        loop {
            let (due, offered) = self.group.as_mut()?.members.pop_due()?;
            let members = self.members()?;
            let (to, header, body) = match (due, members.candidate(offered), members.entry(offered))
            {
                (Due::Offer, Some(candidate), _) => self.offer(offered, &candidate),
                (Due::Admission, _, Some(entry)) => self.admission(offered, entry),
                (Due::Status, _, Some(entry)) => self.word(Options::NONE, entry),
                (Due::Question, _, Some(entry)) => self.word(Options::SREQ, entry),
                _ => continue,
            };
            return write(&header, &body, into).then_some(to);
        }
    }

    fn offer(&self, offered: u64, to: &Candidate) -> (SocketAddr, Header, Body<'static>) {
        let header = self.control_header(Format::Jcntl, Options::NONE);
        let header = Header { key: Key::returned(to.key), ..header };
        (to.address, header, self.join_control(offered, to.asked))
    }

    fn admission(&self, offered: u64, to: &Entry) -> (SocketAddr, Header, Body<'static>) {
        let options = Options::SREQ | Options::EDGE.when(self.edge);
        let header = self.header(Format::Jcntl, options, to.start, to.start);
        let header = Header { key: Key::returned(to.key), ..header };
        (to.address, header, self.join_control(offered, to.asked))
    }

    fn join_control(&self, offered: u64, echo: u32) -> Body<'static> {
        let control = Control { rseq: 0, alloc: 0, echo };
        Body::Jcntl(
            TrafficControl { control, xkey: offered },
            *self.addressing.segment(),
            self.traffic(),
        )
    }

    fn word(&self, options: Options, to: &Entry) -> (SocketAddr, Header, Body<'static>) {
        let header = self.control_header(Format::Cntl, options);
        let header = Header { key: Key::returned(to.key), ..header };
        let control = Control { rseq: 0, alloc: 0, echo: to.asked };
        (to.address, header, Body::Cntl(control))
    }
}
