//! [`Links`]: the engine of XTP and its associations, between sockets and streams.
//!
//! ```text
//!   socket --datagram--> label known? --> engine --events--> Told        what the transport
//!      ^                     | no: dropped, counted                      tells its streams
//!      '---- label, packet <------------- engine <--time
//! ```
//!
//! What it is not: a table of streams; see [`crate::stream`].
//!
//! Invariants
//! - Nobody but who shows a label gets as far as the engine, and a stream's packets come from the
//!   address that opened it.
//! - A FIRST opens an association only where none is there from its address.
//! - An association that nobody holds any more is ended: in order when all of the other end's bytes
//!   were read, within [`LINGER`]; else at once.

use super::clock::Clock;
use super::config::{self, Config};
use super::label::{self, Labels};
use super::link::{Link, Lost};
use super::messages::{Came, Kind};
use super::{Mode, options};
use crate::stream::{Terms, Token};
use dacapo_base::{Random, Time};
use dacapo_xtp::wire::{Format, Frame, Service};
use dacapo_xtp::{ContextId, Engine, Event, Listen, Message, Open, Read, UserError};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::time::Duration;

/// How long an orderly end may take, and how long after it the other end may ask.
const LINGER: Duration = Duration::from_secs(3);

/// After so long without an answer a preface is said again.
const SAY_AGAIN: Duration = Duration::from_millis(200);

/// The most addresses that are remembered.
const ROUTES_MAX: usize = 4 * crate::DATA_LANES_MAX;

/// How an address is reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) door: usize,
    pub(super) label: u32,
    /// The association with it.
    link: Option<usize>,
}

/// What has happened to an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Somebody new, from this address to this socket.
    Incoming { number: usize, remote: SocketAddr, door: usize },
    /// There may be room to write.
    Writable { number: usize },
    /// There may be something to read, or the end.
    Readable { number: usize },
}

/// The associations of a transport.
pub(super) struct Links {
    pub(super) engine: Engine,
    pub(super) mode: Mode,
    packet_len: usize,
    links: BTreeMap<usize, Link>,
    by_context: HashMap<ContextId, usize>,
    count: usize,
    pub(super) labels: Labels,
    /// The label of the one stream of a dialer.
    own_label: Option<u32>,
    pub(super) routes: HashMap<SocketAddr, Route>,
    clock: Clock,
    /// The engine's time, which stands still while nobody calls.
    pub(super) now: Time,
    /// The time of the last call, by which labels are good or not.
    pub(super) called: Time,
    /// When something is due, by the caller's time.
    pub(super) due: Option<Time>,
    /// Datagrams that came without a label that is expected, or with that of another stream.
    pub(super) unlabelled: u64,
    /// Datagrams of which a part was lost.
    pub(super) broken: u64,
    /// Datagrams that came before the answer to a preface and had no room.
    pub(super) overflow: u64,
    /// Datagrams that nobody read before their association was over.
    unread: u64,
    scratch: Vec<u8>,
}

impl Links {
    pub(super) fn new(config: &Config, mode: Mode, packet_len: usize, random: Random) -> Self {
        Self {
            engine: Engine::new(config::engine(config, packet_len), random),
            mode,
            packet_len,
            links: BTreeMap::new(),
            by_context: HashMap::new(),
            count: 0,
            labels: Labels::default(),
            own_label: None,
            routes: HashMap::new(),
            clock: Clock::default(),
            now: Time::ZERO,
            called: Time::ZERO,
            due: None,
            unlabelled: 0,
            broken: 0,
            overflow: 0,
            unread: 0,
            scratch: vec![0; config.buffer_len.clamp(1, 64 << 10)],
        }
    }

    /// The association that a dialer is to open; it begins when the time is known.
    pub(super) fn dial(&mut self, remote: SocketAddr, token: &Token, terms: &Terms) -> usize {
        let label = label::label_of(token);
        self.own_label = Some(label);
        // It is the only one.
        let _ = self.labels.expect(token, Time::NEVER, Time::ZERO);
        self.labels.set_terms(token, terms);
        self.adopt(Link::new(remote, label, None), 0)
    }

