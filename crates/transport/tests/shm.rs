//! The transport over shared memory: the conformance suite, and what only memory has.

#![allow(clippy::unwrap_used)]

mod plain;

use dacapo_base::{Address, Random, Time};
use dacapo_sys::doorbell::{Doorbell, Heard};
use dacapo_sys::memory::SharedMemory;
use dacapo_transport::conformance::{self, Bare, Side, StreamNet};
use dacapo_transport::shm::{Config, Link, Shm};
use dacapo_transport::stream::{MAGIC, Token};
use dacapo_transport::{Outgoing, StreamEvent, StreamTransport, TrafficClass, Transport};
use plain::Plain;
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TOKEN: Token = [7; 16];

/// A port that no other test of this process has; nothing else is at stake, as no port is bound.
fn fresh(ip: IpAddr) -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    SocketAddr::new(ip, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Serves at a port that is free; another process may be running the same tests.
fn serve_at(ip: IpAddr, config: &Config) -> (Shm, SocketAddr) {
    for _ in 0..u16::MAX / 4 {
        let address = fresh(ip);
        match Shm::serve(&[address], config) {
            Ok(shm) => return (shm, address),
            Err(error) => assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}"),
        }
    }
    panic!("no name is free");
}

/// Shared memory as the suite wants it.
struct Host {
    listen: IpAddr,
    reach: IpAddr,
    config: Config,
}

impl Host {
    fn new(config: Config) -> Self {
        Self { listen: V4, reach: V4, config }
    }
}

impl StreamNet for Host {
    fn serve(&self) -> (Box<dyn StreamTransport>, Address) {
        let (server, address) = serve_at(self.listen, &self.config);
        (Box::new(server), SocketAddr::new(self.reach, address.port()).into())
    }

    fn dial(&self, remote: Address, token: Token) -> Box<dyn StreamTransport> {
        Box::new(Shm::dial(remote.ip().unwrap(), token, &self.config).unwrap())
    }

    fn connect(&self, remote: Address, _token: &Token) -> Box<dyn Bare> {
        Box::new(plain(remote.ip().unwrap(), &self.config))
    }

    fn nobody(&self) -> Address {
        fresh(self.reach).into()
    }

    fn streams_max(&self) -> usize {
        self.config.streams_max
    }
}

/// A bare stream to who serves there.
fn plain(remote: SocketAddr, config: &Config) -> Plain<Link> {
    let link = Link::connect(remote, config.ring_bytes).unwrap();
    let local = link.local_addr(remote).unwrap();
    Plain(link, local)
}

/// Tests run beside each other and share the process's descriptors.
fn few() -> Config {
    Config { streams_max: 32, ..Config::default() }
}

fn small() -> Config {
    Config { ring_bytes: 4_096, streams_max: 32 }
}

#[test]
fn shm_conforms() {
    let net = Host::new(few());
    conformance::run_all(&|| conformance::open_pair(&net));
    conformance::run_streams(&net);
}

#[test]
fn shm_conforms_on_a_wildcard_address_and_over_ipv6() {
    let any = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    for (listen, reach) in any.into_iter().zip([V4, IpAddr::V6(Ipv6Addr::LOCALHOST)]) {
        let net = Host { listen, reach, config: few() };
        conformance::run_all(&|| conformance::open_pair(&net));
        conformance::run_streams(&net);
    }
}

#[test]
fn shm_with_small_rings_conforms() {
    let net = Host::new(small());
    conformance::run_small_streams(&net);
}

#[test]
fn all_streams_that_a_transport_may_have_can_be_open() {
    let net = Host::new(Config { ring_bytes: 4_096, ..Config::default() });
    assert_eq!(net.streams_max(), dacapo_transport::DATA_LANES_MAX);
    conformance::streams_and_tokens_are_bounded(&net);
}

/// A server with one stream from a bare link.
fn server_with_plain() -> (Side<Shm>, SocketAddr, Plain<Link>) {
    let (server, address) = serve_at(V4, &few());
    let mut server = Side::new(Box::new(server));
    let plain = open_plain(&mut server, address, TOKEN);
    (server, address, plain)
}

fn open_plain(server: &mut Side<Shm>, address: SocketAddr, token: Token) -> Plain<Link> {
    server.transport.expect(token, Time::NEVER);
    let opened = server.transport.stats().streams.opened;
    let mut plain = plain(address, &few());
    plain.write_all(&[MAGIC.as_slice(), &token].concat()).unwrap();
    server.await_until(|side| side.transport.stats().streams.opened == opened + 1);
    let mut answer = [0; 8];
    plain.read_exact(&mut answer).unwrap();
    assert_eq!(answer, MAGIC);
    assert!(matches!(server.transport.poll_stream(), Some(StreamEvent::Open { .. })));
    plain
}

