//! [`Tap`]: the stand-in for TLS with a window in it: the packet keys of our side, to seal packets
//! that no QUIC library would make.

use bytes::BytesMut;
use quinn_proto::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// Our keys, by level: Handshake, 1-RTT.
type Taken = Arc<Mutex<Vec<Arc<dyn PacketKey>>>>;

/// What was seen of the keys of a side.
#[derive(Clone, Default)]
pub struct Tap(Taken);

impl Tap {
    /// The key of the packets that carry streams, once the handshake is that far.
    #[must_use]
    pub fn application(&self) -> Option<Arc<dyn PacketKey>> {
        // A poisoned lock still holds keys.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(1).cloned()
    }

    /// The same configuration of a client, tapped.
    #[must_use]
    pub fn client(&self, inner: Arc<dyn crypto::ClientConfig>) -> Arc<dyn crypto::ClientConfig> {
        Arc::new(Client { inner, tap: self.clone() })
    }

    /// The same configuration of a server, tapped.
    #[must_use]
    pub fn server(&self, inner: Arc<dyn crypto::ServerConfig>) -> Arc<dyn crypto::ServerConfig> {
        Arc::new(Server { inner, tap: self.clone() })
    }

    fn session(&self, inner: Box<dyn Session>) -> Box<dyn Session> {
        Box::new(Tapped { inner, tap: self.clone() })
    }
}

struct Client {
    inner: Arc<dyn crypto::ClientConfig>,
    tap: Tap,
}

impl crypto::ClientConfig for Client {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let session = self.inner.clone().start_session(version, server_name, params)?;
        Ok(self.tap.session(session))
    }
}

struct Server {
    inner: Arc<dyn crypto::ServerConfig>,
    tap: Tap,
}

impl crypto::ServerConfig for Server {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, id, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        self.tap.session(self.inner.clone().start_session(version, params))
    }
}

/// A key that two have.
struct Shared(Arc<dyn PacketKey>);

impl PacketKey for Shared {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        self.0.encrypt(packet, buf, header_len);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.0.decrypt(packet, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

struct Tapped {
    inner: Box<dyn Session>,
    tap: Tap,
}

impl Session for Tapped {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let Keys { header, packet: KeyPair { local, remote } } = self.inner.write_handshake(buf)?;
        let shared: Arc<dyn PacketKey> = Arc::from(local);
        self.tap.0.lock().unwrap_or_else(PoisonError::into_inner).push(shared.clone());
        Some(Keys { header, packet: KeyPair { local: Box::new(Shared(shared)), remote } })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.inner.next_1rtt_keys()
    }

    fn is_valid_retry(&self, id: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(id, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}
