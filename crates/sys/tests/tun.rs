//! TUN devices and network namespaces. Without the right to make them a test says so and ends.

#![allow(clippy::unwrap_used)]

use dacapo_sys::interface::{self, Address};
use dacapo_sys::netns::Namespace;
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::tun::{self, Tun};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// Whether namespaces and devices can be made here; says why not.
fn can(test: &str) -> bool {
    let reason = match () {
        () if dacapo_sys::process::uid() != 0 => "this is not root",
        () if !Path::new(tun::PATH).exists() => "there is no /dev/net/tun",
        () => return true,
    };
    dacapo_base::skip(format!("{test}: {reason}"));
    false
}

fn name(what: &str) -> String {
    format!("dacapo-sys-{}-{what}", std::process::id())
}

#[test]
fn a_namespace_lives_as_long_as_its_value_and_has_a_loopback_of_its_own() {
    if !can("namespaces") {
        return;
    }
    let made = Namespace::create(&name("a")).unwrap();
    assert!(made.is_made());
    let again = Namespace::create(made.name()).unwrap_err();
    assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
    let outside = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = outside.local_addr().unwrap();
    // The same port is free in there, and its loopback works.
    let inside = made.run(|| UdpSocket::bind(addr)).unwrap().unwrap();
    inside.send_to(b"to itself", addr).unwrap();
    inside.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut buffer = [0; 32];
    assert_eq!(inside.recv(&mut buffer).unwrap(), 9);
    let opened = Namespace::open(made.name()).unwrap();
    assert!(!opened.is_made());
    drop(opened);
    let name = made.name().to_owned();
    assert!(Namespace::open(&name).is_ok(), "one that was only opened stays");
    drop(made);
    assert_eq!(Namespace::open(&name).unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_packet_to_the_network_of_a_device_comes_out_of_its_descriptor() {
    if !can("a TUN device") {
        return;
    }
    let space = Namespace::create(&name("b")).unwrap();
    let here = Ipv4Addr::new(10, 77, 9, 1);
    let tun = space.run(|| {
        let tun = Tun::create("dacapo%d").unwrap();
        interface::set_no_link_local(tun.name()).unwrap();
        interface::set_address(tun.name(), Address { ip: here.into(), prefix_len: 24 }).unwrap();
        let six = IpAddr::V6("fd77::1".parse().unwrap());
        interface::set_address(tun.name(), Address { ip: six, prefix_len: 64 }).unwrap();
        interface::set_mtu(tun.name(), 1_400).unwrap();
        interface::up(tun.name()).unwrap();
        tun
    });
    let tun = tun.unwrap();
    assert_eq!(tun.name(), "dacapo0");
    let socket = space.run(|| UdpSocket::bind((here, 0))).unwrap().unwrap();
    socket.send_to(b"hello", "10.77.9.2:7").unwrap();
    let mut poller = Poller::new().unwrap();
    poller.add(tun.as_fd(), 0, Interest::Read).unwrap();
    let mut packet = [0; 2_000];
    let len = loop {
        if let Some(len) = tun.recv(&mut packet).unwrap() {
            break len;
        }
        let mut events = Vec::new();
        poller.wait(Some(Duration::from_secs(30)), &mut events).unwrap();
        assert!(!events.is_empty(), "no packet came within 30 s");
    };
    assert_eq!(len, 20 + 8 + 5);
    assert_eq!(packet[0] >> 4, 4);
    assert_eq!(&packet[len - 5..len], b"hello");
    assert!(tun.recv(&mut packet).unwrap().is_none(), "the kernel sends nothing of its own");
    assert!(tun.send(b"packet").is_err(), "version 7 of IP");
    // From there to here: the addresses and ports change places, which keeps both checksums.
    packet.copy_within(12..16, 100);
    packet.copy_within(16..20, 12);
    packet.copy_within(100..104, 16);
    packet.copy_within(20..22, 100);
    packet.copy_within(22..24, 20);
    packet.copy_within(100..102, 22);
    tun.send(&packet[..len]).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut buffer = [0; 32];
    assert_eq!(socket.recv(&mut buffer).unwrap(), 5);
}
