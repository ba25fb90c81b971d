//! QUIC as it comes, for comparison: one connection attempt with the timers of `quinn-proto`.
//!
//! ```text
//!   client  Initial ... connected --1--> <--1-- --2--> <--2-- --3--> <--3--  done
//! ```
//!
//! Two endpoints over two links of the emulator, with the same stand-in for TLS as in every world;
//! after the handshake three questions and answers on one stream, as many round trips as
//! HELLO/WELCOME, JOIN/OFFER and ANSWER/ACCEPT are.

use dacapo_base::{Random, Time};
use dacapo_link::{Link, LinkConfig};
use dacapo_netlab::plain_tls::cid::{SeededCids, initial_dst_cids};
use dacapo_netlab::plain_tls::clock::WorldClock;
use dacapo_netlab::plain_tls::{client_config, hmac_key, server_config, token_key};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, ServerConfig, StreamEvent, StreamId,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The rounds of question and answer after the handshake.
const ROUNDS: usize = 3;

/// The length of a question, and of an answer: about that of a JOIN or an OFFER.
const RECORD_LEN: usize = 100;

/// How long it is watched.
const WATCHED: Duration = Duration::from_secs(40);

const CLIENT: usize = 0;
const SERVER: usize = 1;

/// How long a set-up took.
#[derive(Clone, Copy, Debug, Default)]
pub struct StockTimes {
    /// Until both ends had the connection.
    pub open: Option<Duration>,
    /// Until the last answer was there.
    pub done: Option<Duration>,
}

struct Host {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    connected: bool,
    stream: Option<StreamId>,
    read: usize,
    written: usize,
    over: bool,
}

struct Pair {
    hosts: [Host; 2],
    /// To the host of the same place.
    links: [Link<Vec<u8>>; 2],
    clock: Arc<WorldClock>,
    now: Time,
}

/// An instant to count from; which one does not matter.
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

fn instant(now: Time) -> Instant {
    origin() + Duration::from_nanos(now.as_nanos())
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, host as u8 + 1), 4_433))
}

/// One set-up over this link both ways.
///
/// # Panics
/// When the link is not valid.
#[must_use]
pub fn set_up(seed: u64, link: &LinkConfig) -> StockTimes {
    let mut pair = Pair::new(seed, link);
    let mut times = StockTimes::default();
    let until = Time::ZERO + WATCHED;
    loop {
        pair.settle();
        let passed = Some(pair.now.since(Time::ZERO));
        if times.open.is_none() && pair.hosts.iter().all(|host| host.connected) {
            times.open = passed;
        }
        if pair.hosts[CLIENT].read >= ROUNDS * RECORD_LEN {
            times.done = passed;
            return times;
        }
        let over = pair.hosts.iter().any(|host| host.over);
        match pair.next_time() {
            Some(at) if at <= until && !over => pair.advance(at),
            _ => return times,
        }
    }
}

impl Pair {
    fn new(seed: u64, link: &LinkConfig) -> Self {
        let mut random = Random::from_number(seed);
        let clock = Arc::new(WorldClock::new());
        let mut server = ServerConfig::new(server_config([0xb; 32]), token_key(bytes(&mut random)));
        server.time_source(clock.clone());
        let mut client = ClientConfig::new(client_config([0xa; 32]));
        client.initial_dst_cid_provider(initial_dst_cids(bytes(&mut random)));
        let mut hosts = [Host::new(&mut random, None), Host::new(&mut random, Some(server))];
        let now = Time::ZERO;
        let dialed = hosts[CLIENT].endpoint.connect(instant(now), client, address(SERVER), "peer");
        // A failure would be one of this file; it shows as a connection that never opens.
        hosts[CLIENT].connection = dialed.ok();
        let links = [random.fork(), random.fork()].map(|random| {
            Link::new(link.clone(), random).unwrap_or_else(|error| panic!("{error}"))
        });
        Self { hosts, links, clock, now }
    }

    /// Sends everything that may be sent now.
    fn settle(&mut self) {
        loop {
            let mut sent = false;
            for (number, host) in self.hosts.iter_mut().enumerate() {
                host.handle_events(number);
                while let Some(datagram) = host.poll_transmit(self.now) {
                    let _ = self.links[1 - number].handle_send(self.now, datagram);
                    sent = true;
                }
            }
            if !sent {
                return;
            }
        }
    }

    fn next_time(&mut self) -> Option<Time> {
        let timers = self.hosts.iter_mut().filter_map(Host::next_deadline);
        let arrivals = self.links.iter().filter_map(Link::next_deadline);
        timers.chain(arrivals).min().map(|at| at.max(self.now + Duration::from_nanos(1)))
    }

