//! UDP sockets over loopback: trains, fallbacks, errors, marks and counts.

#![allow(clippy::unwrap_used)]

use dacapo_base::{Ecn, Random};
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::udp::{Config, Recv, RecvError, SendError, Sent, Socket};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

const V4: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const V6: SocketAddr = SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::LOCALHOST), 0);

fn bind(local: SocketAddr, config: &Config) -> Socket {
    Socket::bind(local, config).unwrap()
}

/// The families that this host has.
fn families() -> Vec<SocketAddr> {
    if Socket::bind(V6, &Config::default()).is_ok() {
        return vec![V4, V6];
    }
    dacapo_base::skip("IPv6: this host has no ::1");
    vec![V4]
}

/// A sender connected to a receiver.
fn pair(local: SocketAddr, sender: &Config, receiver: &Config) -> (Socket, Socket) {
    let receiver = bind(local, receiver);
    let sender = bind(local, sender);
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    (sender, receiver)
}

/// Waits until the socket can be read; panics when it never can.
fn await_readable(socket: &Socket) {
    let mut poller = Poller::new().unwrap();
    poller.add(socket.as_fd(), 0, Interest::Read).unwrap();
    let mut events = Vec::new();
    for _ in 0..100 {
        poller.wait(Some(Duration::from_millis(100)), &mut events).unwrap();
        if !events.is_empty() {
            return;
        }
    }
    panic!("nothing arrived over loopback");
}

fn recv(socket: &Socket) -> (Recv, Vec<u8>) {
    let mut buffer = vec![0; 65_536];
    await_readable(socket);
    let recv = socket.recv(&mut buffer).unwrap();
    buffer.truncate(recv.len);
    (recv, buffer)
}

/// Receives `count` datagrams, trains cut into theirs.
fn datagrams(socket: &Socket, count: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while all.len() < count {
        let (recv, bytes) = recv(socket);
        let size = recv.segment_size.map_or(recv.len.max(1), usize::from);
        if bytes.is_empty() {
            all.push(Vec::new());
        }
        all.extend(bytes.chunks(size).map(<[u8]>::to_vec));
    }
    all
}

fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::from_number(seed).fill(&mut bytes);
    bytes
}

#[test]
fn a_train_arrives_as_the_same_datagrams_whatever_is_offloaded() {
    for local in families() {
        for gso in [true, false] {
            for gro in [true, false] {
                let config = Config { gso, gro, ..Config::default() };
                let (mut sender, receiver) = pair(local, &config, &config);
                for (segment, len) in [(1_200, 12_000), (1_200, 3_000), (1_452, 65_000), (7, 448)] {
                    let bytes = random_bytes(segment as u64, len);
                    let sent = sender.send(None, &bytes, Some(segment), Ecn::NotEct).unwrap();
                    assert_eq!(sent.bytes, len);
                    let expected: Vec<_> =
                        bytes.chunks(segment.into()).map(<[u8]>::to_vec).collect();
                    if !gso {
                        assert_eq!(sent.calls as usize, expected.len());
                    }
                    assert_eq!(datagrams(&receiver, expected.len()), expected, "{config:?}");
                }
            }
        }
    }
}

#[test]
fn with_offload_a_train_is_one_call_on_each_side() {
    let (mut sender, receiver) = pair(V4, &Config::default(), &Config::default());
    if !sender.offloads().gso || !receiver.offloads().gro {
        dacapo_base::skip("this kernel has no UDP offload");
        return;
    }
    let sent = sender.send(None, &random_bytes(1, 13_000), Some(1_300), Ecn::NotEct).unwrap();
    assert_eq!(sent, Sent { bytes: 13_000, calls: 1, call_bytes_max: 13_000 });
    let (recv, _) = recv(&receiver);
    assert_eq!((recv.len, recv.segment_size, recv.truncated), (13_000, Some(1_300), false));
    assert_eq!(recv.from, sender.local_addr().unwrap());
}

#[test]
fn a_train_longer_than_a_call_takes_several() {
    let (mut sender, receiver) = pair(V4, &Config::default(), &Config::default());
    let bytes = random_bytes(2, 200 * 500);
    let sent = sender.send(None, &bytes, Some(500), Ecn::NotEct).unwrap();
    assert_eq!(sent.bytes, bytes.len());
    let got = datagrams(&receiver, 200);
    assert_eq!(got.concat(), bytes);
    assert!(got.iter().all(|datagram| datagram.len() == 500));
}

#[test]
fn an_empty_datagram_is_a_datagram() {
    let (mut sender, receiver) = pair(V4, &Config::default(), &Config::default());
    let sent = sender.send(None, &[], None, Ecn::NotEct).unwrap();
    assert_eq!(sent, Sent { bytes: 0, calls: 1, call_bytes_max: 0 });
    let (recv, bytes) = recv(&receiver);
    assert_eq!((recv.len, recv.segment_size, bytes.len()), (0, None, 0));
}

#[test]
fn a_datagram_longer_than_the_buffer_says_so() {
    let (mut sender, receiver) = pair(V4, &Config::default(), &Config::default());
    sender.send(None, &[9; 100], None, Ecn::NotEct).unwrap();
    await_readable(&receiver);
    let mut short = [0; 10];
    let recv = receiver.recv(&mut short).unwrap();
    assert!(recv.truncated);
    assert_eq!(recv.len, 10);
}

#[test]
fn the_congestion_mark_travels() {
    for local in families() {
        let (mut sender, receiver) = pair(local, &Config::default(), &Config::default());
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            sender.send(None, b"marked", None, ecn).unwrap();
            assert_eq!(recv(&receiver).0.ecn, ecn, "{local}");
        }
        sender.send(None, &[0; 3_000], Some(1_000), Ecn::Ect0).unwrap();
        assert_eq!(recv(&receiver).0.ecn, Ecn::Ect0);
    }
}

