//! The control connections: QUIC as a stream of records.
//!
//! `quinn-proto`'s endpoint and connections behind inputs and outputs that speak of [`Message`]s on
//! streams.
//!
//! Invariants: a stream holds at most one unread record and [`OUT_MAX`] unsent bytes; windows,
//! streams, half-open connections and stateless answers are bounded (see `config`).

mod aliases;
mod config;
mod connection;
mod outbox;
#[cfg(test)]
pub(crate) mod tests;

pub use config::{ControlCrypto, EndpointKeys};

use crate::error::{Code, Error};
use crate::ready_set::ReadySet;
use crate::transmit::ListenerId;
use aliases::Aliases;
use bytes::BytesMut;
use connection::Connection;
use dacapo_base::{Address, Random, Time, earlier};
use dacapo_wire::Malformed;
use dacapo_wire::message::Message;
use dacapo_wire::record::RecordError;
use quinn_proto::{
    ConnectionHandle, DatagramEvent, Endpoint, Incoming, StreamId, Transmit, VarInt,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most bytes that wait on a stream; more is a peer that does not read, and ends the stream.
pub(crate) const OUT_MAX: usize = 256 * 1024;

/// The most connections, half-open ones included.
pub(crate) const CONNECTIONS_MAX: usize = 4_096;

/// Connections that came in and are not through: from this many on, addresses must be proved first.
const UNPROVED_MAX: usize = 16;

/// The most connections that came in and are not through, addresses proved.
const HALF_OPEN_MAX: usize = 256;

/// How long a connection that came in may take to be through.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// A connection, by the number that `quinn-proto` gave it and ours, so that a number that is used
/// again is not mistaken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnId(pub(crate) u64);

/// What the control connections report.
#[derive(Debug)]
pub(crate) enum ControlEvent {
    /// A connection that we dialed, or that came in, is through.
    Connected { conn: ConnId, remote: Address, dialed: bool },
    /// A connection is gone, and why, with the code that the peer's core said if it did.
    Lost { conn: ConnId, reason: String, said: Option<Code> },
    /// A record.
    Message { conn: ConnId, stream: StreamId, message: Message },
    /// A stream carries no records, or ended: nothing more will come on it.
    Ended { conn: ConnId, stream: StreamId, error: Option<RecordError> },
}

/// A datagram to be sent.
#[derive(Debug)]
pub(crate) struct Datagram {
    /// From where; `None` for a connection that was dialed.
    pub local: Option<ListenerId>,
    pub remote: Address,
    pub bytes: Vec<u8>,
}

pub(crate) struct Control {
    endpoint: Endpoint,
    client: quinn_proto::ClientConfig,
    /// In boxes: a node of the map has room for eleven, 6 KB each.
    connections: BTreeMap<ConnId, Box<Connection>>,
    /// Which of them are looked at: something has happened to them, or they have something to send.
    ready: ReadySet<ConnId>,
    /// How often one was looked at.
    watched: u64,
    by_handle: BTreeMap<usize, ConnId>,
    aliases: Aliases,
    next_id: u64,
    responses: VecDeque<Datagram>,
    events: VecDeque<ControlEvent>,
    /// Where `Time::ZERO` lies on the clock that `quinn-proto` counts with.
    origin: Instant,
    /// Whose turn it is to send.
    turn: Option<ConnId>,
    /// Something has happened to a connection since none had anything to send.
    is_touched: bool,
    answers_max: usize,
    /// The time of the last call that said one.
    now: Time,
}

impl Control {
    /// `answers_max` stateless answers may wait.
    pub fn new(
        crypto: ControlCrypto,
        random: &mut Random,
        origin: Instant,
        answers_max: usize,
    ) -> Self {
        let endpoint = Endpoint::new(
            Arc::new(config::endpoint(&crypto.keys, random)),
            Some(Arc::new(config::server(&crypto))),
            false,
            None,
        );
        Self {
            endpoint,
            client: config::client(&crypto),
            connections: BTreeMap::new(),
            ready: ReadySet::default(),
            watched: 0,
            by_handle: BTreeMap::new(),
            aliases: Aliases::default(),
            next_id: 0,
            responses: VecDeque::new(),
            events: VecDeque::new(),
            origin,
            turn: None,
            is_touched: false,
            answers_max,
            now: Time::ZERO,
        }
    }

    fn instant(&self, now: Time) -> Instant {
        self.origin + Duration::from_nanos(now.as_nanos())
    }

    fn time(&self, instant: Instant) -> Time {
        Time::ZERO + instant.saturating_duration_since(self.origin)
    }

    fn alias(&mut self, address: Address) -> SocketAddr {
        let connections = &self.connections;
        self.aliases.alias(address, || connections.values().map(|it| it.remote()).collect())
    }

    /// Begins to connect; [`ControlEvent::Connected`] or [`ControlEvent::Lost`] will follow.
    pub fn connect(&mut self, now: Time, remote: Address) -> Result<ConnId, Error> {
        if self.connections.len() >= CONNECTIONS_MAX {
            return Err(Error::new(Code::TooMany, "control connections"));
        }
        let (client, instant) = (self.client.clone(), self.instant(now));
        let alias = self.alias(remote);
        let (handle, inner) = self
            .endpoint
            .connect(instant, client, alias, "dacapo")
            .map_err(|error| Error::new(Code::Unreachable, format!("{remote}: {error}")))?;
        Ok(self.adopt(now, handle, inner, None))
    }

    fn adopt(
        &mut self,
        now: Time,
        handle: ConnectionHandle,
        inner: quinn_proto::Connection,
        local: Option<ListenerId>,
    ) -> ConnId {
        let id = ConnId(self.next_id);
        self.next_id += 1;
        self.by_handle.insert(handle.0, id);
        let mut connection = Connection::new(now, handle, inner, local);
        self.ready.wake(id, &mut connection.idle);
        self.connections.insert(id, Box::new(connection));
        id
    }

    /// A connection that something happens to: it is awake from now on.
    fn touch(&mut self, id: ConnId) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(&id)?;
        self.ready.wake(id, &mut connection.idle);
        self.is_touched = true;
        Some(connection)
    }

    /// Whether [`Control::poll_transmit`] may have something although it gave nothing before.
    #[inline]
    pub fn may_give(&self) -> bool {
        self.is_touched
    }

    /// Takes a datagram that belongs to QUIC; the connection that it came for, if there is one.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        local: ListenerId,
        remote: Address,
        datagram: &[u8],
    ) -> Option<ConnId> {
        self.now = now;
        let (instant, remote) = (self.instant(now), self.alias(remote));
        let mut answer = Vec::new();
        let data = BytesMut::from(datagram);
        match self.endpoint.handle(instant, remote, None, None, data, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let id = self.by_handle.get(&handle.0).copied()?;
                let connection = self.touch(id).filter(|it| it.may_come_from(remote))?;
                connection.inner.handle_event(event);
                connection.note_received(datagram.len());
                connection.may_send = true;
                connection.may_read();
                if connection.has_unread() {
                    self.read_on(id);
                }
                self.drive(id);
                return Some(id);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.accept(now, local, incoming, datagram.len());
            }
            Some(DatagramEvent::Response(transmit)) => self.respond(local, &transmit, &answer),
            None => {}
        }
        None
    }

    /// Takes a connection in. Nothing is kept for an address that has not been proved when many are
    /// half open: it is asked to come again with a token (Retry, RFC 9000, section 8.1).
    fn accept(&mut self, now: Time, local: ListenerId, incoming: Incoming, len: usize) {
        let instant = self.instant(now);
        let mut answer = Vec::new();
        let unproved = self.connections.values().filter(|it| it.is_unproved()).count();
        let half_open = self.connections.values().filter(|it| it.is_half_open()).count();
        if unproved >= UNPROVED_MAX && !incoming.remote_address_validated() {
            return match self.endpoint.retry(incoming, &mut answer) {
                Ok(transmit) => self.respond(local, &transmit, &answer),
                Err(error) => self.endpoint.ignore(error.into_incoming()),
            };
        }
        if half_open >= HALF_OPEN_MAX {
            // A handshake takes two round trips: the oldest is the one that will not come.
            let oldest = self.connections.iter().find(|(_, it)| it.is_half_open());
            let oldest = oldest.map(|(id, _)| *id);
            oldest.into_iter().for_each(|id| self.forget(id));
        }
        if self.connections.len() >= CONNECTIONS_MAX {
            let transmit = self.endpoint.refuse(incoming, &mut answer);
            return self.respond(local, &transmit, &answer);
        }
        match self.endpoint.accept(incoming, instant, &mut answer, None) {
            Ok((handle, inner)) => {
                let id = self.adopt(now, handle, inner, Some(local));
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.note_received(len);
                }
                self.drive(id);
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.respond(local, &transmit, &answer);
                }
            }
        }
    }

    /// Forgets a connection at once, without a word to the other end.
    fn forget(&mut self, id: ConnId) {
        if let Some(connection) = self.remove(id) {
            let gone = quinn_proto::EndpointEvent::drained();
            self.endpoint.handle_event(connection.handle, gone);
        }
    }

    fn remove(&mut self, id: ConnId) -> Option<Box<Connection>> {
        let mut connection = self.connections.remove(&id)?;
        self.events.extend(connection.take_lost());
        self.ready.remove(id, connection.idle);
        self.by_handle.remove(&connection.handle.0);
        Some(connection)
    }

    fn respond(&mut self, local: ListenerId, transmit: &Transmit, bytes: &[u8]) {
        if self.responses.len() < self.answers_max {
            let bytes = bytes.get(..transmit.size).unwrap_or_default();
            let (local, remote) = (Some(local), self.aliases.address(transmit.destination));
            self.responses.push_back(Datagram { local, remote, bytes: bytes.to_vec() });
        }
    }

    /// Reads what a connection has brought and was not read yet.
    fn read_on(&mut self, id: ConnId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.read_on(id, &mut self.events);
        }
    }

    /// Lets a connection and the endpoint tell each other, and reads what came.
    fn drive(&mut self, id: ConnId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        self.ready.wake(id, &mut connection.idle);
        while let Some(event) = connection.inner.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(connection.handle, event) {
                connection.inner.handle_event(event);
                connection.may_send = true;
            }
        }
        connection.poll(id, &self.aliases, &mut self.events);
        connection.write_all();
        if connection.inner.is_drained() {
            self.remove(id);
        } else if connection.is_stuck() {
            self.forget(id);
        } else {
            connection.closed_until(self.now);
        }
    }

    pub fn poll_event(&mut self) -> Option<ControlEvent> {
        self.events.pop_front()
    }

    /// The next datagram to send, connection by connection in turn.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        let datagram = self.responses.pop_front().or_else(|| self.poll_connections(now));
        self.is_touched &= datagram.is_some();
        datagram
    }

    fn poll_connections(&mut self, now: Time) -> Option<Datagram> {
        // Who has something to send does not rest.
        if !self.ready.is_any_awake() {
            return None;
        }
        let instant = self.instant(now);
        let mut last = self.turn;
        for _ in 0..self.connections.len() {
            let id = self.next_sender(last)?;
            last = Some(id);
            let connection = self.connections.get_mut(&id)?;
            connection.allow_streams();
            let mut bytes = Vec::new();
            if let Some(transmit) = connection.inner.poll_transmit(instant, 1, &mut bytes) {
                bytes.truncate(transmit.size);
                connection.note_sent(bytes.len());
                let (local, remote) =
                    (connection.local, self.aliases.address(transmit.destination));
                self.turn = Some(id);
                self.drive(id);
                return Some(Datagram { local, remote, bytes });
            }
            connection.may_send = false;
            self.drive(id);
        }
        None
    }

    /// The connection behind this one, of those that may have something to send.
    fn next_sender(&self, last: Option<ConnId>) -> Option<ConnId> {
        let wants = |id: &ConnId| self.connections.get(id).is_some_and(|it| it.wants_to_send());
        self.ready.awake_after(last).find(wants)
    }

    /// When the first connection is due: at once where it has been given something to send since it
    /// was last asked. Those that have nothing to send go to rest.
    pub fn next_deadline(&mut self) -> Option<Time> {
        let now = self.now;
        if !self.ready.is_any_awake() {
            return self.ready.next_due();
        }
        let awake: Vec<ConnId> = self.ready.awake().collect();
        let mut next = None;
        for id in awake {
            let due = self.deadline_of(id);
            match self.connections.get_mut(&id) {
                Some(it) if it.wants_to_send() => next = Some(now),
                Some(it) => _ = self.ready.rest(id, &mut it.idle, due),
                None => {}
            }
        }
        earlier(next, self.ready.next_due())
    }

    /// When a connection is due: its own timers, and what it has to have done by then.
    fn deadline_of(&mut self, id: ConnId) -> Option<Time> {
        let now = self.now;
        let connection = self.connections.get_mut(&id)?;
        let handshake = connection.is_half_open().then(|| connection.since + HANDSHAKE_MAX);
        let ours = earlier(handshake, connection.first_record_due(now));
        let ours = earlier(ours, connection.closed_until(now));
        if connection.has_unread() {
            return Some(now);
        }
        let timer = connection.inner.poll_timeout();
        earlier(ours, timer.map(|instant| self.time(instant)))
    }

    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        while let Some(id) = self.ready.first_due(now) {
            self.touch(id);
        }
        if !self.ready.is_any_awake() {
            return;
        }
        let awake: Vec<ConnId> = self.ready.awake().collect();
        self.watched += awake.len() as u64;
        awake.into_iter().for_each(|id| self.watch(now, id));
    }

    /// For tests: from now on who rests is not woken by time.
    pub fn forget_due(&mut self) {
        self.ready.forget_due();
    }

    /// For tests: looks at every connection, due or not, and counts nothing.
    pub fn visit_all(&mut self, now: Time) {
        let watched = self.watched;
        let all: Vec<ConnId> = self.connections.keys().copied().collect();
        for id in all {
            self.touch(id);
        }
        self.handle_timeout(now);
        self.watched = watched;
    }

    /// Does what is due for one connection.
    fn watch(&mut self, now: Time, id: ConnId) {
        let instant = self.instant(now);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.is_half_open() && connection.since + HANDSHAKE_MAX <= now {
            self.close(now, id, Code::NoAnswer, "the handshake took too long");
            return;
        }
        if connection.closed_until(now).is_some_and(|at| at <= now) {
            return self.forget(id);
        }
        connection.watch_unspoken(now);
        let is_due = connection.inner.poll_timeout().is_some_and(|at| at <= instant);
        if is_due {
            connection.inner.handle_timeout(instant);
            connection.may_send = true;
        }
        if is_due || connection.has_unread() {
            self.read_on(id);
            self.drive(id);
        }
    }

    /// How often a connection was looked at, once for each turn in which something had happened to
    /// it, was due or was to be sent.
    pub fn watched(&self) -> u64 {
        self.watched
    }

    /// Opens a stream; `None` when the connection is gone or has too many.
    pub fn open_stream(&mut self, conn: ConnId) -> Option<StreamId> {
        self.touch(conn)?.open_stream()
    }

    /// Sends a record.
    ///
    /// # Errors
    /// [`Malformed`] when the stream is gone, the peer does not read, or the message exceeds a
    /// bound.
    pub fn send(
        &mut self,
        conn: ConnId,
        stream: StreamId,
        message: &Message,
    ) -> Result<(), Malformed> {
        let connection = self.touch(conn).ok_or(Malformed)?;
        connection.queue(stream, message)?;
        self.drive(conn);
        Ok(())
    }

    /// Ends our side of a stream after what was sent.
    pub fn finish(&mut self, conn: ConnId, stream: StreamId) {
        if let Some(connection) = self.touch(conn) {
            connection.finish(stream);
            self.drive(conn);
        }
    }

    /// Breaks a stream in both directions.
    pub fn reset(&mut self, conn: ConnId, stream: StreamId, code: Code) {
        if let Some(connection) = self.touch(conn) {
            connection.reset(stream, VarInt::from_u32(code as u32));
            self.drive(conn);
        }
    }

    pub fn close(&mut self, now: Time, conn: ConnId, code: Code, text: &str) {
        self.now = now;
        let instant = self.instant(now);
        if let Some(connection) = self.touch(conn) {
            let reason = bytes::Bytes::copy_from_slice(text.as_bytes());
            connection.inner.close(instant, VarInt::from_u32(code as u32), reason);
            connection.may_send = true;
            self.drive(conn);
        }
    }

    /// Asks the peer for a sign of life.
    pub fn ping(&mut self, conn: ConnId) {
        if let Some(connection) = self.touch(conn) {
            connection.inner.ping();
            connection.may_send = true;
        }
    }

    /// Where a connection has come in; `None` for one that was dialed.
    pub fn local(&self, conn: ConnId) -> Option<ListenerId> {
        self.connections.get(&conn)?.local
    }

    /// Who the peer says it is, once the handshake is through.
    pub fn peer_identity(&self, conn: ConnId) -> Option<Box<dyn std::any::Any>> {
        self.connections.get(&conn)?.inner.crypto_session().peer_identity()
    }

    /// A count that rises with everything authentic that comes from the peer.
    pub fn heard(&self, conn: ConnId) -> u64 {
        self.connections.get(&conn).map_or(0, |it| it.heard())
    }

    /// A count that rises with everything that the peer acknowledges.
    pub fn acked(&self, conn: ConnId) -> u64 {
        self.connections.get(&conn).map_or(0, |it| it.acked())
    }

    /// The shortest round trip of a connection; none before anything was acknowledged.
    pub fn rtt_min(&self, conn: ConnId) -> Option<Duration> {
        self.connections.get(&conn)?.rtt_min()
    }

    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }
}
