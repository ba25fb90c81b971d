//! The control connections: QUIC as a stream of records.
//!
//! What it is: `quinn-proto`'s endpoint and connections behind inputs and outputs that speak of
//! [`Message`]s on streams. What it is not: the meaning of messages, or a socket.
//!
//! Invariants: a stream holds at most one unread record and [`OUT_MAX`] unsent bytes; windows,
//! streams, half-open connections and stateless answers are bounded (see `config`).

mod config;
mod connection;

pub use config::{ControlCrypto, EndpointKeys};

use crate::error::{Code, Error};
use bytes::BytesMut;
use connection::Connection;
use dacapo_base::{Random, Time};
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
pub(crate) struct ConnId(u64);

/// What the control connections report.
#[derive(Debug)]
pub(crate) enum ControlEvent {
    /// A connection that we dialed, or that came in, is through.
    Connected { conn: ConnId, remote: SocketAddr, dialed: bool },
    /// A connection is gone, and why, with the code that the peer's core said if it did.
    Lost { conn: ConnId, reason: String, said: Option<Code> },
    /// A record.
    Message { conn: ConnId, stream: StreamId, message: Message },
    /// A stream carries no records, or ended: nothing more will come on it.
    Ended { conn: ConnId, stream: StreamId, error: Option<RecordError> },
}

pub(crate) struct Control {
    endpoint: Endpoint,
    client: quinn_proto::ClientConfig,
    /// In boxes: a node of the map has room for eleven, 6 KB each.
    connections: BTreeMap<ConnId, Box<Connection>>,
    by_handle: BTreeMap<usize, ConnId>,
    next_id: u64,
    responses: VecDeque<(SocketAddr, Vec<u8>)>,
    events: VecDeque<ControlEvent>,
    /// Where `Time::ZERO` lies on the clock that `quinn-proto` counts with.
    origin: Instant,
    /// Whose turn it is to send.
    turn: Option<ConnId>,
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
            by_handle: BTreeMap::new(),
            next_id: 0,
            responses: VecDeque::new(),
            events: VecDeque::new(),
            origin,
            turn: None,
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

    /// Begins to connect; [`ControlEvent::Connected`] or [`ControlEvent::Lost`] will follow.
    pub fn connect(&mut self, now: Time, remote: SocketAddr) -> Result<ConnId, Error> {
        if self.connections.len() >= CONNECTIONS_MAX {
            return Err(Error::new(Code::TooMany, "control connections"));
        }
        let (client, instant) = (self.client.clone(), self.instant(now));
        let (handle, inner) = self
            .endpoint
            .connect(instant, client, remote, "dacapo")
            .map_err(|error| Error::new(Code::Unreachable, format!("{remote}: {error}")))?;
        Ok(self.adopt(now, handle, inner, true))
    }

    fn adopt(
        &mut self,
        now: Time,
        handle: ConnectionHandle,
        inner: quinn_proto::Connection,
        dialed: bool,
    ) -> ConnId {
        let id = ConnId(self.next_id);
        self.next_id += 1;
        self.by_handle.insert(handle.0, id);
        let connection = Connection::new(now, handle, inner, dialed);
        self.connections.insert(id, Box::new(connection));
        id
    }

    /// Takes a datagram that belongs to QUIC.
    pub fn handle_datagram(&mut self, now: Time, remote: SocketAddr, datagram: &[u8]) {
        self.now = now;
        let instant = self.instant(now);
        let mut answer = Vec::new();
        let data = BytesMut::from(datagram);
        match self.endpoint.handle(instant, remote, None, None, data, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(&id) = self.by_handle.get(&handle.0)
                    && let Some(connection) = self.connections.get_mut(&id)
                    && connection.may_come_from(remote)
                {
                    connection.inner.handle_event(event);
                    connection.note_received(datagram.len());
                    connection.may_send = true;
                    self.drive(id);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.accept(now, incoming, datagram.len());
            }
            Some(DatagramEvent::Response(transmit)) => self.respond(&transmit, &answer),
            None => {}
        }
    }

