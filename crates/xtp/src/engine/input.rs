//! What a packet does: whom it is for, and what the table says.

use super::{Engine, Listener, Slot, diagnostics};
use crate::context::Context;
use crate::table::{Act, Input, State, step};
use crate::wire::{
    Address, Body, Code, Fault, Format, Frame, Header, Key, Options, Reason, Service,
};
use dacapo_base::Time;
use std::net::SocketAddr;

/// The most answers without a context that wait; of more the newest is dropped: a peer that lacks
/// it speaks again, and is answered then.
const ANSWERS_MAX: usize = 256;

/// A packet, where it came from, and how long it is.
#[derive(Clone, Copy)]
pub(super) struct Came<'a> {
    pub from: SocketAddr,
    pub header: Header,
    pub body: Body<'a>,
    pub len: usize,
}

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
            *count = count.saturating_add(1);
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
        let Came { from, header, body, len } = came;
        let input = Input::of_packet(header, body);
        let is_opening = matches!(input, Input::First | Input::Invitation);
        // A FIRST carries its sender's own key.
        if is_opening && header.key.is_returned() {
            return self.drop_packet();
        }
        let slot = self.find(input, came);
        let (state, is_request) = match slot {
            Some(slot) => {
                let Some(context) = self.context_ref(slot) else { return };
                let (role, ends) = (context.role(), context.addressing());
                if !role.expects(ends, header.key, *from) {
                    self.counters.misdirected = self.counters.misdirected.saturating_add(1);
                    return;
                }
                if !role.understands(ends, input, header.key) {
                    return self.drop_packet();
                }
                let is_request = input == Input::Join && role.is_transmitter();
                (context.lifecycle().state(), is_request)
            }
            None => (self.state_without_context(*from, header, body), false),
        };
        let act = step(state, input).map_or(Act::Drop, |(_, act)| act);
        match (act, slot) {
            (Act::Take, Some(slot)) if is_request => {
                self.counters.taken = self.counters.taken.saturating_add(1);
                self.handle_join(now, slot, came);
            }
            (Act::Take | Act::Leave, Some(slot)) => {
                self.counters.taken = self.counters.taken.saturating_add(1);
                let Some(context) = self.context_at(slot) else { return };
                let known_as = context.addressing().known_as();
                context.take(now, header, body, *len);
                let refused = context.take_refused();
                if context.addressing().known_as() != known_as {
                    self.learn(slot);
                }
                self.counters.no_room = self.counters.no_room.saturating_add(refused);
                self.touch(now, slot);
            }
            (Act::Create, _) => self.accept(now, came),
            (Act::Refuse, _) => {
                self.refuse(now, came, Reason::NO_LISTENER);
            }
            (Act::Disown, _) => {
                let (code, reason) = (Code::INVALID_CONTEXT, Reason::UNSPECIFIED);
                self.drop_packet();
                self.diagnose(now, *from, header, code, reason);
            }
            (Act::SayEnd, _) => self.answer_late(*from, header),
            _ => self.drop_packet(),
        }
    }

    /// A peer whose own key has become known may send under it, as diagnostics do.
    pub(super) fn learn(&mut self, slot: u32) {
        let Some(context) = self.context_at(slot) else { return };
        let (peer, known_as) = (context.addressing().peer(), context.addressing().known_as());
        if let Some(key) = known_as {
            self.by_peer.entry((peer, key)).or_insert(slot);
        }
    }

    fn drop_packet(&mut self) {
        self.counters.dropped = self.counters.dropped.saturating_add(1);
    }

    fn find(&mut self, input: Input, came: &Came<'_>) -> Option<u32> {
        let key = came.header.key;
        if key.is_returned() {
            return self.by_key.get(&key.value()).copied();
        }
        let known = self.by_peer.get(&(came.from, key.value())).copied();
        match input {
            Input::Join if key.value() == 0 => self.find_group(&came.body),
            Input::Invitation => known.or_else(|| self.follow(came)),
            _ => known,
        }
    }

    fn state_without_context(&self, from: SocketAddr, header: &Header, body: &Body<'_>) -> State {
        let gone = self.inactive.find(from, header.key);
        // Anybody may ask to join a group, also one that is over.
        if gone.is_some_and(|gone| gone.peer == from || header.format == Format::Jcntl) {
            return State::Inactive;
        }
        let port = if let Body::First(segment, ..) = body { port_of(segment.address) } else { 0 };
        let is_heard = header.format == Format::First && self.listeners.contains_key(&port);
        if is_heard { State::Listening } else { State::Quiescent }
    }

    /// Answers a packet of an association that is over.
    fn answer_late(&mut self, from: SocketAddr, header: &Header) {
        self.counters.late = self.counters.late.saturating_add(1);
        if is_to_group(header) {
            return;
        }
        let Some(gone) = self.inactive.find(from, header.key) else { return };
        let packet = gone.end(header.sync, Options::MULTI.when(header.options.has(Options::MULTI)));
        self.push_answer(from, packet);
    }

    fn accept(&mut self, now: Time, came: &Came<'_>) {
        let Body::First(segment, traffic, _) = &came.body else { return };
        let port = port_of(segment.address);
        let Some(listener) = self.listeners.get(&port).copied() else { return };
        if let Err(reason) = self.admits(&listener, came, traffic.service) {
            return self.refuse(now, came, reason);
        }
        let keys = (self.draw_key(), self.random.next_u32());
        let mode = listener.listen.mode;
        let from = (came.from, &came.header);
        let mut context = Context::accepting(now, &self.config, mode, from, keys);
        if traffic.service == Service::ReliableMulticast as u8 {
            context.become_member(&self.config, self.random.next_u32(), None);
        }
        context.take(now, &came.header, &came.body, came.len);
        let Some(slot) = self.place(context, Some(port)) else { return };
        if let Some(listener) = self.listeners.get_mut(&port) {
            listener.waiting = listener.waiting.saturating_add(1);
        }
        self.learn(slot);
        self.counters.taken = self.counters.taken.saturating_add(1);
        self.touch(now, slot);
    }

    fn admits(&self, listener: &Listener, came: &Came<'_>, service: u8) -> Result<(), Reason> {
        let is_multi = came.header.options.has(Options::MULTI);
        let is_there = |service: &Service| is_multi == service.is_to_group();
        let known = Service::from_number(service).filter(is_there);
        let is_given = |service| listener.listen.service.is_none_or(|given| given == service);
        if !known.is_some_and(is_given) {
            return Err(Reason::NO_PROVIDER);
        }
        let has_room = self.context_count() < self.config.contexts_max;
        if listener.waiting >= listener.listen.backlog_max || !has_room {
            return Err(Reason::NO_RESOURCE);
        }
        Ok(())
    }

    fn refuse(&mut self, now: Time, came: &Came<'_>, reason: Reason) {
        self.counters.refused = self.counters.refused.saturating_add(1);
        self.diagnose(now, came.from, &came.header, Code::CONTEXT_REFUSED, reason);
    }

    /// A diagnostic to who sent a packet; never to a group, and never to one that asks for nothing.
    pub(super) fn diagnose(
        &mut self,
        now: Time,
        to: SocketAddr,
        about: &Header,
        code: Code,
        reason: Reason,
    ) {
        // Of what a group's members say only requests to join are answered so.
        let is_silent = about.options.has(Options::MULTI) && about.format != Format::Jcntl;
        if about.format == Format::Diag || is_silent {
            return;
        }
        if !self.limiter.admits(now, to.ip()) {
            self.counters.withheld = self.counters.withheld.saturating_add(1);
            return;
        }
        self.counters.diagnostics = self.counters.diagnostics.saturating_add(1);
        let packet = diagnostics::answer(about, code, reason);
        self.push_answer(to, packet);
    }

    pub(super) fn push_answer(&mut self, to: SocketAddr, packet: Vec<u8>) {
        if self.answers.len() < ANSWERS_MAX {
            self.answers.push_back((to, packet));
        }
    }

    /// A key that no context has, and never 0.
    pub(super) fn draw_key(&mut self) -> u64 {
        loop {
            let key = Key::own(self.random.next_u64()).value();
            let is_taken = self.by_key.contains_key(&key) || self.inactive.has_key(key);
            if key != 0 && !is_taken {
                return key;
            }
        }
    }

    /// Puts a context where there is room.
    pub(super) fn place(&mut self, context: Context, listener: Option<u16>) -> Option<u32> {
        if self.context_count() >= self.config.contexts_max {
            return None;
        }
        let own_key = context.addressing().own_key();
        let context = Some(Box::new(context));
        let slot = match self.free.pop() {
            Some(slot) => {
                let place = self.slots.get_mut(slot as usize)?;
                (place.context, place.listener) = (context, listener);
                slot
            }
            None => {
                let slot = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(Slot { generation: 0, context, deadline: Time::NEVER, listener });
                slot
            }
        };
        self.by_key.insert(own_key, slot);
        Some(slot)
    }
}

/// Whether a packet went to a whole group; what goes to one member has its key.
fn is_to_group(header: &Header) -> bool {
    header.options.has(Options::MULTI) && !header.key.is_returned()
}

/// The port of XTP that is asked for; 0 where none is said.
fn port_of(address: Address) -> u16 {
    match address {
        Address::Null => 0,
        Address::Internet { destination, .. } => destination.port(),
    }
}