    fn adopt(&mut self, link: Link, door: usize) -> usize {
        let number = self.count;
        self.count += 1;
        self.labels.join(link.label);
        let route = Route { door, label: link.label, link: Some(number) };
        self.routes.insert(link.remote, route);
        if let Some(context) = link.context {
            self.by_context.insert(context, number);
        }
        self.links.insert(number, link);
        number
    }

    pub(super) fn link(&mut self, number: usize) -> Option<&mut Link> {
        self.links.get_mut(&number)
    }

    pub(super) fn numbers(&self) -> Vec<usize> {
        self.links.keys().copied().collect()
    }

    /// The association with an address.
    pub(super) fn number_of(&self, remote: SocketAddr) -> Option<usize> {
        self.routes.get(&remote).and_then(|route| route.link)
    }

    /// A datagram has come to a socket.
    pub(super) fn handle_datagram(&mut self, door: usize, from: SocketAddr, datagram: &[u8]) {
        let found = label::split(datagram)
            .filter(|(label, _)| self.own_label.is_none_or(|own| own == *label));
        let found = found.and_then(|(label, packet)| {
            Some((label, packet, self.labels.terms(label, self.called)?))
        });
        let Some((label, packet, terms)) = found else { return self.unlabelled += 1 };
        self.make_way(from, packet);
        let known = self.routes.get(&from).filter(|route| route.link.is_some());
        if known.is_some_and(|route| route.label != label) {
            return self.unlabelled += 1;
        }
        let (is_new, is_dialer) = (known.is_none(), self.own_label.is_some());
        if is_new {
            self.note_route(from, Route { door, label, link: None });
        }
        if !is_new || is_dialer {
            return self.engine.handle_packet(self.now, from, packet);
        }
        // Whoever may open an association is heard for as long as this packet is looked at.
        let mode = options::options(&terms, self.mode, self.packet_len);
        let listen = Listen { service: Some(Service::Stream), mode, ..Listen::on(0) };
        // Nobody else listens here.
        let _ = self.engine.listen(listen);
        self.engine.handle_packet(self.now, from, packet);
        self.engine.unlisten(0);
    }

    /// Who begins anew from an address does not wait until what was there before has ended.
    fn make_way(&mut self, from: SocketAddr, packet: &[u8]) {
        let number = self.number_of(from);
        let number = number.filter(|number| self.links.get(number).is_some_and(|it| it.is_left));
        let Some(number) = number else { return };
        if Frame::open(packet).is_ok_and(|frame| frame.header.format == Format::First) {
            self.unread += self.remove(number);
        }
    }

    fn note_route(&mut self, from: SocketAddr, route: Route) {
        if self.routes.len() >= ROUTES_MAX {
            self.routes.retain(|_, route| route.link.is_some());
        }
        self.routes.insert(from, route);
    }

    /// Nobody listens where an association is being opened to.
    pub(super) fn handle_refused(&mut self) -> Option<Told> {
        let opening = self.links.iter_mut().find(|(_, link)| link.is_dialer)?;
        let (number, link) = (*opening.0, opening.1);
        let status = self.engine.status(link.context?).ok()?;
        // Anybody can say so: what is open is not ended by it.
        (!status.is_open && status.end.is_none()).then(|| {
            link.lost.get_or_insert(Lost::Refused);
            Told::Readable { number }
        })
    }

    /// The system takes no packets of `len` bytes for an address: they become as short as every
    /// path takes, or, where they are that, the association is over.
    pub(super) fn handle_too_long(&mut self, to: SocketAddr, len: usize) -> Option<Told> {
        let number = self.number_of(to)?;
        let link = self.links.get_mut(&number).filter(|link| link.lost.is_none())?;
        if len > usize::from(config::PATH_LEN) {
            let base = usize::from(config::PATH_LEN) - label::HEAD_LEN;
            // One that is over has nothing to send any more.
            let _ = link.context.map(|id| self.engine.shorten_packets(self.now, id, base));
            return None;
        }
        link.lost = Some(Lost::TooLong { len });
        Some(Told::Readable { number })
    }

