//! A world of two endpoints: a client and a server, each sending one stream to the other.
//!
//! ```text
//!   host 0 (client)  --- 20 ms, up to 2 ms more, loss, flipped bits ---  host 1 (server)
//! ```

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dacapo_base::{Random, Time};
use quinn_proto::crypto::{self, Session};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, Incoming, ReadError, ServerConfig, StreamEvent, StreamId, Transmit,
    WriteError,
};

use super::super::cid::{SeededCids, initial_dst_cids};
use super::super::clock::WorldClock;
use super::super::{client_config, hmac_key, server_config, token_key};

pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;
/// Longer than any transfer of these tests takes, in virtual time.
const PATIENCE: Duration = Duration::from_secs(600);
const LATENCY: Duration = Duration::from_millis(20);
const JITTER_NS_MAX: u64 = 2_000_000;
const LINK_MTU: usize = 1452;

fn address(host: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host as u8)), 4433)
}

/// The byte that `host` sends at `offset` of its stream.
fn pattern(host: usize, offset: usize) -> u8 {
    (offset.wrapping_mul(2_654_435_761) >> 7) as u8 ^ host as u8
}

/// What the link does to datagrams, as probabilities.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) loss: f64,
    pub(super) flips: f64,
}

impl Link {
    pub(super) const CLEAN: Self = Self { loss: 0.0, flips: 0.0 };
}

/// One datagram as it was sent.
#[derive(PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) at: Time,
    pub(super) from: usize,
    pub(super) bytes: Vec<u8>,
}

/// One endpoint, its connection, and the ends of two streams.
pub(super) struct Host {
    number: usize,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    pub(super) connected: bool,
    pub(super) lost: Option<ConnectionError>,
    outgoing: Option<StreamId>,
    written: usize,
    incoming: Option<StreamId>,
    read: usize,
    finished: bool,
}

impl Host {
    fn new(number: usize, config: EndpointConfig, server: Option<ServerConfig>) -> Self {
        let endpoint = Endpoint::new(Arc::new(config), server.map(Arc::new), true, None);
        Self {
            number,
            endpoint,
            connection: None,
            connected: false,
            lost: None,
            outgoing: None,
            written: 0,
            incoming: None,
            read: 0,
            finished: false,
        }
    }

    pub(super) fn session(&self) -> &dyn Session {
        self.connection.as_ref().expect("no connection").1.crypto_session()
    }

    /// Handles what the connection reports, and moves stream data up to `len` bytes.
    fn handle_events(&mut self, len: usize) {
        let Some((handle, mut connection)) = self.connection.take() else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    self.incoming = connection.streams().accept(Dir::Uni);
                }
                _ => {}
            }
        }
        if self.connected && len > 0 && self.lost.is_none() {
            self.write(&mut connection, len);
            self.read(&mut connection);
        }
        self.connection = Some((handle, connection));
    }

    fn write(&mut self, connection: &mut Connection, len: usize) {
        if self.outgoing.is_none() {
            self.outgoing = connection.streams().open(Dir::Uni);
        }
        let Some(stream) = self.outgoing else { return };
        while self.written < len {
            let end = len.min(self.written + 4096);
            let bytes: Vec<u8> = (self.written..end).map(|at| pattern(self.number, at)).collect();
            match connection.send_stream(stream).write(&bytes) {
                Ok(count) => self.written += count,
                Err(WriteError::Blocked) => return,
                Err(error) => panic!("host {}: {error}", self.number),
            }
            if self.written == len {
                connection.send_stream(stream).finish().unwrap();
            }
        }
    }

    fn read(&mut self, connection: &mut Connection) {
        let Some(stream) = self.incoming.filter(|_| !self.finished) else { return };
        let mut stream = connection.recv_stream(stream);
        let mut chunks = stream.read(true).unwrap();
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    for byte in chunk.bytes {
                        assert_eq!(byte, pattern(1 - self.number, self.read), "at {}", self.read);
                        self.read += 1;
                    }
                }
                Ok(None) => {
                    self.finished = true;
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(error) => panic!("host {}: {error}", self.number),
            }
        }
        let _ = chunks.finalize();
    }
}

