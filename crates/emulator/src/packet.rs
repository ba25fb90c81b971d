//! [`IpPacket`]: an IP packet as a link's item: damage that a checksum sees, and damage that none
//! sees.
//!
//! ```text
//!   IPv4 | UDP, TCP, ICMP | payload       Detected:    the payload changes, its checksum stays
//!   IPv6 |   … checksum   |               Undetected:  both change together (RFC 1624)
//! ```
//!
//! What has no checksum over its payload, or one that is not found (fragments, extension headers,
//! other protocols), is altered after its IP header for `Undetected`; for `Detected` an IPv4 header
//! gets a wrong checksum, and an IPv6 header an address that is nobody's, so that the receiver
//! drops it in every case.
//!
//! The congestion mark is in the traffic class of both; with it the checksum of an IPv4 header
//! changes.
//!
//! Invariants: a packet keeps its length; one whose checksum was right has a right one after
//! `Undetected`, and a wrong one after `Detected`; any bytes are taken.
//!
//! Decoder: of packets from the kernel, which any program has written.
//!
//! Source: RFC 791, 8200 (headers), 768, 9293, 792, 4443 (checksums), 1624 (their change).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use dacapo_base::Random;
use dacapo_link::{Carry, Corruption, Ecn};
use std::ops::Range;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP_V6: u8 = 58;

/// Where the checksum of an IPv4 header is.
const V4_CHECKSUM: usize = 10;
/// By how much the congestion mark is shifted in the first word of an IPv6 header.
const V6_ECN_SHIFT: u32 = 4;
/// Where the destination of an IPv6 header begins.
const V6_DESTINATION: usize = 24;

/// An IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpPacket(pub Vec<u8>);

/// What of a packet may be altered, and the checksum that covers it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    version: u8,
    /// Bytes whose change makes another packet of the same kind.
    alterable: Range<usize>,
    /// Where the checksum over them is; words are counted from `transport`.
    checksum: Option<usize>,
    /// Where the checksum's first word begins.
    transport: usize,
    /// 0 stands for no checksum, and the sum 0 is written as all ones.
    is_udp: bool,
}

impl Carry for IpPacket {
    const CHECKED: bool = true;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn corrupt(&mut self, random: &mut Random, kind: Corruption) {
        let Some(parts) = parts(&self.0) else {
            return self.0.corrupt(random, kind);
        };
        match (kind, parts.checksum) {
            (Corruption::Detected, None) => self.spoil_header(&parts),
            (Corruption::Detected, Some(_)) => {
                let before = self.sum(&parts);
                self.flip(random, &parts.alterable);
                // Two flips can undo each other in the sum: one more bit cannot.
                if self.sum(&parts) == before {
                    self.flip_bit(parts.alterable.start, 0);
                }
            }
            (Corruption::Undetected, checksum) => {
                let before = self.sum(&parts);
                self.flip(random, &parts.alterable);
                let after = self.sum(&parts);
                if let Some(at) = checksum {
                    self.mend(at, (before, after), parts.is_udp);
                }
            }
        }
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn ecn(&self) -> Ecn {
        match first_word(&self.0) {
            Some((word, false)) => Ecn::from_bits(word as u8),
            Some((word, true)) => Ecn::from_bits((word >> V6_ECN_SHIFT) as u8),
            None => Ecn::NotEct,
        }
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        let Some((before, is_v6)) = first_word(&self.0) else { return };
        let shifted = |bits: u16| if is_v6 { bits << V6_ECN_SHIFT } else { bits };
        let after = (before & !shifted(0b11)) | shifted(ecn.bits().into());
        if let Some(word) = self.0.get_mut(..2) {
            word.copy_from_slice(&after.to_be_bytes());
        }
        // The header of IPv6 has no checksum, and those of transports leave the class out.
        if !is_v6 && before != after {
            self.mend(V4_CHECKSUM, (before, after), false);
        }
    }
}

/// The first word of a header, with the congestion mark in it, and whether it is one of IPv6;
/// nothing where no whole header is.
fn first_word(packet: &[u8]) -> Option<(u16, bool)> {
    let word = u16::from_be_bytes([*packet.first()?, *packet.get(1)?]);
    match word >> 12 {
        4 if packet.len() >= 20 => Some((word, false)),
        6 if packet.len() >= 40 => Some((word, true)),
        _ => None,
    }
}

impl IpPacket {
    /// Flips one to three bits in a range that is not empty.
    fn flip(&mut self, random: &mut Random, range: &Range<usize>) {
        let Some(part) = self.0.get(range.clone()) else { return };
        let mut altered = part.to_vec();
        altered.corrupt(random, Corruption::Undetected);
        if let Some(part) = self.0.get_mut(range.clone()) {
            part.copy_from_slice(&altered);
        }
    }

