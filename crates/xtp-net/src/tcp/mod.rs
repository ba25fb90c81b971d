//! [`Tcp`]: packets as records of TCP connections: a network with connections, in place of
//! ATM.
//!
//! ```text
//!   dialer -> preface: the port at which it listens        records.rs: the bytes
//!   both   -> record, record, …: a packet each             line.rs: the socket
//! ```
//!
//! The preface says the port at which who dials can be dialed itself, as a call of ATM says the
//! number of who calls, so a peer has one address whoever made the connection. Its host is the one
//! that the connection comes from; its port is believed without a proof, so whoever can connect
//! from a host can take the place of every peer there that has no connection yet, and packets for
//! that peer go to it.
//!
//! What TCP repairs is of no use to XTP, which repairs itself: a connection that breaks takes with
//! it what was on its way.
//!
//! Invariants: at most `GREETINGS_MAX` connections that have not said their preface, each for
//! `GREETING_MAX` at most; of each connection at most a record and a read of 64 KiB are
//! kept, and a record that could not be written whole.

mod line;
mod records;

use crate::capture::Carriage;
use crate::connected::{ConnectionEvent, ConnectionId, ConnectionOriented, Received};
use crate::fault::{AddressError, BindError, Fault};
use crate::network::SendError;
use dacapo_base::Time;
use dacapo_io::Pause;
use dacapo_io::address::one_form;
use dacapo_sys::poll::{self, Interest, Poller, Registry};
use dacapo_sys::tcp::{Config, Listener, Stream};
use line::{Line, Reading, State};
pub use records::{NotRecords, PREFACE_LEN, Records, preface_of, record_head};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

/// The longest packet where nothing else is said.
const PACKET_LEN: usize = 16 << 10;
/// The longest record.
const PACKET_LEN_MAX: usize = 65_535;
/// The least that `packet_len_max` may be.
const PACKET_LEN_MIN: usize = 128;
/// Connections without a preface; of more the oldest goes.
const GREETINGS_MAX: usize = 64;
/// How long a preface is waited for.
const GREETING_MAX: Duration = Duration::from_secs(10);
/// Connections that are accepted in a turn.
const ACCEPTS_MAX: usize = 16;
/// The listener's token; connections have their numbers, from 1 on.
const LISTENER: u64 = 0;

/// Packets over TCP.
#[derive(Debug)]
pub struct Tcp {
    listener: Listener,
    poller: Poller,
    local: SocketAddr,
    packet_len_max: usize,
    lines: BTreeMap<u64, Line>,
    next: u64,
    ready: VecDeque<u64>,
    events: VecDeque<ConnectionEvent>,
    polled: Vec<poll::Event>,
    /// The connection that has brought what came last.
    brought_by: u64,
    pause: Pause,
    strangers: u64,
}