/// Two hosts, the link between them, and a clock that jumps.
pub(super) struct World {
    pub(super) hosts: [Host; 2],
    pub(super) trace: Vec<Sent>,
    pub(super) lost: u32,
    pub(super) flipped: u32,
    pub(super) retries: u32,
    /// Whether the server makes clients prove their address first.
    pub(super) retry: bool,
    /// Whether both sides update their keys every 256 KiB.
    pub(super) key_updates: bool,
    seed: u64,
    link: Link,
    random: Random,
    clock: Arc<WorldClock>,
    start: Instant,
    now: Instant,
    in_flight: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    sent: u64,
    len: usize,
}

impl World {
    pub(super) fn new(seed: u64, link: Link) -> Self {
        Self::with(seed, link, client_config([0xa; 32]), server_config([0xb; 32]))
    }

    pub(super) fn with(
        seed: u64,
        link: Link,
        client: Arc<dyn crypto::ClientConfig>,
        server: Arc<dyn crypto::ServerConfig>,
    ) -> Self {
        let mut random = Random::from_number(seed);
        let mut bytes = || {
            let mut bytes = [0; 32];
            random.fill(&mut bytes);
            bytes
        };
        let clock = Arc::new(WorldClock::new());
        let mut server = ServerConfig::new(server, token_key(bytes()));
        server.time_source(clock.clone());
        let mut client = ClientConfig::new(client);
        client.initial_dst_cid_provider(initial_dst_cids(bytes()));
        let mut hosts = [
            Host::new(CLIENT, endpoint_config(&mut bytes), None),
            Host::new(SERVER, endpoint_config(&mut bytes), Some(server)),
        ];
        // The only clock that is read: quinn wants an Instant, and they are made by the clock
        // alone. All that follows are differences to it.
        let start = Instant::now();
        let connection = hosts[CLIENT].endpoint.connect(start, client, address(SERVER), "peer");
        hosts[CLIENT].connection = Some(connection.unwrap());
        Self {
            hosts,
            trace: Vec::new(),
            lost: 0,
            flipped: 0,
            retries: 0,
            retry: false,
            key_updates: false,
            seed,
            link,
            random,
            clock,
            start,
            now: start,
            in_flight: BTreeMap::new(),
            sent: 0,
            len: 0,
        }
    }

    pub(super) fn run_until_connected(&mut self) {
        self.run_until(|world| world.hosts.iter().all(|host| host.connected));
    }

    /// Sends `len` bytes each way and checks them.
    pub(super) fn transfer(&mut self, len: usize) {
        self.len = len;
        self.run_until(|world| world.hosts.iter().all(|host| host.finished));
        for host in &self.hosts {
            assert_eq!((host.read, &host.lost), (len, &None), "seed {}", self.seed);
        }
    }

