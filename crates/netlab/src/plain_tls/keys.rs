//! Keys without secrecy: packets, headers, retry, stateless resets and tokens.
//!
//! ```text
//!   +--------------------------+-------------------+--------+
//!   | header, number in clear  | payload in clear  | tag 16 |
//!   +--------------------------+-------------------+--------+
//!     tag = mix(key, packet number, header, payload);  key by level, direction and generation
//! ```
//!
//! Invariant: what any of these accepts is bit for bit what was sealed with the same key. The
//! limits are those of AES-GCM, so that quinn updates keys and gives up where it does in earnest.
//!
//! Source: RFC 9001, sections 5 and 6.6, for what is stood in for.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, CryptoError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair, Keys, PacketKey,
};
use quinn_proto::{ConnectionId, Side};

use super::mix::Mixer;

const TAG_LEN: usize = 16;
/// Largest number of packets for one key of AES-GCM (RFC 9001, section 6.6).
const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
/// Largest number of forged packets for one key of AES-GCM (RFC 9001, section 6.6).
const INTEGRITY_LIMIT: u64 = 1 << 52;

/// The keys of a level, from the secret of the level.
pub(super) fn keys(secret: &[u8; 32], side: Side) -> Keys {
    Keys {
        header: KeyPair { local: Box::new(OpenHeader), remote: Box::new(OpenHeader) },
        packet: packet_keys(secret, side),
    }
}

/// The packet keys alone, which a key update changes.
pub(super) fn packet_keys(secret: &[u8; 32], side: Side) -> KeyPair<Box<dyn PacketKey>> {
    let key = |sender: Side| -> Box<dyn PacketKey> {
        let direction = if sender.is_client() { "client" } else { "server" };
        Box::new(Sealed(Mixer::new("packet key").with(secret).with(direction.as_bytes())))
    };
    KeyPair { local: key(side), remote: key(!side) }
}

/// The secret of the first level, which follows from the client's first destination id.
pub(super) fn initial_secret(version: u32, dst_cid: &ConnectionId) -> [u8; 32] {
    Mixer::new("initial").with_number(version.into()).with(dst_cid).secret()
}

/// The tag that ends a retry packet; `parts` are the packet without it, in order.
pub(super) fn retry_tag(version: u32, orig_dst_cid: &ConnectionId, parts: &[&[u8]]) -> [u8; 16] {
    // One hash over the whole, because the two sides cut the packet differently.
    Mixer::new("retry").with_number(version.into()).with(orig_dst_cid).with(&parts.concat()).tag()
}

/// Packet protection: an integrity check over number, header and payload.
struct Sealed(Mixer);

impl Sealed {
    fn tag(&self, packet: u64, header: &[u8], payload: &[u8]) -> [u8; TAG_LEN] {
        self.0.clone().with_number(packet).with(header).with(payload).tag()
    }
}

impl PacketKey for Sealed {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        // quinn leaves room for the tag behind the payload.
        if let Some((header, rest)) = buf.split_at_mut_checked(header_len)
            && let Some((payload, tag)) = rest.split_last_chunk_mut::<TAG_LEN>()
        {
            *tag = self.tag(packet, header, payload);
        }
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let (opened, tag) = payload.split_last_chunk::<TAG_LEN>().ok_or(CryptoError)?;
        if *tag != self.tag(packet, header, opened) {
            return Err(CryptoError);
        }
        let len = opened.len();
        payload.truncate(len);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_LEN
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}

/// Header protection: none, so that traces can be read. The sample has the size of AES.
struct OpenHeader;

impl HeaderKey for OpenHeader {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        16
    }
}

/// Signs stateless resets.
pub(super) struct ResetKey(Mixer);

impl ResetKey {
    pub(super) fn new(seed: &[u8; 32]) -> Self {
        Self(Mixer::new("reset key").with(seed))
    }
}

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        self.0.clone().with(data).fill(signature_out);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let expected = self.0.clone().with(data).secret();
        if signature == expected { Ok(()) } else { Err(CryptoError) }
    }
}

/// Seals retry and validation tokens.
pub(super) struct TokenKey(Mixer);