    /// Takes a connection in. Nothing is kept for an address that has not been proved when many are
    /// half open: it is asked to come again with a token (Retry, RFC 9000, section 8.1).
    fn accept(&mut self, now: Time, incoming: Incoming, len: usize) {
        let instant = self.instant(now);
        let mut answer = Vec::new();
        let unproved = self.connections.values().filter(|it| it.is_unproved()).count();
        let half_open = self.connections.values().filter(|it| it.is_half_open()).count();
        if unproved >= UNPROVED_MAX && !incoming.remote_address_validated() {
            return match self.endpoint.retry(incoming, &mut answer) {
                Ok(transmit) => self.respond(&transmit, &answer),
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
            return self.respond(&transmit, &answer);
        }
        match self.endpoint.accept(incoming, instant, &mut answer, None) {
            Ok((handle, inner)) => {
                let id = self.adopt(now, handle, inner, false);
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.note_received(len);
                }
                self.drive(id);
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.respond(&transmit, &answer);
                }
            }
        }
    }

    /// Forgets a connection at once, without a word to the other end.
    fn forget(&mut self, id: ConnId) {
        if let Some(connection) = self.connections.remove(&id) {
            self.by_handle.remove(&connection.handle.0);
            let gone = quinn_proto::EndpointEvent::drained();
            self.endpoint.handle_event(connection.handle, gone);
        }
    }

    fn respond(&mut self, transmit: &Transmit, bytes: &[u8]) {
        if self.responses.len() < self.answers_max {
            let bytes = bytes.get(..transmit.size).unwrap_or_default();
            self.responses.push_back((transmit.destination, bytes.to_vec()));
        }
    }

    /// Lets a connection and the endpoint tell each other, and reads what came.
    fn drive(&mut self, id: ConnId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        while let Some(event) = connection.inner.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(connection.handle, event) {
                connection.inner.handle_event(event);
                connection.may_send = true;
            }
        }
        connection.poll(id, &mut self.events);
        connection.write_all();
        if connection.inner.is_drained() {
            self.by_handle.remove(&connection.handle.0);
            self.connections.remove(&id);
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
    pub fn poll_transmit(&mut self, now: Time) -> Option<(SocketAddr, Vec<u8>)> {
        if let Some(response) = self.responses.pop_front() {
            return Some(response);
        }
        let instant = self.instant(now);
        let after = self.turn.map_or(0, |turn| turn.0 + 1);
        let order: Vec<ConnId> = self
            .connections
            .range(ConnId(after)..)
            .chain(self.connections.range(..ConnId(after)))
            .filter(|(_, connection)| connection.may_send && connection.has_allowance())
            .map(|(id, _)| *id)
            .collect();
        for id in order {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            let mut bytes = Vec::new();
            if let Some(transmit) = connection.inner.poll_transmit(instant, 1, &mut bytes) {
                bytes.truncate(transmit.size);
                connection.note_sent(bytes.len());
                self.turn = Some(id);
                self.drive(id);
                return Some((transmit.destination, bytes));
            }
            connection.may_send = false;
            self.drive(id);
        }
        None
    }

    pub fn next_deadline(&mut self) -> Option<Time> {
        let next = self.connections.values_mut().filter_map(|it| it.inner.poll_timeout()).min();
        let half_open = self.connections.values().filter(|it| it.is_half_open());
        let handshake = half_open.map(|it| it.since + HANDSHAKE_MAX).min();
        let record = self.connections.values().filter_map(|it| it.first_record_due()).min();
        let now = self.now;
        let closed = self.connections.values_mut().filter_map(|it| it.closed_until(now)).min();
        let ours = crate::flow::earlier(crate::flow::earlier(handshake, record), closed);
        crate::flow::earlier(next.map(|instant| self.time(instant)), ours)
    }

    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        let instant = self.instant(now);
        self.close_half_open(now);
        self.forget_closed(now);
        self.connections.values_mut().for_each(|it| it.watch_unspoken(now));
        let due =
            |it: &mut Box<Connection>| it.inner.poll_timeout().is_some_and(|at| at <= instant);
        let ids: Vec<ConnId> = self
            .connections
            .iter_mut()
            .filter_map(|(id, connection)| due(connection).then_some(*id))
            .collect();
        for id in ids {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.inner.handle_timeout(instant);
                connection.may_send = true;
                self.drive(id);
            }
        }
    }

    /// Forgets connections that have been closed for long enough.
    fn forget_closed(&mut self, now: Time) {
        let over = |it: &mut Connection| it.closed_until(now).is_some_and(|at| at <= now);
        let over: Vec<ConnId> =
            self.connections.iter_mut().filter_map(|(id, it)| over(it).then_some(*id)).collect();
        over.into_iter().for_each(|id| self.forget(id));
    }

    /// Closes connections that came in and do not get through.
    fn close_half_open(&mut self, now: Time) {
        let over = |it: &Connection| it.is_half_open() && it.since + HANDSHAKE_MAX <= now;
        let ids: Vec<ConnId> =
            self.connections.iter().filter(|(_, it)| over(it)).map(|(id, _)| *id).collect();
        for id in ids {
            self.close(now, id, Code::NoAnswer, "the handshake took too long");
        }
    }

    /// Opens a stream; `None` when the connection is gone or has too many.
    pub fn open_stream(&mut self, conn: ConnId) -> Option<StreamId> {
        self.connections.get_mut(&conn)?.open_stream()
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
        let connection = self.connections.get_mut(&conn).ok_or(Malformed)?;
        connection.queue(stream, message)?;
        self.drive(conn);
        Ok(())
    }

    /// Ends our side of a stream after what was sent.
    pub fn finish(&mut self, conn: ConnId, stream: StreamId) {
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.finish(stream);
            self.drive(conn);
        }
    }

    /// Breaks a stream in both directions.
    pub fn reset(&mut self, conn: ConnId, stream: StreamId, code: Code) {
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.reset(stream, VarInt::from_u32(code as u32));
            self.drive(conn);
        }
    }

    pub fn close(&mut self, now: Time, conn: ConnId, code: Code, text: &str) {
        self.now = now;
        let instant = self.instant(now);
        if let Some(connection) = self.connections.get_mut(&conn) {
            let reason = bytes::Bytes::copy_from_slice(text.as_bytes());
            connection.inner.close(instant, VarInt::from_u32(code as u32), reason);
            connection.may_send = true;
            self.drive(conn);
        }
    }

    /// Asks the peer for a sign of life.
    pub fn ping(&mut self, conn: ConnId) {
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.inner.ping();
            connection.may_send = true;
        }
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

    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }
}