    pub(super) fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            self.poll_hosts();
            let timers = self.hosts.iter_mut().filter_map(|host| {
                host.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout())
            });
            let arrival = self.in_flight.keys().next().map(|key| key.0);
            let next = timers.chain(arrival).min().unwrap_or_else(|| self.give_up());
            self.now = self.now.max(next);
            if self.now > self.start + PATIENCE {
                self.give_up();
            }
            self.clock.set(self.time());
            self.handle_timeouts();
            self.handle_arrivals();
        }
    }

    /// The key phase bits of the short headers that a host sent (RFC 9001, section 5.4).
    pub(super) fn key_phases(&self, from: usize) -> impl Iterator<Item = bool> {
        let sent = self.trace.iter().filter(move |sent| sent.from == from);
        sent.filter(|sent| sent.bytes[0] & 0x80 == 0).map(|sent| sent.bytes[0] & 0x04 != 0)
    }

    fn give_up(&self) -> ! {
        let hosts = self.hosts.each_ref().map(|host| (&host.lost, host.written, host.read));
        panic!("seed {}: still at {:?}: (lost, written, read) = {hosts:?}", self.seed, self.time());
    }

    fn time(&self) -> Time {
        Time::ZERO + (self.now - self.start)
    }

    fn poll_hosts(&mut self) {
        for number in [CLIENT, SERVER] {
            loop {
                let host = &mut self.hosts[number];
                let before = host.read;
                host.handle_events(self.len);
                let update = self.key_updates && before >> 18 != host.read >> 18;
                let Some((_, connection)) = &mut host.connection else { break };
                if update {
                    connection.force_key_update();
                }
                let mut bytes = Vec::new();
                let Some(transmit) = connection.poll_transmit(self.now, 1, &mut bytes) else {
                    break;
                };
                self.send(number, &transmit, bytes);
            }
        }
    }

    fn handle_timeouts(&mut self) {
        for host in &mut self.hosts {
            if let Some((_, connection)) = &mut host.connection
                && connection.poll_timeout().is_some_and(|at| at <= self.now)
            {
                connection.handle_timeout(self.now);
            }
        }
    }

    fn handle_arrivals(&mut self) {
        while let Some(first) = self.in_flight.first_entry()
            && first.key().0 <= self.now
        {
            let (to, bytes) = first.remove();
            self.handle_datagram(to, &bytes);
        }
    }

    fn handle_datagram(&mut self, to: usize, bytes: &[u8]) {
        let host = &mut self.hosts[to];
        let mut answer = Vec::new();
        let from = address(1 - to);
        match host.endpoint.handle(self.now, from, None, None, bytes.into(), &mut answer) {
            Some(DatagramEvent::NewConnection(incoming)) => self.handle_incoming(to, incoming),
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut host.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.send(to, &transmit, answer),
            None => {}
        }
    }

    fn handle_incoming(&mut self, to: usize, incoming: Incoming) {
        let host = &mut self.hosts[to];
        let mut answer = Vec::new();
        if self.retry && !incoming.remote_address_validated() {
            let transmit = host.endpoint.retry(incoming, &mut answer).unwrap();
            self.retries += 1;
            return self.send(to, &transmit, answer);
        }
        match host.endpoint.accept(incoming, self.now, &mut answer, None) {
            Ok(connection) => host.connection = Some(connection),
            // Damaged on the way, or refused: there never was a connection that could be lost.
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.send(to, &transmit, answer);
                }
            }
        }
    }

    fn send(&mut self, from: usize, transmit: &Transmit, mut bytes: Vec<u8>) {
        bytes.truncate(transmit.size);
        self.trace.push(Sent { at: self.time(), from, bytes: bytes.clone() });
        if bytes.len() > LINK_MTU {
            return;
        }
        if self.random.chance(self.link.loss) {
            self.lost += 1;
            return;
        }
        if self.random.chance(self.link.flips) {
            self.flip(&mut bytes);
        }
        let delay = LATENCY + Duration::from_nanos(self.random.below(JITTER_NS_MAX));
        self.in_flight.insert((self.now + delay, self.sent), (1 - from, bytes));
        self.sent += 1;
    }

    /// Flips up to three bits, but not where QUIC and quinn believe what no key protects, whatever
    /// the TLS: a version of 0 in a server's first packet means "I do not speak yours" (RFC 9000,
    /// section 6.2), a server closes when a packet's type became Retry, and a client takes no
    /// second retry after a bad one.
    fn flip(&mut self, bytes: &mut [u8]) {
        let (long, retry) = (bytes[0] & 0x80 != 0, bytes[0] & 0xf0 == 0xf0);
        if retry {
            return;
        }
        for _ in 0..=self.random.below(3) {
            let at = self.random.below(bytes.len() as u64) as usize;
            if !(long && at < 5) {
                bytes[at] ^= 1 << self.random.below(8);
            }
        }
        self.flipped += 1;
    }
}

/// An endpoint that draws nothing from the system.
fn endpoint_config(bytes: &mut impl FnMut() -> [u8; 32]) -> EndpointConfig {
    let mut config = EndpointConfig::new(hmac_key(bytes()));
    let cids = SeededCids::new(bytes());
    config.cid_generator(move || Box::new(cids.clone()));
    config.grease_quic_bit(false).rng_seed(Some(bytes()));
    config
}
