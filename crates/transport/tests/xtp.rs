//! The XTP transport over loopback: the conformance suite in both modes, and what only XTP has.

#![allow(clippy::unwrap_used)]

mod common;
mod xtp_bare;

use common::{V4, at, hosts};
use dacapo_base::{Address, Random, Time};
use dacapo_transport::conformance::{self, Bare, Ends, Side, StreamNet};
use dacapo_transport::stream::{StreamParams, Token};
use dacapo_transport::xtp::{Config, Mode, Xtp, head, label_of};
use dacapo_transport::{Outgoing, Sent, StreamEvent, StreamTransport, TrafficClass, Transport};
use dacapo_xtp::wire::{Body, Frame};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use xtp_bare::Plain;

const TOKEN: Token = [7; 16];

/// Another seed for every engine, so that no two draw the same keys.
fn random() -> Random {
    static SEED: AtomicU64 = AtomicU64::new(1_000);
    Random::from_number(SEED.fetch_add(1, Ordering::Relaxed))
}

fn serve(addrs: &[SocketAddr], mode: Mode, config: &Config) -> Xtp {
    Xtp::serve(addrs, mode, random(), config).unwrap()
}

fn dial(remote: SocketAddr, mode: Mode, config: &Config) -> Xtp {
    Xtp::dial(remote, TOKEN, mode, &StreamParams::default(), random(), config).unwrap()
}

/// Loopback XTP as the suite wants it.
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
        let terms = StreamParams::default();
        let dialed =
            Xtp::dial(remote.ip().unwrap(), token, self.mode, &terms, random(), &self.config);
        Box::new(dialed.unwrap())
    }

    fn connect(&self, remote: Address, token: &Token) -> Box<dyn Bare> {
        Box::new(Plain::connect(remote.ip().unwrap(), token, self.mode))
    }

    fn nobody(&self) -> Address {
        // A port that was free a moment ago; its taker would have to be quick.
        UdpSocket::bind(at(self.reach)).unwrap().local_addr().unwrap().into()
    }

    fn streams_max(&self) -> usize {
        self.config.streams_max
    }

    fn answers_strangers(&self) -> bool {
        false
    }

    fn is_quiet(&self) -> bool {
        false
    }
}

/// Tests run beside each other and share the process's descriptors.
fn few() -> Config {
    Config { streams_max: 32, ..Config::default() }
}

fn small() -> Config {
    Config { buffer_len: 4_096, ..few() }
}

fn conforms(mode: Mode) {
    for host in hosts() {
        let net = Loopback::new(host, mode, few());
        conformance::run_all(&|| conformance::open_pair(&net));
        conformance::run_streams(&net);
    }
}

#[test]
fn xtp_conforms() {
    conforms(Mode::Streams);
}

#[test]
fn xtp_datagram_conforms() {
    conforms(Mode::Datagrams);
}

#[test]
fn xtp_conforms_on_a_wildcard_address_without_offloads() {
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
fn xtp_with_small_windows_conforms() {
    let net = Loopback::new(V4, Mode::Streams, small());
    conformance::run_small_streams(&net);
}

#[test]
fn xtp_datagram_with_small_windows_conforms() {
    let net = Loopback::new(V4, Mode::Datagrams, small());
    conformance::run_small(&|| conformance::open_pair(&net));
}

/// A client and a server whose stream is open.
fn open_with(mode: Mode, config: &Config) -> Ends<Xtp> {
    let mut server = serve(&[at(V4)], mode, config);
    server.expect(TOKEN, Time::NEVER);
    let server_addr = server.local_addrs()[0];
    let client = dial(server_addr.ip().unwrap(), mode, config);
    let client_addr = client.local_addrs()[0];
    let (client, server) = (Side::new(Box::new(client)), Side::new(Box::new(server)));
    let mut ends = Ends { client, server, server_addr, client_addr, client_data: client_addr };
    let opened = |side: &Side<Xtp>| side.transport.stats().streams.opened == 1;
    ends.await_until(|ends| opened(&ends.client) && opened(&ends.server));
    for side in [&mut ends.client, &mut ends.server] {
        assert!(matches!(side.transport.poll_stream(), Some(StreamEvent::Open { .. })));
    }
    ends
}

fn to_server<'a>(ends: &Ends<Xtp>, bytes: &'a [u8]) -> Outgoing<'a> {
    Outgoing::datagram(TrafficClass::Data, ends.server_addr, bytes)
}