fn reason_at(server: &mut Side<Shm>, left: usize) -> String {
    server.await_until(|side| side.transport.stream_count() == left);
    match server.transport.poll_stream() {
        Some(StreamEvent::Closed { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// A datagram goes from `plain` to the server and one back.
fn assert_alive(server: &mut Side<Shm>, plain: &mut Plain<Link>) {
    plain.write_all(&[0, 0, 0, 2, 8, 9]).unwrap();
    server.await_until(|side| side.arrival_count() == 1);
    assert_eq!(server.take_arrivals()[0].bytes, [8, 9]);
    server.send_all(&Outgoing::datagram(TrafficClass::Data, plain.local_addr(), b"yes"));
    let mut got = [0; 7];
    plain.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"\0\0\0\x03yes");
}

#[test]
fn a_name_that_is_taken_and_bad_addresses_are_errors_that_say_so() {
    let (_server, address) = serve_at(V4, &few());
    let error = Shm::serve(&[address], &few()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    let text = format!("shared memory: somebody serves at {address} on this host already");
    assert!(error.to_string().starts_with(&text), "{error}");
    for addrs in [vec![], vec![address; 17], vec![SocketAddr::new(V4, 0)]] {
        let error = Shm::serve(&addrs, &few()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{addrs:?}: {error}");
    }
}

#[test]
fn a_look_finds_who_serves_and_leaves_nothing_behind() {
    let (server, address) = serve_at(V4, &few());
    let mut server = Side::new(Box::new(server));
    Shm::look(address, &few()).unwrap();
    Shm::look(address, &few()).unwrap();
    server.drain();
    let counts = server.transport.stats().streams;
    assert_eq!((counts.accepted, counts.malformed), (0, 0), "who looks is no stream");
    let error = Shm::look(fresh(V4), &few()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert!(error.to_string().contains("nobody serves"), "{error}");
}

/// The last bytes of a peer that closes, or dies, come before its end.
#[test]
fn what_is_in_the_ring_when_the_peer_goes_is_read_first() {
    for round in 0..200 {
        let (mut server, _, mut plain) = server_with_plain();
        let record = [[0, 0, 0x40, 0].as_slice(), &[7; 0x4000]].concat();
        for _ in 0..5 {
            plain.write_all(&record).unwrap();
        }
        drop(plain);
        assert_eq!(reason_at(&mut server, 0), "the remote closed the stream", "round {round}");
        assert_eq!(server.take_arrivals().len(), 5, "round {round}");
        server.end();
    }
}

/// What a hostile dialer may give in place of its memory.
#[test]
fn whatever_is_given_in_place_of_memory_is_refused_and_others_go_on() {
    let (mut server, address, mut plain) = server_with_plain();
    let name = format!("dacapo-shm-1/{address}");
    let null = std::fs::File::open("/dev/null").unwrap();
    let (_wrong, wrong_len) = SharedMemory::create(12_345).unwrap();
    let (_tiny, tiny) = SharedMemory::create(8_192 + 2 * 2_048).unwrap();
    let (_huge, huge) = SharedMemory::create(8_192 + 2 * (2 << 20)).unwrap();
    let gifts: [Vec<BorrowedFd<'_>>; 7] = [
        vec![],
        vec![null.as_fd()],
        vec![wrong_len.as_fd()],
        vec![tiny.as_fd()],
        vec![huge.as_fd()],
        vec![null.as_fd(); 2],
        vec![null.as_fd(); 253],
    ];
    for (index, gift) in gifts.iter().enumerate() {
        let bell = Doorbell::connect(&name).unwrap();
        bell.give_all(gift).unwrap();
        let done = index as u64 + 1;
        server.await_until(|side| side.transport.stats().streams.malformed == done);
        assert_eq!(server.transport.stats().streams.malformed, done, "gift {index}");
        assert_eq!(heard(&bell), Heard::Gone, "gift {index}");
    }
    assert_eq!(server.transport.poll_stream(), None);
    assert_alive(&mut server, &mut plain);
    server.transport.release(&mut server.pool);
    server.end();
}

/// Everything in the memory is hers to write: it ends her stream, or is some bytes.
#[test]
fn garbage_in_the_memory_ends_its_own_stream_only() {
    let (mut server, address, mut plain) = server_with_plain();
    let name = format!("dacapo-shm-1/{address}");
    let mut random = Random::from_number(11);
    let (mut ended, mut pages) = (0, 0);
    for round in 0..60_u8 {
        let (memory, fd) = SharedMemory::create(8_192 + 2 * 4_096).unwrap();
        let bell = Doorbell::connect(&name).unwrap();
        bell.give(fd.as_fd()).unwrap();
        let token = [round; 16];
        server.transport.expect(token, Time::NEVER);
        memory.copy_in(8_192, &[MAGIC.as_slice(), &token].concat());
        memory.word(0).store(24, Ordering::SeqCst);
        bell.ring().unwrap();
        for _ in 0..50 {
            // A word of a page, either end's, or a page of the ring.
            let word = [random.next_u64(), random.below(9_000), 0][random.below(3) as usize];
            memory.word(128 * random.below(5) as usize).store(word, Ordering::SeqCst);
            if random.chance(0.1) {
                memory.word(4_096 + 128 * random.below(5) as usize).store(word, Ordering::SeqCst);
                let mut bytes = [0; 4_096];
                random.fill(&mut bytes);
                memory.copy_in(8_192 + 4_096 * random.below(2) as usize, &bytes);
                pages += 1;
            }
            bell.ring().unwrap();
            server.turn();
            while let Some(event) = server.transport.poll_stream() {
                if let StreamEvent::Open { remote, .. } = event {
                    let _ = server.transport.send(&Outgoing::datagram(
                        TrafficClass::Data,
                        remote,
                        &[1; 9],
                    ));
                }
            }
            server.take_arrivals();
        }
        drop(bell);
        server.await_until(|side| side.transport.stream_count() == 1);
        assert_eq!(server.transport.stream_count(), 1, "round {round}");
        while server.transport.poll_stream().is_some() {
            ended += 1;
        }
        server.take_arrivals();
        assert_alive(&mut server, &mut plain);
    }
    assert!(pages > 50, "{pages} pages, {ended} told");
    server.transport.release(&mut server.pool);
    server.end();
}

#[test]
fn a_place_that_cannot_be_ends_the_stream_with_the_reason() {
    let (server, address) = serve_at(V4, &few());
    let mut server = Side::new(Box::new(server));
    let (memory, fd) = SharedMemory::create(8_192 + 2 * 4_096).unwrap();
    let bell = Doorbell::connect(&format!("dacapo-shm-1/{address}")).unwrap();
    bell.give(fd.as_fd()).unwrap();
    server.transport.expect(TOKEN, Time::NEVER);
    memory.copy_in(8_192, &[MAGIC.as_slice(), &TOKEN].concat());
    memory.word(0).store(24, Ordering::SeqCst);
    server.await_until(|side| side.transport.stats().streams.opened == 1);
    assert!(matches!(server.transport.poll_stream(), Some(StreamEvent::Open { .. })));
    memory.word(0).store(1 << 40, Ordering::SeqCst);
    bell.ring().unwrap();
    let reason = reason_at(&mut server, 0);
    assert!(reason.contains("a place into the shared memory that cannot be"), "{reason}");
    assert_eq!(heard(&bell), Heard::Gone, "who does not say that it sleeps is not woken");
    server.end();
}

/// What a bell tells first. A child that another test starts has a copy of each descriptor until it
/// is another program: so long the other end of a bell that was closed is not gone.
fn heard(bell: &Doorbell) -> Heard {
    for _ in 0..10_000 {
        match bell.hear() {
            Heard::Nothing => std::thread::sleep(Duration::from_millis(1)),
            heard => return heard,
        }
    }
    Heard::Nothing
}

/// The listener of this user is not reached by others, and theirs is not ours. Needs root, to be
/// another user.
#[test]
fn another_user_is_turned_away_at_both_ends() {
    const CHILD: &str = "DACAPO_TEST_OTHER_USER";
    if let Ok(address) = std::env::var(CHILD) {
        let address: SocketAddr = address.parse().unwrap();
        let ours = Link::connect(address, 4_096).map(drop).map_err(|error| error.kind());
        assert_eq!(ours.unwrap_err(), ErrorKind::PermissionDenied);
        // Without looking who it is.
        let bell = Doorbell::connect(&format!("dacapo-shm-1/{address}")).unwrap();
        let squatted = SocketAddr::new(V4, address.port() + 20_000);
        let _squatter = Shm::serve(&[squatted], &few()).unwrap();
        println!("ready");
        io::stdin().read_to_end(&mut Vec::new()).unwrap();
        assert_eq!(heard(&bell), Heard::Gone);
        return;
    }
    if dacapo_sys::process::uid() != 0 {
        return dacapo_base::skip("only root can be another user");
    }
    let (server, address) = serve_at(V4, &few());
    let mut server = Side::new(Box::new(server));
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "another_user_is_turned_away_at_both_ends", "--nocapture"])
        .env(CHILD, address.to_string())
        .uid(65_533)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = io::BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("ready")), "it has failed");
    let squatted = SocketAddr::new(V4, address.port() + 20_000);
    let error = Shm::look(squatted, &few()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("of another user (id 65533)"), "{error}");
    assert!(Shm::dial(squatted, TOKEN, &few()).is_err());
    // Who stands behind the name of any address is found all the same.
    let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), squatted.port());
    let _any = Shm::serve(&[any], &few()).unwrap();
    Shm::look(squatted, &few()).unwrap();
    server.drain();
    assert_eq!(server.transport.stats().streams.accepted, 0);
    drop(child.stdin.take());
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
    server.end();
}