    fn flip_bit(&mut self, at: usize, bit: u8) {
        if let Some(byte) = self.0.get_mut(at) {
            *byte ^= 1_u8.checked_shl(bit.into()).unwrap_or(1);
        }
    }

    fn spoil_header(&mut self, parts: &Parts) {
        match parts.version {
            4 => self.flip_bit(V4_CHECKSUM, 0),
            // A unicast address becomes a multicast one that nobody listens to, or the reverse.
            _ => {
                if let Some(byte) = self.0.get_mut(V6_DESTINATION) {
                    *byte ^= 0xFF;
                }
            }
        }
    }

    /// The ones' complement sum of what may be altered, in words from the transport header on.
    fn sum(&self, parts: &Parts) -> u16 {
        let bytes = self.0.get(parts.alterable.clone()).unwrap_or_default();
        let is_odd = parts.alterable.start.abs_diff(parts.transport) % 2 == 1;
        let words = bytes.iter().enumerate().map(|(at, byte)| match (at % 2 == 1) ^ is_odd {
            false => u64::from(*byte).wrapping_mul(256),
            true => u64::from(*byte),
        });
        fold(words.fold(0, u64::wrapping_add))
    }

    /// Changes a checksum as the sum under it has changed.
    fn mend(&mut self, at: usize, (before, after): (u16, u16), is_udp: bool) {
        let Some(field) = at.checked_add(2).and_then(|end| self.0.get_mut(at..end)) else {
            return;
        };
        let &mut [high, low] = field else { return };
        let checksum = u16::from_be_bytes([high, low]);
        let terms = [!checksum, !before, after].map(u64::from);
        let mended = !fold(terms.into_iter().fold(0, u64::wrapping_add));
        let mended = if is_udp && mended == 0 { u16::MAX } else { mended };
        field.copy_from_slice(&mended.to_be_bytes());
    }
}

/// A sum of 16-bit words with its carries added.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF).wrapping_add(sum >> 16);
    }
    sum as u16
}

/// The parts of a packet; nothing when it is shorter than its headers say, or not IP.
fn parts(packet: &[u8]) -> Option<Parts> {
    let version = packet.first()? >> 4;
    let (protocol, transport) = match version {
        4 => {
            let header_len = usize::from(packet.first()? & 0x0F).checked_mul(4)?;
            let fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x3FFF;
            let is_whole = fragment == 0;
            (is_whole.then_some(*packet.get(9)?), header_len.max(20))
        }
        6 => (Some(*packet.get(6)?), 40),
        _ => return None,
    };
    if packet.len() <= transport {
        return None;
    }
    Some(transport_parts(packet, version, protocol, transport))
}

/// Where payload and checksum of a transport are; all after the IP header when it is not known.
fn transport_parts(packet: &[u8], version: u8, protocol: Option<u8>, transport: usize) -> Parts {
    let all = transport..packet.len();
    let unknown = Parts { version, alterable: all, checksum: None, transport, is_udp: false };
    let tcp_len = || {
        let words = packet.get(transport.checked_add(12)?)? >> 4;
        usize::from(words).checked_mul(4)
    };
    // Length of the header, place of the checksum, and what to alter where there is no payload.
    let found = match (version, protocol) {
        (_, Some(UDP)) => Some((8, 6, 0..2)),
        (_, Some(TCP)) => tcp_len().map(|len| (len.max(20), 16, 4..12)),
        (4, Some(ICMP)) | (6, Some(ICMP_V6)) => Some((8, 2, 4..8)),
        _ => None,
    };
    let Some((header_len, checksum, spare)) = found else { return unknown };
    let at = |offset: usize| transport.saturating_add(offset);
    if packet.len() < at(header_len) {
        return unknown;
    }
    let payload = at(header_len)..packet.len();
    let is_udp = protocol == Some(UDP);
    let is_summed = !is_udp || packet.get(at(6)..at(8)) != Some(&[0, 0]);
    Parts {
        alterable: if payload.is_empty() { at(spare.start)..at(spare.end) } else { payload },
        checksum: is_summed.then(|| at(checksum)),
        is_udp,
        ..unknown
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]
#[path = "packet_tests.rs"]
mod tests;
