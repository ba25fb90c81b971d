//! [`Reactor`]: the turn loop that gives a [`Core`] sockets and a clock.
//!
//! Driven by whoever holds it, in its thread: [`Reactor::turn`] does what is due and then waits. To
//! embed it in another loop, wait for [`AsFd`] or [`Reactor::next_deadline`], then turn with no
//! wait. One clock read per turn.
//!
//! ```text
//!   turn:  ready? -> receive there -> timers -> control out -> data out -> wait(fd | deadline)
//! ```
//!
//! Invariants: a transport that takes no more keeps at most one transmit waiting, and a stream that
//! takes no more holds up nothing but its own flow; receiving is at most `RECV_ROUNDS` rounds per
//! turn, so that timers are not starved; what the application watches besides is reported by token.

mod load;
mod sending;
mod streams;
mod transports;

pub use load::FULL_PERMILLE;

use dacapo_base::{Address, Time, earlier};
use dacapo_core::{
    ChannelEvent, Code, Command, Core, CoreEvent, DialParams, Done, Error, FlowStatus, ListenerId,
    NetworkEvent, PeerId, SessionId,
};
use dacapo_io::LastReady;
use dacapo_sys::clock;
use dacapo_sys::poll::{EVENTS_MAX, Event, Interest, Poller, Registry};
use dacapo_transport::entry::{StreamCarrier, StreamListener};
use dacapo_transport::{Incoming, StatsByKind, StreamTransport, Transport};
use load::Load;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use streams::Streams;
use transports::Transports;

/// Rounds of receiving before timers have their turn.
const RECV_ROUNDS: usize = 16;

/// A transport that was dialed stays so long after its peer is gone, for what is on its way.
const LINGER: Duration = Duration::from_secs(1);

/// A queue of a device that was full is tried again after this time: nobody tells when it has room.
const RETRY: Duration = Duration::from_millis(1);

/// Who lies down again within this time is woken often.
const BRISK: Duration = Duration::from_micros(200);

/// The first token of what the application watches; transports have registries with keys from 0 on.
const OUTSIDE: u64 = 1 << 63;

/// Counters of the edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReactorCounters {
    /// Turns made.
    pub turns: u64,
    /// Bytes that transports have handed up.
    pub received_bytes: u64,
    /// Datagrams that no transport could be found for.
    pub unroutable: u64,
    /// Datagrams that were too long for their path.
    pub too_large: u64,
    /// The network said that nobody listens or that there is no way.
    pub refused: u64,
    /// Other errors of the system at sending.
    pub errors: u64,
}

/// What a turn looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Everything: timers, control, probes, flows.
    All,
    /// Flows: nothing but data has come, and no time that is known has.
    Flows,
}

/// A core with sockets and a clock.
pub struct Reactor {
    core: Core,
    transports: Transports,
    streams: Streams,
    next_token: u64,
    poller: Poller,
    ready: Vec<Event>,
    incoming: Vec<Incoming>,
    /// The transports that the present turn asks for what has come.
    due: Vec<u64>,
    /// Until then a turn has nothing to do, unless something comes or the core is used.
    idle_until: Option<Time>,
    /// When something is due, as far as that was asked since the core has looked last.
    due_at: Option<Time>,
    /// When that was asked last by who is about to sleep.
    asked_at: Time,
    turned_at: Time,
    /// The last turn found nothing, and nothing was due.
    was_idle: bool,
    last_ready: LastReady,
    load: Load,
    counters: ReactorCounters,
    /// Of transports that are gone.
    gone: StatsByKind,
}

impl Reactor {
    /// A reactor for this core, with no transport yet.
    ///
    /// # Errors
    /// What the system says when it has no descriptor left.
    pub fn new(core: Core) -> io::Result<Self> {
        Ok(Self {
            core,
            transports: Transports::default(),
            streams: Streams::default(),
            next_token: 0,
            poller: Poller::new()?,
            ready: Vec::new(),
            incoming: Vec::new(),
            due: Vec::new(),
            idle_until: None,
            due_at: None,
            asked_at: Time::ZERO,
            turned_at: Time::ZERO,
            was_idle: false,
            last_ready: LastReady::default(),
            load: Load::default(),
            counters: ReactorCounters::default(),
            gone: StatsByKind::default(),
        })
    }

