//! System calls that fail on purpose: what every wrapper makes of it, and that what follows works.

#![cfg(debug_assertions)]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use dacapo_base::{Ecn, Tolerance, patience};
use dacapo_sys::faults::{Call, Effect, Fault, hits, plan};
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::{tcp, udp};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const LONG: Duration = Duration::from_secs(30);

fn fault(call: Call, errno: i32, nth: u32) -> Fault {
    Fault { call, effect: Effect::Errno(errno), nth }
}

fn partial(call: Call, nth: u32) -> Fault {
    Fault { call, effect: Effect::Partial, nth }
}

fn udp_pair() -> (udp::Socket, udp::Socket) {
    let config = udp::Config { gro: false, ..udp::Config::default() };
    let receiver = udp::Socket::bind(HERE, &config).unwrap();
    let sender = udp::Socket::bind(HERE, &udp::Config::default()).unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    (sender, receiver)
}

/// Asks until there is an answer.
fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let answer = patience::until(Instant::now, LONG, || {
        let answer = ask();
        if answer.is_none() {
            std::thread::yield_now();
        }
        answer
    });
    answer.unwrap_or_else(|| panic!("nothing after {LONG:?}"))
}

fn tcp_pair() -> (tcp::Stream, tcp::Stream) {
    let config = tcp::Config::default();
    let listener = tcp::Listener::bind(HERE, &config).unwrap();
    let near = tcp::Stream::connect(listener.local_addr().unwrap(), &config).unwrap();
    let (far, _) = until(|| listener.accept().unwrap());
    (near, far)
}

#[test]
fn every_errno_of_a_send_has_its_class_and_the_next_datagram_goes() {
    let (mut sender, receiver) = udp_pair();
    for (errno, class) in [
        (libc::ENOBUFS, "NoBuffers"),
        (libc::EMSGSIZE, "MessageTooLarge"),
        (libc::ECONNREFUSED, "Refused"),
        (libc::ENETUNREACH, "Unreachable"),
        (libc::EAGAIN, "WouldBlock"),
        (libc::EPERM, "Other"),
    ] {
        plan(&[fault(Call::SendMsg, errno, 2)]);
        sender.send(None, b"one", None, Ecn::NotEct).unwrap();
        let refused = sender.send(None, b"lost", None, Ecn::NotEct).unwrap_err();
        assert!(format!("{refused:?}").starts_with(class), "{errno}: {refused:?}");
        sender.send(None, b"two", None, Ecn::NotEct).unwrap();
        assert_eq!(hits(), 1);
        plan(&[]);
        let mut into = [0; 16];
        for word in [b"one", b"two"] {
            let got = until(|| receiver.recv(&mut into).ok());
            assert_eq!(&into[..got.len], word);
        }
    }
}

#[test]
fn an_interrupted_send_or_receive_is_repeated_and_nobody_hears_of_it() {
    let (mut sender, receiver) = udp_pair();
    plan(&[fault(Call::SendMsg, libc::EINTR, 2), fault(Call::RecvMsg, libc::EINTR, 2)]);
    let mut into = [0; 16];
    for number in 0..20_u8 {
        sender.send(None, &[number], None, Ecn::NotEct).unwrap();
        let got = until(|| receiver.recv(&mut into).ok());
        assert_eq!(&into[..got.len], &[number]);
    }
    assert!(hits() >= 20, "{}", hits());
}

#[test]
fn a_train_of_which_a_part_goes_says_exactly_which() {
    let (mut sender, receiver) = udp_pair();
    let train: Vec<u8> = (0..10_000_u32).map(|at| (at % 251) as u8).collect();
    plan(&[partial(Call::SendMsg, 2)]);
    let (mut at, mut calls) = (0, 0);
    while at < train.len() {
        at += sender.send(None, &train[at..], Some(1_000), Ecn::NotEct).unwrap().bytes;
        calls += 1;
    }
    assert!(hits() == 0 || calls > 1, "{calls} calls");
    // One more, of which the second call takes a segment only.
    let sent = sender.send(None, &train, Some(1_000), Ecn::NotEct).unwrap();
    assert_eq!((sent.bytes, hits()), (1_000, 1));
    let (mut into, mut got) = ([0; 2_000], Vec::new());
    while got.len() < train.len() + 1_000 {
        let recv = until(|| receiver.recv(&mut into).ok());
        got.extend_from_slice(&into[..recv.len]);
    }
    assert!(got[..train.len()] == train && got[train.len()..] == train[..1_000]);
}

