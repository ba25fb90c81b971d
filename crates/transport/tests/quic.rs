//! The QUIC transport over loopback: the conformance suite in both modes, and what only QUIC has.

#![allow(clippy::unwrap_used)]

mod common;
mod quic_bare;

use common::{V4, at, hosts};
use dacapo_base::{Address, Time};
use dacapo_security::{Identity, client_crypto, endpoint_keys, server_crypto};
use dacapo_transport::conformance::{self, Bare, Ends, Side, StreamNet};
use dacapo_transport::quic::{ClientCrypto, Common, Config, Mode, Quic, ServerCrypto};
use dacapo_transport::stream::Token;
use dacapo_transport::{Outgoing, Sent, StreamEvent, StreamTransport, TrafficClass, Transport};
use quic_bare::Plain;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const TOKEN: Token = [7; 16];

/// One identity for every end: who may talk to whom is not asked here.
fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| Identity::generate().unwrap())
}

fn common() -> Common {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let origin = *ORIGIN.get_or_init(Instant::now);
    Common { reset: endpoint_keys(&[3; 64]).reset, seed: [5; 32], origin }
}

fn server() -> ServerCrypto {
    let token = endpoint_keys(&[3; 64]).token;
    ServerCrypto { tls: server_crypto(identity()), token, common: common() }
}

fn client() -> ClientCrypto {
    ClientCrypto { tls: client_crypto(identity()), common: common() }
}

fn serve(addrs: &[SocketAddr], mode: Mode, config: &Config) -> Quic {
    Quic::serve(addrs, mode, &server(), config).unwrap()
}

fn dial(remote: SocketAddr, mode: Mode, config: &Config) -> Quic {
    Quic::dial(remote, TOKEN, mode, &client(), config).unwrap()
}

/// Loopback QUIC as the suite wants it.
struct Loopback {
    listen: IpAddr,
    reach: IpAddr,
    mode: Mode,
    config: Config,
}

impl Loopback {
    fn new(host: IpAddr, mode: Mode, config: Config) -> Self {
        Self { listen: host, reach: host, mode, config }
    }
}

impl StreamNet for Loopback {
    fn serve(&self) -> (Box<dyn StreamTransport>, Address) {
        let server = serve(&[at(self.listen)], self.mode, &self.config);
        let port = server.local_addrs()[0].port();
        (Box::new(server), SocketAddr::new(self.reach, port.unwrap()).into())
    }

    fn dial(&self, remote: Address, token: Token) -> Box<dyn StreamTransport> {
        Box::new(
            Quic::dial(remote.ip().unwrap(), token, self.mode, &client(), &self.config).unwrap(),
        )
    }

    fn connect(&self, remote: Address, _token: &Token) -> Box<dyn Bare> {
        Box::new(Plain::connect(remote.ip().unwrap(), client_crypto(identity())))
    }

    fn nobody(&self) -> Address {
        // A port that was free a moment ago; its taker would have to be quick.
        UdpSocket::bind(at(self.reach)).unwrap().local_addr().unwrap().into()
    }

    fn streams_max(&self) -> usize {
        self.config.streams_max
    }

    fn is_quiet(&self) -> bool {
        false
    }
}

/// Tests run beside each other and share the process's descriptors. Who comes to this server need
/// not prove its address: a bare connection answers only when it is asked for something.
fn few() -> Config {
    Config { streams_max: 32, retry_from: 1_000, ..Config::default() }
}

fn small() -> Config {
    Config { send_window: 4_096, recv_window: 4_096, departures_bytes: 4_096, ..few() }
}

fn conforms(mode: Mode) {
    for host in hosts() {
        let net = Loopback::new(host, mode, few());
        conformance::run_all(&|| conformance::open_pair(&net));
        conformance::run_streams(&net);
    }
}

#[test]
fn quic_conforms() {
    conforms(Mode::Streams);
}

#[test]
fn quic_datagram_conforms() {
    conforms(Mode::Datagrams);
}

