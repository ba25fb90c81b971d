//! Frames that an interface carries, and the Ethernet addresses of peers.
//!
//! What it is not: sockets; what comes out of those is the kernel's.

use crate::oracle;
use dacapo_xtp_net::eui64::MacAddr;
use dacapo_xtp_net::{Carriage, ETHERTYPE, UDP_PORT, clothe, packets};
use std::net::SocketAddr;

/// Bytes that go before a packet at most: Ethernet with the tag of a VLAN, IPv6, UDP.
const HEADERS_LEN: usize = 18 + 40 + 8;
/// The least that a packet has.
const HEADER_LEN: usize = dacapo_xtp::wire::HEADER_LEN;

/// Any frame: what is found in it are its own bytes, each once, or the frame itself.
pub fn frames(data: &[u8]) {
    let (mut count, mut bytes) = (0, 0);
    let found = oracle::bounded("a frame", data.len(), || {
        packets(data, UDP_PORT, |packet| {
            (count, bytes) = (count + 1, bytes + packet.len());
            Ok(())
        })
    });
    assert_eq!(found.expect("nothing fails here"), count);
    assert!(count <= 1 + data.len() / HEADER_LEN, "{count} packets in {} bytes", data.len());
    assert!(bytes <= data.len() + count * HEADERS_LEN, "{bytes} bytes of {}", data.len());
    addresses(data);
}

/// An Ethernet address as text and as a socket address reads back.
fn addresses(data: &[u8]) {
    if let Some(octets) = data.first_chunk::<6>() {
        let mac = MacAddr(*octets);
        assert_eq!(MacAddr::of(&mac.at(1)), Some(mac));
        assert_eq!(mac.to_string().parse(), Ok(mac));
    }
    if let Ok(mac) = String::from_utf8_lossy(data).parse::<MacAddr>() {
        assert_eq!(mac.to_string().to_lowercase(), mac.to_string());
    }
}

/// A packet over each network, two that were joined, and what is none.
pub fn frame_seeds() -> Vec<Vec<u8>> {
    let packet = |data_len: u8| {
        let mut packet = vec![0; HEADER_LEN + usize::from(data_len)];
        packet[11] = 0x20;
        packet[15] = data_len;
        packet
    };
    let frame = |kind: u16, rest: &[u8]| [&[2; 12][..], &kind.to_be_bytes(), rest].concat();
    let four: SocketAddr = ([192, 0, 2, 1], UDP_PORT).into();
    let six: SocketAddr = ([0x2001, 0xDB8, 0, 0, 0, 0, 0, 1], UDP_PORT).into();
    let over = |carriage, at: SocketAddr, packet: &[u8]| {
        let mut clothed = Vec::new();
        clothe(carriage, at, at, packet, &mut clothed);
        frame(if at.is_ipv4() { 0x0800 } else { 0x86DD }, &clothed)
    };
    let joined = [packet(9), packet(9), packet(0)].concat();
    vec![
        frame(ETHERTYPE, &packet(4)),
        over(Carriage::Ip, four, &packet(3)),
        over(Carriage::Ip, six, &packet(3)),
        over(Carriage::Udp, four, &packet(5)),
        over(Carriage::Udp, six, &joined),
        over(Carriage::Udp, four, &joined),
        [&[2; 12][..], &[0x81, 0, 0, 7], &frame(0x0800, &[0x45; 60])[12..]].concat(),
        frame(0x0806, &[0; 28]),
    ]
}
