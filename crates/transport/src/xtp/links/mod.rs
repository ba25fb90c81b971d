//! [`Links`]: the engine of XTP and its associations, between sockets and streams.
//!
//! ```text
//!   socket --datagram--> label known? --> engine --events--> Told        what the transport
//!      ^                     | no: dropped, counted                      tells its streams
//!      '---- label, packet <------------- engine <--time
//! ```
//!
//! Invariants
//! - Nobody but who shows a label gets as far as the engine, and a stream's packets come from the
//!   address that opened it.
//! - A FIRST opens an association only where none is there from its address.
//! - An association that nobody holds any more is ended: in order when all of the other end's bytes
//!   were read, within [`LINGER`]; else at once.
//! - One that is idle is not looked at, however many there are.

mod alarms;
mod exchange;
#[cfg(test)]
mod tests;

use crate::stream::{StreamParams, Token};
use crate::xtp::clock::Clock;
use crate::xtp::config::{self, Config};
use crate::xtp::label::{self, Labels};
use crate::xtp::link::{Link, Lost};
use crate::xtp::messages::Kind;
use crate::xtp::{Mode, options};
use alarms::Alarms;
use dacapo_base::{Random, Time};
use dacapo_xtp::wire::{Format, Frame, Service};
use dacapo_xtp::{ContextId, Engine, Event, Listen, Open};
use std::collections::{BTreeMap, BTreeSet, HashMap};
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
pub(in crate::xtp) struct Route {
    pub(in crate::xtp) door: usize,
    pub(in crate::xtp) label: u32,
    /// The association with it.
    link: Option<usize>,
}

/// What has happened to an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::xtp) enum Told {
    /// Somebody new, from this address to this socket.
    Incoming { number: usize, remote: SocketAddr, door: usize },
    /// There may be room to write.
    Writable { number: usize },
    /// There may be something to read, or the end.
    Readable { number: usize },
}

/// The associations of a transport.
pub(in crate::xtp) struct Links {
    pub(in crate::xtp) engine: Engine,
    pub(in crate::xtp) mode: Mode,
    packet_len: usize,
    links: BTreeMap<usize, Link>,
    by_context: HashMap<ContextId, usize>,
    count: usize,
    pub(in crate::xtp) labels: Labels,
    /// The label of the one stream of a dialer.
    own_label: Option<u32>,
    pub(in crate::xtp) routes: HashMap<SocketAddr, Route>,
    clock: Clock,
    /// The engine's time, which stands still while nobody calls.
    pub(in crate::xtp) now: Time,
    /// The time of the last call, by which labels are good or not.
    pub(in crate::xtp) called: Time,
    /// When something is due, by the caller's time.
    pub(in crate::xtp) due: Option<Time>,
    /// Datagrams that came without a label that is expected, or with that of another stream.
    pub(in crate::xtp) unlabelled: u64,
    /// Datagrams of which a part was lost.
    pub(in crate::xtp) broken: u64,
    /// Datagrams that came before the answer to a preface and had no room.
    overflow: u64,
    /// Datagrams that nobody read before their association was over.
    unread: u64,
    /// The one that a dialer is to open.
    opening: Option<usize>,
    /// Those that have something to do at a time.
    alarms: Alarms,
    /// Those that the table of streams has let go.
    left: BTreeSet<usize>,
    /// Those that may have datagrams to hand up.
    pub(in crate::xtp) arrivals: BTreeSet<usize>,
    /// How many associations were looked at, one by one.
    pub(in crate::xtp) looks: u64,
    /// Datagrams without room in the engine that are told already.
    refused: u64,
    scratch: Vec<u8>,
}

