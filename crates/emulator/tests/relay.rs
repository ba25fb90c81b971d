//! The relay as clients and servers see it, over loopback.

#![allow(clippy::unwrap_used)]

use dacapo_base::{Ecn, Time, Tolerance, patience};
use dacapo_emulator::{PathStats, Relay, RelayConfig, RelayHandle, Way, directions};
use dacapo_link::{Link, LinkConfig};
use dacapo_sys::udp::{Config, Socket};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Ends a test that hangs.
const LONG: Duration = Duration::from_secs(60);
const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn config(text: &str) -> LinkConfig {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A socket whose reads end some day.
fn socket(local: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(local).unwrap();
    socket.set_read_timeout(Some(patience::STEP_MAX)).unwrap();
    socket
}

/// What a read gives some day.
fn read<T>(mut read: impl FnMut() -> io::Result<T>) -> T {
    let read = patience::until(Instant::now, LONG, || match read() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        read => Some(read.unwrap()),
    });
    read.expect("nothing came")
}

/// A server, a relay to it, and a client of the relay.
struct World {
    server: UdpSocket,
    relay: RelayHandle,
    client: UdpSocket,
}

impl World {
    fn new(forward: &str, back: &str) -> Self {
        Self::with(|wanted| {
            (wanted.forward, wanted.back) = (config(forward), config(back));
        })
    }

    fn with(change: impl FnOnce(&mut RelayConfig)) -> Self {
        Self::at(HERE, change)
    }

    fn at(local: SocketAddr, change: impl FnOnce(&mut RelayConfig)) -> Self {
        let server = socket(local);
        let mut wanted = RelayConfig::new(local, server.local_addr().unwrap());
        change(&mut wanted);
        let relay = Relay::spawn(wanted).unwrap();
        let client = socket(local);
        client.connect(relay.local_addr()).unwrap();
        Self { server, relay, client }
    }

