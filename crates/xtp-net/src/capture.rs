//! [`CaptureWriter`]: packets in a file that Wireshark reads.
//!
//! Pcapng with one interface, times in nanoseconds; and [`clothe`], which puts the headers before a
//! packet of XTP that it has on its network, so that a dissector finds its way.
//!
//! ```text
//!   section header | interface description | enhanced packet | enhanced packet | …
//!   each block: type 4, length 4, body padded to 4 bytes, length 4
//! ```
//!
//! Source: draft-ietf-opsawg-pcapng; the link types of tcpdump.org (1 Ethernet, 101 raw IP);
//! RFC 791, 8200, 768.

use crate::eui64::MacAddr;
use crate::numbers::{ETHERTYPE, PROTOCOL};
use dacapo_xtp::wire::{checksum, sum};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Option `if_tsresol`, one byte: times count 10^-9 seconds.
const NANOSECONDS: [u8; 12] = [9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
/// No limit to the length of packets.
const SNAP_LEN: u32 = 0;
const PROTOCOL_UDP: u8 = 17;
const UDP_HEADER_LEN: usize = 8;
const HOPS: u8 = 64;

/// What packets in a file begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// An Ethernet header.
    Ethernet = 1,
    /// An IP header.
    Ip = 101,
}

/// How packets of XTP are carried on a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriage {
    /// In datagrams of UDP.
    Udp,
    /// As protocol 36 of IP.
    Ip,
    /// In frames of their own type.
    Ethernet,
    /// In a byte stream; shown as protocol 36 of IP.
    Stream,
}

impl Carriage {
    /// What packets begin with when they are clothed.
    #[must_use]
    pub const fn link_type(self) -> LinkType {
        match self {
            Self::Ethernet => LinkType::Ethernet,
            _ => LinkType::Ip,
        }
    }
}

/// A capture that is being written.
#[derive(Debug)]
pub struct CaptureWriter<W> {
    into: W,
    block: Vec<u8>,
}

impl<W: Write> CaptureWriter<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(into: W, link_type: LinkType) -> io::Result<Self> {
        let mut writer = Self { into, block: Vec::new() };
        // Version 1.0; the length of the section is not said.
        let head = [&BYTE_ORDER.to_le_bytes()[..], &[1, 0, 0, 0], &[0xFF; 8]].concat();
        writer.block(SECTION_HEADER, &[&head])?;
        let kind = u32::from(link_type as u16).to_le_bytes();
        writer.block(INTERFACE, &[&kind, &SNAP_LEN.to_le_bytes(), &NANOSECONDS])?;
        writer.into.flush()?;
        Ok(writer)
    }

    /// Writes a packet that was seen at this time, nanoseconds since 1970.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn packet(&mut self, at_ns: u64, packet: &[u8]) -> io::Result<()> {
        let len = u32::try_from(packet.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let (high, low) = ((at_ns >> 32) as u32, at_ns as u32);
        let mut head = [0; 20];
        let words = [0, high, low, len, len].map(u32::to_le_bytes);
        for (to, word) in head.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *to = word;
        }
        self.block(ENHANCED_PACKET, &[&head, packet])
    }

    /// Writes out what is buffered below.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }

    fn block(&mut self, kind: u32, parts: &[&[u8]]) -> io::Result<()> {
        let body: usize = parts.iter().map(|part| part.len()).sum();
        let padded = body.next_multiple_of(4);
        let len = u32::try_from(padded + 12).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.block.clear();
        self.block.extend_from_slice(&kind.to_le_bytes());
        self.block.extend_from_slice(&len.to_le_bytes());
        parts.iter().for_each(|part| self.block.extend_from_slice(part));
        self.block.resize(8 + padded, 0);
        self.block.extend_from_slice(&len.to_le_bytes());
        // In one call, so that a reader of a pipe never sees half of one.
        self.into.write_all(&self.block)
    }
}

/// Puts the headers of its network before a packet; `into` is emptied first.
pub fn clothe(
    carriage: Carriage,
    from: SocketAddr,
    to: SocketAddr,
    packet: &[u8],
    into: &mut Vec<u8>,
) {
    into.clear();
    match carriage {
        Carriage::Ethernet => {
            let of = |address| MacAddr::of(address).map_or([0; 6], |mac| mac.0);
            into.extend_from_slice(&of(&to));
            into.extend_from_slice(&of(&from));
            into.extend_from_slice(&ETHERTYPE.to_be_bytes());
        }
        Carriage::Ip | Carriage::Stream => ip_header(from, to, PROTOCOL, packet.len(), into),
        Carriage::Udp => {
            ip_header(from, to, PROTOCOL_UDP, packet.len() + UDP_HEADER_LEN, into);
            udp_header(from, to, packet, into);
        }
    }
    into.extend_from_slice(packet);
}

