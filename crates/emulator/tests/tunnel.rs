//! The tunnel as programs in its two namespaces see it. Without the right to make namespaces a test
//! says so and ends.

#![allow(clippy::unwrap_used)]

use dacapo_base::{Tolerance, patience};
use dacapo_emulator::{PathStats, Tunnel, TunnelConfig, TunnelError, TunnelHandle, Way};
use dacapo_link::LinkConfig;
use dacapo_sys::interface::Address;
use dacapo_sys::{netns, tun};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Ends a test that hangs.
const LONG: Duration = Duration::from_secs(60);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Names that no other test has.
fn names() -> [String; 2] {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    [1, 2].map(|end| format!("dacapo-test-{}-{number}-{end}", std::process::id()))
}

/// A tunnel with this link both ways; nothing, and a word, where there can be none.
fn tunnel(link: &str, change: impl FnOnce(&mut TunnelConfig)) -> Option<TunnelHandle> {
    let [first, second] = names();
    let mut config = TunnelConfig::new(&first, &second);
    let link: LinkConfig = link.parse().unwrap();
    (config.forward, config.back) = (link.clone(), link);
    change(&mut config);
    match Tunnel::spawn(config) {
        Ok(tunnel) => Some(tunnel),
        Err(error @ (TunnelError::NotRoot | TunnelError::NoTun)) => {
            dacapo_base::skip(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A UDP socket in each namespace, the first connected to the second.
fn sockets(tunnel: &TunnelHandle) -> (UdpSocket, UdpSocket) {
    let [near, far] = tunnel.namespaces();
    let [here, there] = tunnel.addresses().map(|address| SocketAddr::new(address.ip, 7_000));
    let sender = near.run(|| UdpSocket::bind(here)).unwrap().unwrap();
    let receiver = far.run(|| UdpSocket::bind(there)).unwrap().unwrap();
    sender.connect(there).unwrap();
    receiver.set_read_timeout(Some(patience::STEP_MAX)).unwrap();
    (sender, receiver)
}

/// What a read gives some day.
fn read<T>(mut read: impl FnMut() -> io::Result<T>) -> T {
    let read = patience::until(Instant::now, LONG, || match read() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        read => Some(read.unwrap()),
    });
    read.expect("nothing came")
}

fn until(tunnel: &TunnelHandle, what: &str, is_so: impl Fn(&PathStats) -> bool) -> PathStats {
    let mut patience = Tolerance::new(Instant::now(), LONG);
    loop {
        let stats = tunnel.stats();
        if is_so(&stats) {
            return stats;
        }
        assert!(patience.lasts(Instant::now()), "never {what}: {stats:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// UDP datagrams that the second namespace dropped for their checksum.
fn checksum_errors(tunnel: &TunnelHandle) -> u64 {
    let read = || std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let text = tunnel.namespaces()[1].run(read).unwrap();
    let mut rows = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    let mut columns = names.split(' ').zip(values.split(' '));
    columns.find(|(name, _)| *name == "InCsumErrors").unwrap().1.parse().unwrap()
}

#[test]
fn datagrams_cross_it_and_namespaces_and_devices_are_gone_afterwards() {
    let Some(tunnel) = tunnel("delay=20ms", |_| {}) else { return };
    let (sender, receiver) = sockets(&tunnel);
    let before = Instant::now();
    sender.send(b"across").unwrap();
    let mut buffer = [0; 100];
    let (len, from) = read(|| receiver.recv_from(&mut buffer));
    assert!(before.elapsed() >= Duration::from_millis(20), "it came before its time");
    assert_eq!((&buffer[..len], from.ip().to_string().as_str()), (&b"across"[..], "10.77.0.1"));
    let names = tunnel.namespaces().each_ref().map(|space| space.name().to_owned());
    assert!(names.iter().all(|name| Path::new(netns::DIR).join(name).exists()));
    let stats = tunnel.stop();
    assert!(stats.closes() && stats.fault.is_none(), "{stats:?}");
    assert_eq!((stats.forward.sent, stats.forward.sent_bytes), (1, 20 + 8 + 6), "{stats:?}");
    assert!(names.iter().all(|name| !Path::new(netns::DIR).join(name).exists()));
}

#[test]
fn corruption_that_a_checksum_sees_is_dropped_by_the_receiving_kernel() {
    let Some(tunnel) = tunnel("corrupt=100%", |_| {}) else { return };
    let (sender, receiver) = sockets(&tunnel);
    for number in 0..50_u8 {
        sender.send(&[number; 90]).unwrap();
    }
    until(&tunnel, "delivered", |stats| stats.forward.delivered == 50);
    let mut patience = Tolerance::new(Instant::now(), LONG);
    while checksum_errors(&tunnel) < 50 {
        let lasts = patience.lasts(Instant::now());
        assert!(lasts, "{} checksum errors", checksum_errors(&tunnel));
        receiver.set_nonblocking(true).unwrap();
        assert!(receiver.recv(&mut [0; 100]).is_err(), "a corrupted datagram arrived");
    }
    tunnel.set_link(Way::Forward, LinkConfig::default()).unwrap();
    sender.send(b"whole").unwrap();
    receiver.set_nonblocking(false).unwrap();
    let mut buffer = [0; 100];
    assert_eq!(read(|| receiver.recv(&mut buffer)), 5, "the first that arrives is the whole one");
    let stats = tunnel.stats().forward;
    assert_eq!((stats.corrupted_sent_on, stats.corrupted_detected), (50, 0));
}

#[test]
fn corruption_that_no_checksum_sees_arrives_altered_over_both_families() {
    let six = |last: &str| Address { ip: last.parse::<IpAddr>().unwrap(), prefix_len: 64 };
    let four = TunnelConfig::new("a", "b").addresses;
    for addresses in [four, [six("fd77::1"), six("fd77::2")]] {
        let change = |config: &mut TunnelConfig| config.addresses = addresses;
        let Some(tunnel) = tunnel("corrupt-undetected=100%", change) else { return };
        let (sender, receiver) = sockets(&tunnel);
        for number in 0..50_u8 {
            let sent = [number; 91];
            sender.send(&sent).unwrap();
            let mut buffer = [0; 100];
            let len = read(|| receiver.recv(&mut buffer));
            assert_eq!(len, sent.len());
            let flipped = sent.iter().zip(&buffer).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
            assert!((1..=3).contains(&flipped), "{flipped} bits of datagram {number} flipped");
        }
        assert_eq!(checksum_errors(&tunnel), 0);
        assert_eq!(tunnel.stats().forward.corrupted_undetected, 50);
    }
}

#[test]
fn packets_above_the_mtu_vanish_and_a_cut_takes_everything() {
    let Some(tunnel) = tunnel("mtu=1280", |_| {}) else { return };
    let (sender, receiver) = sockets(&tunnel);
    sender.send(&[1; 1_253]).unwrap();
    sender.send(&[2; 1_252]).unwrap();
    let mut buffer = [0; 2_000];
    assert_eq!(read(|| receiver.recv(&mut buffer)), 1_252);
    assert_eq!(tunnel.stats().forward.dropped_mtu, 1);
    tunnel.partition(Way::Forward, true);
    sender.send(b"cut").unwrap();
    let stats = until(&tunnel, "cut", |stats| stats.forward.dropped_partition == 1);
    assert!(stats.closes() && stats.unsent == 0);
}

#[test]
fn every_datagram_of_a_flood_is_on_a_link_or_counted_as_dropped_before_it() {
    let Some(tunnel) = tunnel("loss=100%", |_| {}) else { return };
    let (sender, _receiver) = sockets(&tunnel);
    // More than wait at the device, as fast as this machine sends: what is dropped is its choice.
    let sent = (0..60_000).filter(|_| sender.send(&[0; 8]).is_ok()).count() as u64;
    let all = |stats: &PathStats| stats.forward.sent + stats.kernel_drops == sent;
    let stats = until(&tunnel, "accounted for", all);
    assert_eq!(stats.forward.lost_random, stats.forward.sent);
    assert!(tunnel.stop().closes());
}

#[test]
fn tcp_repairs_what_the_links_lose() {
    let Some(tunnel) = tunnel("loss=3%,dup=2%,corrupt=1%,delay=2ms", |_| {}) else { return };
    let [near, far] = tunnel.namespaces();
    let there = SocketAddr::new(tunnel.addresses()[1].ip, 7_001);
    let listener = far.run(|| TcpListener::bind(there)).unwrap().unwrap();
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(patience::STEP_MAX)).unwrap();
        let mut all = Vec::new();
        // What it has read before an error stays.
        read(|| stream.read_to_end(&mut all));
        all
    });
    let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    let mut stream = near.run(|| TcpStream::connect(there)).unwrap().unwrap();
    stream.write_all(&bytes).unwrap();
    drop(stream);
    assert!(reader.join().unwrap() == bytes, "the bytes differ");
    let stats = tunnel.stats();
    assert!(stats.forward.lost_random > 0 && stats.closes(), "{stats:?}");
}

#[test]
fn what_stands_in_the_way_is_said() {
    let same = Tunnel::spawn(TunnelConfig::new("one", "one")).unwrap_err();
    assert!(same.to_string().contains("name two"), "{same}");
    let mut bad = TunnelConfig::new("one", "two");
    bad.forward.in_flight_max = 0;
    assert!(matches!(Tunnel::spawn(bad), Err(TunnelError::Link(_))));
    let not_root = TunnelError::NotRoot.to_string();
    assert!(not_root.contains("need root") && not_root.contains("sudo"), "{not_root}");
    assert!(TunnelError::NoTun.to_string().contains(tun::PATH));
    if dacapo_sys::process::uid() == 0 && Path::new(tun::PATH).exists() {
        let error = Tunnel::spawn(TunnelConfig::new("a/b", "two")).unwrap_err();
        assert!(error.to_string().contains("a/b"), "{error}");
    } else {
        dacapo_base::skip("a name that is none: this is not root, or there is no /dev/net/tun");
    }
}
