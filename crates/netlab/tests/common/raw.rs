//! A peer that speaks QUIC and nothing else: what it sends on its streams and data port is said
//! byte by byte. It dials a core ([`RawPeer::new`]) or waits for one ([`RawPeer::listening`]).
//!
//! What it is not: a core; it keeps no state of sessions, answers nothing by itself, and is no node
//! of the world: its datagrams are injected, and what is sent to it is taken from the strays.

use dacapo_base::{Random, Time};
use dacapo_core::Code;
use dacapo_netlab::plain_tls::clock::WorldClock;
use dacapo_netlab::plain_tls::{client_config, hmac_key, server_config, token_key};
use dacapo_netlab::{NodeId, World};
use dacapo_wire::hub::{Hello, Welcome};
use dacapo_wire::message::Message;
use dacapo_wire::probe::Probe;
use dacapo_wire::record::Reader;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId, DatagramEvent, Dir,
    Endpoint, EndpointConfig, Event, Incoming, ReadError, ServerConfig, StreamId, TransportConfig,
    VarInt, WriteError,
};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A stream as the raw peer sees it.
#[derive(Default)]
pub struct Read {
    reader: Reader,
    /// The records that came.
    pub records: VecDeque<Message>,
    /// The stream ended, and with which code when it was reset or stopped.
    pub ended: Option<Option<u64>>,
}

/// The raw peer.
pub struct RawPeer {
    endpoint: Endpoint,
    /// `None` while it waits for a core.
    connection: Option<(ConnectionHandle, Connection)>,
    origin: Instant,
    pub control: SocketAddr,
    pub data: SocketAddr,
    pub connected: bool,
    pub lost: Option<ConnectionError>,
    pub streams: BTreeMap<StreamId, Read>,
    /// What came to the data port.
    pub datagrams: Vec<Vec<u8>>,
    unsent: BTreeMap<StreamId, Vec<u8>>,
    /// Streams that the core has opened, in order.
    pub accepted: Vec<StreamId>,
    /// Answers the core's questions with this token; `None`: they are not answered.
    pub answers_probes: Option<[u8; 16]>,
    answers: Vec<Vec<u8>>,
    /// Datagrams and bytes that it has sent to the core, by whatever way.
    pub sent: (u64, u64),
    /// Datagrams and bytes that came to its control port.
    pub heard: (u64, u64),
}

/// The first datagram of a client, as anybody can make it.
pub fn initial(world: &World, to: SocketAddr, seed: u64) -> Vec<u8> {
    let mut peer = RawPeer::new(world, to, 200, seed);
    let mut bytes = Vec::new();
    let now = peer.instant(world.now());
    let (_, inner) = peer.connection.as_mut().expect("it dials");
    let transmit = inner.poll_transmit(now, 1, &mut bytes).expect("a client begins");
    bytes.truncate(transmit.size);
    bytes
}

/// The first datagrams of as many clients, no two alike.
pub fn initials(world: &World, to: SocketAddr, seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut keys = Keys::new(seed);
    let mut endpoint = Endpoint::new(Arc::new(endpoint_config(&mut keys)), None, false, None);
    let now = world.origin() + Duration::from_nanos(world.now().as_nanos());
    let first = |_| {
        let client = client(&mut keys);
        let (_, mut inner) = endpoint.connect(now, client, to, "dacapo").expect("an address");
        let mut bytes = Vec::new();
        let transmit = inner.poll_transmit(now, 1, &mut bytes).expect("a client begins");
        bytes.truncate(transmit.size);
        bytes
    };
    (0..count).map(first).collect()
}

/// Everything random of a raw peer.
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
    let mut config = EndpointConfig::new(hmac_key(keys.next()));
    config.grease_quic_bit(false).rng_seed(Some(keys.next()));
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

fn client(keys: &mut Keys) -> ClientConfig {
    let mut client = ClientConfig::new(client_config(keys.next()));
    let destination = keys.next();
    client.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&destination[..16])));
    client.transport_config(transport());
    client
}

impl RawPeer {
    /// A client at `10.9.0.host`, which begins to connect to a core.
    pub fn new(world: &World, to: SocketAddr, host: u8, seed: u64) -> Self {
        let mut keys = Keys::new(seed);
        let config = endpoint_config(&mut keys);
        let mut endpoint = Endpoint::new(Arc::new(config), None, false, None);
        let client = client(&mut keys);
        let now = world.origin() + Duration::from_nanos(world.now().as_nanos());
        let connection = endpoint.connect(now, client, to, "dacapo").expect("an address");
        let mut peer = Self::at(world, endpoint, host);
        peer.connection = Some(connection);
        peer
    }