#[test]
fn what_an_icmp_answer_says_does_not_take_a_datagram_along() {
    let (mut sender, receiver) = udp_pair();
    sender.send(None, b"here", None, Ecn::NotEct).unwrap();
    plan(&[fault(Call::RecvMsg, libc::ECONNREFUSED, 1)]);
    assert!(matches!(receiver.recv(&mut [0; 16]), Err(udp::RecvError::Refused)));
    plan(&[fault(Call::RecvMsg, libc::ENETUNREACH, 1)]);
    assert!(matches!(receiver.recv(&mut [0; 16]), Err(udp::RecvError::Unreachable)));
    plan(&[]);
    let mut into = [0; 16];
    let got = until(|| receiver.recv(&mut into).ok());
    assert_eq!(&into[..got.len], b"here");
}

#[test]
fn bytes_of_a_stream_arrive_in_order_whatever_part_of_them_a_call_takes() {
    let (mut near, mut far) = tcp_pair();
    plan(&[
        partial(Call::TcpWrite, 2),
        partial(Call::TcpRead, 3),
        fault(Call::TcpWrite, libc::EINTR, 5),
        fault(Call::TcpRead, libc::EAGAIN, 4),
    ]);
    let content: Vec<u8> = (0..300_000_u32).map(|at| (at % 253) as u8).collect();
    let (mut sent, mut got) = (0, Vec::new());
    let mut patience = Tolerance::new(Instant::now(), LONG);
    while got.len() < content.len() {
        assert!(patience.lasts(Instant::now()), "{} of {} bytes", got.len(), content.len());
        let rest = &content[sent..content.len().min(sent + 5_000)];
        let parts = rest.split_at(rest.len() / 3);
        match near.write_vectored(&[IoSlice::new(parts.0), IoSlice::new(parts.1)]) {
            Ok(count) => sent += count,
            Err(error) => assert!(is_later(&error), "{error}"),
        }
        let (mut one, mut two) = ([0; 1_000], [0; 60_000]);
        let mut into = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        match far.read_vectored(&mut into) {
            Ok(count) => {
                got.extend_from_slice(&one[..count.min(1_000)]);
                got.extend_from_slice(&two[..count.saturating_sub(1_000)]);
            }
            Err(error) => assert!(is_later(&error), "{error}"),
        }
    }
    assert!(got == content && hits() > 10, "{} hits", hits());
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[test]
fn plain_reads_and_writes_are_cut_too_and_never_to_nothing() {
    let (mut near, mut far) = tcp_pair();
    plan(&[partial(Call::TcpWrite, 1), partial(Call::TcpRead, 1)]);
    assert_eq!(near.write(b"abcd").unwrap(), 2);
    assert_eq!(near.write(b"c").unwrap(), 1);
    let mut into = [0; 1];
    let got: Vec<u8> = (0..3)
        .map(|_| {
            until(|| far.read(&mut into).ok());
            into[0]
        })
        .collect();
    assert_eq!(got, b"abc");
}

#[test]
fn a_lack_of_descriptors_is_told_and_a_broken_connection_is_passed_over() {
    let config = tcp::Config::default();
    let listener = tcp::Listener::bind(HERE, &config).unwrap();
    let address = listener.local_addr().unwrap();
    let _near = tcp::Stream::connect(address, &config).unwrap();
    for errno in [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM] {
        plan(&[fault(Call::Accept, errno, 1)]);
        assert_eq!(listener.accept().unwrap_err().raw_os_error(), Some(errno));
    }
    // Not a lack: what waits behind it is taken in the same call.
    for errno in [libc::ECONNABORTED, libc::EINTR, libc::ENETDOWN] {
        let _near = tcp::Stream::connect(address, &config).unwrap();
        plan(&[fault(Call::Accept, errno, 2)]);
        until(|| listener.accept().unwrap());
    }
}

#[test]
fn a_connect_that_fails_at_once_says_why() {
    let config = tcp::Config::default();
    for (errno, kind) in [
        (libc::ENETUNREACH, io::ErrorKind::NetworkUnreachable),
        (libc::ECONNREFUSED, io::ErrorKind::ConnectionRefused),
    ] {
        plan(&[fault(Call::Connect, errno, 1)]);
        assert_eq!(tcp::Stream::connect(HERE, &config).unwrap_err().kind(), kind);
        let socket = udp::Socket::bind(HERE, &udp::Config::default()).unwrap();
        assert_eq!(socket.connect(HERE).unwrap_err().kind(), kind);
    }
}

#[test]
fn an_interrupted_wait_has_no_event_and_the_next_one_has() {
    let (mut sender, receiver) = udp_pair();
    sender.send(None, b"here", None, Ecn::NotEct).unwrap();
    let mut poller = Poller::new().unwrap();
    poller.add(receiver.as_fd(), 7, Interest::Read).unwrap();
    plan(&[fault(Call::Wait, libc::EINTR, 2)]);
    let mut events = Vec::new();
    poller.wait(Some(LONG), &mut events).unwrap();
    assert_eq!(events.len(), 1);
    poller.wait(Some(LONG), &mut events).unwrap();
    assert_eq!((events.len(), hits()), (0, 1));
    poller.wait(Some(LONG), &mut events).unwrap();
    assert_eq!(events.len(), 1);
}