    /// Waits until the relay has done something.
    fn until(&self, what: &str, is_so: impl Fn(&PathStats) -> bool) -> PathStats {
        let mut patience = Tolerance::new(Instant::now(), LONG);
        loop {
            let stats = self.relay.stats();
            if is_so(&stats) {
                return stats;
            }
            assert!(patience.lasts(Instant::now()), "never {what}: {stats:?}");
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// What the server gets next, and from where.
    fn served(&self) -> (Vec<u8>, SocketAddr) {
        let mut buffer = vec![0; 70_000];
        let (len, from) = read(|| self.server.recv_from(&mut buffer));
        buffer.truncate(len);
        (buffer, from)
    }
}

fn received(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; 70_000];
    let len = read(|| socket.recv(&mut buffer));
    buffer.truncate(len);
    buffer
}

/// A datagram that says its number.
fn numbered(number: u32) -> Vec<u8> {
    let mut bytes = vec![7; 40 + (number as usize * 37) % 900];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

const BAD: &str = "loss=15%,burst=3,dup=10%,corrupt=5%,corrupt-undetected=10%,mtu=900";

#[test]
fn every_datagram_has_the_fate_that_a_virtual_link_of_the_same_seed_gives_it() {
    for seed in [1, 2, 77] {
        let again = format!(
            "seed {seed}; repeat with: cargo test -p dacapo-emulator --test relay every_datagram"
        );
        let world = World::with(|wanted| {
            (wanted.forward, wanted.back, wanted.seed) = (config(BAD), config(BAD), seed);
        });
        let (forward, back) = directions(seed);
        let mut virtual_forward: Link<Vec<u8>> = Link::new(config(BAD), forward).unwrap();
        let mut virtual_back: Link<Vec<u8>> = Link::new(config(BAD), back).unwrap();
        let mut upstream = None;
        for number in 0..400 {
            // In lock step: the relay has decided before the next one is sent.
            world.client.send(&numbered(number)).unwrap();
            let expected = fates(&mut virtual_forward, number);
            let taken = world.until("taken", |stats| stats.forward.sent > u64::from(number));
            assert_eq!(taken.forward, *virtual_forward.stats(), "datagram {number}, {again}");
            for expected in expected {
                let (bytes, from) = world.served();
                assert_eq!(bytes, expected, "forward, datagram {number}, {again}");
                upstream = Some(from);
            }
            let Some(client) = upstream else { continue };
            let before = world.relay.stats().back.sent;
            world.server.send_to(&numbered(number), client).unwrap();
            let expected = fates(&mut virtual_back, number);
            let taken = world.until("answered", |stats| stats.back.sent > before);
            assert_eq!(taken.back, *virtual_back.stats(), "datagram {number}, {again}");
            for expected in expected {
                let bytes = received(&world.client);
                assert_eq!(bytes, expected, "back, datagram {number}, {again}");
            }
        }
        let stats = world.relay.stop();
        assert_eq!(stats.forward, *virtual_forward.stats(), "{again}");
        assert_eq!(stats.back, *virtual_back.stats(), "{again}");
        assert!(stats.closes() && stats.forward.lost_burst > 0, "{again}");
        assert!(stats.forward.duplicated > 0 && stats.forward.dropped_mtu > 0, "{again}");
        assert_eq!((stats.unsent, stats.refused, stats.kernel_drops), (0, 0, 0), "{again}");
    }
}

/// What of a datagram arrives over a virtual link without delay.
fn fates(link: &mut Link<Vec<u8>>, number: u32) -> Vec<Vec<u8>> {
    let _ = link.handle_send(Time::ZERO, numbered(number));
    std::iter::from_fn(|| link.poll_deliver(Time::ZERO)).map(|arrived| arrived.item).collect()
}

#[test]
fn a_train_arrives_datagram_by_datagram_in_its_order_and_with_its_mark() {
    let world = World::new("perfect", "perfect");
    let mut sender = Socket::bind(HERE, &Config::default()).unwrap();
    sender.connect(world.relay.local_addr()).unwrap();
    let bytes: Vec<u8> = (0..30_000_u32).map(|at| (at / 1_200) as u8).collect();
    sender.send(None, &bytes[..29_500], Some(1_200), Ecn::Ect0).unwrap();
    for number in 0..25_u8 {
        let (datagram, _) = world.served();
        assert_eq!(datagram.len(), if number == 24 { 700 } else { 1_200 });
        assert!(datagram.iter().all(|byte| *byte == number), "datagram {number}");
    }
    let stats = world.until("delivered", |stats| stats.forward.delivered == 25);
    assert_eq!((stats.forward.sent_bytes, stats.unsent), (29_500, 0));
    // The mark, for a receiver that can see it.
    let receiver = Socket::bind(HERE, &Config::default()).unwrap();
    let to = receiver.local_addr().unwrap();
    let relay = Relay::spawn(RelayConfig::new(HERE, to)).unwrap();
    sender.connect(relay.local_addr()).unwrap();
    sender.send(None, b"marked", None, Ecn::Ce).unwrap();
    let mut buffer = [0; 100];
    let arrived = patience::until(Instant::now, LONG, || receiver.recv(&mut buffer).ok());
    let arrived = arrived.expect("nothing came");
    assert_eq!((arrived.len, arrived.ecn), (6, Ecn::Ce));
}

#[test]
fn a_link_sets_and_clears_the_mark_that_a_receiver_sees() {
    for (forward, marks) in [
        ("rate=10Mbit/s,aqm=codel,aqm-target=1us,aqm-interval=1us", true),
        ("rate=10Mbit/s,ecn=clear", false),
    ] {
        let receiver = Socket::bind(HERE, &Config::default()).unwrap();
        let to = receiver.local_addr().unwrap();
        let forward = config(forward);
        let relay = Relay::spawn(RelayConfig { forward, ..RelayConfig::new(HERE, to) }).unwrap();
        let mut sender = Socket::bind(HERE, &Config::default()).unwrap();
        sender.connect(relay.local_addr()).unwrap();
        // They come as one, so all but the first wait.
        sender.send(None, &[7; 25 * 1_200], Some(1_200), Ecn::Ect0).unwrap();
        let (mut bytes, mut seen) = (0, Vec::new());
        let mut buffer = [0; 30_000];
        while bytes < 25 * 1_200 {
            let arrived = patience::until(Instant::now, LONG, || receiver.recv(&mut buffer).ok());
            let arrived = arrived.expect("not all came");
            bytes += arrived.len;
            seen.push(arrived.ecn);
        }
        let stats = relay.stop();
        assert_eq!(stats.forward.marked > 0, marks, "{stats:?}");
        assert_eq!(seen.contains(&Ecn::Ce), marks, "{seen:?}");
        assert_eq!(seen.contains(&Ecn::NotEct), !marks, "{seen:?}");
        assert!(stats.closes());
    }
}

#[test]
fn every_client_gets_its_own_answers_over_both_families() {
    let six = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let families = [Some(HERE), UdpSocket::bind(six).is_ok().then_some(six)];
    for local in families.into_iter().flatten() {
        let world = World::at(local, |_| {});
        let others: Vec<UdpSocket> = (0..5).map(|_| socket(local)).collect();
        for (number, other) in others.iter().enumerate() {
            other.connect(world.relay.local_addr()).unwrap();
            other.send(&[number as u8]).unwrap();
        }
        for _ in 0..others.len() {
            let (bytes, from) = world.served();
            world.server.send_to(&[bytes[0] + 100], from).unwrap();
        }
        for (number, other) in others.iter().enumerate() {
            assert_eq!(received(other), [number as u8 + 100]);
        }
        assert_eq!(world.relay.stats().clients, 5);
    }
}

#[test]
fn clients_beyond_the_limit_are_refused_until_one_has_been_silent_long_enough() {
    let world = World::with(|wanted| {
        (wanted.clients_max, wanted.idle_max) = (1, Duration::from_millis(300));
    });
    world.client.send(b"first").unwrap();
    let (_, from) = world.served();
    let second = socket(HERE);
    second.connect(world.relay.local_addr()).unwrap();
    second.send(b"no room").unwrap();
    // Unless this machine was so slow that the first one is forgotten already.
    world.until("decided", |stats| stats.refused == 1 || stats.forward.sent == 2);
    world.until("forgotten", |stats| stats.clients == 0);
    // What comes for one that is forgotten reaches nobody.
    world.server.send_to(b"late", from).unwrap();
    // On a slow machine the second one may be forgotten before its answer is there: it asks again.
    second.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut patience = Tolerance::new(Instant::now(), LONG);
    let mut buffer = [0; 100];
    loop {
        second.send(b"room").unwrap();
        let (_, other) = world.served();
        assert_ne!(from, other);
        world.server.send_to(b"answer", other).unwrap();
        if let Ok(len) = second.recv(&mut buffer) {
            assert_eq!(&buffer[..len], b"answer");
            break;
        }
        assert!(patience.lasts(Instant::now()), "no answer: {:?}", world.relay.stats());
    }
}

#[test]
fn a_cut_a_change_and_a_delay_take_effect_while_it_runs() {
    let world = World::new("perfect", "perfect");
    world.relay.partition(Way::Forward, true);
    world.client.send(b"cut").unwrap();
    world.until("cut", |stats| stats.forward.dropped_partition == 1);
    world.relay.partition(Way::Forward, false);
    world.relay.set_link(Way::Forward, config("delay=50ms")).unwrap();
    let before = Instant::now();
    world.client.send(b"delayed").unwrap();
    assert_eq!(world.served().0, b"delayed");
    assert!(before.elapsed() >= Duration::from_millis(50), "it came before its time");
    world.relay.set_link(Way::Forward, config("loss=100%")).unwrap();
    world.client.send(b"lost").unwrap();
    let stats = world.until("lost", |stats| stats.forward.lost_random == 1);
    assert!(stats.closes() && stats.lateness.count() == 1);
    let invalid = LinkConfig { in_flight_max: 0, ..LinkConfig::default() };
    assert!(world.relay.set_link(Way::Back, invalid.clone()).is_err());
    let to = world.server.local_addr().unwrap();
    let refused = Relay::spawn(RelayConfig { back: invalid, ..RelayConfig::new(HERE, to) });
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn what_is_on_the_way_at_the_end_is_counted_there() {
    let world = World::new("delay=60s,dup=100%", "perfect");
    for _ in 0..10 {
        world.client.send(b"x").unwrap();
    }
    world.until("taken", |stats| stats.forward.sent == 10);
    let stats = world.relay.stop();
    assert_eq!((stats.in_flight_forward, stats.forward.delivered), (20, 0));
    assert!(stats.closes() && stats.fault.is_none());
}

#[test]
fn a_server_that_comes_later_is_reached_and_empty_datagrams_pass() {
    let world = World::new("perfect", "perfect");
    let later = socket(HERE);
    let to = later.local_addr().unwrap();
    drop(later);
    let relay = Relay::spawn(RelayConfig::new(HERE, to)).unwrap();
    world.client.connect(relay.local_addr()).unwrap();
    for _ in 0..5 {
        world.client.send(b"nobody").unwrap();
    }
    let later = socket(to);
    let mut patience = Tolerance::new(Instant::now(), LONG);
    later.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut buffer = [1; 10];
    loop {
        // The first ones may meet the answers to those before.
        world.client.send(b"").unwrap();
        if later.recv(&mut buffer).is_ok_and(|len| len == 0) {
            break;
        }
        assert!(patience.lasts(Instant::now()), "nothing empty came: {:?}", relay.stats());
    }
    assert!(relay.stop().closes());
}