#[test]
fn quic_conforms_on_a_wildcard_address_without_offloads() {
    let mut config = few();
    (config.udp.gso, config.udp.gro) = (false, false);
    for mode in [Mode::Streams, Mode::Datagrams] {
        let listen = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let net = Loopback { listen, reach: V4, mode, config };
        conformance::run_all(&|| conformance::open_pair(&net));
        conformance::run_streams(&net);
    }
}

#[test]
fn quic_with_small_windows_conforms() {
    let net = Loopback::new(V4, Mode::Streams, small());
    conformance::run_small_streams(&net);
}

#[test]
fn quic_datagram_with_small_queues_conforms() {
    let net = Loopback::new(V4, Mode::Datagrams, small());
    conformance::run_small(&|| conformance::open_pair(&net));
}

/// A client and a server whose stream is open.
fn open_with(mode: Mode, config: &Config) -> Ends<Quic> {
    let mut server = serve(&[at(V4)], mode, config);
    server.expect(TOKEN, Time::NEVER);
    let server_addr = server.local_addrs()[0];
    let client = dial(server_addr.ip().unwrap(), mode, config);
    let client_addr = client.local_addrs()[0];
    let (client, server) = (Side::new(Box::new(client)), Side::new(Box::new(server)));
    let mut ends = Ends { client, server, server_addr, client_addr, client_data: client_addr };
    let opened = |side: &Side<Quic>| side.transport.stats().streams.opened == 1;
    ends.await_until(|ends| opened(&ends.client) && opened(&ends.server));
    for side in [&mut ends.client, &mut ends.server] {
        assert!(matches!(side.transport.poll_stream(), Some(StreamEvent::Open { .. })));
    }
    ends
}

fn to_server<'a>(ends: &Ends<Quic>, bytes: &'a [u8]) -> Outgoing<'a> {
    Outgoing::datagram(TrafficClass::Data, ends.server_addr, bytes)
}

/// Turns a side at its deadlines, as who sleeps until then, until `until` or an event.
fn sleep(side: &mut Side<Quic>, until: Time) -> Option<StreamEvent> {
    for _ in 0..10_000 {
        if side.now() >= until {
            return None;
        }
        let at = side.transport.next_deadline().unwrap_or(until).min(until);
        side.pass(at.since(side.now()));
        side.turn();
        if let Some(event) = side.transport.poll_stream() {
            return Some(event);
        }
    }
    panic!("it never sleeps: {:?}", side.transport.next_deadline());
}

#[test]
fn what_a_full_queue_of_arrivals_has_no_room_for_is_counted() {
    let config = Config { arrivals_bytes: 10_000, ..few() };
    let mut ends = open_with(Mode::Datagrams, &config);
    ends.server.transport.set_reading(ends.client_addr, false);
    for number in 0..100_u8 {
        ends.client.send_all(&to_server(&ends, &[number; 1_000]));
        ends.server.turn();
    }
    ends.await_until(|ends| ends.server.transport.stats().drops.queue_full == 91);
    ends.server.transport.set_reading(ends.client_addr, true);
    let first: Vec<_> = ends.await_server(9).into_iter().map(|arrival| arrival.bytes[0]).collect();
    assert_eq!(first, (0..9).collect::<Vec<u8>>());
    let (sent, stats) = (ends.client.transport.stats().sent, ends.server.transport.stats());
    assert_eq!(sent.datagrams, stats.received.datagrams + stats.drops.total());
    ends.client.end();
    ends.server.end();
}

#[test]
fn a_peer_that_says_nothing_any_more_is_given_up_after_the_patience() {
    let mut ends = open_with(Mode::Streams, &few());
    let begun = ends.client.now();
    ends.client.transport.set_patience(ends.server_addr, Duration::from_secs(12));
    ends.client.send_all(&to_server(&ends, b"anybody?"));
    let event = sleep(&mut ends.client, begun + Duration::from_secs(60));
    let Some(StreamEvent::Closed { reason, .. }) = event else { panic!("{event:?}") };
    assert!(reason.contains("did not answer in time"), "{reason}");
    let after = ends.client.now().since(begun);
    assert!((12..14).contains(&after.as_secs()), "{after:?}");
    ends.client.end();
}