    /// A server at `10.9.0.host`, which waits for a core and takes the first that comes.
    pub fn listening(world: &World, host: u8, seed: u64) -> Self {
        let mut keys = Keys::new(seed);
        let config = endpoint_config(&mut keys);
        let mut server = ServerConfig::new(server_config(keys.next()), token_key(keys.next()));
        server.transport_config(transport()).time_source(Arc::new(WorldClock::new()));
        let endpoint = Endpoint::new(Arc::new(config), Some(Arc::new(server)), false, None);
        let mut peer = Self::at(world, endpoint, host);
        // Who listens has one port for both.
        peer.data = peer.control;
        peer
    }

    fn at(world: &World, endpoint: Endpoint, host: u8) -> Self {
        Self {
            endpoint,
            connection: None,
            origin: world.origin(),
            control: SocketAddr::from(([10, 9, 0, host], 40_001)),
            data: SocketAddr::from(([10, 9, 0, host], 40_002)),
            connected: false,
            lost: None,
            streams: BTreeMap::new(),
            datagrams: Vec::new(),
            unsent: BTreeMap::new(),
            accepted: Vec::new(),
            answers_probes: None,
            answers: Vec::new(),
            sent: (0, 0),
            heard: (0, 0),
        }
    }

    fn instant(&self, now: Time) -> Instant {
        self.origin + Duration::from_nanos(now.as_nanos())
    }

    /// Lets the peer and the core `node` talk for a while.
    pub fn run(peers: &mut [&mut Self], world: &mut World, node: NodeId, time: Duration) {
        world.keep_strays();
        let end = world.now() + time;
        while world.now() < end {
            for peer in peers.iter_mut() {
                peer.send(world, node);
            }
            world.run_for(Duration::from_millis(1));
            for stray in world.take_strays() {
                for peer in peers.iter_mut() {
                    peer.handle(world.now(), stray.from, stray.to, &stray.bytes);
                }
            }
        }
    }

    /// Gives a core what is due now.
    pub fn send(&mut self, world: &mut World, node: NodeId) {
        for answer in std::mem::take(&mut self.answers) {
            self.inject(world, node, self.data, &answer);
        }
        let now = self.instant(world.now());
        let Some((_, inner)) = &mut self.connection else { return };
        if inner.poll_timeout().is_some_and(|at| at <= now) {
            inner.handle_timeout(now);
        }
        self.write();
        loop {
            self.poll();
            let Some((_, inner)) = &mut self.connection else { break };
            let mut bytes = Vec::new();
            let Some(transmit) = inner.poll_transmit(now, 1, &mut bytes) else { break };
            bytes.truncate(transmit.size);
            self.inject(world, node, self.control, &bytes);
        }
    }

    /// Gives a core a datagram from one of its ports, or from elsewhere, and counts it.
    pub fn inject(&mut self, world: &mut World, node: NodeId, from: SocketAddr, bytes: &[u8]) {
        self.sent = (self.sent.0 + 1, self.sent.1 + bytes.len() as u64);
        world.inject(node, from, bytes);
    }

