//! What is given to quinn: configurations that start sessions, and keys.

use std::any::Any;
use std::sync::Arc;

use dacapo_base::Random;
use dacapo_core::{ControlCrypto, EndpointKeys};
use quinn_proto::crypto::{self, HandshakeTokenKey, HmacKey, Keys, Session, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, DEFAULT_SUPPORTED_VERSIONS, Side, TimeSource};

use super::keys;
use super::session::PlainSession;

/// The application protocol that both sides must name.
pub const ALPN: &[u8] = b"dacapo/1";
/// Longest server name, in bytes, as in DNS.
const SERVER_NAME_LEN_MAX: usize = 255;

/// The client side, which shows `identity` to servers.
#[must_use]
pub fn client_config(identity: [u8; 32]) -> Arc<dyn crypto::ClientConfig> {
    Arc::new(Config::new(identity, ALPN))
}

/// The server side, which shows `identity` to clients.
#[must_use]
pub fn server_config(identity: [u8; 32]) -> Arc<dyn crypto::ServerConfig> {
    Arc::new(Config::new(identity, ALPN))
}

/// A key for stateless resets, for `EndpointConfig::new`.
#[must_use]
pub fn hmac_key(seed: [u8; 32]) -> Arc<dyn HmacKey> {
    Arc::new(keys::ResetKey::new(&seed))
}

/// A key for retry and validation tokens, for `ServerConfig::new`.
#[must_use]
pub fn token_key(seed: [u8; 32]) -> Arc<dyn HandshakeTokenKey> {
    Arc::new(keys::TokenKey::new(&seed))
}

/// Everything that a core is given of cryptography: an identity, keys and a generator of its own,
/// drawn from `random`.
#[must_use]
pub fn control_crypto(random: &mut Random, calendar: Option<Arc<dyn TimeSource>>) -> ControlCrypto {
    let mut seed = || {
        let mut seed = [0; 32];
        random.fill(&mut seed);
        seed
    };
    let identity = seed();
    ControlCrypto {
        client: client_config(identity),
        server: server_config(identity),
        keys: EndpointKeys { reset: hmac_key(seed()), token: token_key(seed()) },
        calendar,
        random: Random::from_seed(seed()),
    }
}

/// The identity that the peer showed, from `Session::peer_identity()` of a session of this module;
/// `None` for anything else.
#[must_use]
pub fn peer_identity(peer_identity: Box<dyn Any>) -> Option<[u8; 32]> {
    peer_identity.downcast::<[u8; 32]>().ok().map(|identity| *identity)
}

/// One side's part of every session.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) identity: [u8; 32],
    pub(super) alpn: Vec<u8>,
}

impl Config {
    pub(super) fn new(identity: [u8; 32], alpn: &[u8]) -> Self {
        Self { identity, alpn: alpn.to_vec() }
    }
}

impl crypto::ClientConfig for Config {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        if !DEFAULT_SUPPORTED_VERSIONS.contains(&version) {
            return Err(ConnectError::UnsupportedVersion);
        }
        if server_name.is_empty() || server_name.len() > SERVER_NAME_LEN_MAX {
            return Err(ConnectError::InvalidServerName(server_name.into()));
        }
        Ok(Box::new(PlainSession::client(self, version, server_name, params)))
    }
}

impl crypto::ServerConfig for Config {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        if !DEFAULT_SUPPORTED_VERSIONS.contains(&version) {
            return Err(UnsupportedVersion);
        }
        Ok(keys::keys(&keys::initial_secret(version, dst_cid), Side::Server))
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        keys::retry_tag(version, orig_dst_cid, &[packet])
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        Box::new(PlainSession::server(self, version, params))
    }
}
