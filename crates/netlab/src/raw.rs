//! [`Peer`]: somebody who speaks QUIC with a core, and on it whatever a test says.
//!
//! ```text
//!   open, push --> streams --- poll_transmit --> datagrams for the core's control port
//!   records <----- streams <-- handle ---------- datagrams that the core has sent
//! ```
//!
//! It is no node of a [`crate::World`]: who holds it carries its datagrams.
//!
//! Invariants: everything random follows from the seed; what a core sends are records, anything
//! else is a bug of the core.

use crate::plain_tls::{self, cid::SeededCids, clock::WorldClock};
use dacapo_base::{Random, Time};
use dacapo_wire::data::{Belongs, classify};
use dacapo_wire::message::Message;
use dacapo_wire::probe::Probe;
use dacapo_wire::record::Reader;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId, DatagramEvent, Dir,
    Endpoint, EndpointConfig, Event, Incoming, ReadError, ServerConfig, StreamId, TransportConfig,
    VarInt, WriteError, crypto,
};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// A stream as the peer sees it.
#[derive(Default)]
pub struct Read {
    reader: Reader,
    /// The records that came.
    pub records: VecDeque<Message>,
    /// The stream ended, and with which code when it was reset.
    pub ended: Option<Option<u64>>,
}

/// Somebody who speaks QUIC with a core.
pub struct Peer {
    endpoint: Endpoint,
    /// `None` while it waits for a core.
    connection: Option<(ConnectionHandle, Connection)>,
    /// Where its control comes from.
    pub control: SocketAddr,
    /// Where its data come from.
    pub data: SocketAddr,
    /// The handshake is over.
    pub connected: bool,
    /// The connection is gone, and why.
    pub lost: Option<ConnectionError>,
    /// Its streams.
    pub streams: BTreeMap<StreamId, Read>,
    /// The streams that the core has opened, in order.
    pub accepted: Vec<StreamId>,
    /// What came to its data port.
    pub datagrams: Vec<Vec<u8>>,
    unsent: BTreeMap<StreamId, Vec<u8>>,
}

/// Everything random of a peer.
struct Keys(Random);

impl Keys {
    fn new(seed: u64) -> Self {
        Self(Random::from_number(seed ^ 0x0BAD))
    }

    fn next(&mut self) -> [u8; 32] {
        let mut key = [0; 32];
        self.0.fill(&mut key);
        key
    }
}

fn endpoint_config(keys: &mut Keys) -> EndpointConfig {
    let mut config = EndpointConfig::new(plain_tls::hmac_key(keys.next()));
    config.grease_quic_bit(false).rng_seed(Some(keys.next()));
    let ids = SeededCids::new(keys.next());
    config.cid_generator(move || Box::new(ids.clone()));
    config
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(None)
        .mtu_discovery_config(None)
        // As small as a core's, so that what it does not read waits at the core.
        .stream_receive_window(VarInt::from_u32(64 * 1_024))
        .receive_window(VarInt::from_u32(256 * 1_024));
    Arc::new(transport)
}

fn client_config(
    keys: &mut Keys,
    wrap: impl FnOnce(Arc<dyn crypto::ClientConfig>) -> Arc<dyn crypto::ClientConfig>,
) -> ClientConfig {
    let mut client = ClientConfig::new(wrap(plain_tls::client_config(keys.next())));
    let destination = keys.next();
    client.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&destination[..16])));
    client.transport_config(transport());
    client
}

/// The first datagrams of as many clients, no two alike.
///
/// # Panics
/// Nobody can be dialed at the address.
#[must_use]
pub fn initials(now: Instant, to: SocketAddr, seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut keys = Keys::new(seed);
    let mut endpoint = Endpoint::new(Arc::new(endpoint_config(&mut keys)), None, false, None);
    let first = |_| {
        let client = client_config(&mut keys, |crypto| crypto);
        let (_, mut inner) = endpoint.connect(now, client, to, "dacapo").expect("an address");
        let mut bytes = Vec::new();
        let transmit = inner.poll_transmit(now, 1, &mut bytes).expect("a client begins");
        bytes.truncate(transmit.size);
        bytes
    };
    (0..count).map(first).collect()
}

