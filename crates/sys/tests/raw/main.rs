//! Packets without a transport over a cable between two namespaces: IP protocol 36 and Ethernet.
//! Without the right to make them a test says so and ends.

#![allow(clippy::unwrap_used)]

mod cable;
mod ring;
#[path = "../common/veth.rs"]
mod veth;

use cable::{Cable, wait};
use dacapo_sys::icmp::{self, Reported, Why};
use dacapo_sys::packet::{self, Tap};
use dacapo_sys::udp::{Delivery, Join, RecvError, SendError};
use dacapo_sys::{interface, process, raw};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

/// Ends a test that hangs.
const LONG: Duration = Duration::from_secs(60);
const PROTOCOL: u8 = 36;
const ETHERTYPE: u16 = 0x817D;
const BUFFER: [u8; 2_000] = [0; 2_000];

fn at(ip: &str) -> SocketAddr {
    SocketAddr::new(ip.parse().unwrap(), 0)
}

#[test]
fn packets_of_a_protocol_cross_over_both_families_without_their_ip_headers() {
    let Some(cable) = Cable::new() else { return };
    for (near, far) in [("10.81.0.1", "10.81.0.2"), ("fd81::1", "fd81::2")] {
        let (near_socket, far_socket) = (cable.raw(0, near), cable.raw(1, far));
        assert_eq!(near_socket.local_addr().unwrap(), at(near));
        assert!(matches!(far_socket.recv(&mut [0; 9]), Err(RecvError::WouldBlock)));
        // A port that somebody has given is not looked at.
        let to = SocketAddr::new(at(far).ip(), 4_040);
        near_socket.send(to, b"payload").unwrap();
        wait(far_socket.as_fd());
        let mut buffer = BUFFER;
        let recv = far_socket.recv(&mut buffer).unwrap();
        assert_eq!((&buffer[recv.payload.clone()], recv.from), (&b"payload"[..], at(near)));
        near_socket.send(to, &[7; 1_400]).unwrap();
        wait(far_socket.as_fd());
        assert!(far_socket.recv(&mut [0; 100]).unwrap().truncated);
        let too_long = near_socket.send(to, &[7; 1_490]);
        assert!(matches!(too_long, Err(SendError::MessageTooLarge)), "{too_long:?}");
    }
}

/// Sends 99 packets of 1,000 bytes and a short one in calls that take what they take.
fn send_all(send: impl Fn(&[u8]) -> Result<usize, SendError>) -> Vec<u8> {
    let train: Vec<u8> = (0..99_300_u32).map(|at| (at / 1_000) as u8).collect();
    let (mut rest, mut calls) = (&train[..], 0);
    while !rest.is_empty() {
        let taken = send(rest).unwrap();
        assert!(taken == rest.len() || taken > 0 && taken.is_multiple_of(1_000), "{taken}");
        rest = &rest[taken..];
        calls += 1;
    }
    assert_eq!(calls, 2, "at most 64 go in a call");
    train
}

#[test]
fn trains_go_packet_by_packet_in_few_calls() {
    let Some(cable) = Cable::new() else { return };
    for (near, far) in [("10.81.0.1", "10.81.0.2"), ("fd81::1", "fd81::2")] {
        let (near_socket, far_socket) = (cable.raw(0, near), cable.raw(1, far));
        let train = send_all(|rest| near_socket.send_train(at(far), rest, 1_000));
        let mut buffer = BUFFER;
        for packet in train.chunks(1_000) {
            wait(far_socket.as_fd());
            let recv = far_socket.recv(&mut buffer).unwrap();
            assert_eq!((&buffer[recv.payload.clone()], recv.from), (packet, at(near)));
        }
    }
    let ((near, _), (mut far, address)) = (cable.ethernet(0), cable.ethernet(1));
    let train = send_all(|rest| near.send_train(address, rest, 1_000));
    let mut buffer = BUFFER;
    for packet in train.chunks(1_000) {
        wait(far.as_fd());
        let recv = far.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..recv.len], packet);
    }
}

#[test]
fn a_host_that_does_not_know_the_protocol_says_so() {
    let Some(cable) = Cable::new() else { return };
    for (near, far, v6) in [("10.81.0.1", "10.81.0.2", false), ("fd81::1", "fd81::2", true)] {
        let socket = cable.raw(0, near);
        icmp::enable(socket.as_fd(), v6).unwrap();
        socket.send(at(far), b"anybody?").unwrap();
        wait(socket.as_fd());
        let reported = icmp::next(socket.as_fd());
        assert_eq!(reported, Some(Reported { to: at(far), why: Why::Refused }));
    }
}

