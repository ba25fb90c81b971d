//! Decoder: [`Sniffer`], the packets of XTP among the frames of an interface.
//!
//! ```text
//!   frame: | to 6 | from 6 | 81 7D | XTP                                Ethernet
//!                          | 08 00 | IPv4, protocol 36 | XTP            IP
//!                          | 08 00 | IPv4, 17 | UDP, the port | XTP     UDP; 86 DD: the same, IPv6
//! ```
//!
//! A card or the kernel may put equal datagrams together before they are seen here (GSO, GRO). They
//! are taken apart again where each packet says that it ends, and get headers of their own.
//!
//! Sources: RFC 791, 8200, 768; IEEE 802.1Q for the tag of a VLAN, of which one is passed over.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use crate::capture::{Carriage, clothe};
use crate::fault::BindError;
use crate::numbers::{ETHERTYPE, PROTOCOL};
use dacapo_sys::packet::Tap;
use dacapo_sys::{interface, udp};
use dacapo_xtp::wire::stated_len;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

const ADDRESSES_LEN: usize = 12;
const TYPE_VLAN: u16 = 0x8100;
const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86DD;
const PROTOCOL_UDP: u8 = 17;
const UDP_HEADER_LEN: usize = 8;
const IPV6_HEADER_LEN: usize = 40;

/// Looks at an interface for packets of XTP, both ways.
#[derive(Debug)]
pub struct Sniffer {
    tap: Tap,
    /// What is sent there comes there, and would be seen twice.
    is_loopback: bool,
    udp_port: u16,
    buffer: Vec<u8>,
}

impl Sniffer {
    /// A look at the interface of this name, for XTP directly over Ethernet and IP, and over UDP at
    /// this port of either end.
    ///
    /// # Errors
    /// [`BindError`]: no such interface, one without Ethernet headers, a right lacks.
    pub fn open(name: &str, udp_port: u16) -> Result<Self, BindError> {
        let unknown = |_| BindError::NoInterface(name.to_owned());
        let interface = interface::index(name).map_err(unknown)?;
        if !interface::has_ethernet_header(name).map_err(unknown)? {
            return Err(BindError::NotEthernet(name.to_owned()));
        }
        let here = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
        let tap = Tap::open(interface)
            .map_err(|error| BindError::of(error, Some("looking at an interface"), here))?;
        let is_loopback = interface::ethernet_address(name).map_err(unknown)?.is_none();
        Ok(Self { tap, is_loopback, udp_port, buffer: vec![0; 1 << 17] })
    }

    /// Frames that came faster than they were looked at, since this was asked the last time.
    ///
    /// # Errors
    /// None that a correct program sees.
    pub fn take_drops(&self) -> io::Result<u32> {
        self.tap.take_drops()
    }

    /// Gives the packets of the next frame to `each`, whole, from the Ethernet header on; how many
    /// there were. `None`: there is no frame now.
    ///
    /// # Errors
    /// The interface is gone or down, or what `each` says.
    pub fn next(&mut self, each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<Option<usize>> {
        let recv = match self.tap.recv(&mut self.buffer) {
            Ok(recv) => recv,
            Err(udp::RecvError::WouldBlock) => return Ok(None),
            Err(udp::RecvError::Other(error)) => return Err(error),
            Err(_) => return Err(io::ErrorKind::NetworkDown.into()),
        };
        if self.is_loopback && recv.is_sent {
            return Ok(Some(0));
        }
        packets(self.buffer.get(..recv.len).unwrap_or_default(), self.udp_port, each).map(Some)
    }
}

impl AsFd for Sniffer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tap.as_fd()
    }
}

/// What a frame carries.
enum Found<'a> {
    /// One packet of XTP.
    Whole,
    /// The payload of UDP, with its ends.
    Datagram { head: &'a [u8], from: SocketAddr, to: SocketAddr, payload: &'a [u8] },
}

/// Gives the packets of XTP in an Ethernet frame to `each`, whole, with all headers, those over UDP
/// when a port of either end is this; how many there were.
///
/// # Errors
/// What `each` says.
pub fn packets(
    frame: &[u8],
    udp_port: u16,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<usize> {
    match find(frame, udp_port) {
        None => Ok(0),
        Some(Found::Whole) => each(frame).map(|()| 1),
        Some(Found::Datagram { head, from, to, payload }) => {
            let lens = packet_lens(payload);
            if lens.len() < 2 {
                return each(frame).map(|()| 1);
            }
            let (mut clothed, mut rest) = (Vec::new(), payload);
            for len in &lens {
                let (packet, after) = rest.split_at_checked(*len).unwrap_or((rest, &[]));
                rest = after;
                clothe(Carriage::Udp, from, to, packet, &mut clothed);
                each(&[head, &clothed].concat())?;
            }
            Ok(lens.len())
        }
    }
}

/// The lengths of the packets that bytes are; none when they are not whole packets.
fn packet_lens(bytes: &[u8]) -> Vec<usize> {
    let (mut lens, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let len = stated_len(rest);
        let Some(after) = len.and_then(|len| rest.get(len..)) else { return Vec::new() };
        lens.extend(len);
        rest = after;
    }
    lens
}

fn find(frame: &[u8], udp_port: u16) -> Option<Found<'_>> {
    let mut head_len = ADDRESSES_LEN;
    let mut kind = u16_at(frame, head_len)?;
    if kind == TYPE_VLAN {
        head_len = head_len.checked_add(4)?;
        kind = u16_at(frame, head_len)?;
    }
    let (head, packet) = frame.split_at_checked(head_len.checked_add(2)?)?;
    let (protocol, from, to, payload) = match kind {
        ETHERTYPE => return Some(Found::Whole),
        TYPE_IPV4 => ipv4(packet)?,
        TYPE_IPV6 => ipv6(packet)?,
        _ => return None,
    };
    match protocol {
        PROTOCOL => Some(Found::Whole),
        PROTOCOL_UDP => {
            let (near, far) = (u16_at(payload, 0)?, u16_at(payload, 2)?);
            let payload = payload.get(UDP_HEADER_LEN..)?;
            let (from, to) = (SocketAddr::new(from, near), SocketAddr::new(to, far));
            let is_ours = near == udp_port || far == udp_port;
            is_ours.then_some(Found::Datagram { head, from, to, payload })
        }
        _ => None,
    }
}