fn udp_header(from: SocketAddr, to: SocketAddr, packet: &[u8], into: &mut Vec<u8>) {
    let len = u16::try_from(packet.len() + UDP_HEADER_LEN).unwrap_or(u16::MAX).to_be_bytes();
    let ports = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
    let hosts = [six(from.ip()).octets(), six(to.ip()).octets()].concat();
    // The pseudo-header has the addresses as their family writes them.
    let hosts = if from.is_ipv4() { [&hosts[12..16], &hosts[28..]].concat() } else { hosts };
    let parts: [&[u8]; 6] = [&hosts, &[0, PROTOCOL_UDP], &len, &ports, &len, packet];
    // 0 would say that there is none.
    let check = match checksum(sum(&parts)) {
        0 => u16::MAX,
        check => check,
    };
    into.extend_from_slice(&ports);
    into.extend_from_slice(&len);
    into.extend_from_slice(&check.to_be_bytes());
}

fn ip_header(from: SocketAddr, to: SocketAddr, protocol: u8, len: usize, into: &mut Vec<u8>) {
    match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => ipv4_header(from, to, protocol, len, into),
        (from, to) => ipv6_header(six(from), six(to), protocol, len, into),
    }
}

fn six(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

fn ipv4_header(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, len: usize, into: &mut Vec<u8>) {
    let len = u16::try_from(len + 20).unwrap_or(u16::MAX).to_be_bytes();
    // DF; no identification is needed without fragments.
    let mut head = vec![0x45, 0, len[0], len[1], 0, 0, 0x40, 0, HOPS, protocol, 0, 0];
    head.extend_from_slice(&from.octets());
    head.extend_from_slice(&to.octets());
    let check = checksum(sum(&[&head])).to_be_bytes();
    head.splice(10..12, check);
    into.extend_from_slice(&head);
}

fn ipv6_header(from: Ipv6Addr, to: Ipv6Addr, protocol: u8, len: usize, into: &mut Vec<u8>) {
    let [high, low] = u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
    into.extend_from_slice(&[0x60, 0, 0, 0, high, low, protocol, HOPS]);
    into.extend_from_slice(&from.octets());
    into.extend_from_slice(&to.octets());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_padded_and_say_their_length_at_both_ends() {
        let mut file = Vec::new();
        let mut writer = CaptureWriter::new(&mut file, LinkType::Ip).unwrap();
        writer.packet(0x1_0000_0002, b"hello").unwrap();
        let mut rest = file.as_slice();
        let mut kinds = Vec::new();
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let len = word(4) as usize;
            assert_eq!((len % 4, word(len - 4) as usize), (0, len));
            kinds.push(word(0));
            if word(0) == ENHANCED_PACKET {
                assert_eq!([8, 12, 16, 20, 24].map(word), [0, 1, 2, 5, 5]);
                assert_eq!(&rest[28..36], b"hello\0\0\0");
            }
            rest = &rest[len..];
        }
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE, ENHANCED_PACKET]);
    }

    #[test]
    fn each_carriage_has_its_headers() {
        let (four, six) = ("192.0.2.1:7".parse().unwrap(), "[2001:db8::1]:7".parse().unwrap());
        let mut into = vec![9];
        let mut len = |carriage, at| {
            clothe(carriage, at, at, b"packet", &mut into);
            (into.len(), into.clone())
        };
        let (whole, bytes) = len(Carriage::Udp, four);
        assert_eq!(
            (whole, &bytes[9..10], &bytes[20..28]),
            (34, &[17][..], &[0, 7, 0, 7, 0, 14, 0x42, 0x80][..])
        );
        // What sums with its check sums to all ones.
        assert_eq!(checksum(sum(&[&bytes[..20]])), 0);
        assert_eq!(len(Carriage::Ip, four).0, 26);
        let (whole, bytes) = len(Carriage::Ip, six);
        assert_eq!((whole, bytes[6], bytes[5]), (46, PROTOCOL, 6));
        let card = MacAddr([2, 0, 0, 0, 0, 1]).at(3);
        let (whole, bytes) = len(Carriage::Ethernet, card);
        assert_eq!(
            (whole, &bytes[..6], &bytes[12..14]),
            (20, &[2, 0, 0, 0, 0, 1][..], &[0x81, 0x7D][..])
        );
    }
}
