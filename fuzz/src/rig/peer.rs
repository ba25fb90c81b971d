//! [`Peer`]: somebody who speaks QUIC with a core and says on it whatever a fuzzer says.
//!
//! ```text
//!   open, push, say ---> streams        frames ---> sealed packets, past the QUIC library
//!   probe, data -------> the data port
//! ```
//!
//! What it is not: a core; it keeps no state of sessions and answers nothing by itself.
//!
//! Invariant: what a core sends it are records; anything else is a bug of the core.

use super::packet;
use super::tap::Tap;
use super::{Rig, Sent};
use dacapo_base::Random;
use dacapo_netlab::plain_tls;
use dacapo_wire::data::{Belongs, classify};
use dacapo_wire::message::Message;
use dacapo_wire::probe::Probe;
use dacapo_wire::record::Reader;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId, DatagramEvent, Dir,
    Endpoint, EndpointConfig, Event, ReadError, StreamId, TransportConfig, VarInt,
};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

/// Rounds in which a peer and a core answer each other at one instant.
const ROUNDS_MAX: usize = 64;

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
    connection: Option<(ConnectionHandle, Connection)>,
    tap: Tap,
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
    /// The id by which the core is addressed.
    core_id: Vec<u8>,
    /// The highest number of a packet.
    number: u32,
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(None).mtu_discovery_config(None);
    Arc::new(transport)
}

fn endpoint(key: &mut impl FnMut() -> [u8; 32]) -> EndpointConfig {
    let mut config = EndpointConfig::new(plain_tls::hmac_key(key()));
    config.grease_quic_bit(false).rng_seed(Some(key()));
    let ids = plain_tls::cid::SeededCids::new(key());
    config.cid_generator(move || Box::new(ids.clone()));
    config
}

impl Peer {
    fn new(host: u8, seed: u64, is_server: bool) -> (Self, [u8; 32]) {
        let mut random = Random::from_number(seed ^ 0x0BAD);
        let mut key = || {
            let mut key = [0; 32];
            random.fill(&mut key);
            key
        };
        let config = endpoint(&mut key);
        let (tap, identity, token) = (Tap::default(), key(), key());
        let server = is_server.then(|| {
            let crypto = tap.server(plain_tls::server_config(identity));
            let mut server = quinn_proto::ServerConfig::new(crypto, plain_tls::token_key(token));
            server.transport_config(transport());
            Arc::new(server)
        });
        let endpoint = Endpoint::new(Arc::new(config), server, false, None);
        let address = |port| SocketAddr::from((Ipv4Addr::new(10, 9, 0, host), port));
        let (control, data) = if is_server { (19_980, 19_980) } else { (40_001, 40_002) };
        let peer = Self {
            endpoint,
            connection: None,
            tap,
            control: address(control),
            data: address(data),
            connected: false,
            lost: None,
            streams: BTreeMap::new(),
            accepted: Vec::new(),
            datagrams: Vec::new(),
            unsent: BTreeMap::new(),
            core_id: Vec::new(),
            number: 0,
        };
        (peer, identity)
    }

    /// One who dials the core.
    ///
    /// # Panics
    /// The address of the core cannot be dialed.
    #[must_use]
    pub fn client(rig: &Rig, host: u8, seed: u64) -> Self {
        let (mut peer, identity) = Self::new(host, seed, false);
        let crypto = peer.tap.client(plain_tls::client_config(identity));
        let mut client = ClientConfig::new(crypto);
        let [a, b, ..] = seed.to_be_bytes();
        client.initial_dst_cid_provider(Arc::new(move || {
            let mut id = identity;
            (id[0], id[1]) = (a, b);
            ConnectionId::new(&id[..16])
        }));
        client.transport_config(transport());
        let connected = peer.endpoint.connect(rig.instant(), client, Rig::address(), "dacapo");
        peer.connection = Some(connected.expect("an address"));
        peer
    }

    /// One whom the core dials.
    #[must_use]
    pub fn server(host: u8, seed: u64) -> Self {
        Self::new(host, seed, true).0
    }

    /// The first datagram of one who dials.
    pub fn begin(&mut self, rig: &Rig) -> Vec<u8> {
        self.poll_transmits(rig.instant()).into_iter().next().unwrap_or_default()
    }

    /// Lets both say what they have to say at this instant.
    pub fn talk(&mut self, rig: &mut Rig) {
        for _ in 0..ROUNDS_MAX {
            let mut is_quiet = true;
            for bytes in self.poll_transmits(rig.instant()) {
                is_quiet = false;
                rig.handle(self.control, &bytes);
            }
            rig.settle();
            for sent in rig.take_sent() {
                is_quiet = false;
                self.handle(rig.instant(), &sent);
            }
            if is_quiet {
                break;
            }
        }
    }