    /// Takes a datagram that was sent to somebody.
    pub fn handle(&mut self, now: Time, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let is_quic = bytes.first().is_some_and(|first| first & 0x40 != 0);
        if to == self.data && !is_quic {
            return self.handle_data(now, bytes);
        }
        if to != self.control {
            return;
        }
        self.heard = (self.heard.0 + 1, self.heard.1 + bytes.len() as u64);
        let mut answer = Vec::new();
        let now = self.instant(now);
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

    /// The first connection is taken; the further attempts of the same core are not.
    fn take(&mut self, now: Instant, incoming: Incoming) {
        if self.connection.is_some() {
            return self.endpoint.ignore(incoming);
        }
        let accepted = self.endpoint.accept(incoming, now, &mut Vec::new(), None);
        self.connection = accepted.ok();
    }

    fn handle_data(&mut self, now: Time, bytes: &[u8]) {
        let token = self.answers_probes;
        if let (Some(token), Ok(question)) = (token, Probe::parse(bytes))
            && !question.answer
        {
            let now = now.as_nanos();
            let answer = Probe { answer: true, received_ns: now, answered_ns: now, ..question };
            self.answers.push(tagged(token, answer, bytes.len()));
        }
        self.datagrams.push(bytes.to_vec());
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
        let streams: Vec<StreamId> = self.streams.keys().copied().collect();
        streams.into_iter().for_each(|stream| self.read(stream));
    }

    fn read(&mut self, id: StreamId) {
        let Some(read) = self.streams.get_mut(&id).filter(|read| read.ended.is_none()) else {
            return;
        };
        let Some((_, inner)) = &mut self.connection else { return };
        let mut stream = inner.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        loop {
            match chunks.next(8_192) {
                Ok(Some(chunk)) => {
                    read.reader.push(&chunk.bytes).expect("a core sends records");
                    while let Some(message) = read.reader.next().expect("a core sends records") {
                        read.records.push_back(message);
                    }
                }
                Ok(None) => read.ended = Some(None),
                Err(ReadError::Reset(code)) => read.ended = Some(Some(code.into_inner())),
                Err(ReadError::Blocked) => break,
            }
            if read.ended.is_some() {
                break;
            }
        }
        let _ = chunks.finalize();
    }

    fn write(&mut self) {
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
    pub fn unsent_len(&self, stream: StreamId) -> usize {
        self.unsent.get(&stream).map_or(0, Vec::len)
    }

    /// The connection, for what has no name here.
    pub fn quic(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().expect("a connection").1
    }

    /// Opens a stream; `None` when the core allows no more.
    pub fn open(&mut self) -> Option<StreamId> {
        let stream = self.quic().streams().open(Dir::Bi)?;
        self.streams.insert(stream, Read::default());
        Some(stream)
    }

    /// Sends bytes on a stream, whatever they are.
    pub fn push(&mut self, stream: StreamId, bytes: &[u8]) {
        self.unsent.entry(stream).or_default().extend_from_slice(bytes);
    }

    pub fn say(&mut self, stream: StreamId, message: impl Into<Message>) {
        let mut bytes = Vec::new();
        message.into().encode(&mut bytes).expect("the test's message is legal");
        self.push(stream, &bytes);
    }

    /// Ends the way to the core of a stream by force.
    pub fn reset(&mut self, stream: StreamId) {
        self.quic().send_stream(stream).reset(VarInt::from_u32(9)).expect("the stream is open");
    }

    /// Ends the way to the core of a stream in order, after what was said.
    pub fn finish(&mut self, stream: StreamId) {
        self.write();
        self.quic().send_stream(stream).finish().expect("the stream is open");
    }

    /// Tells the core to send no more on a stream.
    pub fn stop(&mut self, stream: StreamId) {
        self.quic().recv_stream(stream).stop(VarInt::from_u32(9)).expect("the stream is open");
    }

    /// Closes the connection at once.
    pub fn close(&mut self, now: Time) {
        let now = self.instant(now);
        if let Some((_, inner)) = &mut self.connection {
            inner.close(now, VarInt::from_u32(Code::Closed as u32), Default::default());
        }
    }

    /// The next record on a stream, if it has come.
    pub fn next(&mut self, stream: StreamId) -> Option<Message> {
        self.streams.get_mut(&stream)?.records.pop_front()
    }

    /// The code with which the core closed the connection.
    pub fn closed_with(&self) -> Option<Code> {
        match &self.lost {
            Some(ConnectionError::ApplicationClosed(close)) => {
                Code::from_number(u64::from(close.error_code) as u16)
            }
            _ => None,
        }
    }

    /// Greets as it should be and returns the hub's stream and the welcome.
    pub fn greet(&mut self, world: &mut World, node: NodeId) -> (StreamId, Welcome) {
        Self::run(&mut [&mut *self], world, node, Duration::from_millis(200));
        assert!(self.connected, "the core takes the connection");
        let hub = self.open().expect("the first stream");
        self.say(hub, hello());
        Self::run(&mut [&mut *self], world, node, Duration::from_millis(100));
        match self.next(hub) {
            Some(Message::Welcome(welcome)) => (hub, welcome),
            other => panic!("no WELCOME but {other:?}"),
        }
    }

    /// Asks a question on the data path, as a core does with the token it was welcomed with.
    pub fn probe(&self, world: &mut World, node: NodeId, token: [u8; 16], number: u64) {
        let probe = question(world.now(), number);
        world.inject(node, self.data, &tagged(token, probe, 1_452));
    }
}

/// A question as a core asks it, without name and tag.
pub fn question(now: Time, number: u64) -> Probe {
    let asked_ns = now.as_nanos();
    let (answer, size, connection, tag) = (false, 1_452, 0, 0);
    Probe { answer, size, connection, number, asked_ns, received_ns: 0, answered_ns: 0, tag }
}

/// The bytes of a probe with the name and tag that follow from a token.
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

/// The usual greeting.
pub fn hello() -> Hello {
    Hello { version_min: 1, version_max: 1, instance: [9; 16], boot: [9; 16], time_namespace: 0 }
}
