//! A peer that speaks QUIC and nothing else: what it sends on its streams and data port is said
//! byte by byte.
//!
//! What it is not: a core; it keeps no state of sessions, answers nothing by itself, and is no node
//! of the world: its datagrams are injected, and what is sent to it is taken from the strays.

use dacapo_base::{Random, Time};
use dacapo_core::Code;
use dacapo_netlab::plain_tls::{client_config, hmac_key};
use dacapo_netlab::{NodeId, World};
use dacapo_wire::hub::{Hello, Welcome};
use dacapo_wire::message::Message;
use dacapo_wire::probe::Probe;
use dacapo_wire::record::Reader;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId, DatagramEvent, Dir,
    Endpoint, EndpointConfig, Event, ReadError, StreamId, TransportConfig, VarInt,
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
    handle: ConnectionHandle,
    inner: Connection,
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
}

/// The first datagram of a client, as anybody can make it.
pub fn initial(world: &World, to: SocketAddr, seed: u64) -> Vec<u8> {
    let mut peer = RawPeer::new(world, to, 200, seed);
    let mut bytes = Vec::new();
    let now = peer.instant(world.now());
    let transmit = peer.inner.poll_transmit(now, 1, &mut bytes).expect("a client begins");
    bytes.truncate(transmit.size);
    bytes
}

impl RawPeer {
    /// A client at `10.9.0.host`, which begins to connect to a core.
    pub fn new(world: &World, to: SocketAddr, host: u8, seed: u64) -> Self {
        let mut random = Random::from_number(seed ^ 0x0BAD);
        let mut key = || {
            let mut key = [0; 32];
            random.fill(&mut key);
            key
        };
        let mut config = EndpointConfig::new(hmac_key(key()));
        config.grease_quic_bit(false).rng_seed(Some(key()));
        let mut endpoint = Endpoint::new(Arc::new(config), None, false, None);
        let mut client = ClientConfig::new(client_config(key()));
        let destination = key();
        client.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&destination[..16])));
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout(None).mtu_discovery_config(None);
        client.transport_config(Arc::new(transport));
        let origin = world.origin();
        let now = origin + Duration::from_nanos(world.now().as_nanos());
        let (handle, inner) = endpoint.connect(now, client, to, "dacapo").expect("an address");
        Self {
            endpoint,
            handle,
            inner,
            origin,
            control: SocketAddr::from(([10, 9, 0, host], 40_001)),
            data: SocketAddr::from(([10, 9, 0, host], 40_002)),
            connected: false,
            lost: None,
            streams: BTreeMap::new(),
            datagrams: Vec::new(),
            unsent: BTreeMap::new(),
            accepted: Vec::new(),
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

    fn send(&mut self, world: &mut World, node: NodeId) {
        let now = self.instant(world.now());
        if self.inner.poll_timeout().is_some_and(|at| at <= now) {
            self.inner.handle_timeout(now);
        }
        self.write();
        loop {
            self.poll();
            let mut bytes = Vec::new();
            let Some(transmit) = self.inner.poll_transmit(now, 1, &mut bytes) else { break };
            bytes.truncate(transmit.size);
            world.inject(node, self.control, &bytes);
        }
    }

    fn handle(&mut self, now: Time, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        if to == self.data {
            return self.datagrams.push(bytes.to_vec());
        }
        if to != self.control {
            return;
        }
        let mut answer = Vec::new();
        let now = self.instant(now);
        let event = self.endpoint.handle(now, from, None, None, bytes.into(), &mut answer);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            self.inner.handle_event(event);
        }
        self.poll();
    }

    fn poll(&mut self) {
        while let Some(event) = self.inner.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.inner.handle_event(event);
            }
        }
        while let Some(event) = self.inner.poll() {
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                _ => {}
            }
        }
        while let Some(stream) = self.inner.streams().accept(Dir::Bi) {
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
        let mut stream = self.inner.recv_stream(id);
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
        for (id, bytes) in &mut self.unsent {
            while !bytes.is_empty() {
                match self.inner.send_stream(*id).write(bytes) {
                    Ok(written) => drop(bytes.drain(..written)),
                    Err(_) => break,
                }
            }
        }
    }

    /// Opens a stream; `None` when the core allows no more.
    pub fn open(&mut self) -> Option<StreamId> {
        let stream = self.inner.streams().open(Dir::Bi)?;
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
        self.inner.send_stream(stream).reset(VarInt::from_u32(9)).expect("the stream is open");
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
        let hash = |what: &[u8], bytes: &[u8]| {
            let hash = Sha256::new().chain_update(token).chain_update(what).chain_update(bytes);
            hash.finalize().iter().take(8).fold(0, |word, &byte| (word << 8) | u64::from(byte))
        };
        let mut probe = Probe {
            answer: false,
            size: 1_452,
            connection: hash(b"connection", &[]),
            number,
            asked_ns: world.now().as_nanos(),
            received_ns: 0,
            answered_ns: 0,
            tag: 0,
        };
        probe.tag = hash(b"probe", &probe.covered());
        let mut bytes = Vec::new();
        probe.emit(1_452, &mut bytes);
        world.inject(node, self.data, &bytes);
    }
}

/// The usual greeting.
pub fn hello() -> Hello {
    Hello { version_min: 1, version_max: 1, instance: [9; 16], boot: [9; 16], time_namespace: 0 }
}