    fn poll_transmits(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.write();
        self.poll();
        let mut all = Vec::new();
        while let Some((_, inner)) = &mut self.connection {
            if inner.poll_timeout().is_some_and(|at| at <= now) {
                inner.handle_timeout(now);
            }
            let mut bytes = Vec::new();
            let Some(transmit) = inner.poll_transmit(now, 1, &mut bytes) else { break };
            bytes.truncate(transmit.size);
            let number = packet::number_of_short(&bytes, self.core_id.len());
            self.number = self.number.max(number.unwrap_or(0));
            all.push(bytes);
        }
        all
    }

    fn handle(&mut self, now: Instant, sent: &Sent) {
        let is_quic = classify(&sent.bytes) == Belongs::Quic;
        if sent.remote == self.data && !is_quic {
            return self.datagrams.push(sent.bytes.clone());
        }
        if sent.remote != self.control {
            return;
        }
        if let Some(id) = packet::source_of_long(&sent.bytes) {
            self.core_id = id.to_vec();
        }
        let (mut answer, bytes) = (Vec::new(), sent.bytes.as_slice().into());
        match self.endpoint.handle(now, Rig::address(), None, None, bytes, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, inner)) = &mut self.connection {
                    inner.handle_event(event);
                }
            }
            // A core that dials begins again and again; the first is as good as another.
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                self.connection = self.endpoint.accept(incoming, now, &mut answer, None).ok();
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) | None => {}
        }
        self.poll();
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

    fn write(&mut self) {
        let Some((_, inner)) = &mut self.connection else { return };
        for (id, bytes) in &mut self.unsent {
            while !bytes.is_empty() {
                match inner.send_stream(*id).write(bytes) {
                    Ok(written) => drop(bytes.drain(..written)),
                    Err(_) => break,
                }
            }
        }
    }

    /// Opens a stream; `None` when the core allows no more, or there is no connection.
    pub fn open(&mut self) -> Option<StreamId> {
        let (_, inner) = self.connection.as_mut()?;
        let stream = inner.streams().open(Dir::Bi)?;
        self.streams.insert(stream, Read::default());
        Some(stream)
    }

    /// Sends bytes on a stream, whatever they are.
    pub fn push(&mut self, stream: StreamId, bytes: &[u8]) {
        self.unsent.entry(stream).or_default().extend_from_slice(bytes);
    }

    /// Sends a message on a stream; one that has no bytes is not sent.
    pub fn say(&mut self, stream: StreamId, message: impl Into<Message>) {
        let mut bytes = Vec::new();
        if message.into().encode(&mut bytes).is_ok() {
            self.push(stream, &bytes);
        }
    }

    /// Ends the way to the core of a stream, by force or in order.
    pub fn end(&mut self, stream: StreamId, by_force: bool) {
        let Some((_, inner)) = &mut self.connection else { return };
        // A stream that is over already stays so.
        let _ = if by_force {
            inner.send_stream(stream).reset(VarInt::from_u32(9)).is_ok()
        } else {
            inner.send_stream(stream).finish().is_ok()
        };
    }

    /// Closes the connection.
    pub fn close(&mut self, rig: &Rig) {
        if let Some((_, inner)) = &mut self.connection {
            inner.close(
                rig.instant(),
                VarInt::from_u32(dacapo_core::Code::Closed as u32),
                bytes::Bytes::new(),
            );
        }
    }

    /// The next record on a stream, if it has come.
    pub fn next(&mut self, stream: StreamId) -> Option<Message> {
        self.streams.get_mut(&stream)?.records.pop_front()
    }

    /// A sealed packet with these frames, as no library makes it; none before the handshake ends.
    pub fn sealed(&mut self, frames: &[u8]) -> Option<Vec<u8>> {
        let key = self.tap.application()?;
        self.number += 1;
        Some(packet::short(key.as_ref(), &self.core_id, self.number, frames))
    }

    /// The question `number` on the data path, as one asks it who was welcomed with this token.
    #[must_use]
    pub fn question(rig: &Rig, token: [u8; 16], number: u64) -> Vec<u8> {
        let hash = |what: &[u8], bytes: &[u8]| {
            let hash = Sha256::new().chain_update(token).chain_update(what).chain_update(bytes);
            hash.finalize().iter().take(8).fold(0, |word, &byte| (word << 8) | u64::from(byte))
        };
        let mut probe = Probe {
            answer: false,
            size: 1_452,
            connection: hash(b"connection", &[]),
            number,
            asked_ns: rig.now().as_nanos(),
            received_ns: 0,
            answered_ns: 0,
            tag: 0,
        };
        probe.tag = hash(b"probe", &probe.covered());
        let mut bytes = Vec::new();
        probe.emit(1_452, &mut bytes);
        bytes
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

/// The transcript with another message, as both ends remember it.
#[must_use]
pub fn extend(transcript: [u8; 32], message: &Message) -> [u8; 32] {
    let mut bytes = Vec::new();
    // What cannot be encoded was never sent.
    let _ = message.encode(&mut bytes);
    Sha256::new().chain_update(transcript).chain_update(&bytes).finalize().into()
}