impl Peer {
    /// A client at `10.9.0.host`, which begins to connect to a core; `wrap` may look at its keys.
    ///
    /// # Panics
    /// Nobody can be dialed at the address.
    #[must_use]
    pub fn dialing(
        now: Instant,
        to: SocketAddr,
        host: u8,
        seed: u64,
        wrap: impl FnOnce(Arc<dyn crypto::ClientConfig>) -> Arc<dyn crypto::ClientConfig>,
    ) -> Self {
        let mut keys = Keys::new(seed);
        let config = endpoint_config(&mut keys);
        let mut endpoint = Endpoint::new(Arc::new(config), None, false, None);
        let client = client_config(&mut keys, wrap);
        let connection = endpoint.connect(now, client, to, "dacapo").expect("an address");
        let data = SocketAddr::from(([10, 9, 0, host], 40_002));
        Self { connection: Some(connection), data, ..Self::at(endpoint, host) }
    }

    /// A server at `10.9.0.host`, which waits for a core and takes the first connection that
    /// comes; `wrap` may look at its keys. Who listens has one port for both.
    #[must_use]
    pub fn listening(
        host: u8,
        seed: u64,
        wrap: impl FnOnce(Arc<dyn crypto::ServerConfig>) -> Arc<dyn crypto::ServerConfig>,
    ) -> Self {
        let mut keys = Keys::new(seed);
        let config = endpoint_config(&mut keys);
        let crypto = wrap(plain_tls::server_config(keys.next()));
        let mut server = ServerConfig::new(crypto, plain_tls::token_key(keys.next()));
        server.transport_config(transport()).time_source(Arc::new(WorldClock::new()));
        Self::at(Endpoint::new(Arc::new(config), Some(Arc::new(server)), false, None), host)
    }

    fn at(endpoint: Endpoint, host: u8) -> Self {
        let address = SocketAddr::from(([10, 9, 0, host], 40_001));
        Self {
            endpoint,
            connection: None,
            control: address,
            data: address,
            connected: false,
            lost: None,
            streams: BTreeMap::new(),
            accepted: Vec::new(),
            datagrams: Vec::new(),
            unsent: BTreeMap::new(),
        }
    }