/// Turns a side at its deadlines, as who sleeps until then, until `until` or an event.
fn sleep(side: &mut Side<Xtp>, until: Time) -> Option<StreamEvent> {
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
fn a_peer_that_says_nothing_any_more_is_given_up_after_the_patience() {
    for mode in [Mode::Streams, Mode::Datagrams] {
        let mut ends = open_with(mode, &few());
        let begun = ends.client.now();
        ends.client.transport.set_patience(ends.server_addr, Duration::from_secs(12));
        ends.client.send_all(&to_server(&ends, b"anybody?"));
        let event = sleep(&mut ends.client, begun + Duration::from_secs(60));
        let Some(StreamEvent::Closed { reason, .. }) = event else { panic!("{event:?}") };
        assert!(reason.contains("did not answer in time"), "{reason}");
        let after = ends.client.now().since(begun);
        assert!((12..15).contains(&after.as_secs()), "{after:?}");
        ends.client.end();
    }
}

#[test]
fn a_stream_without_anything_to_say_lives_on() {
    for mode in [Mode::Streams, Mode::Datagrams] {
        let mut ends = open_with(mode, &few());
        let sent = ends.client.transport.stats().sent;
        for _ in 0..600 {
            let (client, server) = (ends.client.now(), ends.server.now());
            assert_eq!(sleep(&mut ends.client, client + Duration::from_millis(500)), None);
            assert_eq!(sleep(&mut ends.server, server + Duration::from_millis(500)), None);
        }
        assert_eq!(ends.client.transport.stats().sent, sent);
        ends.server.send_all(&Outgoing::datagram(
            TrafficClass::Data,
            ends.client_addr,
            b"still here",
        ));
        assert_eq!(ends.await_client(1)[0].bytes, b"still here");
    }
}

#[test]
fn a_stop_of_the_process_is_no_silence_of_the_other_end() {
    let mut ends = open_with(Mode::Streams, &few());
    ends.client.send_all(&to_server(&ends, b"before"));
    ends.client.pass(Duration::from_secs(3_600));
    ends.client.turn();
    assert_eq!(ends.client.transport.poll_stream(), None);
    assert_eq!(ends.await_server(1)[0].bytes, b"before");
    ends.client.send_all(&to_server(&ends, b"after"));
    assert_eq!(ends.await_server(1)[0].bytes, b"after");
    ends.end();
}

/// What was stopped for an hour has its time, by which others said how long they would wait.
#[test]
fn after_a_stop_a_stream_is_expected_as_long_as_was_said() {
    let mut ends = open_with(Mode::Streams, &few());
    ends.server.pass(Duration::from_secs(3_600));
    ends.server.turn();
    let accepted = ends.server.transport.stats().streams.accepted;
    let until = ends.server.now() + Duration::from_secs(5);
    ends.server.transport.expect([8; 16], until);
    ends.server.pass(Duration::from_secs(6));
    ends.server.turn();
    let late = Plain::connect(ends.server_addr.ip().unwrap(), &[8; 16], Mode::Streams);
    ends.server.await_until(|side| side.transport.stats().drops.unlabelled > 0);
    assert_eq!(ends.server.transport.stats().streams.accepted, accepted);
    drop(late);
    ends.end();
}

/// A token is forgotten at every listener when its flow ends, expected there or not.
#[test]
fn a_token_that_is_forgotten_takes_no_other_with_the_same_label() {
    let mut server = serve(&[at(V4)], Mode::Streams, &few());
    let address = server.local_addrs()[0];
    server.expect(TOKEN, Time::NEVER);
    let other = [&TOKEN[..4], &[9; 12]].concat();
    server.forget(&other.try_into().unwrap());
    let mut server = Side::new(Box::new(server));
    let mut client = Side::new(Box::new(dial(address.ip().unwrap(), Mode::Streams, &few())));
    for _ in 0..1_000 {
        client.turn();
        server.turn();
        if client.transport.stats().streams.opened == 1 {
            break;
        }
    }
    assert_eq!(client.transport.stats().streams.opened, 1);
    client.end();
    server.end();
}

/// Lets calls of the system fail from now on; none with an empty text.
fn fail(faults: &str) {
    let plan = if faults.is_empty() { Ok(Vec::new()) } else { dacapo_sys::faults::parse(faults) };
    dacapo_sys::faults::plan(&plan.unwrap());
}

#[test]
fn while_a_socket_is_full_nothing_is_due_at_once() {
    for mode in [Mode::Streams, Mode::Datagrams] {
        let mut ends = open_with(mode, &few());
        fail("sendmsg:EAGAIN:1/1");
        ends.client.send_all(&to_server(&ends, b"later"));
        for _ in 0..100 {
            ends.client.pass(Duration::from_millis(50));
            ends.client.turn();
            let (now, due) = (ends.client.now(), ends.client.transport.next_deadline());
            assert!(due.is_some_and(|due| due > now), "{mode:?}: {due:?} at {now:?}");
        }
        assert_eq!(ends.client.transport.poll_stream(), None);
        fail("");
        assert_eq!(ends.await_server(1)[0].bytes, b"later");
        ends.end();
    }
}

#[test]
fn a_stream_whose_packets_the_system_takes_no_more_is_ended_with_the_reason() {
    for mode in [Mode::Streams, Mode::Datagrams] {
        let mut ends = open_with(mode, &few());
        fail("sendmsg:EMSGSIZE:1/1");
        ends.client.send_all(&to_server(&ends, &[5; 1_000]));
        let due = ends.client.transport.next_deadline();
        assert!(due.is_some_and(|due| due <= ends.client.now()), "{due:?}");
        let until = ends.client.now() + Duration::from_secs(1);
        let event = sleep(&mut ends.client, until);
        fail("");
        let Some(StreamEvent::Closed { reason, .. }) = event else { panic!("{event:?}") };
        assert!(reason.contains("check the MTU"), "{reason}");
        assert!(ends.client.transport.stats().too_large > 0, "{mode:?}");
        ends.client.end();
    }
}

/// The device became narrower: what it takes of what was sent in longer packets arrives.
#[test]
fn a_stream_whose_long_packets_the_system_takes_no_more_goes_on_with_short_ones() {
    let mut ends = open_with(Mode::Streams, &few());
    ends.client.send_all(&to_server(&ends, &[4; 10_000]));
    assert_eq!(ends.await_server(1)[0].bytes, [4; 10_000]);
    // The second and the third call fail, so the second packet is refused, and no short one.
    fail("sendmsg:EMSGSIZE:1/2,sendmsg:EMSGSIZE:1/3");
    ends.client.send_all(&to_server(&ends, b"short"));
    ends.client.send_all(&to_server(&ends, &[5; 10_000]));
    fail("");
    let arrived = ends.await_server(2);
    assert_eq!((&arrived[0].bytes[..], &arrived[1].bytes[..]), (&b"short"[..], &[5; 10_000][..]));
    assert!(ends.client.transport.stats().too_large > 0);
    assert_eq!(ends.client.transport.poll_stream(), None);
    ends.end();
}

/// A router drops what is too long, as it says by ICMP, which nobody believes, or not at all.
#[test]
fn a_stream_goes_on_over_a_path_that_became_narrow() {
    let (mut client, mut server, mut relay, remote) = over_relay(Mode::Streams, 0.0);
    for _ in 0..100 {
        turn(&mut client, &mut server, &mut relay);
    }
    assert!(matches!(client.transport.poll_stream(), Some(StreamEvent::Open { .. })));
    let to_client = relay.back.local_addr().unwrap();
    relay.len_max = 1_200;
    let bytes = vec![5; 60_000];
    for (side, remote) in [(&mut client, remote), (&mut server, to_client)] {
        let train = Outgoing::train(TrafficClass::Data, remote, &bytes, 1_000);
        assert_eq!(side.transport.send(&train).unwrap(), Sent::All);
    }
    for _ in 0..20_000 {
        turn(&mut client, &mut server, &mut relay);
        if client.arrival_count() == 60 && server.arrival_count() == 60 {
            break;
        }
    }
    assert_eq!((client.arrival_count(), server.arrival_count()), (60, 60));
    assert!((4..200).contains(&relay.lost), "{} vanished", relay.lost);
    client.end();
    server.end();
}

/// Anybody can say so by ICMP.
#[test]
fn a_word_that_packets_are_too_long_is_not_believed_once() {
    for mode in [Mode::Streams, Mode::Datagrams] {
        let mut ends = open_with(mode, &few());
        fail("sendmsg:EMSGSIZE:1/2");
        for _ in 0..20 {
            ends.client.send_all(&to_server(&ends, &[5; 1_000]));
        }
        assert!(dacapo_sys::faults::hits() > 5);
        fail("");
        assert_eq!(ends.await_server(20).len(), 20);
        assert_eq!(ends.client.transport.stats().too_large, 0);
        ends.end();
    }
}

/// A way between a client and a server that loses, can be cut, and can be narrow.
struct Relay {
    front: UdpSocket,
    back: UdpSocket,
    client: SocketAddr,
    random: Random,
    loss: f64,
    /// Longer datagrams vanish, bytes.
    len_max: usize,
    lost: u32,
    /// Datagrams of `xtp-datagram` that went on to the client.
    datagrams_to_client: u64,
}

impl Relay {
    fn new(server: SocketAddr, loss: f64) -> Self {
        let [front, back] = [(); 2].map(|()| UdpSocket::bind(at(V4)).unwrap());
        back.connect(server).unwrap();
        for socket in [&front, &back] {
            socket.set_nonblocking(true).unwrap();
        }
        let client = front.local_addr().unwrap();
        let random = Random::from_number(5);
        let (len_max, lost, datagrams_to_client) = (usize::MAX, 0, 0);
        Self { front, back, client, random, loss, len_max, lost, datagrams_to_client }
    }

    /// Takes what has come, and passes it on unless the way is cut.
    fn carry(&mut self, is_cut: bool) {
        let mut buffer = [0; 20_000];
        while let Ok((len, from)) = self.front.recv_from(&mut buffer) {
            self.client = from;
            let is_lost = self.loses(is_cut, len);
            assert!(is_lost || self.back.send(&buffer[..len]).is_ok());
        }
        while let Ok(len) = self.back.recv(&mut buffer) {
            let is_lost = self.loses(is_cut, len);
            assert!(is_lost || self.front.send_to(&buffer[..len], self.client).is_ok());
            self.datagrams_to_client += u64::from(!is_lost && is_datagram(&buffer[5..len]));
        }
    }

    fn loses(&mut self, is_cut: bool, len: usize) -> bool {
        let is_lost = is_cut || len > self.len_max || self.random.chance(self.loss);
        self.lost += u32::from(is_lost);
        is_lost
    }
}

/// Whether a packet of XTP begins a datagram of the unreliable mode.
fn is_datagram(packet: &[u8]) -> bool {
    let frame = Frame::open(packet).unwrap();
    let Body::Data(payload) = frame.body().unwrap() else { return false };
    payload.tag.is_some_and(|tag| tag[0] > 1)
}

/// A client and a server with a relay between them.
fn over_relay(mode: Mode, loss: f64) -> (Side<Xtp>, Side<Xtp>, Relay, SocketAddr) {
    let mut server = serve(&[at(V4)], mode, &few());
    server.expect(TOKEN, Time::NEVER);
    let relay = Relay::new(server.local_addrs()[0].ip().unwrap(), loss);
    let remote = relay.front.local_addr().unwrap();
    let client = Side::new(Box::new(dial(remote, mode, &few())));
    (client, Side::new(Box::new(server)), relay, remote)
}

/// A turn of both, and what goes between them.
fn turn(client: &mut Side<Xtp>, server: &mut Side<Xtp>, relay: &mut Relay) {
    client.turn();
    relay.carry(false);
    server.turn();
    relay.carry(false);
}

#[test]
fn what_is_lost_on_the_way_arrives_all_the_same_or_is_missing_in_order() {
    for mode in [Mode::Streams, Mode::Datagrams] {
        let (mut client, mut server, mut relay, remote) = over_relay(mode, 0.1);
        let opened = |side: &Side<Xtp>| side.transport.stats().streams.opened == 1;
        for _ in 0..9_000 {
            turn(&mut client, &mut server, &mut relay);
            if opened(&client) && opened(&server) {
                break;
            }
        }
        assert!(opened(&client) && opened(&server), "{mode:?}");
        let mut sent = 0_u32;
        for _ in 0..20_000 {
            let bytes = [sent.to_be_bytes().as_slice(), &[9; 900]].concat();
            let datagram = Outgoing::datagram(TrafficClass::Data, remote, &bytes);
            if sent < 3_000 && client.transport.send(&datagram).unwrap() == Sent::All {
                sent += 1;
            }
            turn(&mut client, &mut server, &mut relay);
            if mode == Mode::Streams && server.arrival_count() == 3_000 {
                break;
            }
        }
        assert_eq!(sent, 3_000);
        assert!(relay.lost > 200, "{}", relay.lost);
        let arrived = server.take_arrivals();
        let number = |bytes: &[u8]| u32::from_be_bytes(*bytes.first_chunk().unwrap());
        let numbers: Vec<u32> = arrived.iter().map(|arrival| number(&arrival.bytes)).collect();
        assert!(numbers.windows(2).all(|two| two[0] < two[1]), "in order, each once");
        assert!(arrived.iter().all(|arrival| arrival.bytes.len() == 904), "whole");
        match mode {
            Mode::Streams => assert_eq!(numbers.len(), 3_000),
            Mode::Datagrams => {
                assert!((2_500..2_900).contains(&numbers.len()), "{}", numbers.len())
            }
        }
        client.end();
        server.end();
    }
}

#[test]
fn a_lost_answer_is_read_though_datagrams_come_before_the_next() {
    let (mut client, mut server, mut relay, _) = over_relay(Mode::Datagrams, 0.0);
    let opened = |side: &Side<Xtp>| side.transport.stats().streams.opened == 1;
    for _ in 0..1_000 {
        client.turn();
        relay.carry(false);
        server.turn();
        if opened(&server) {
            break;
        }
    }
    assert!(opened(&server));
    // The answer, and what went with it.
    relay.carry(true);
    let to_client = relay.back.local_addr().unwrap();
    let mut sent = 0;
    for _ in 0..5_000 {
        let datagram = Outgoing::datagram(TrafficClass::Data, to_client, &[9; 1_000]);
        sent += u64::from(server.transport.send(&datagram).unwrap() == Sent::All);
        turn(&mut client, &mut server, &mut relay);
        if opened(&client) {
            break;
        }
    }
    assert!(opened(&client), "of {sent}: {:?}", client.transport.stats());
    let dropped = client.transport.stats().drops.queue_full;
    assert!(dropped > 0 && dropped < sent, "{dropped} of {sent}");
    client.turn();
    client.take_arrivals();
    for number in 0..500_u32 {
        let bytes = number.to_be_bytes();
        let datagram = Outgoing::datagram(TrafficClass::Data, to_client, &bytes);
        assert_eq!(server.transport.send(&datagram).unwrap(), Sent::All);
        turn(&mut client, &mut server, &mut relay);
    }
    client.turn();
    let arrived = client.take_arrivals();
    let last = arrived.iter().filter(|arrival| arrival.bytes.len() == 4).count();
    assert_eq!(last, 500, "what comes behind the answer arrives");
    let stats = client.transport.stats();
    let counted = stats.received.datagrams + stats.drops.total();
    assert_eq!(counted, relay.datagrams_to_client, "{:?}", stats.drops);
    client.end();
    server.end();
}

#[test]
fn after_an_outage_a_stream_goes_on_within_two_seconds() {
    let (mut client, mut server, mut relay, remote) = over_relay(Mode::Streams, 0.0);
    for _ in 0..100 {
        turn(&mut client, &mut server, &mut relay);
    }
    assert!(matches!(client.transport.poll_stream(), Some(StreamEvent::Open { .. })));
    client.transport.set_patience(remote.into(), Duration::from_secs(60));
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
        turn(&mut client, &mut server, &mut relay);
    }
    assert!(client.now().since(mended) <= Duration::from_millis(2_100), "{:?}", client.now());
    for _ in 0..1_000 {
        turn(&mut client, &mut server, &mut relay);
    }
    assert_eq!(server.arrival_count(), 60, "all of it in the end");
}