impl Tcp {
    /// Listens at an address; packets are of 16 KiB at most, or as asked.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind(local: SocketAddr, packet_len_max: Option<usize>) -> Result<Self, BindError> {
        let packet_len_max = packet_len_max.unwrap_or(PACKET_LEN);
        if !(PACKET_LEN_MIN..=PACKET_LEN_MAX).contains(&packet_len_max) {
            return Err(BindError::PacketLen { len: packet_len_max, most: PACKET_LEN_MAX });
        }
        let failed = |error| BindError::of(error, None, local);
        let listener = Listener::bind(local, &Config::default()).map_err(failed)?;
        let poller = Poller::new().map_err(BindError::Other)?;
        poller.add(listener.as_fd(), LISTENER, Interest::Read).map_err(BindError::Other)?;
        let local = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            poller,
            local,
            packet_len_max,
            lines: BTreeMap::new(),
            next: 1,
            ready: VecDeque::new(),
            events: VecDeque::new(),
            polled: Vec::new(),
            brought_by: LISTENER,
            pause: Pause::default(),
            strangers: 0,
        })
    }

    /// Connections that were let go because what they said is not this.
    #[must_use]
    pub const fn strangers(&self) -> u64 {
        self.strangers
    }

    fn add(&mut self, stream: Stream, state: State, remote: SocketAddr) -> io::Result<u64> {
        let id = self.next;
        self.next = self.next.saturating_add(1);
        let is_dialed = state == State::Dialing;
        let interest = if is_dialed { Interest::ReadWrite } else { Interest::Read };
        self.poller.add(stream.as_fd(), id, interest)?;
        self.lines.insert(id, Line::new(stream, state, remote, self.local.port()));
        Ok(id)
    }

    fn accept(&mut self, now: Time) {
        for _ in 0..ACCEPTS_MAX {
            match self.listener.accept() {
                Ok(Some((stream, remote))) => {
                    self.limit_greetings();
                    let until = now + GREETING_MAX;
                    // One that cannot be watched is closed.
                    let _ = self.add(stream, State::Greeting { until }, remote);
                }
                Ok(None) => return,
                Err(_) => {
                    // The listener stays readable: it is not looked at for a moment.
                    let (poller, listener) = (&self.poller, self.listener.as_fd());
                    return self.pause.begin(now, || poller.remove(listener));
                }
            }
        }
    }

    fn limit_greetings(&mut self) {
        let is_greeting = |line: &Line| matches!(line.state, State::Greeting { .. });
        let greetings = self.lines.iter().filter(|(_, line)| is_greeting(line));
        let ids: Vec<u64> = greetings.map(|(id, _)| *id).collect();
        if let Some(oldest) = ids.first().filter(|_| ids.len() >= GREETINGS_MAX) {
            self.strangers = self.strangers.saturating_add(1);
            self.remove(*oldest);
        }
    }

    fn remove(&mut self, id: u64) -> Option<Line> {
        let line = self.lines.remove(&id)?;
        // A descriptor that is closed is watched no more.
        let _ = self.poller.remove(line.stream.as_fd());
        Some(line)
    }

    /// A connection is gone; who uses it is told.
    fn lose(&mut self, id: u64, fault: Option<Fault>) {
        let Some(line) = self.remove(id) else { return };
        if matches!(line.state, State::Greeting { .. }) {
            self.strangers = self.strangers.saturating_add(1);
        } else {
            self.events.push_back(ConnectionEvent::Closed { id: ConnectionId(id), fault });
        }
    }

    fn handle_ready(&mut self, now: Time, event: poll::Event) {
        let id = event.token;
        if id == LISTENER {
            return self.accept(now);
        }
        if event.writable {
            self.flush(id);
        }
        let Some(line) = self.lines.get_mut(&id).filter(|_| event.readable || event.closed) else {
            return;
        };
        line.is_drained = false;
        if matches!(line.state, State::Greeting { .. }) {
            return self.greet(id);
        }
        if !line.is_ready {
            line.is_ready = true;
            self.ready.push_back(id);
        }
    }

    /// Writes what could not be written before.
    fn flush(&mut self, id: u64) {
        let Some(line) = self.lines.get_mut(&id) else { return };
        match line.flush() {
            Ok(false) => {}
            Ok(true) => {
                let _ = self.poller.modify(line.stream.as_fd(), id, Interest::Read);
                if line.state == State::Dialing {
                    line.state = State::Open;
                    self.events.push_back(ConnectionEvent::Open(ConnectionId(id)));
                }
            }
            Err(error) => self.lose(id, Some(fault_of(&error))),
        }
    }

    /// Reads the preface.
    fn greet(&mut self, id: u64) {
        let Some(line) = self.lines.get_mut(&id) else { return };
        let read = line.read();
        match (line.records.preface(), read) {
            (Ok(Some(port)), _) => {
                line.state = State::Open;
                let peer = SocketAddr::new(line.remote.ip(), port);
                let peer = one_form(peer, line.remote);
                // More may have come with it.
                line.is_ready = true;
                self.ready.push_back(id);
                self.events.push_back(ConnectionEvent::Incoming { id: ConnectionId(id), peer });
            }
            (Ok(None), Ok(Reading::Some | Reading::Nothing)) => {}
            _ => self.lose(id, None),
        }
    }

    fn end_greetings(&mut self, now: Time) {
        let is_late = |line: &Line| matches!(line.state, State::Greeting { until } if until <= now);
        let late = self.lines.iter().filter(|(_, line)| is_late(line));
        let ids: Vec<u64> = late.map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.lose(id, None));
    }
}

fn fault_of(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Fault::Refused,
        io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown
        | io::ErrorKind::TimedOut
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset => Fault::Unreachable,
        _ => Fault::of(error),
    }
}

impl ConnectionOriented for Tcp {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn packet_len_max(&self) -> usize {
        self.packet_len_max
    }