#[test]
fn a_stream_without_anything_to_say_lives_on() {
    let mut ends = open_with(Mode::Streams, &few());
    let sent = ends.client.transport.stats().sent;
    for _ in 0..600 {
        let (client, server) = (ends.client.now(), ends.server.now());
        assert_eq!(sleep(&mut ends.client, client + Duration::from_millis(500)), None);
        assert_eq!(sleep(&mut ends.server, server + Duration::from_millis(500)), None);
    }
    assert_eq!(ends.client.transport.stats().sent, sent);
    ends.server.send_all(&Outgoing::datagram(TrafficClass::Data, ends.client_addr, b"still here"));
    assert_eq!(ends.await_client(1)[0].bytes, b"still here");
}

/// A way between a client and a server that can be cut.
struct Relay {
    front: UdpSocket,
    back: UdpSocket,
    client: SocketAddr,
}

impl Relay {
    fn new(server: SocketAddr) -> Self {
        let [front, back] = [(); 2].map(|()| UdpSocket::bind(at(V4)).unwrap());
        back.connect(server).unwrap();
        for socket in [&front, &back] {
            socket.set_nonblocking(true).unwrap();
        }
        let client = front.local_addr().unwrap();
        Self { front, back, client }
    }

    /// Takes what has come, and passes it on unless the way is cut.
    fn carry(&mut self, is_cut: bool) {
        let mut buffer = [0; 2_000];
        while let Ok((len, from)) = self.front.recv_from(&mut buffer) {
            self.client = from;
            assert!(is_cut || self.back.send(&buffer[..len]).is_ok());
        }
        while let Ok(len) = self.back.recv(&mut buffer) {
            assert!(is_cut || self.front.send_to(&buffer[..len], self.client).is_ok());
        }
    }
}

/// QUIC's own timer would by then be as long as the outage was.
#[test]
fn after_an_outage_a_stream_goes_on_within_a_second() {
    let mut server = serve(&[at(V4)], Mode::Streams, &few());
    server.expect(TOKEN, Time::NEVER);
    let mut relay = Relay::new(server.local_addrs()[0].ip().unwrap());
    let remote = relay.front.local_addr().unwrap();
    let mut client = Side::new(Box::new(dial(remote, Mode::Streams, &few())));
    let mut server = Side::new(Box::new(server));
    for _ in 0..1_000 {
        client.turn();
        relay.carry(false);
        server.turn();
        relay.carry(false);
    }
    assert!(matches!(client.transport.poll_stream(), Some(StreamEvent::Open { .. })));
    // A whole window is under way, so that nothing but probes may be sent.
    let bytes = vec![5; 60_000];
    let train = Outgoing::train(TrafficClass::Data, remote, &bytes, 1_000);
    assert_eq!(client.transport.send(&train).unwrap(), Sent::All);
    let cut_until = client.now() + Duration::from_secs(25);
    while client.now() < cut_until {
        relay.carry(true);
        let now = client.now();
        assert_eq!(sleep(&mut client, now + Duration::from_millis(10)), None);
    }
    let mended = client.now();
    while server.arrival_count() == 0 && client.now() < mended + Duration::from_secs(9) {
        relay.carry(false);
        server.turn();
        relay.carry(false);
        client.turn();
    }
    assert!(client.now().since(mended) <= Duration::from_millis(1_100), "{:?}", client.now());
    for _ in 0..10_000 {
        relay.carry(false);
        server.turn();
        relay.carry(false);
        client.turn();
    }
    assert_eq!(server.arrival_count(), 60, "all of it in the end");
}

