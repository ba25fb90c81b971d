//! The handshake messages: [`Message`] in bytes and back.
//!
//! ```text
//!    0      1       3                              length
//!   +------+--------+---------+-----+---------+----------+
//!   | kind | length | field 1 | ... | field n | zeros    |    field = 16-bit length, bytes
//!   +------+--------+---------+-----+---------+----------+
//! ```
//!
//! `length` is that of the whole message in bytes, big endian. Zeros fill each kind up to the
//! length that its counterpart has in TLS 1.3 with Ed25519 certificates (measured with rustls
//! 0.23: hello about 270 bytes, reply 90, server flight about 550, client flight 367), whatever
//! the transport parameters take, so the same things fit into the same datagrams in every run.
//!
//! Invariants: a length is believed only up to [`LEN_MAX`]; every message has exactly one form.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

/// Longest message that is read or written, in bytes.
pub(super) const LEN_MAX: usize = 2048;

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const PARAMETERS: u8 = 8;
const IDENTITY: u8 = 11;
const FINISHED: u8 = 20;

/// One message; the kinds are numbered as their counterparts in TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// What the client offers.
    ClientHello {
        /// Stands for the client's key share.
        share: [u8; 32],
        /// The name that the client calls the server.
        server_name: Vec<u8>,
        /// The application protocol.
        alpn: Vec<u8>,
        /// Encoded transport parameters.
        params: Vec<u8>,
    },
    /// The server's key share.
    ServerHello {
        /// Stands for the server's key share.
        share: [u8; 32],
    },
    /// What the server chose (EncryptedExtensions).
    Parameters {
        /// The application protocol.
        alpn: Vec<u8>,
        /// Encoded transport parameters.
        params: Vec<u8>,
    },
    /// Who the sender is (Certificate and CertificateVerify).
    Identity([u8; 32]),
    /// A check over everything said so far.
    Finished([u8; 32]),
}

/// These bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Message {
    /// The bytes on the wire. Fields beyond [`LEN_MAX`] together make a message nobody reads.
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::ClientHello { share, server_name, alpn, params } => {
                encode(CLIENT_HELLO, 300, &[share, server_name, alpn, params])
            }
            Self::ServerHello { share } => encode(SERVER_HELLO, 90, &[share]),
            Self::Parameters { alpn, params } => encode(PARAMETERS, 190, &[alpn, params]),
            Self::Identity(identity) => encode(IDENTITY, 330, &[identity]),
            Self::Finished(check) => encode(FINISHED, 37, &[check]),
        }
    }

    /// The message that these bytes are, all of them.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (&[kind, ..], rest) = bytes.split_first_chunk::<3>().ok_or(Malformed)?;
        let mut fields = Fields(rest);
        let message = match kind {
            CLIENT_HELLO => Self::ClientHello {
                share: fields.array()?,
                server_name: fields.bytes()?,
                alpn: fields.bytes()?,
                params: fields.bytes()?,
            },
            SERVER_HELLO => Self::ServerHello { share: fields.array()? },
            PARAMETERS => Self::Parameters { alpn: fields.bytes()?, params: fields.bytes()? },
            IDENTITY => Self::Identity(fields.array()?),
            FINISHED => Self::Finished(fields.array()?),
            _ => return Err(Malformed),
        };
        // Padding of another length or content would be a second form of the same message.
        if message.encode() == bytes { Ok(message) } else { Err(Malformed) }
    }
}

/// Takes the first whole message off `inbox`; `None` when it has not arrived in full.
pub(super) fn split(inbox: &mut Vec<u8>) -> Result<Option<Vec<u8>>, Malformed> {
    let Some(&[_, high, low]) = inbox.first_chunk::<3>() else { return Ok(None) };
    let len = usize::from(u16::from_be_bytes([high, low]));
    if !(3..=LEN_MAX).contains(&len) {
        return Err(Malformed);
    }
    if inbox.len() < len {
        return Ok(None);
    }
    Ok(Some(inbox.drain(..len).collect()))
}

fn encode(kind: u8, len_min: usize, fields: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::with_capacity(len_min);
    for field in fields {
        let len = u16::try_from(field.len()).unwrap_or(u16::MAX);
        body.extend_from_slice(&len.to_be_bytes());
        body.extend(field.iter().take(len.into()));
    }
    let len = body.len().saturating_add(3).max(len_min);
    let mut message = vec![kind];
    message.extend_from_slice(&u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes());
    message.append(&mut body);
    message.resize(len, 0);
    message
}

/// What is left to read of a message.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Result<&'a [u8], Malformed> {
        let (len, rest) = self.0.split_first_chunk::<2>().ok_or(Malformed)?;
        let len = usize::from(u16::from_be_bytes(*len));
        let (field, rest) = rest.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(field)
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Malformed> {
        self.next().map(<[u8]>::to_vec)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.next()?.try_into().map_err(|_| Malformed)
    }
}

#[cfg(test)]
mod tests {
    use dacapo_base::Random;

    use super::*;

    fn samples() -> Vec<Message> {
        vec![
            Message::ClientHello {
                share: [1; 32],
                server_name: b"peer".to_vec(),
                alpn: b"dacapo/1".to_vec(),
                params: vec![2; 90],
            },
            Message::ServerHello { share: [3; 32] },
            Message::Parameters { alpn: b"dacapo/1".to_vec(), params: vec![4; 150] },
            Message::Identity([5; 32]),
            Message::Finished([6; 32]),
        ]
    }

    #[test]
    fn every_message_survives_the_round_trip_at_its_fixed_length() {
        let lens = [300, 90, 190, 330, 37];
        for (message, len) in samples().into_iter().zip(lens) {
            let bytes = message.encode();
            assert_eq!(bytes.len(), len, "{message:?}");
            assert_eq!(Message::decode(&bytes), Ok(message));
        }
    }

    #[test]
    fn messages_are_split_whatever_the_pieces_they_arrive_in() {
        let whole: Vec<Vec<u8>> = samples().iter().map(Message::encode).collect();
        let (mut inbox, mut seen) = (Vec::new(), Vec::new());
        for byte in whole.concat() {
            inbox.push(byte);
            seen.extend(split(&mut inbox).unwrap());
        }
        assert_eq!(seen, whole);
        assert!(inbox.is_empty());
    }

    #[test]
    fn cut_long_or_unclean_messages_are_malformed() {
        for message in samples() {
            let bytes = message.encode();
            for len in 0..bytes.len() {
                assert_eq!(Message::decode(&bytes[..len]), Err(Malformed), "{message:?}, {len}");
            }
            let mut unclean = bytes.clone();
            *unclean.last_mut().unwrap() ^= 1;
            assert_ne!(Message::decode(&unclean), Ok(message));
        }
        for length in [0, 1, 2, LEN_MAX as u16 + 1, u16::MAX] {
            let [high, low] = length.to_be_bytes();
            assert_eq!(split(&mut vec![1, high, low]), Err(Malformed), "{length}");
        }
    }

    #[test]
    fn no_bytes_make_the_decoder_panic() {
        for seed in 0..20_000 {
            let mut random = Random::from_number(seed);
            let mut bytes = samples()[random.below(5) as usize].encode();
            for _ in 0..=random.below(6) {
                let at = random.below(bytes.len().min(60) as u64) as usize;
                bytes[at] = random.next_u32() as u8;
            }
            if let Ok(message) = Message::decode(&bytes) {
                assert_eq!(message.encode(), bytes, "seed {seed}");
            }
        }
    }
}