    fn carriage(&self) -> Carriage {
        Carriage::Stream
    }

    fn address(&self, peer: SocketAddr) -> Result<SocketAddr, AddressError> {
        if peer.is_ipv4() != self.local.is_ipv4() {
            return Err(AddressError::Family { peer, local: self.local });
        }
        if peer.port() == 0 {
            return Err(AddressError::NoPort(peer));
        }
        Ok(one_form(peer, peer))
    }

    fn watch(&mut self, registry: Registry) -> io::Result<()> {
        registry.add(self.poller.as_fd(), 0, Interest::Read)
    }

    fn connect(&mut self, _now: Time, peer: SocketAddr) -> Result<ConnectionId, Fault> {
        let stream = Stream::connect(peer, &Config::default());
        let id = stream.and_then(|stream| self.add(stream, State::Dialing, peer));
        id.map(ConnectionId).map_err(|error| fault_of(&error))
    }

    fn close(&mut self, id: ConnectionId) {
        self.remove(id.0);
    }

    fn send(&mut self, id: ConnectionId, train: &[u8], segment: usize) -> Result<usize, SendError> {
        let gone = SendError::Fault(Fault::Unreachable);
        let segment = u16::try_from(segment).ok().filter(|len| *len > 0);
        let segment = segment.ok_or(SendError::Fault(Fault::TooLong { mtu: None }))?;
        let Some(line) = self.lines.get_mut(&id.0) else { return Err(gone) };
        if line.is_blocked() || line.state != State::Open {
            return Err(SendError::WouldBlock);
        }
        let sent = line.send(train, segment);
        if line.is_blocked() || matches!(sent, Ok(0)) {
            let _ = self.poller.modify(line.stream.as_fd(), id.0, Interest::ReadWrite);
        }
        match sent {
            Ok(0) => Err(SendError::WouldBlock),
            Ok(taken) => Ok(taken),
            Err(error) => {
                self.lose(id.0, Some(fault_of(&error)));
                Err(gone)
            }
        }
    }

    fn received(&self) -> Received<'_> {
        let line = self.lines.get(&self.brought_by);
        line.map(|line| line.records.run()).unwrap_or_default()
    }

    fn recv(&mut self) -> Option<ConnectionId> {
        // Each round takes packets, reads, or takes a connection off the list.
        while let Some(id) = self.ready.front().copied() {
            let Some(line) = self.lines.get_mut(&id) else {
                self.ready.pop_front();
                continue;
            };
            match line.records.next_run() {
                Ok(true) => {
                    // The next in turn is another's.
                    self.ready.rotate_left(1);
                    self.brought_by = id;
                    return Some(ConnectionId(id));
                }
                Err(NotRecords) => {
                    self.strangers = self.strangers.saturating_add(1);
                    self.lose(id, Some(Fault::Truncated));
                    continue;
                }
                Ok(false) => {}
            }
            match line.read() {
                Ok(Reading::Some) => {}
                Ok(Reading::Nothing) => {
                    line.is_ready = false;
                    self.ready.pop_front();
                }
                Ok(Reading::End) => self.lose(id, None),
                Err(error) => self.lose(id, Some(fault_of(&error))),
            }
        }
        None
    }

    fn poll_event(&mut self) -> Option<ConnectionEvent> {
        self.events.pop_front()
    }

    fn deadline(&self) -> Time {
        let greetings = self.lines.values().filter_map(|line| match line.state {
            State::Greeting { until } => Some(until),
            _ => None,
        });
        let rest = self.pause.until().unwrap_or(Time::NEVER);
        let ready = if self.ready.is_empty() { Time::NEVER } else { Time::ZERO };
        greetings.min().unwrap_or(Time::NEVER).min(rest).min(ready)
    }

    fn handle_time(&mut self, now: Time) {
        let (poller, listener) = (&self.poller, self.listener.as_fd());
        self.pause.end(now, || poller.add(listener, LISTENER, Interest::Read));
        self.end_greetings(now);
        let mut polled = std::mem::take(&mut self.polled);
        // A look only; without one there is one with the next turn.
        if self.poller.wait(Some(Duration::ZERO), &mut polled).is_ok() {
            polled.drain(..).for_each(|event| self.handle_ready(now, event));
        }
        self.polled = polled;
    }
}