#[test]
fn a_group_gets_what_is_sent_to_it() {
    let Some(cable) = Cable::new() else { return };
    for (near, group, any) in
        [("10.81.0.1", "239.81.0.1", "0.0.0.0"), ("fd81::1", "ff15::81", "::")]
    {
        let near_socket = cable.raw(0, near);
        let [joined, other] = [group, any].map(|local| cable.raw(1, local));
        let group: IpAddr = group.parse().unwrap();
        let interface = cable.ends[1].run(|| interface::index("v").unwrap()).unwrap();
        joined.join(&Join { group, source: None, interface }).unwrap();
        let own = cable.ends[0].run(|| interface::index("v").unwrap()).unwrap();
        near_socket.set_delivery(&Delivery { interface: own, hops: 1, loops: false }).unwrap();
        near_socket.send(SocketAddr::new(group, 0), b"to all").unwrap();
        wait(joined.as_fd());
        let mut buffer = BUFFER;
        let recv = joined.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[recv.payload], b"to all");
        // The kernel asks for a membership of this very socket over IPv4 only.
        if group.is_ipv4() {
            assert!(matches!(other.recv(&mut buffer), Err(RecvError::WouldBlock)));
        }
    }
}

#[test]
fn frames_cross_with_the_address_of_who_sent_them_and_a_tap_sees_them_whole() {
    let Some(cable) = Cable::new() else { return };
    let ((near, near_address), (mut far, far_address)) = (cable.ethernet(0), cable.ethernet(1));
    let tap = cable.ends[1].run(|| Tap::open(interface::index("v").unwrap())).unwrap().unwrap();
    near.send(far_address, b"payload").unwrap();
    wait(far.as_fd());
    let mut buffer = BUFFER;
    let recv = far.recv(&mut buffer).unwrap();
    assert_eq!((&buffer[..recv.len], recv.from), (&b"payload"[..], near_address));
    assert!(recv.is_for_us && !recv.truncated);
    let whole = [&far_address[..], &near_address, &ETHERTYPE.to_be_bytes(), b"payload"].concat();
    let seen = std::iter::repeat_with(|| {
        wait(tap.as_fd());
        let recv = tap.recv(&mut buffer).unwrap();
        buffer[..recv.len].to_vec()
    });
    // The kernel's own packets for its new interfaces are seen too.
    assert!(seen.take(100).any(|frame| frame == whole));
    assert_eq!(tap.take_drops().unwrap(), 0);
    let too_long = near.send(far_address, &[0; 1_501]);
    assert!(matches!(too_long, Err(SendError::MessageTooLarge)), "{too_long:?}");
}

#[test]
fn frames_to_a_group_and_frames_for_others_are_told_apart() {
    let Some(cable) = Cable::new() else { return };
    let ((near, _), (mut far, _)) = (cable.ethernet(0), cable.ethernet(1));
    let group = [0x01, 0, 0x5E, 0, 0, 0x51];
    far.join(group).unwrap();
    for (to, is_for_us) in [(group, true), ([2, 0, 0, 0, 0, 0x51], false), ([0xFF; 6], true)] {
        near.send(to, b"a frame").unwrap();
        wait(far.as_fd());
        assert_eq!(far.recv(&mut BUFFER.clone()).unwrap().is_for_us, is_for_us, "{to:?}");
    }
}

#[test]
fn what_there_is_not_is_an_error() {
    let no_such = packet::Socket::open(u32::MAX, ETHERTYPE).unwrap_err();
    assert_eq!(no_such.kind(), std::io::ErrorKind::InvalidInput);
    if process::uid() == 0 {
        assert!(packet::Socket::open(999_999, ETHERTYPE).is_err());
        let elsewhere = raw::Socket::bind(at("203.0.113.7"), PROTOCOL).unwrap_err();
        assert_eq!(elsewhere.kind(), std::io::ErrorKind::AddrNotAvailable);
    } else {
        let denied = raw::Socket::bind(at("127.0.0.1"), PROTOCOL).unwrap_err();
        assert_eq!(denied.kind(), std::io::ErrorKind::PermissionDenied);
        dacapo_base::skip("sockets of others than this host's: this is not root");
    }
}