    /// The time on the clock that the core lives by.
    #[must_use]
    pub fn now(&self) -> Time {
        clock::now()
    }

    /// What the flows of a session are doing, and what their transports have measured until now.
    #[must_use]
    pub fn status(&mut self, session: SessionId) -> Vec<FlowStatus> {
        let now = self.now();
        let streams = self.core.status(session).into_iter().filter_map(|flow| flow.stream);
        for (id, seen) in streams.filter_map(|id| Some((id, self.streams.estimates(id)?))) {
            self.core.handle_channel(now, id, ChannelEvent::Estimates(seen));
        }
        self.core.status(session)
    }

    /// The engine.
    pub fn core(&mut self) -> &mut Core {
        self.idle_until = None;
        self.core.touch();
        &mut self.core
    }

    /// Counters of the edge.
    #[must_use]
    pub fn counters(&self) -> ReactorCounters {
        self.counters
    }

    /// Counters of its transports by kind, those of transports that are gone included.
    #[must_use]
    pub fn transport_stats(&self) -> StatsByKind {
        let mut stats = self.gone.clone();
        self.transports.iter().for_each(|transport| stats.add(transport));
        self.streams.add_stats(&mut stats);
        stats
    }

    /// How many transports for datagrams it has: those it listens through, and one for each peer
    /// that was dialed, for a second longer than the peer.
    #[must_use]
    pub fn transport_count(&self) -> usize {
        self.transports.iter().count()
    }

    /// Listens through this transport.
    ///
    /// # Errors
    /// What the system says when the transport cannot be watched.
    pub fn listen(&mut self, transport: Box<dyn Transport>) -> io::Result<()> {
        self.attach(transport, None)
    }

    /// Connects to a core through a transport that was dialed to it.
    ///
    /// # Errors
    /// As [`Command::Connect`] says, or [`Code::System`] when the transport cannot be watched.
    pub fn connect(
        &mut self,
        transport: Box<dyn Transport>,
        remote: Address,
    ) -> Result<PeerId, Error> {
        self.connect_with(transport, remote, DialParams::default())
    }

    /// The same, told how long to try.
    ///
    /// # Errors
    /// As [`Reactor::connect`].
    pub fn connect_with(
        &mut self,
        transport: Box<dyn Transport>,
        remote: Address,
        params: DialParams,
    ) -> Result<PeerId, Error> {
        let now = self.now();
        // What a peer at the same address has left closes its own transport, not the new one.
        self.handle_requests(now);
        self.tidy(now);
        self.attach(transport, Some(remote))
            .map_err(|error| Error::new(Code::System, error.to_string()))?;
        self.core.handle_command(now, Command::Connect { remote, params }).and_then(Done::peer)
    }

    /// Listens for streams of flows through this transport, whose number on the wire is `number`.
    ///
    /// # Errors
    /// What the system says when the transport cannot be watched.
    pub fn listen_streams(
        &mut self,
        number: u16,
        transport: Box<dyn StreamTransport>,
    ) -> io::Result<()> {
        let token = self.fresh_token();
        self.streams.attach(&mut self.poller, token, (number, transport), false)
    }

    /// From now on streams of flows over the transport of this number are dialed by this, and a
    /// peer on this host is looked for by it; without it neither can be.
    pub fn set_stream_carrier(&mut self, number: u16, carrier: Box<dyn StreamCarrier>) {
        self.streams.carriers.insert(number, carrier);
    }

    /// From now on the transport of the number `by` opens the streams of another: those to several
    /// are opened as any.
    pub fn set_opened_by(&mut self, number: u16, by: u16) {
        self.streams.opened_by.insert(number, by);
    }

