//! What tests of the control connections share: a handshake without secrets, for QUIC in memory.
//!
//! ```text
//!   client: parameters ->        -> done
//!   server:      hello, parameters ->   done ->
//! ```

use super::{ControlCrypto, EndpointKeys};
use bytes::BytesMut;
use dacapo_base::Random;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

/// What stands where a tag would.
const TAG: [u8; 16] = [7; 16];

/// Cryptography that hides nothing and proves nothing.
pub(crate) fn crypto(random: &mut Random) -> ControlCrypto {
    let open = Arc::new(Open);
    let keys = EndpointKeys { reset: open.clone(), token: open.clone() };
    let (client, server, random) = (open.clone(), open, random.fork());
    ControlCrypto { client, server, keys, calendar: None, random }
}

struct Open;

impl Open {
    fn keys() -> Keys {
        let header =
            KeyPair::<Box<dyn HeaderKey>> { local: Box::new(Self), remote: Box::new(Self) };
        Keys { header, packet: Self::packet() }
    }

    fn packet() -> KeyPair<Box<dyn PacketKey>> {
        KeyPair { local: Box::new(Self), remote: Box::new(Self) }
    }
}

impl HeaderKey for Open {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG.len()
    }
}

impl PacketKey for Open {
    fn encrypt(&self, _: u64, buf: &mut [u8], _: usize) {
        buf.last_chunk_mut().map(|tag| *tag = TAG).unwrap();
    }

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let len = payload.strip_suffix(&TAG).ok_or(CryptoError)?.len();
        payload.truncate(len);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG.len()
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HmacKey for Open {
    fn sign(&self, _: &[u8], signature: &mut [u8]) {
        signature.fill(9);
    }

    fn signature_len(&self) -> usize {
        TAG.len()
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

impl HandshakeTokenKey for Open {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for Open {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Ok(data)
    }
}

impl ClientConfig for Open {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let mut session = Handshake::new(Side::Client, params);
        session.say(session.params.clone(), false);
        Ok(Box::new(session))
    }
}

impl ServerConfig for Open {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(Self::keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        TAG
    }

    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(Handshake::new(Side::Server, params))
    }
}

struct Handshake {
    side: Side,
    params: Vec<u8>,
    peer: Option<TransportParameters>,
    /// What is to be said, and whether the next keys follow it.
    says: VecDeque<(Vec<u8>, bool)>,
    heard: Vec<u8>,
    is_hello_heard: bool,
    is_done: bool,
}

impl Handshake {
    fn new(side: Side, ours: &TransportParameters) -> Self {
        let mut params = Vec::new();
        ours.write(&mut params);
        let (says, heard) = (VecDeque::new(), Vec::new());
        Self { side, params, peer: None, says, heard, is_hello_heard: false, is_done: false }
    }

    fn say(&mut self, bytes: Vec<u8>, has_keys: bool) {
        let len = u8::try_from(bytes.len()).unwrap();
        self.says.push_back(([vec![len], bytes].concat(), has_keys));
    }

    fn hear(&mut self, bytes: &[u8]) {
        match (self.side, self.peer.is_some()) {
            (Side::Client, _) if !self.is_hello_heard => {
                self.is_hello_heard = true;
                self.says.push_back((Vec::new(), true));
            }
            (_, true) => self.is_done = true,
            (Side::Client, false) => {
                self.peer = TransportParameters::read(self.side, &mut &*bytes).ok();
                self.say(Vec::new(), true);
                self.is_done = true;
            }
            (Side::Server, false) => {
                self.peer = TransportParameters::read(self.side, &mut &*bytes).ok();
                self.say(Vec::new(), true);
                self.say(self.params.clone(), true);
            }
        }
    }
}

impl Session for Handshake {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        Open::keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        !self.is_done
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.heard.extend_from_slice(bytes);
        while let Some(len) = self.heard.first().map(|len| usize::from(*len) + 1)
            && len <= self.heard.len()
        {
            let message: Vec<u8> = self.heard.drain(..len).skip(1).collect();
            self.hear(&message);
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, to: &mut Vec<u8>) -> Option<Keys> {
        let (bytes, has_keys) = self.says.pop_front()?;
        to.extend(bytes);
        has_keys.then(Open::keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(Open::packet())
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