#[test]
fn nothing_there_would_block() {
    let socket = bind(V4, &Config::default());
    assert!(matches!(socket.recv(&mut [0; 10]), Err(RecvError::WouldBlock)));
}

#[test]
fn a_port_without_a_listener_refuses() {
    for local in families() {
        let (mut sender, receiver) = pair(local, &Config::default(), &Config::default());
        drop(receiver);
        sender.send(None, b"anybody?", None, Ecn::NotEct).unwrap();
        await_readable(&sender);
        let again = sender.send(None, b"anybody?", None, Ecn::NotEct);
        assert!(matches!(again, Err(SendError::Refused)), "{again:?}");
        sender.send(None, b"anybody?", None, Ecn::NotEct).unwrap();
        await_readable(&sender);
        assert!(matches!(sender.recv(&mut [0; 10]), Err(RecvError::Refused)));
    }
}

#[test]
fn an_error_inside_a_train_is_told_by_the_next_send() {
    let config = Config { gso: false, ..Config::default() };
    let (mut sender, receiver) = pair(V4, &config, &config);
    drop(receiver);
    // The refusal of a segment is usually there before the next is sent; the kernel may also take
    // its time, so this tries until it is.
    for _ in 0..10_000 {
        match sender.send(None, &[0; 40], Some(10), Ecn::NotEct) {
            Ok(sent) if sent.bytes < 40 => {
                assert_eq!(sent.bytes, 10 * sent.calls as usize);
                let next = sender.send(None, &[0; 30], Some(10), Ecn::NotEct);
                assert!(matches!(next, Err(SendError::Refused)), "{next:?}");
                return;
            }
            Ok(_) | Err(SendError::Refused) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no train was ever refused half-way");
}

#[test]
fn a_datagram_beyond_the_limit_is_too_large_and_never_fragmented() {
    for local in families() {
        let (mut sender, receiver) = pair(local, &Config::default(), &Config::default());
        let mtu = sender.datagram_len_max().unwrap();
        assert!(mtu > 1_000, "{mtu}");
        let long = vec![0; 65_535];
        let result = sender.send(None, &long, None, Ecn::NotEct);
        assert!(matches!(result, Err(SendError::MessageTooLarge)), "{result:?}");
        assert!(matches!(receiver.recv(&mut [0; 10]), Err(RecvError::WouldBlock)));
        sender.send(None, b"short", None, Ecn::NotEct).unwrap();
        assert_eq!(recv(&receiver).1, b"short");
    }
}

#[test]
fn a_full_receive_buffer_drops_and_counts() {
    let small = Config { recv_buffer_bytes: 4_096, gro: false, ..Config::default() };
    let (mut sender, receiver) = pair(V4, &Config::default(), &small);
    let sent = 200_u32;
    for _ in 0..sent {
        sender.send(None, &[0; 500], None, Ecn::NotEct).unwrap();
    }
    let mut buffer = [0; 2_000];
    let mut received = 0;
    while received + receiver.drops().unwrap() < sent {
        received += std::iter::from_fn(|| receiver.recv(&mut buffer).ok()).count() as u32;
    }
    assert!(received > 0 && received < sent);
    sender.send(None, b"after", None, Ecn::NotEct).unwrap();
    assert_eq!(recv(&receiver).0.overflow_count, Some(sent - received));
}

#[test]
fn a_used_port_is_refused_and_a_shared_one_prefers_the_connected_socket() {
    for local in families() {
        let listener = bind(local, &Config::default());
        let port = listener.local_addr().unwrap();
        let shared = Config { reuse: true, ..Config::default() };
        for config in [Config::default(), shared] {
            let error = Socket::bind(port, &config).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
        }
        let (mut near, mut far) = (bind(local, &shared), bind(local, &shared));
        listener.set_reuse(true).unwrap();
        let connected = bind(port, &shared);
        listener.set_reuse(false).unwrap();
        connected.connect(near.local_addr().unwrap()).unwrap();

        near.send(Some(port), b"near", None, Ecn::NotEct).unwrap();
        far.send(Some(port), b"far", None, Ecn::NotEct).unwrap();
        assert_eq!(recv(&connected).1, b"near");
        assert_eq!(recv(&listener).1, b"far");
        // The port is closed to others again, although a socket that shares it lives.
        let error = Socket::bind(port, &shared).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    }
}

#[test]
fn what_arrived_before_a_connect_stays_with_its_true_source() {
    let socket = bind(V4, &Config::default());
    let at = Some(socket.local_addr().unwrap());
    let mut stranger = bind(V4, &Config::default());
    let friend = bind(V4, &Config::default());
    stranger.send(at, b"early", None, Ecn::NotEct).unwrap();
    await_readable(&socket);
    socket.connect(friend.local_addr().unwrap()).unwrap();
    let (recv, bytes) = recv(&socket);
    assert_eq!((recv.from, bytes.as_slice()), (stranger.local_addr().unwrap(), &b"early"[..]));
    stranger.send(at, b"late", None, Ecn::NotEct).unwrap();
    assert!(matches!(socket.recv(&mut [0; 10]), Err(RecvError::WouldBlock)));
}

#[test]
fn the_kernel_says_what_buffers_it_gave() {
    let buffers = bind(V4, &Config::default()).buffers();
    assert!(buffers.recv_bytes > 0 && buffers.recv_bytes <= 4 * 1024 * 1024);
    assert!(buffers.send_bytes > 0 && buffers.send_bytes <= 4 * 1024 * 1024);
}