    fn advance(&mut self, at: Time) {
        self.now = at;
        self.clock.set(at);
        for number in [CLIENT, SERVER] {
            while let Some(delivery) = self.links[number].poll_deliver(at) {
                if let Some(answer) = self.hosts[number].handle(at, number, &delivery.item) {
                    let _ = self.links[1 - number].handle_send(at, answer);
                }
            }
            self.hosts[number].handle_timeout(at);
        }
    }
}

fn bytes(random: &mut Random) -> [u8; 32] {
    let mut bytes = [0; 32];
    random.fill(&mut bytes);
    bytes
}

impl Host {
    fn new(random: &mut Random, server: Option<ServerConfig>) -> Self {
        let mut config = EndpointConfig::new(hmac_key(bytes(random)));
        let cids = SeededCids::new(bytes(random));
        config.cid_generator(move || Box::new(cids.clone())).rng_seed(Some(bytes(random)));
        Self {
            endpoint: Endpoint::new(Arc::new(config), server.map(Arc::new), true, None),
            connection: None,
            connected: false,
            stream: None,
            read: 0,
            written: 0,
            over: false,
        }
    }

    /// Takes a datagram; what is to be answered without a connection.
    fn handle(&mut self, now: Time, number: usize, datagram: &[u8]) -> Option<Vec<u8>> {
        let (mut answer, from) = (Vec::new(), address(1 - number));
        let handled =
            self.endpoint.handle(instant(now), from, None, None, datagram.into(), &mut answer);
        let size = match handled? {
            DatagramEvent::ConnectionEvent(_, event) => {
                self.connection.as_mut()?.1.handle_event(event);
                return None;
            }
            DatagramEvent::NewConnection(incoming) => {
                match self.endpoint.accept(incoming, instant(now), &mut answer, None) {
                    Ok(connection) => {
                        self.connection.get_or_insert(connection);
                        return None;
                    }
                    Err(error) => error.response?.size,
                }
            }
            DatagramEvent::Response(transmit) => transmit.size,
        };
        answer.truncate(size);
        Some(answer)
    }

    fn handle_events(&mut self, number: usize) {
        let Some((handle, mut connection)) = self.connection.take() else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost { .. } => self.over = true,
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    self.stream = connection.streams().accept(Dir::Bi);
                }
                _ => {}
            }
        }
        if self.connected && !self.over {
            self.converse(number, &mut connection);
        }
        self.connection = Some((handle, connection));
    }

    /// The client asks when it has been answered, the server answers when it has been asked.
    fn converse(&mut self, number: usize, connection: &mut Connection) {
        if number == CLIENT && self.stream.is_none() {
            self.stream = connection.streams().open(Dir::Bi);
        }
        let Some(stream) = self.stream else { return };
        if let Ok(mut chunks) = connection.recv_stream(stream).read(true) {
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                self.read += chunk.bytes.len();
            }
            let _ = chunks.finalize();
        }
        let turns = self.read / RECORD_LEN + usize::from(number == CLIENT);
        let wanted = turns.min(ROUNDS) * RECORD_LEN;
        if self.written < wanted {
            let record = vec![0; wanted - self.written];
            self.written += connection.send_stream(stream).write(&record).unwrap_or(0);
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        let mut datagram = Vec::new();
        let (_, connection) = self.connection.as_mut()?;
        let transmit = connection.poll_transmit(instant(now), 1, &mut datagram)?;
        datagram.truncate(transmit.size);
        Some(datagram)
    }

    fn next_deadline(&mut self) -> Option<Time> {
        let at = self.connection.as_mut()?.1.poll_timeout()?;
        Some(Time::ZERO + at.saturating_duration_since(origin()))
    }

    fn handle_timeout(&mut self, now: Time) {
        let Some((_, connection)) = &mut self.connection else { return };
        if connection.poll_timeout().is_some_and(|at| at <= instant(now)) {
            connection.handle_timeout(instant(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_link_takes_one_round_trip_for_the_connection_and_three_for_the_rest() {
        let link = LinkConfig { delay: Duration::from_millis(50), ..LinkConfig::default() };
        let times = set_up(1, &link);
        let open = times.open.expect("it opens");
        assert!((Duration::from_millis(150)..Duration::from_millis(160)).contains(&open));
        let done = times.done.expect("it is done");
        assert!(
            (Duration::from_millis(400)..Duration::from_millis(420)).contains(&done),
            "{done:?}"
        );
    }
}