    /// Makes what listens for streams beside control, which listens at these addresses; it listens
    /// once it is given to [`Reactor::listen_streams`].
    ///
    /// # Errors
    /// As [`StreamCarrier::listen`]; `Unsupported` where nothing carries them.
    pub fn bind_streams(&mut self, number: u16, control: &[Address]) -> io::Result<StreamListener> {
        let carrier = self.streams.carriers.get_mut(&number).ok_or(io::ErrorKind::Unsupported)?;
        carrier.listen(control)
    }

    /// From now on streams that the transport of the number `agreed` cannot open are opened by
    /// `fallback`, at both ends: by one that gives a flow as much, and listens at the port of
    /// control.
    pub fn set_stream_fallback(&mut self, agreed: u16, fallback: u16) {
        self.streams.fallbacks.set(agreed, fallback);
    }

    fn fresh_token(&mut self) -> u64 {
        // Somebody new: who knows what it has to do.
        self.idle_until = None;
        let token = self.next_token;
        self.next_token += 1;
        token
    }

    fn attach(
        &mut self,
        mut transport: Box<dyn Transport>,
        dialed: Option<Address>,
    ) -> io::Result<()> {
        let token = self.fresh_token();
        let registry = self.poller.registry(token);
        let is_silent = !transport.watch_in(registry.clone())? && transport.fd().is_none();
        if let Some(fd) = transport.fd() {
            registry.add(fd, 0, Interest::Read)?;
        }
        if dialed.is_none() {
            let now = self.now();
            for &address in transport.local_addrs() {
                let event = NetworkEvent::Listening(ListenerId(token), address);
                self.core.handle_network(now, event);
            }
        }
        self.transports.insert(token, transport, dialed, is_silent);
        Ok(())
    }

    /// Watches something else for reading; [`Reactor::turn`] reports `token` when it is ready.
    ///
    /// # Errors
    /// What the system says.
    pub fn watch(&mut self, fd: BorrowedFd<'_>, token: u32) -> io::Result<()> {
        self.poller.add(fd, OUTSIDE + u64::from(token), Interest::Read)
    }

    /// Watches it no longer.
    pub fn unwatch(&mut self, fd: BorrowedFd<'_>) {
        // It may be closed already, and then it is not watched.
        let _ = self.poller.remove(fd);
    }

    /// One turn: does what is due, then waits at most `wait` for the network, a deadline or what is
    /// watched. Returns the tokens that are ready.
    ///
    /// # Errors
    /// What the system says when waiting fails.
    pub fn turn(&mut self, wait: Duration) -> io::Result<Vec<u32>> {
        self.counters.turns += 1;
        let now = self.now();
        self.turned_at = now;
        let guess = self.guess(now, wait);
        let mut tokens = self.look(now, guess)?;
        let is_nothing_ready = self.ready.is_empty();
        let (received, mut more) = match is_nothing_ready && self.is_idle(now, wait) {
            true => (0, false),
            false => self.receive(now),
        };
        let is_wrong_guess = guess.is_some() && received == 0 && !self.core.is_touched();
        if is_wrong_guess {
            self.ready.clear();
        }
        let found_nothing = is_nothing_ready || is_wrong_guess;
        self.was_idle = found_nothing && self.is_idle(now, wait);
        if self.was_idle {
            return Ok(tokens);
        }
        // What comes now may be a reason to turn earlier than was known.
        let was_idle = self.idle_until.take().is_some_and(|until| now < until);
        more |= self.work(now, was_idle);
        self.note_work(now);
        if more {
            return Ok(tokens);
        }
        if !wait.is_zero() {
            let wait = self.wait_time(now, wait);
            if !wait.is_zero() {
                // What is watched and still ready is found again: who is told twice reads twice.
                tokens = self.poll(wait)?;
            }
        } else if found_nothing && !self.core.has_events() {
            // Who turns without waiting will do so again at once.
            let now = self.now();
            self.idle_from(now, true);
        }
        Ok(tokens)
    }

    /// Finds out what is ready, unless it is guessed, or was found by the last turn's wait.
    fn look(&mut self, now: Time, guess: Option<Event>) -> io::Result<Vec<u32>> {
        self.ready.extend(guess);
        if !self.ready.is_empty() {
            return Ok(Vec::new());
        }
        self.last_ready.looked(now);
        self.poll(Duration::ZERO)
    }