/// Whoever knows no label makes this end keep nothing and say nothing.
#[test]
fn a_flood_of_first_packets_without_a_label_leaves_nothing_behind() {
    let mut ends = open_with(Mode::Streams, &few());
    let accepted = ends.server.transport.stats().streams.accepted;
    let strangers: Vec<_> = (0..200_u8)
        .map(|number| Plain::connect(ends.server_addr.ip().unwrap(), &[number; 16], Mode::Streams))
        .collect();
    let all = |side: &Side<Xtp>| side.transport.stats().drops.unlabelled >= 199;
    ends.server.await_until(|side| all(side) && side.transport.stats().streams.accepted > accepted);
    let stats = ends.server.transport.stats();
    assert_eq!(stats.streams.accepted, accepted + 1, "one of them has guessed the label");
    assert!(stats.drops.unlabelled >= 199, "{stats:?}");
    ends.client.send_all(&to_server(&ends, b"still here"));
    assert_eq!(ends.await_server(1)[0].bytes, b"still here");
    drop(strangers);
    ends.end();
}

#[test]
fn junk_is_dropped_and_moves_no_stream() {
    for mode in [Mode::Streams, Mode::Datagrams] {
        let mut ends = open_with(mode, &few());
        let mut random = Random::from_number(11);
        let stranger = UdpSocket::bind(at(V4)).unwrap();
        for _ in 0..2_000 {
            let mut bytes = vec![0; random.below(1_600) as usize];
            random.fill(&mut bytes);
            // Some have the label, and some of those look like packets of XTP.
            if let Some(front) = bytes.get_mut(..5).filter(|_| random.chance(0.7)) {
                front.copy_from_slice(&head(label_of(&TOKEN)));
            }
            if let Some(version) = bytes.get_mut(5 + 11).filter(|_| random.chance(0.7)) {
                *version = 0x20 | (random.below(9) as u8);
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
}

/// A copy of a stream's packet from elsewhere neither moves the stream nor ends it.
#[test]
fn a_packet_from_another_address_changes_nothing() {
    let (mut client, mut server, mut relay, remote) = over_relay(Mode::Streams, 0.0);
    for _ in 0..100 {
        turn(&mut client, &mut server, &mut relay);
    }
    let server_addr = relay.back.peer_addr().unwrap();
    let stranger = UdpSocket::bind(at(V4)).unwrap();
    client.send_all(&Outgoing::datagram(TrafficClass::Data, remote, b"one"));
    let mut buffer = [0; 20_000];
    let mut taken = Vec::new();
    for _ in 0..1_000 {
        if let Ok((len, _)) = relay.front.recv_from(&mut buffer) {
            taken = buffer[..len].to_vec();
            break;
        }
    }
    assert!(!taken.is_empty());
    stranger.send_to(&taken, server_addr).unwrap();
    for _ in 0..20 {
        server.turn();
    }
    assert_eq!(server.arrival_count(), 0, "it came from elsewhere");
    // The client sends it again, by its own way.
    for _ in 0..5_000 {
        turn(&mut client, &mut server, &mut relay);
    }
    assert_eq!(server.take_arrivals()[0].bytes, b"one");
    client.end();
    server.end();
}

/// A port may be given to the next program while the end of the stream before is still awaited.
#[test]
fn who_begins_anew_from_the_same_address_is_heard() {
    let mut ends = open_with(Mode::Streams, &few());
    let (client_addr, server_addr) = (ends.client_addr, ends.server_addr);
    ends.client.transport.close_stream(server_addr);
    ends.server.await_until(|side| side.transport.stats().streams.closed == 1);
    drop(ends.client);
    ends.server.transport.expect([8; 16], Time::NEVER);
    let again = Plain::connect_from(
        client_addr.ip().unwrap(),
        server_addr.ip().unwrap(),
        &[8; 16],
        Mode::Streams,
    );
    ends.server.await_until(|side| side.transport.stats().streams.accepted == 2);
    assert_eq!(ends.server.transport.stats().streams.accepted, 2);
    drop(again);
}

#[test]
fn a_used_port_is_an_error_that_says_what_to_do() {
    for host in hosts() {
        let first = serve(&[at(host)], Mode::Streams, &few());
        let address = first.local_addrs()[0];
        let error =
            Xtp::serve(&[address.ip().unwrap()], Mode::Streams, random(), &few()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        let text = error.to_string();
        let advice =
            format!("XTP: cannot listen at {address}: port {} is in use", address.port().unwrap());
        assert!(text.starts_with(&advice), "{text}");
    }
}

#[test]
fn bad_addresses_are_named() {
    for addrs in [vec![], vec![at(V4); 17]] {
        let error = Xtp::serve(&addrs, Mode::Streams, random(), &few()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::BROADCAST), 9);
    let terms = StreamParams::default();
    let dialed = Xtp::dial(nowhere, TOKEN, Mode::Streams, &terms, random(), &few());
    let text = dialed.err().unwrap().to_string();
    assert!(text.contains("XTP: ") && text.contains("255.255.255.255:9"), "{text}");
}