impl Links {
    pub(in crate::xtp) fn new(
        config: &Config,
        mode: Mode,
        packet_len: usize,
        random: Random,
    ) -> Self {
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
            opening: None,
            alarms: Alarms::default(),
            left: BTreeSet::new(),
            arrivals: BTreeSet::new(),
            looks: 0,
            refused: 0,
            scratch: vec![0; config.buffer_len.clamp(1, 64 << 10)],
        }
    }

    /// The association that a dialer is to open; it begins when the time is known.
    pub(in crate::xtp) fn dial(
        &mut self,
        remote: SocketAddr,
        token: &Token,
        terms: &StreamParams,
    ) -> usize {
        let label = label::label_of(token);
        self.own_label = Some(label);
        // It is the only one.
        let _ = self.labels.expect(token, Time::NEVER, Time::ZERO);
        self.labels.set_terms(token, terms);
        let number = self.adopt(Link::new(remote, label, None), 0);
        self.opening = Some(number);
        number
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

    pub(in crate::xtp) fn link(&mut self, number: usize) -> Option<&mut Link> {
        self.links.get_mut(&number)
    }

    /// The association with an address.
    pub(in crate::xtp) fn number_of(&self, remote: SocketAddr) -> Option<usize> {
        self.routes.get(&remote).and_then(|route| route.link)
    }

    /// A datagram has come to a socket.
    pub(in crate::xtp) fn handle_datagram(
        &mut self,
        door: usize,
        from: SocketAddr,
        datagram: &[u8],
    ) {
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
    pub(in crate::xtp) fn handle_refused(&mut self) -> Option<Told> {
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
    pub(in crate::xtp) fn handle_too_long(&mut self, to: SocketAddr, len: usize) -> Option<Told> {
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
    pub(in crate::xtp) fn handle_time(&mut self, now: Time) -> Option<Told> {
        self.called = self.called.max(now);
        self.now = self.clock.read(now);
        self.engine.handle_time(self.now);
        while let Some(number) = self.alarms.pop(self.now) {
            self.looks += 1;
            self.say_again(number);
            self.set_alarm(number);
        }
        self.opening.take().and_then(|number| self.open(number))
    }

    /// When an association has something to do that is not done by then.
    fn set_alarm(&mut self, number: usize) {
        let now = self.now;
        let times = self.links.get(&number).map(|link| [link.say_again_at, link.until]);
        let next = times.into_iter().flatten().flatten().filter(|at| *at > now).min();
        self.alarms.set(number, next);
    }

    fn open(&mut self, number: usize) -> Option<Told> {
        let link = self.links.get_mut(&number).filter(|link| link.context.is_none())?;
        if link.lost.is_some() || link.is_left {
            return None;
        }
        let terms = self.labels.terms(link.label, self.called).unwrap_or_default();
        let mut mode = options::options(&terms, self.mode, self.packet_len);
        // Records may be announced before there is an association.
        let (bound_bps, shortest) = (terms.bound_bps, link.shortest);
        mode.limits = options::limits(bound_bps, self.mode, self.packet_len, shortest);
        let open = Open { peer: link.remote, ends: None, service: Service::Stream, mode };
        match self.engine.open(self.now, &open) {
            Ok(context) => {
                (link.context, link.bound_bps) = (Some(context), terms.bound_bps);
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
    pub(in crate::xtp) fn look_up_deadline(&mut self, rest: Duration) {
        let own = self.alarms.next().unwrap_or(Time::NEVER);
        // What is over needs no call of its own.
        let at = if self.links.is_empty() { Time::NEVER } else { self.engine.deadline().min(own) };
        self.due = self.clock.set_due(at.max(self.now + rest));
    }

    /// What has happened, one by one.
    pub(in crate::xtp) fn poll_told(&mut self) -> Option<Told> {
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
            if !is_writable && self.mode == Mode::Datagrams {
                self.arrivals.insert(number);
            }
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
        let mut link = Link::new(remote, label, Some(id));
        link.bound_bps = self.labels.terms(label, self.called).unwrap_or_default().bound_bps;
        let number = self.adopt(link, door);
        Some(Told::Incoming { number, remote, door })
    }

    pub(in crate::xtp) fn set_patience(&mut self, number: usize, patience: Duration) {
        let Some(link) = self.links.get_mut(&number) else { return };
        link.patience = Some(patience);
        if let Some(context) = link.context {
            // It may be over already.
            let _ = self.engine.set_give_up(self.now, context, patience);
        }
    }

    /// The table of streams holds it no longer.
    pub(in crate::xtp) fn let_go(&mut self, number: usize) {
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
        self.left.insert(number);
        self.set_alarm(number);
    }

    /// What has come by an association is handed up from now on, or not.
    pub(in crate::xtp) fn set_reading(&mut self, remote: SocketAddr, is_reading: bool) {
        let Some(number) = self.number_of(remote) else { return };
        if let Some(link) = self.links.get_mut(&number) {
            link.is_paused = !is_reading;
            if self.mode == Mode::Datagrams {
                self.arrivals.insert(number);
            }
        }
    }

    /// Forgets what nobody holds any more and what is over; returns how many datagrams had come by
    /// it that nobody will read.
    pub(in crate::xtp) fn close_left(&mut self) -> u64 {
        let now = self.now;
        let is_over = |link: &Link| link.lost.is_some() || link.until.is_some_and(|at| at <= now);
        self.looks += self.left.len() as u64;
        let left = self.left.iter().copied();
        let left = left.filter(|number| self.links.get(number).is_none_or(is_over));
        let left: Vec<usize> = left.collect();
        let mut unread = std::mem::take(&mut self.unread);
        for number in left {
            unread += self.remove(number);
        }
        unread
    }

    fn remove(&mut self, number: usize) -> u64 {
        self.left.remove(&number);
        self.arrivals.remove(&number);
        self.alarms.set(number, None);
        let Some(mut link) = self.links.remove(&number) else { return 0 };
        let unread = self.drop_unread(&mut link);
        self.labels.leave(link.label, self.called + LINGER);
        if let Some(route) = self.routes.get_mut(&link.remote) {
            route.link = None;
        }
        if let Some(context) = link.context {
            self.by_context.remove(&context);
            // What has not ended is told so: its END waits among the answers.
            let _ = self.engine.release(self.now, context);
        }
        unread
    }

    /// How many datagrams came since the last call for which there was no room.
    pub(in crate::xtp) fn take_overflow(&mut self) -> u64 {
        let refused = self.engine.counters().no_room;
        let new = refused.saturating_sub(std::mem::replace(&mut self.refused, refused));
        std::mem::take(&mut self.overflow).saturating_add(new)
    }

    /// Ends everything at once.
    pub(in crate::xtp) fn end_all(&mut self) -> u64 {
        let numbers: Vec<usize> = self.links.keys().copied().collect();
        numbers.into_iter().map(|number| self.remove(number)).sum()
    }
}