    /// The next datagram of its control, due now; what waits is written before.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        let (_, inner) = self.connection.as_mut()?;
        if inner.poll_timeout().is_some_and(|at| at <= now) {
            inner.handle_timeout(now);
        }
        self.write();
        self.poll();
        let (_, inner) = self.connection.as_mut()?;
        let mut bytes = Vec::new();
        let transmit = inner.poll_transmit(now, 1, &mut bytes)?;
        bytes.truncate(transmit.size);
        Some(bytes)
    }

    /// Whether a datagram is one for the data port; where the ports are one, QUIC comes there too.
    #[must_use]
    pub fn is_for_data(&self, to: SocketAddr, bytes: &[u8]) -> bool {
        to == self.data && classify(bytes) != Belongs::Quic
    }

    /// Takes a datagram that was sent to somebody.
    ///
    /// # Panics
    /// A core sends something that is no record.
    pub fn handle(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        if self.is_for_data(to, bytes) {
            return self.datagrams.push(bytes.to_vec());
        }
        if to != self.control {
            return;
        }
        let mut answer = Vec::new();
        match self.endpoint.handle(now, from, None, None, bytes.into(), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => match &mut self.connection {
                Some((known, inner)) if *known == handle => inner.handle_event(event),
                _ => {}
            },
            Some(DatagramEvent::NewConnection(incoming)) => self.take(now, incoming),
            Some(DatagramEvent::Response(_)) | None => {}
        }
        self.poll();
    }

    /// A core that dials begins again and again: the first is as good as another.
    fn take(&mut self, now: Instant, incoming: Incoming) {
        if self.connection.is_some() {
            return self.endpoint.ignore(incoming);
        }
        let accepted = self.endpoint.accept(incoming, now, &mut Vec::new(), None);
        self.connection = accepted.ok();
    }

    fn poll(&mut self) {
        let Some((handle, inner)) = &mut self.connection else { return };
        while let Some(event) = inner.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                inner.handle_event(event);
            }
        }
        while let Some(event) = inner.poll() {
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                _ => {}
            }
        }
        while let Some(stream) = inner.streams().accept(Dir::Bi) {
            self.streams.insert(stream, Read::default());
            self.accepted.push(stream);
        }
        for (id, read) in self.streams.iter_mut().filter(|(_, read)| read.ended.is_none()) {
            read.take(inner, *id);
        }
    }

    /// Gives the connection what was said, as far as the core's windows go.
    pub fn write(&mut self) {
        let Some((_, inner)) = &mut self.connection else { return };
        for (id, bytes) in &mut self.unsent {
            while !bytes.is_empty() {
                match inner.send_stream(*id).write(bytes) {
                    Ok(written) => drop(bytes.drain(..written)),
                    Err(WriteError::Blocked) => break,
                    // The core wants no more of it.
                    Err(_) => bytes.clear(),
                }
            }
        }
        self.unsent.retain(|_, bytes| !bytes.is_empty());
    }

    /// How many bytes wait on a stream, because the core's windows are full.
    #[must_use]
    pub fn unsent_len(&self, stream: StreamId) -> usize {
        self.unsent.get(&stream).map_or(0, Vec::len)
    }

    /// The connection, for what has no name here; `None` while it waits for a core.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, inner)| inner)
    }

    /// Opens a stream; `None` when the core allows no more, or there is no connection.
    pub fn open(&mut self) -> Option<StreamId> {
        let stream = self.connection()?.streams().open(Dir::Bi)?;
        self.streams.insert(stream, Read::default());
        Some(stream)
    }

    /// Sends bytes on a stream, whatever they are.
    pub fn push(&mut self, stream: StreamId, bytes: &[u8]) {
        self.unsent.entry(stream).or_default().extend_from_slice(bytes);
    }

    /// Closes the connection at once, if there is one.
    pub fn close(&mut self, now: Instant) {
        if let Some(inner) = self.connection() {
            let code = VarInt::from_u32(dacapo_core::Code::Closed as u32);
            inner.close(now, code, bytes::Bytes::new());
        }
    }

    /// The next record on a stream, if it has come.
    pub fn next(&mut self, stream: StreamId) -> Option<Message> {
        self.streams.get_mut(&stream)?.records.pop_front()
    }
}

impl Read {
    fn take(&mut self, inner: &mut Connection, id: StreamId) {
        let mut stream = inner.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        while self.ended.is_none() {
            match chunks.next(8_192) {
                Ok(Some(chunk)) => {
                    self.reader.push(&chunk.bytes).expect("a core sends records");
                    while let Some(message) = self.reader.next().expect("a core sends records") {
                        self.records.push_back(message);
                    }
                }
                Ok(None) => self.ended = Some(None),
                Err(ReadError::Reset(code)) => self.ended = Some(Some(code.into_inner())),
                Err(ReadError::Blocked) => break,
            }
        }
        let _ = chunks.finalize();
    }
}

/// A question on the data path as a core asks it, without name and tag.
#[must_use]
pub fn question(now: Time, number: u64) -> Probe {
    Probe {
        answer: false,
        size: 1_452,
        connection: 0,
        number,
        asked_ns: now.as_nanos(),
        received_ns: 0,
        answered_ns: 0,
        tag: 0,
        count: None,
    }
}

/// The bytes of a probe with the name and tag that follow from a token: `len` of them.
#[must_use]
pub fn tagged(token: [u8; 16], mut probe: Probe, len: usize) -> Vec<u8> {
    let hash = |what: &[u8], bytes: &[u8]| {
        let hash = Sha256::new().chain_update(token).chain_update(what).chain_update(bytes);
        hash.finalize().iter().take(8).fold(0, |word, &byte| (word << 8) | u64::from(byte))
    };
    probe.connection = hash(b"connection", &[]);
    probe.tag = hash(b"probe", &probe.covered());
    let mut bytes = Vec::new();
    probe.emit(len, &mut bytes);
    bytes
}