    /// Lets time pass, and begins what was to begin when the time is known; who may write is told.
    pub(super) fn handle_time(&mut self, now: Time) -> Option<Told> {
        self.called = self.called.max(now);
        self.now = self.clock.read(now);
        self.engine.handle_time(self.now);
        let mut told = None;
        for number in self.numbers() {
            told = told.or(self.open(number));
            self.say_again(number);
        }
        told
    }

    fn open(&mut self, number: usize) -> Option<Told> {
        let link = self.links.get_mut(&number).filter(|link| link.context.is_none())?;
        if link.lost.is_some() || link.is_left {
            return None;
        }
        let terms = self.labels.terms(link.label, self.called).unwrap_or_default();
        let mode = options::options(&terms, self.mode, self.packet_len);
        let open = Open { peer: link.remote, ends: None, service: Service::Stream, mode };
        match self.engine.open(self.now, &open) {
            Ok(context) => {
                link.context = Some(context);
                self.by_context.insert(context, number);
                if let Some(patience) = link.patience {
                    // It was made a line above.
                    let _ = self.engine.set_give_up(self.now, context, patience);
                }
                Some(Told::Writable { number })
            }
            Err(error) => {
                link.lost = Some(Lost::Protocol(error.to_string()));
                Some(Told::Readable { number })
            }
        }
    }

    /// Says the preface again where its answer is due.
    fn say_again(&mut self, number: usize) {
        let now = self.now;
        let Some(link) = self.links.get_mut(&number) else { return };
        if link.say_again_at.is_none_or(|at| at > now) {
            return;
        }
        if link.messages.has_answer() || link.lost.is_some() {
            link.say_again_at = None;
            return;
        }
        link.say_again_at = Some(now + SAY_AGAIN);
        let said = link.said.clone();
        self.put(number, Kind::Stream, &said);
    }

    /// When something is due, of what can come, but not within `rest`; asked whenever no more is
    /// sent.
    pub(super) fn look_up_deadline(&mut self, rest: Duration) {
        let own = |link: &Link| link.say_again_at.into_iter().chain(link.until).min();
        let own = self.links.values().filter_map(own).min().unwrap_or(Time::NEVER);
        // What is over needs no call of its own.
        let at = if self.links.is_empty() { Time::NEVER } else { self.engine.deadline().min(own) };
        self.due = self.clock.set_due(at.max(self.now + rest));
    }

    /// What has happened, one by one.
    pub(super) fn poll_told(&mut self) -> Option<Told> {
        while let Some(event) = self.engine.poll_event() {
            let (id, is_writable) = match event {
                Event::Incoming { id, .. } => match self.take_incoming(id) {
                    Some(told) => return Some(told),
                    None => continue,
                },
                Event::Opened(id) | Event::Writable(id) => (id, true),
                Event::Readable(id) => (id, false),
                Event::Ended(id, end) => {
                    let number = self.by_context.get(&id).copied();
                    if let Some(link) = number.and_then(|number| self.links.get_mut(&number)) {
                        link.lost.get_or_insert(Lost::of(end));
                    }
                    (id, false)
                }
                _ => continue,
            };
            let Some(&number) = self.by_context.get(&id) else { continue };
            return Some(match is_writable {
                true => Told::Writable { number },
                false => Told::Readable { number },
            });
        }
        None
    }

    fn take_incoming(&mut self, id: ContextId) -> Option<Told> {
        let remote = self.engine.status(id).ok()?.peer;
        let Some(&Route { door, label, link: None }) = self.routes.get(&remote) else {
            // It is not heard when one is there; so this cannot be.
            let _ = self.engine.release(self.now, id);
            return None;
        };
        let number = self.adopt(Link::new(remote, label, Some(id)), door);
        Some(Told::Incoming { number, remote, door })
    }