    /// Does what streams have brought and what is due, and sends; true when there may be more. When
    /// nothing was to be done before something came, who has had data only is not asked to send.
    fn work(&mut self, now: Time, was_idle: bool) -> bool {
        // Streams that are late make the scope whole, and then they are looked at: else nobody
        // would sleep, and nobody look.
        let is_whole = self.scope(now, was_idle) == Scope::All;
        let more = self.streams.receive(now, &mut self.core, &self.ready, is_whole);
        self.counters.received_bytes += self.streams.take_received();
        self.ready.clear();
        let scope = self.scope(now, was_idle);
        if scope == Scope::All {
            self.due_at = None;
            self.core.handle_timeout(now);
            self.tidy(now);
        } else if was_idle && !self.core.may_give() && !self.transports.is_any_full() {
            return more;
        }
        self.send(now, scope) || more
    }

    /// A call has worked since `from`.
    fn note_work(&mut self, from: Time) {
        if self.load.is_timed() {
            let to = self.now();
            self.load.worked(from, to);
        }
    }

    /// Which share of the last second it has worked, in permille; looks that have found nothing are
    /// no work. From [`FULL_PERMILLE`] on it is full.
    #[must_use]
    pub fn busy_permille(&self) -> u16 {
        self.load.permille(self.now())
    }

    /// What is read without asking; what the last turn's wait has found is not asked for again.
    /// While no answer can be there, everything is looked at.
    fn guess(&mut self, now: Time, wait: Duration) -> Option<Event> {
        if !wait.is_zero() || !self.ready.is_empty() {
            return None;
        }
        if self.last_ready.has_time(now) {
            self.core.touch();
        }
        self.last_ready.guess(now)
    }

    /// Whether a turn that has found nothing has nothing to do.
    fn is_idle(&self, now: Time, wait: Duration) -> bool {
        wait.is_zero() && self.idle_until.is_some_and(|until| now < until)
    }

    /// When nothing was to be done before something came, only that has to be looked at, for a
    /// while also when it comes again and again.
    fn scope(&self, now: Time, was_idle: bool) -> Scope {
        let is_late = self.due_at.is_some_and(|at| at <= now);
        let is_watched = match was_idle {
            true => !self.core.is_touched(),
            false => self.core.is_watched(now),
        };
        if is_watched && !is_late { Scope::Flows } else { Scope::All }
    }

    /// Whether the last turn found nothing, and nothing was due: then nothing has changed.
    #[must_use]
    pub fn was_idle(&self) -> bool {
        self.was_idle
    }

    /// When the last turn was.
    #[must_use]
    pub fn turned_at(&self) -> Time {
        self.turned_at
    }

    /// Waits until something is ready; the tokens of what is watched for the application.
    fn poll(&mut self, wait: Duration) -> io::Result<Vec<u32>> {
        self.poller.wait(Some(wait), &mut self.ready)?;
        Ok(self.ready.iter().filter_map(Self::watched).collect())
    }

    /// What the turn loop waits at, for a thread that sleeps while others use the reactor, and then
    /// tells by [`Reactor::handle_ready`] what it has found.
    #[must_use]
    pub fn poller(&self) -> Poller {
        self.poller.twin()
    }

    /// The token of what is watched for the application, where an event is of that.
    #[must_use]
    pub fn watched(event: &Event) -> Option<u32> {
        event.token.checked_sub(OUTSIDE).map(|token| token as u32)
    }

    /// Somebody has looked at [`Reactor::poller`], so that the next turn need not. What is watched
    /// for the application is not told by that turn.
    pub fn handle_ready(&mut self, events: &[Event]) {
        let of_transports = events.iter().filter(|event| Self::watched(event).is_none());
        self.ready.extend(of_transports.take(EVENTS_MAX.saturating_sub(self.ready.len())));
    }