type Ip<'a> = (u8, IpAddr, IpAddr, &'a [u8]);

fn ipv4(packet: &[u8]) -> Option<Ip<'_>> {
    let words = packet.first()? & 0xF;
    let is_fragment = u16_at(packet, 6)? & 0x1FFF != 0;
    let ip = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?).into());
    let payload = packet.get(usize::from(words).checked_mul(4)?..)?;
    (!is_fragment).then_some((*packet.get(9)?, ip(12)?, ip(16)?, payload))
}

fn ipv6(packet: &[u8]) -> Option<Ip<'_>> {
    let ip = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?).into());
    Some((*packet.get(6)?, ip(8)?, ip(24)?, packet.get(IPV6_HEADER_LEN..)?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    /// A packet of XTP as far as its length goes.
    fn packet(data_len: u8) -> Vec<u8> {
        let mut packet = vec![0; dacapo_xtp::wire::HEADER_LEN + usize::from(data_len)];
        packet[15] = data_len;
        packet
    }

    fn frame(kind: u16, payload: &[u8]) -> Vec<u8> {
        [&[7; ADDRESSES_LEN][..], &kind.to_be_bytes(), payload].concat()
    }

    fn seen(frame: &[u8]) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        let count = packets(frame, 4_040, |packet| {
            seen.push(packet.to_vec());
            Ok(())
        });
        assert_eq!(count.unwrap(), seen.len());
        seen
    }

    #[test]
    fn xtp_is_found_wherever_it_is_carried_and_nothing_else() {
        let [four, six] = ["192.0.2.1:4040", "[2001:db8::1]:4040"].map(|at| at.parse().unwrap());
        let mut clothed = Vec::new();
        for (at, kind) in [(four, TYPE_IPV4), (six, TYPE_IPV6)] {
            for carriage in [Carriage::Ip, Carriage::Udp] {
                clothe(carriage, at, at, &packet(3), &mut clothed);
                let frame = frame(kind, &clothed);
                assert_eq!(seen(&frame), [frame]);
            }
            let other = SocketAddr::new(at.ip(), 53);
            clothe(Carriage::Udp, other, other, &packet(3), &mut clothed);
            assert!(seen(&frame(kind, &clothed)).is_empty());
        }
        let ethernet = frame(ETHERTYPE, &packet(0));
        assert_eq!(seen(&ethernet), [ethernet]);
        assert!(seen(&frame(0x0806, &packet(0))).is_empty());
        let tagged = [&[7; 12][..], &[0x81, 0, 0, 5, 0x81, 0x7D], &packet(0)].concat();
        assert_eq!(seen(&tagged).len(), 1);
    }

    #[test]
    fn datagrams_that_were_put_together_are_taken_apart() {
        let at: SocketAddr = "192.0.2.1:4040".parse().unwrap();
        let parts = [packet(9), packet(9), packet(2)];
        let mut clothed = Vec::new();
        clothe(Carriage::Udp, at, at, &parts.concat(), &mut clothed);
        let expected = parts.map(|part| {
            let mut clothed = Vec::new();
            clothe(Carriage::Udp, at, at, &part, &mut clothed);
            frame(TYPE_IPV4, &clothed)
        });
        assert_eq!(seen(&frame(TYPE_IPV4, &clothed)), expected);
        // What is not whole packets stays as it is.
        clothe(Carriage::Udp, at, at, &[0; 70], &mut clothed);
        assert_eq!(seen(&frame(TYPE_IPV4, &clothed)).len(), 1);
    }

    #[test]
    fn whatever_is_seen_is_survived() {
        let mut random = Random::from_number(1);
        let kinds = [ETHERTYPE, TYPE_IPV4, TYPE_IPV6, TYPE_VLAN];
        for _ in 0..50_000 {
            let mut bytes = vec![0; random.below(120) as usize];
            random.fill(&mut bytes);
            let kind = kinds[random.below(4) as usize];
            seen(&frame(kind, &bytes));
            seen(&bytes);
        }
    }
}