/// Many come and prove nothing: they are asked to come again, which costs this end no memory, and
/// who does has its stream all the same.
#[test]
fn a_flood_of_first_packets_keeps_nobody_out_and_is_not_kept() {
    let config = Config { retry_from: 4, ..few() };
    let mut server = Side::new(Box::new(serve(&[at(V4)], Mode::Streams, &config)));
    let address = server.transport.local_addrs()[0];
    server.transport.expect(TOKEN, Time::NEVER);
    let flood: Vec<_> = (0..200)
        .map(|_| Plain::connect(address.ip().unwrap(), client_crypto(identity())))
        .collect();
    server.drain();
    assert_eq!(server.transport.stats().streams.accepted, 4, "the others were asked to return");
    let client = Side::new(Box::new(dial(address.ip().unwrap(), Mode::Streams, &config)));
    let client_addr = client.transport.local_addrs()[0];
    let mut ends =
        Ends { client, server, server_addr: address, client_addr, client_data: client_addr };
    ends.await_until(|ends| ends.client.transport.stats().streams.opened == 1);
    ends.client.send_all(&to_server(&ends, b"in spite of them"));
    assert_eq!(ends.await_server(1)[0].bytes, b"in spite of them");
    assert_eq!(ends.server.transport.stats().streams.accepted, 5);
    drop(flood);
}

#[test]
fn junk_is_dropped_and_moves_no_stream() {
    let mut ends = open_with(Mode::Streams, &few());
    let mut random = dacapo_base::Random::from_number(11);
    let stranger = UdpSocket::bind(at(V4)).unwrap();
    for _ in 0..2_000 {
        let mut bytes = vec![0; random.below(1_600) as usize];
        random.fill(&mut bytes);
        // Some look as if they began a connection of version 1.
        if let Some(head) = bytes.get_mut(..5).filter(|_| random.chance(0.5)) {
            head.copy_from_slice(&[0xC3, 0, 0, 0, 1]);
        }
        stranger.send_to(&bytes, ends.server_addr.ip().unwrap()).unwrap();
        ends.server.turn();
    }
    ends.client.send_all(&to_server(&ends, b"still here"));
    assert_eq!(ends.await_server(1)[0].bytes, b"still here");
    assert_eq!(ends.server.transport.stream_count(), 1);
    ends.client.end();
    ends.server.end();
}

#[test]
fn a_used_port_is_an_error_that_says_what_to_do() {
    for host in hosts() {
        let first = serve(&[at(host)], Mode::Streams, &few());
        let address = first.local_addrs()[0];
        let error =
            Quic::serve(&[address.ip().unwrap()], Mode::Streams, &server(), &few()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        let text = error.to_string();
        let advice =
            format!("QUIC: cannot listen at {address}: port {} is in use", address.port().unwrap());
        assert!(text.starts_with(&advice), "{text}");
    }
}

#[test]
fn bad_addresses_are_named() {
    for addrs in [vec![], vec![at(V4); 17]] {
        let error = Quic::serve(&addrs, Mode::Streams, &server(), &few()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::BROADCAST), 9);
    let dialed = Quic::dial(nowhere, TOKEN, Mode::Streams, &client(), &few());
    let text = dialed.err().unwrap().to_string();
    assert!(text.contains("QUIC: ") && text.contains("255.255.255.255:9"), "{text}");
}

/// A listener of one mode says so to a dialer of the other.
#[test]
fn who_takes_no_datagrams_gets_none() {
    let mut server = serve(&[at(V4)], Mode::Streams, &few());
    server.expect(TOKEN, Time::NEVER);
    let remote = server.local_addrs()[0];
    let client = Side::new(Box::new(dial(remote.ip().unwrap(), Mode::Datagrams, &few())));
    let client_addr = client.transport.local_addrs()[0];
    let server = Side::new(Box::new(server));
    let mut ends =
        Ends { client, server, server_addr: remote, client_addr, client_data: client_addr };
    ends.await_until(|ends| ends.client.transport.stats().streams.opened == 1);
    ends.client.transport.poll_stream();
    let sent = ends.client.transport.send(&to_server(&ends, b"hello"));
    assert!(matches!(sent, Err(dacapo_transport::SendError::Closed)), "{sent:?}");
    ends.await_until(|ends| ends.client.transport.stream_count() == 0);
    let Some(StreamEvent::Closed { reason, .. }) = ends.client.transport.poll_stream() else {
        panic!("it is not told")
    };
    assert!(reason.contains("takes no datagrams"), "{reason}");
}