    /// Takes the messages that have come out of the engine, as far as there is room for them.
    pub(super) fn take_messages(&mut self, number: usize) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let Some(context) = link.context else { return };
        let mut says_again = false;
        while link.messages.has_room() {
            match self.engine.read(self.now, context, &mut self.scratch) {
                Ok(Read::Data { len, is_end, tag }) => {
                    let bytes = self.scratch.get(..len).unwrap_or_default();
                    says_again |= link.messages.handle(tag, bytes, is_end) == Came::PrefaceAgain;
                }
                Ok(Read::Hole { .. }) => link.messages.handle_hole(),
                Ok(Read::Finished) => {
                    link.is_finished = true;
                    break;
                }
                Ok(Read::Nothing) | Err(_) => break,
            }
        }
        self.broken += std::mem::take(&mut link.messages.broken);
        self.overflow += std::mem::take(&mut link.messages.overflow);
        let said = link.said.clone();
        if says_again && !said.is_empty() {
            self.put(number, Kind::Stream, &said);
        }
    }

    pub(super) fn read(
        &mut self,
        number: usize,
        parts: &mut [IoSliceMut<'_>],
    ) -> io::Result<usize> {
        if self.mode == Mode::Datagrams {
            self.take_messages(number);
        }
        let Some(link) = self.links.get_mut(&number) else { return Ok(0) };
        let mut count = 0;
        for part in parts.iter_mut().filter(|part| !part.is_empty()) {
            let len = match self.mode {
                Mode::Datagrams => link.messages.read_stream(part),
                Mode::Streams => fill(&mut self.engine, self.now, link, part),
            };
            count += len;
            if len < part.len() {
                break;
            }
        }
        if count > 0 { Ok(count) } else { link.end() }
    }

    pub(super) fn write(&mut self, number: usize, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(link) = self.links.get_mut(&number) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        if let Some(lost) = &link.lost {
            lost.end()?;
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let Some(context) = link.context else { return Err(io::ErrorKind::WouldBlock.into()) };
        if self.mode == Mode::Datagrams {
            let parts: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
            return self.say(number, &parts.concat());
        }
        let mut count = 0;
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let taken = match self.engine.write(self.now, context, &Message::part(part)) {
                Ok(taken) => taken,
                Err(_) if count > 0 => break,
                Err(_) => return Err(io::ErrorKind::BrokenPipe.into()),
            };
            count += taken;
            if taken < part.len() {
                break;
            }
        }
        if count > 0 { Ok(count) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    /// Writes bytes of the stream in the unreliable mode.
    fn say(&mut self, number: usize, bytes: &[u8]) -> io::Result<usize> {
        if !self.put(number, Kind::Stream, bytes) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let now = self.now;
        if let Some(link) = self.links.get_mut(&number)
            && link.said.is_empty()
        {
            link.said = bytes.to_vec();
            link.say_again_at = link.is_dialer.then(|| now + SAY_AGAIN);
        }
        Ok(bytes.len())
    }

    /// Gives the engine a message; false when it takes nothing now.
    pub(super) fn put(&mut self, number: usize, kind: Kind, bytes: &[u8]) -> bool {
        self.flush_rest(number);
        let Some(link) = self.links.get_mut(&number).filter(|link| link.rest.is_empty()) else {
            return false;
        };
        let Some(context) = link.context else { return false };
        let data = if bytes.is_empty() { &[0] } else { bytes };
        let message = Message { tag: Some(kind.tag()), ..Message::whole(data) };
        let taken = self.engine.write(self.now, context, &message).unwrap_or(0);
        if taken > 0 {
            link.rest = data.get(taken..).unwrap_or_default().to_vec();
        }
        taken > 0
    }

    /// Gives the engine the rest of a message; true when none is left.
    pub(super) fn flush_rest(&mut self, number: usize) -> bool {
        let Some(link) = self.links.get_mut(&number) else { return true };
        let Some(context) = link.context else { return link.rest.is_empty() };
        if !link.rest.is_empty() {
            let taken = self.engine.write(self.now, context, &Message::whole(&link.rest));
            match taken {
                Ok(taken) => drop(link.rest.drain(..taken)),
                // Nobody gets it any more.
                Err(UserError::Closed | UserError::Released | UserError::TooLong { .. })
                | Err(UserError::Empty) => link.rest.clear(),
            }
        }
        if link.rest.is_empty() && std::mem::take(&mut link.is_ending) {
            // It may be over already.
            let _ = self.engine.finish(self.now, context);
        }
        link.rest.is_empty()
    }

    pub(super) fn end_writing(&mut self, number: usize) {
        if let Some(link) = self.links.get_mut(&number) {
            link.is_ending = true;
        }
        self.flush_rest(number);
    }

    pub(super) fn set_patience(&mut self, number: usize, patience: Duration) {
        let Some(link) = self.links.get_mut(&number) else { return };
        link.patience = Some(patience);
        if let Some(context) = link.context {
            // It may be over already.
            let _ = self.engine.set_give_up(self.now, context, patience);
        }
    }

    /// The table of streams holds it no longer.
    pub(super) fn let_go(&mut self, number: usize) {
        let now = self.now;
        let Some(link) = self.links.get_mut(&number) else { return };
        link.is_left = true;
        link.said.clear();
        link.say_again_at = None;
        // An end in order is one that both have said.
        let is_orderly = link.is_finished && link.lost.is_none();
        link.until = Some(if is_orderly { now + LINGER } else { now });
        if is_orderly {
            self.end_writing(number);
        }
    }

    /// Forgets what nobody holds any more and what is over; returns how many datagrams had come by
    /// it that nobody will read.
    pub(super) fn close_left(&mut self) -> u64 {
        let now = self.now;
        let is_over = |link: &Link| link.lost.is_some() || link.until.is_some_and(|at| at <= now);
        let left = self.links.iter().filter(|(_, link)| link.is_left && is_over(link));
        let left: Vec<usize> = left.map(|(number, _)| *number).collect();
        let mut unread = std::mem::take(&mut self.unread);
        for number in left {
            unread += self.remove(number);
        }
        unread
    }

    fn remove(&mut self, number: usize) -> u64 {
        let Some(mut link) = self.links.remove(&number) else { return 0 };
        self.labels.leave(link.label, self.called + LINGER);
        if let Some(route) = self.routes.get_mut(&link.remote) {
            route.link = None;
        }
        if let Some(context) = link.context {
            self.by_context.remove(&context);
            // What has not ended is told so: its END waits among the answers.
            let _ = self.engine.release(self.now, context);
        }
        link.messages.clear()
    }

    /// Ends everything at once.
    pub(super) fn end_all(&mut self) -> u64 {
        self.numbers().into_iter().map(|number| self.remove(number)).sum()
    }
}

/// Reads the stream of an association.
fn fill(engine: &mut Engine, now: Time, link: &mut Link, part: &mut [u8]) -> usize {
    let Some(context) = link.context else { return 0 };
    let mut count = 0;
    while let Some(room) = part.get_mut(count..).filter(|room| !room.is_empty()) {
        match engine.read(now, context, room) {
            Ok(Read::Data { len, .. }) => count += len,
            Ok(Read::Finished) => {
                link.is_finished = true;
                break;
            }
            Ok(Read::Hole { .. }) => {
                let text = "the remote sends nothing again that is lost, as was not agreed";
                link.lost.get_or_insert(Lost::Protocol(text.to_owned()));
                break;
            }
            Ok(Read::Nothing) | Err(_) => break,
        }
    }
    count
}
