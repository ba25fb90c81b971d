//! Frames that an interface carries, the Ethernet addresses of peers, and the bytes of connections.

use crate::oracle;
use dacapo_xtp_net::eui64::MacAddr;
use dacapo_xtp_net::tcp::{PREFACE_LEN, Records, preface_of, record_head};
use dacapo_xtp_net::{Carriage, ETHERTYPE, Received, UDP_PORT, clothe, packets};
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

/// Any bytes of a connection, in pieces whose lengths the first bytes say: what comes out is what a
/// plain reading of the whole finds.
pub fn records(data: &[u8]) {
    let (cuts, bytes) = data.split_at(data.len().min(4));
    let found = in_pieces(cuts, bytes);
    let (port, packets, is_broken) = plainly(bytes);
    assert_eq!((found.port, found.count, found.is_broken), (port, packets.len(), is_broken));
    assert_eq!(found.bytes, packets.iter().map(|packet| packet.len()).sum::<usize>());
    assert_eq!(found.sum, packets.concat().iter().fold(0, fold));
}

#[derive(Default)]
struct Found {
    port: Option<u16>,
    count: usize,
    bytes: usize,
    sum: u64,
    is_broken: bool,
}

impl Found {
    /// Gives a connection a piece, and takes all that is whole with it.
    fn handle(&mut self, records: &mut Records, piece: &[u8]) {
        let filled = records.fill(piece.len(), |room| {
            room.copy_from_slice(piece);
            Ok(piece.len())
        });
        assert_eq!(filled.ok(), Some(piece.len()));
        if self.port.is_none() {
            match records.preface() {
                Ok(port) => self.port = port,
                Err(_) => self.is_broken = true,
            }
        }
        while self.port.is_some() && !self.is_broken {
            match records.next_run() {
                Ok(true) => self.take(records.run()),
                Ok(false) => break,
                Err(_) => self.is_broken = true,
            }
        }
    }

    fn take(&mut self, Received { train, segment, gap }: Received<'_>) {
        for bytes in train.chunks(segment + gap) {
            let packet = bytes.get(..segment).unwrap_or(bytes);
            self.count += 1;
            self.bytes += packet.len();
            self.sum = packet.iter().fold(self.sum, fold);
        }
    }
}

fn fold(sum: u64, byte: &u8) -> u64 {
    sum.rotate_left(5) ^ u64::from(*byte)
}

fn in_pieces(cuts: &[u8], mut bytes: &[u8]) -> Found {
    let (mut records, mut found) = (Records::default(), Found::default());
    let mut lens = cuts.iter().map(|cut| 1 + usize::from(*cut)).chain([usize::MAX]);
    while !bytes.is_empty() && !found.is_broken {
        let len = lens.next().unwrap_or(usize::MAX).min(bytes.len());
        let (piece, rest) = bytes.split_at(len);
        bytes = rest;
        oracle::bounded("a piece of a connection", len, || found.handle(&mut records, piece));
    }
    found
}

/// The same by somebody who has all of it at once.
fn plainly(bytes: &[u8]) -> (Option<u16>, Vec<&[u8]>, bool) {
    let mut packets = Vec::new();
    let Some((head, mut rest)) = bytes.split_first_chunk::<PREFACE_LEN>() else {
        return (None, packets, false);
    };
    let port = u16::from_be_bytes([head[6], head[7]]);
    if *head != preface_of(port) || port == 0 {
        return (None, packets, true);
    }
    while let Some((len, after)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_be_bytes(*len));
        if len == 0 {
            return (Some(port), packets, true);
        }
        if after.len() < len {
            break;
        }
        let (packet, more) = after.split_at(len);
        packets.push(packet);
        rest = more;
    }
    (Some(port), packets, false)
}

/// Records in pieces, one that is none, and a preface of another version.
pub fn record_seeds() -> Vec<Vec<u8>> {
    let record = |len: u16| [&record_head(len)[..], &vec![7; usize::from(len)]].concat();
    let cuts = [3, 1, 40, 0];
    let mut other = preface_of(4_040);
    other[5] = 2;
    vec![
        [&cuts[..], &preface_of(4_040), &record(32), &record(1), &record(100)].concat(),
        [&cuts[..], &preface_of(1), &record(5), &record_head(0)].concat(),
        [&cuts[..], &preface_of(1), &record_head(u16::MAX), &[0; 9]].concat(),
        [&cuts[..], &preface_of(9), &record_head(50), &[1; 20]].concat(),
        [&cuts[..], &other].concat(),
    ]
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