    /// When the next turn is due if nothing comes.
    pub fn next_deadline(&mut self) -> Option<Time> {
        let now = self.now();
        // A session for which data comes and goes would else go to rest, and wake, with every unit.
        let is_brisk = now.since(std::mem::replace(&mut self.asked_at, now)) < BRISK;
        self.idle_from(now, is_brisk)
    }

    /// When the next turn is due, before which there is nothing to do unless something comes;
    /// `keep` leaves those awake to whom something has just happened.
    fn idle_from(&mut self, now: Time, keep: bool) -> Option<Time> {
        let next = match keep {
            true => self.core.next_deadline_awake(now),
            false => self.core.next_deadline(now),
        };
        // While a transport is full nothing is sent, so what is due at once has to wait for it.
        let next = next.map(|at| at.max(self.transports.retry_at().unwrap_or(at)));
        let next = earlier(next, self.streams.next_deadline());
        self.due_at = earlier(next, self.transports.next_deadline());
        if !self.core.has_events() && !self.core.is_touched() {
            self.idle_until = Some(self.due_at.unwrap_or(Time::NEVER));
        }
        self.due_at
    }

    fn wait_time(&mut self, now: Time, most: Duration) -> Duration {
        if self.core.has_events() {
            return Duration::ZERO;
        }
        self.next_deadline().map_or(most, |at| at.since(now).min(most))
    }

    /// Takes what has come, where something has: how many packets, and whether there may be more.
    fn receive(&mut self, now: Time) -> (usize, bool) {
        let mut due = std::mem::take(&mut self.due);
        self.transports.take_due(&self.ready, &mut due);
        let (mut received, mut more) = (0, false);
        for token in &due {
            let (count, may_come) = self.receive_from(now, *token);
            (received, more) = (received + count, more | may_come);
        }
        self.due = due;
        (received, more)
    }

    /// The same of one transport.
    fn receive_from(&mut self, now: Time, token: u64) -> (usize, bool) {
        let Some(attached) = self.transports.get_mut(token) else { return (0, false) };
        let (mut received, mut has_capacity, mut more) = (0, false, false);
        for _ in 0..RECV_ROUNDS {
            let outcome = attached.transport.recv(now, self.core.pool(), &mut self.incoming);
            self.counters.received_bytes += outcome.bytes as u64;
            received += outcome.packet_count;
            for it in self.incoming.drain(..) {
                self.core.handle_datagram(now, ListenerId(token), it.remote, it.packet);
            }
            if let Some(it) = attached.transport.poll_too_large() {
                self.core.handle_network(
                    now,
                    NetworkEvent::TooLarge { remote: it.remote, len: it.datagram_len },
                );
            }
            if let Some(remote) = attached.transport.poll_refused() {
                self.counters.refused += 1;
                // The last words to one that was not there say nothing of who is dialed anew.
                if !attached.is_leaving() {
                    self.core.handle_network(now, NetworkEvent::Refused(remote));
                }
            }
            has_capacity |= outcome.writable;
            more = outcome.more && !outcome.blocked;
            if !more {
                break;
            }
        }
        if received > 0 {
            let of_it = |event: &&Event| key_of(event) == token;
            self.last_ready.brought(now, self.ready.iter().find(of_it).copied());
        }
        if has_capacity {
            self.transports.note_room(token);
        }
        if more {
            self.transports.note_more(token);
        }
        (received, more)
    }

    /// Closes data lanes and transports whose peers are gone.
    fn tidy(&mut self, now: Time) {
        self.streams.tidy(&mut self.core, &mut self.poller, &mut self.gone);
        while let Some((attached, waiting)) = self.transports.take_over(now) {
            self.gone.add(&*attached.transport);
            if let Some((transmit, _)) = waiting {
                self.core.transmitted(transmit);
            }
            if let Some(fd) = attached.transport.fd() {
                let _ = self.poller.remove(fd);
            }
        }
    }

    /// The next event for the application.
    pub fn poll_event(&mut self) -> Option<CoreEvent> {
        self.core.poll_event()
    }
}

/// Whose descriptor this is.
fn key_of(event: &Event) -> u64 {
    Registry::split(event.token).0
}

impl AsFd for Reactor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}