impl TokenKey {
    pub(super) fn new(seed: &[u8; 32]) -> Self {
        Self(Mixer::new("token key").with(seed))
    }
}

impl HandshakeTokenKey for TokenKey {
    fn aead_from_hkdf(&self, random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(SealedToken(self.0.clone().with(random_bytes)))
    }
}

struct SealedToken(Mixer);

impl AeadKey for SealedToken {
    fn seal(&self, data: &mut Vec<u8>, additional_data: &[u8]) -> Result<(), CryptoError> {
        let tag = self.0.clone().with(additional_data).with(data).tag();
        data.extend_from_slice(&tag);
        Ok(())
    }

    fn open<'a>(
        &self,
        data: &'a mut [u8],
        additional_data: &[u8],
    ) -> Result<&'a mut [u8], CryptoError> {
        let (opened, tag) = data.split_last_chunk_mut::<TAG_LEN>().ok_or(CryptoError)?;
        let expected = self.0.clone().with(additional_data).with(opened).tag();
        if *tag == expected { Ok(opened) } else { Err(CryptoError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 32] = [3; 32];
    const HEADER: &[u8] = b"header 7";

    fn sealed() -> Vec<u8> {
        let mut packet = [HEADER, b"payload of a packet", &[0; TAG_LEN]].concat();
        packet_keys(&SECRET, Side::Client).local.encrypt(7, &mut packet, HEADER.len());
        packet
    }

    fn open(secret: &[u8; 32], side: Side, number: u64, packet: &[u8]) -> Option<Vec<u8>> {
        let (header, payload) = packet.split_at(HEADER.len());
        let mut payload = BytesMut::from(payload);
        let key = packet_keys(secret, side).remote;
        key.decrypt(number, header, &mut payload).ok().map(|()| payload.to_vec())
    }

    #[test]
    fn a_packet_opens_only_with_its_key_direction_and_number() {
        let packet = sealed();
        let opened = open(&SECRET, Side::Server, 7, &packet);
        assert_eq!(opened.as_deref(), Some(&b"payload of a packet"[..]));
        assert_eq!(open(&SECRET, Side::Server, 8, &packet), None);
        assert_eq!(open(&SECRET, Side::Client, 7, &packet), None);
        assert_eq!(open(&[4; 32], Side::Server, 7, &packet), None);
    }

    #[test]
    fn no_flipped_bit_and_no_cut_of_a_packet_is_accepted() {
        let mut packet = sealed();
        for bit in 0..packet.len() * 8 {
            packet[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&SECRET, Side::Server, 7, &packet), None, "bit {bit}");
            packet[bit / 8] ^= 1 << (bit % 8);
        }
        for len in HEADER.len()..packet.len() {
            assert_eq!(open(&SECRET, Side::Server, 7, &packet[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn a_token_opens_only_with_its_key_and_unaltered() {
        let open = |seed: u8, nonce: &[u8], mut sealed: Vec<u8>| {
            let aead = TokenKey::new(&[seed; 32]).aead_from_hkdf(nonce);
            aead.open(&mut sealed, b"aad").map(|opened| opened.to_vec()).ok()
        };
        let mut sealed = b"address".to_vec();
        TokenKey::new(&[1; 32]).aead_from_hkdf(b"n").seal(&mut sealed, b"aad").unwrap();
        assert_eq!(open(1, b"n", sealed.clone()).as_deref(), Some(&b"address"[..]));
        assert_eq!(open(2, b"n", sealed.clone()), None);
        assert_eq!(open(1, b"m", sealed.clone()), None);
        sealed[0] ^= 1;
        assert_eq!(open(1, b"n", sealed), None);
        assert_eq!(open(1, b"n", vec![0; 3]), None);
    }

    #[test]
    fn a_reset_signature_verifies_only_for_its_data() {
        let key = ResetKey::new(&[1; 32]);
        let mut signature = vec![0; key.signature_len()];
        key.sign(b"id", &mut signature);
        assert!(key.verify(b"id", &signature).is_ok());
        assert!(key.verify(b"ie", &signature).is_err());
        assert!(ResetKey::new(&[2; 32]).verify(b"id", &signature).is_err());
    }
}
