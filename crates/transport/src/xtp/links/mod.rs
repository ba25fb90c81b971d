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

mod exchange;
mod routes;
#[cfg(test)]
mod tests;

use crate::Drops;
use crate::mode::Mode;
use crate::stream::{StreamParams, Token};
use crate::xtp::clock::Clock;
use crate::xtp::config::{self, Config};
use crate::xtp::label::{self, Labels, LabelsFull};
use crate::xtp::link::{Link, Lost};
use crate::xtp::messages::Kind;
use crate::xtp::options;
use dacapo_base::{Address, Random, Time};
use dacapo_xtp::wire::{Format, Frame, Service};
use dacapo_xtp::{ContextId, Deadlines, Engine, Event, Listen, Open};
use routes::Routes;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

pub(in crate::xtp) use routes::Route;

/// How long an orderly end may take, and how long after it the other end may ask.
const LINGER: Duration = Duration::from_secs(3);

/// After so long without an answer a preface is said again.
const SAY_AGAIN: Duration = Duration::from_millis(200);

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
    engine: Engine,
    mode: Mode,
    packet_len: usize,
    links: BTreeMap<usize, Link>,
    by_context: HashMap<ContextId, usize>,
    count: usize,
    labels: Labels,
    /// The label of the one stream of a dialer.
    own_label: Option<u32>,
    routes: Routes,
    clock: Clock,
    /// What was given up and is not told yet.
    drops: Drops,
    /// The one that a dialer is to open.
    opening: Option<usize>,
    /// Those that have something to do at a time.
    timers: Deadlines<usize>,
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
            routes: Routes::default(),
            clock: Clock::default(),
            drops: Drops::default(),
            opening: None,
            timers: Deadlines::default(),
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
        self.routes.bind(link.remote, Route { door, label: link.label, link: Some(number) });
        if let Some(context) = link.context {
            self.by_context.insert(context, number);
        }
        self.links.insert(number, link);
        number
    }

    pub(in crate::xtp) fn link(&mut self, number: usize) -> Option<&mut Link> {
        self.links.get_mut(&number)
    }

    /// How an address is reached, where that is known.
    pub(in crate::xtp) fn route_of(&self, remote: SocketAddr) -> Option<Route> {
        self.routes.get(remote)
    }

    /// When something is due, by the caller's time.
    pub(in crate::xtp) fn due(&self) -> Option<Time> {
        self.clock.due()
    }

    /// The stream of a token may come up to `until`.
    ///
    /// # Errors
    /// There are too many labels.
    pub(in crate::xtp) fn expect(&mut self, token: &Token, until: Time) -> Result<(), LabelsFull> {
        self.labels.expect(token, until, self.clock.called())
    }

    /// The stream of a token is expected no longer.
    pub(in crate::xtp) fn forget(&mut self, token: &Token) {
        self.labels.forget(token);
    }

    /// The flow of a token that is expected is like this.
    pub(in crate::xtp) fn set_terms(&mut self, token: &Token, terms: &StreamParams) {
        self.labels.set_terms(token, terms);
    }

    /// Appends the next packet to `into` and gives its destination.
    pub(in crate::xtp) fn poll_packet(&mut self, into: &mut Vec<u8>) -> Option<SocketAddr> {
        self.engine.poll_packet(self.clock.now(), into)
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
        // Of a label without terms nothing may come.
        let terms = |label| self.labels.terms(label, self.clock.called());
        let found = found.and_then(|(label, packet)| Some((label, packet, terms(label)?)));
        let Some((label, packet, terms)) = found else {
            return self.drops.unlabelled += 1;
        };
        self.make_way(from, packet);
        let known = self.routes.get(from).filter(|route| route.link.is_some());
        if known.is_some_and(|route| route.label != label) {
            return self.drops.unlabelled += 1;
        }
        let (is_new, is_dialer) = (known.is_none(), self.own_label.is_some());
        if is_new {
            self.routes.note(from, door, label);
        }
        if !is_new || is_dialer {
            return self.engine.handle_packet(self.clock.now(), from, packet);
        }
        // Whoever may open an association is heard for as long as this packet is looked at.
        let mode = options::options(&terms, self.mode, self.packet_len);
        let listen = Listen { service: Some(Service::Stream), mode, ..Listen::on(0) };
        // Nobody else listens here.
        let _ = self.engine.listen(listen);
        self.engine.handle_packet(self.clock.now(), from, packet);
        self.engine.unlisten(0);
    }

    /// Who begins anew from an address does not wait until what was there before has ended.
    fn make_way(&mut self, from: SocketAddr, packet: &[u8]) {
        let number = self.routes.number_of(from);
        let number = number.filter(|number| self.links.get(number).is_some_and(|it| it.is_left));
        let Some(number) = number else { return };
        if Frame::open(packet).is_ok_and(|frame| frame.header.format == Format::First) {
            self.remove(number);
        }
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
        let number = self.routes.number_of(to)?;
        let link = self.links.get_mut(&number).filter(|link| link.lost.is_none())?;
        if len > usize::from(config::PATH_LEN) {
            let base = usize::from(config::PATH_LEN) - label::HEAD_LEN;
            // One that is over has nothing to send any more.
            let _ = link.context.map(|id| self.engine.shorten_packets(self.clock.now(), id, base));
            return None;
        }
        link.lost = Some(Lost::TooLong { len });
        Some(Told::Readable { number })
    }

    /// Lets time pass, and begins what was to begin when the time is known; who may write is told.
    pub(in crate::xtp) fn handle_time(&mut self, now: Time) -> Option<Told> {
        let now = self.clock.read(now);
        self.engine.handle_time(now);
        while let Some(number) = self.timers.pop_due(now) {
            self.looks += 1;
            self.say_again(number);
            self.set_timer(number);
        }
        self.opening.take().and_then(|number| self.open(number))
    }

    /// When an association has something to do that is not done by then.
    fn set_timer(&mut self, number: usize) {
        let now = self.clock.now();
        let times = self.links.get(&number).map(|link| [link.say_again_at, link.until]);
        match times.into_iter().flatten().flatten().filter(|at| *at > now).min() {
            Some(next) => self.timers.set(number, next),
            None => _ = self.timers.remove(number),
        }
    }

    fn open(&mut self, number: usize) -> Option<Told> {
        let link = self.links.get_mut(&number).filter(|link| link.context.is_none())?;
        if link.lost.is_some() || link.is_left {
            return None;
        }
        let terms = self.labels.terms(link.label, self.clock.called()).unwrap_or_default();
        let mut mode = options::options(&terms, self.mode, self.packet_len);
        // Records may be announced before there is an association.
        let (bound_bps, shortest) = (terms.bound_bps, link.shortest);
        mode.limits = options::limits(bound_bps, self.mode, self.packet_len, shortest);
        let open = Open { peer: link.remote, ends: None, service: Service::Stream, mode };
        match self.engine.open(self.clock.now(), &open) {
            Ok(context) => {
                (link.context, link.bound_bps) = (Some(context), terms.bound_bps);
                self.by_context.insert(context, number);
                if let Some(patience) = link.patience {
                    // It was made a line above.
                    let _ = self.engine.set_give_up(self.clock.now(), context, patience);
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
        let now = self.clock.now();
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
        let own = self.timers.first();
        // What is over needs no call of its own.
        let at = if self.links.is_empty() { Time::NEVER } else { self.engine.deadline().min(own) };
        self.clock.set_due(at.max(self.clock.now() + rest));
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
        let Some(Route { door, label, link: None }) = self.routes.get(remote) else {
            // It is not heard when one is there; so this cannot be.
            let _ = self.engine.release(self.clock.now(), id);
            return None;
        };
        let mut link = Link::new(remote, label, Some(id));
        let terms = self.labels.terms(label, self.clock.called());
        link.bound_bps = terms.unwrap_or_default().bound_bps;
        let number = self.adopt(link, door);
        Some(Told::Incoming { number, remote, door })
    }

    /// The round trip of an association, as far as it is known.
    pub(in crate::xtp) fn rtt(&self, number: usize) -> Option<Duration> {
        let context = self.links.get(&number)?.context?;
        self.engine.status(context).ok()?.rtt
    }

    pub(in crate::xtp) fn set_patience(&mut self, number: usize, patience: Duration) {
        let Some(link) = self.links.get_mut(&number) else { return };
        link.patience = Some(patience);
        if let Some(context) = link.context {
            // It may be over already.
            let _ = self.engine.set_give_up(self.clock.now(), context, patience);
        }
    }

    /// The table of streams holds it no longer.
    pub(in crate::xtp) fn let_go(&mut self, number: usize) {
        let now = self.clock.now();
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
        self.set_timer(number);
    }

    /// What has come by an association is handed up from now on, or not.
    pub(in crate::xtp) fn set_reading(&mut self, remote: Address, is_reading: bool) {
        let Some(number) = remote.ip().and_then(|at| self.routes.number_of(at)) else { return };
        if let Some(link) = self.links.get_mut(&number) {
            link.is_paused = !is_reading;
            if self.mode == Mode::Datagrams {
                self.arrivals.insert(number);
            }
        }
    }

    /// Forgets what nobody holds any more and what is over.
    pub(in crate::xtp) fn close_left(&mut self) {
        let now = self.clock.now();
        let is_over = |link: &Link| link.lost.is_some() || link.until.is_some_and(|at| at <= now);
        self.looks += self.left.len() as u64;
        let left = self.left.iter().copied();
        let left = left.filter(|number| self.links.get(number).is_none_or(is_over));
        left.collect::<Vec<usize>>().into_iter().for_each(|number| self.remove(number));
    }

    fn remove(&mut self, number: usize) {
        self.left.remove(&number);
        self.arrivals.remove(&number);
        self.timers.remove(number);
        let Some(mut link) = self.links.remove(&number) else { return };
        self.drop_unread(&mut link);
        self.labels.leave(link.label, self.clock.called() + LINGER);
        self.routes.free(link.remote);
        if let Some(context) = link.context {
            self.by_context.remove(&context);
            // What has not ended is told so: its END waits among the answers.
            let _ = self.engine.release(self.clock.now(), context);
        }
    }

    /// What was given up since the last call: datagrams that nobody will read, that were none or
    /// not whole, and for which there was no room.
    pub(in crate::xtp) fn take_drops(&mut self) -> Drops {
        let refused = self.engine.counters().no_capacity;
        let new = refused.saturating_sub(std::mem::replace(&mut self.refused, refused));
        self.drops.queue_full = self.drops.queue_full.saturating_add(new);
        std::mem::take(&mut self.drops)
    }

    /// Ends everything at once.
    pub(in crate::xtp) fn end_all(&mut self) {
        let numbers: Vec<usize> = self.links.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.remove(number));
    }
}
