//! QUIC packets byte by byte: any frames, sealed so that they are opened.
//!
//! ```text
//!   initial   | 1100 0011 | version | len dcid | len scid | len token | length | ...
//!   short     | 0100 0011 | dcid | ...                ... number 4 | frames | tag 16 |
//! ```
//!
//! What quinn makes of frames is the same under both.
//!
//! Source: RFC 9000, sections 16, 17 and 19.

use dacapo_netlab::plain_tls;
use quinn_proto::ConnectionId;
use quinn_proto::crypto::PacketKey;

const VERSION: u32 = 1;
const TAG_LEN: usize = 16;
const NUMBER_LEN: usize = 4;

/// The shortest datagram in bytes in which a client may begin.
pub const INITIAL_LEN_MIN: usize = 1_200;

/// Appends a variable-length number, in the shortest form.
pub fn write_var(number: u64, into: &mut Vec<u8>) {
    match number {
        0..=0x3F => into.push(number as u8),
        0x40..=0x3FFF => into.extend_from_slice(&(number as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3FFF_FFFF => {
            into.extend_from_slice(&(number as u32 | 0x8000_0000).to_be_bytes());
        }
        _ => into.extend_from_slice(&(number | 0xC000_0000_0000_0000).to_be_bytes()),
    }
}

/// A variable-length number alone.
#[must_use]
pub fn var(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_var(number, &mut bytes);
    bytes
}

/// A first packet of somebody, in a datagram of its own that is as long as it must be at least.
#[must_use]
pub fn initial(dcid: &[u8], scid: &[u8], token: &[u8], number: u32, frames: &[u8]) -> Vec<u8> {
    let mut head = vec![0xC3];
    head.extend_from_slice(&VERSION.to_be_bytes());
    for id in [dcid, scid] {
        head.push(id.len() as u8);
        head.extend_from_slice(id);
    }
    write_var(token.len() as u64, &mut head);
    head.extend_from_slice(token);
    let fixed = head.len() + 2 + NUMBER_LEN + TAG_LEN;
    // Zeros are frames: padding.
    let frames_len = frames.len().max(INITIAL_LEN_MIN.saturating_sub(fixed));
    let len = NUMBER_LEN + frames_len + TAG_LEN;
    head.extend_from_slice(&(len as u16 | 0x4000).to_be_bytes());
    head.extend_from_slice(&number.to_be_bytes());
    let head_len = head.len();
    let mut packet = head;
    packet.extend_from_slice(frames);
    packet.resize(head_len + frames_len + TAG_LEN, 0);
    let keys = plain_tls::server_config([0; 32]).initial_keys(VERSION, &ConnectionId::new(dcid));
    if let Ok(keys) = keys {
        // What a server opens with is what its client seals with.
        keys.packet.remote.encrypt(number.into(), &mut packet, head_len);
    }
    packet
}

/// A packet of a connection that is through, with the sealing side's key.
#[must_use]
pub fn short(key: &dyn PacketKey, dcid: &[u8], number: u32, frames: &[u8]) -> Vec<u8> {
    let head = [&[0x43], dcid, &number.to_be_bytes()].concat();
    let head_len = head.len();
    let mut packet = head;
    packet.extend_from_slice(frames);
    packet.resize(head_len + frames.len() + TAG_LEN, 0);
    key.encrypt(number.into(), &mut packet, head_len);
    packet
}

/// The number of a packet of the kind of [`short`], as quinn seals them.
#[must_use]
pub fn number_of_short(packet: &[u8], dcid_len: usize) -> Option<u32> {
    let first = *packet.first().filter(|first| **first & 0xC0 == 0x40)?;
    let number = packet.get(1 + dcid_len..)?.get(..usize::from(first & 3) + 1)?;
    Some(number.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// The sender's connection id in a long header.
#[must_use]
pub fn source_of_long(packet: &[u8]) -> Option<&[u8]> {
    let rest = packet.get(5..).filter(|_| packet.first().is_some_and(|it| it & 0x80 != 0))?;
    let (&dcid_len, rest) = rest.split_first()?;
    let rest = rest.get(usize::from(dcid_len)..)?;
    let (&scid_len, rest) = rest.split_first()?;
    rest.get(..usize::from(scid_len))
}

/// A CRYPTO frame.
#[must_use]
pub fn crypto(offset: u64, bytes: &[u8]) -> Vec<u8> {
    [vec![0x06], var(offset), var(bytes.len() as u64), bytes.to_vec()].concat()
}

/// A STREAM frame with offset and length, not the last one.
#[must_use]
pub fn stream(id: u64, offset: u64, bytes: &[u8]) -> Vec<u8> {
    [vec![0x0E], var(id), var(offset), var(bytes.len() as u64), bytes.to_vec()].concat()
}
