//! What a packet does: whom it is for, and what the table says.

use super::associations::Unexpected;
use super::came::Came;
use super::{Engine, diagnostics};
use crate::context::Context;
use crate::members::Admission;
use crate::table::{Act, Input, State, step};
use crate::wire::{
    Address, Body, Code, Fault, Format, Frame, Header, Key, Options, Reason, Service,
};
use dacapo_base::Time;
use std::net::SocketAddr;

impl Engine {
    /// A packet has come from this address, the one below XTP.
    pub fn handle_packet(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) {
        let frame = match Frame::open(bytes) {
            Ok(frame) => frame,
            Err(fault) => return self.count(fault),
        };
        match frame.body() {
            Ok(body) => {
                let header = frame.header;
                self.handle(now, &Came { from, header, body, len: bytes.len() });
            }
            Err(fault) => self.handle_fault(now, from, &frame.header, fault),
        }
    }

    fn count(&mut self, fault: Fault) {
        if let Some(count) = self.counters.faulty.get_mut(fault.index()) {
            *count += 1;
        }
    }

    /// Only who asks for an association is told what is wrong with the request; what else is
    /// malformed is counted.
    fn handle_fault(&mut self, now: Time, from: SocketAddr, header: &Header, fault: Fault) {
        self.count(fault);
        let is_asked = header.format == Format::First && !header.key.is_returned();
        if let Some((code, reason)) = fault.diagnostic().filter(|_| is_asked) {
            self.diagnose(now, from, header, code, reason);
        }
    }

    fn handle(&mut self, now: Time, came: &Came<'_>) {
        let Came { from, header, body, .. } = came;
        let input = Input::of_packet(header, body);
        let is_opening = matches!(input, Input::First | Input::Invitation);
        // A FIRST carries its sender's own key.
        if is_opening && header.key.is_returned() {
            return self.counters.dropped += 1;
        }
        let slot = self.associations.find(input, came);
        let met = slot.map(|slot| self.associations.meet(slot, input, came));
        let (state, is_request) = match met {
            Some(Ok(met)) => met,
            Some(Err(Unexpected::Misdirected)) => return self.counters.misdirected += 1,
            Some(Err(Unexpected::Meaningless)) => return self.counters.dropped += 1,
            None => (self.state_without_context(*from, header, body), false),
        };
        let act = step(state, input).map_or(Act::Drop, |(_, act)| act);
        match (act, slot) {
            (Act::Take, Some(slot)) if is_request => self.handle_join(now, slot, came),
            (Act::Take | Act::Leave, Some(slot)) => {
                let refused = self.associations.take(now, slot, came);
                self.counters.taken += 1;
                self.counters.no_capacity += refused;
            }
            (Act::Create, _) => self.accept(now, came),
            (Act::Refuse, _) => self.refuse(now, came, Reason::NO_LISTENER),
            (Act::Disown, _) => {
                let (code, reason) = (Code::INVALID_CONTEXT, Reason::UNSPECIFIED);
                self.counters.dropped += 1;
                self.diagnose(now, *from, header, code, reason);
            }
            (Act::SayEnd, _) => {
                self.counters.late += 1;
                self.associations.answer_late(*from, header);
            }
            _ => self.counters.dropped += 1,
        }
    }

    fn state_without_context(&self, from: SocketAddr, header: &Header, body: &Body<'_>) -> State {
        if self.associations.is_over(from, header) {
            return State::Inactive;
        }
        let port = if let Body::First(segment, ..) = body { port_of(segment.address) } else { 0 };
        let is_heard = header.format == Format::First && self.listeners.has(port);
        if is_heard { State::Listening } else { State::Quiescent }
    }

    fn accept(&mut self, now: Time, came: &Came<'_>) {
        let Body::First(segment, traffic, _) = &came.body else { return };
        let port = port_of(segment.address);
        let is_multi = came.header.options.has(Options::MULTI);
        let mode = match self.listeners.admit(port, traffic.service, is_multi) {
            Ok(mode) if self.associations.contexts().has_capacity() => mode,
            Ok(_) => return self.refuse(now, came, Reason::NO_RESOURCE),
            Err(reason) => return self.refuse(now, came, reason),
        };
        let (key, sync) = self.draw_numbers();
        let is_repaired = traffic.service == Service::ReliableMulticast as u8;
        let salt = is_repaired.then(|| self.random.next_u32());
        let config = self.associations.config();
        let from = (came.from, &came.header);
        let mut context = Context::accepting(now, config, mode, from, (key, sync, salt));
        let refused = context.take(now, &came.header, &came.body, (came.len, &mut 0));
        if self.associations.add(now, context, Some(port)).is_some() {
            self.listeners.handle_begun(port);
            self.counters.taken += 1;
            self.counters.no_capacity += refused;
        }
    }

    fn refuse(&mut self, now: Time, came: &Came<'_>, reason: Reason) {
        self.counters.refused += 1;
        self.diagnose(now, came.from, &came.header, Code::CONTEXT_REFUSED, reason);
    }

    /// A JCNTL has come for a transmitter. Who has no key yet gets FIRST, as often as diagnostics.
    fn handle_join(&mut self, now: Time, slot: u32, came: &Came<'_>) {
        let Body::Jcntl(asks, ..) = &came.body else { return };
        self.counters.taken += 1;
        if came.header.key == Key::own(0) {
            match self.limiter.admits(now, came.from.ip()) {
                true => self.associations.invite(slot, came.from),
                false => self.counters.withheld += 1,
            }
            return;
        }
        let drawn = self.associations.draw_key(&mut self.random);
        if self.associations.take_join(now, slot, came, drawn) == Admission::Refused {
            self.counters.refused += 1;
            // The answer carries the key of who asks.
            let about = Header { key: Key::own(asks.xkey), ..came.header };
            self.diagnose(now, came.from, &about, Code::JOIN_REFUSED, Reason::JOIN_DENIED);
        }
    }

    /// A diagnostic to who sent a packet; never to a group, and never to one that asks for nothing.
    fn diagnose(&mut self, now: Time, to: SocketAddr, about: &Header, code: Code, reason: Reason) {
        // Of what a group's members say only requests to join are answered so.
        let is_silent = about.options.has(Options::MULTI) && about.format != Format::Jcntl;
        if about.format == Format::Diag || is_silent {
            return;
        }
        if !self.limiter.admits(now, to.ip()) {
            return self.counters.withheld += 1;
        }
        self.counters.diagnostics += 1;
        self.associations.answer(to, diagnostics::answer(about, code, reason));
    }
}

/// The port of XTP that is asked for; 0 where none is said.
fn port_of(address: Address) -> u16 {
    match address {
        Address::Null => 0,
        Address::Internet { destination, .. } => destination.port(),
    }
}
