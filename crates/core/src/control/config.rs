//! How the control connections are configured: bounds, timers, keys.

use dacapo_base::Random;
use quinn_proto::congestion::NewRenoConfig;
use quinn_proto::crypto::{ClientConfig, HandshakeTokenKey, HmacKey, ServerConfig};
use quinn_proto::{
    ConnectionId, ConnectionIdGenerator, EndpointConfig, TimeSource, TransportConfig, VarInt,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The most streams that the peer may have open on a connection: what a table of 1,024 places
/// holds, less a few of our own. `quinn-proto` tells of those that are free again when they are an
/// eighth, so 776 are there at any time.
pub(super) const STREAMS_MAX: u32 = 886;

/// How many of one that is through the peer may open besides those that it has. `quinn-proto` keeps
/// two tables of all that there may be, used or not: of 256 places for these (10 KiB) and of 1,024
/// for the most (41 KiB). Half of it is more than an eighth of the most, below which the peer would
/// not be told of more.
pub(super) const STREAMS_AHEAD: u32 = 220;

/// Those of one that is not through: the tables are made with the first packet, for an address that
/// has proved nothing.
const STREAMS_BEGIN: u32 = 16;
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
const HALF_OPEN_MAX: usize = 256;
const HALF_OPEN_BYTES: u64 = 16 * 1024;
const HALF_OPEN_BYTES_ALL: u64 = 4 << 20;
const CRYPTO_BYTES: usize = 16 * 1024;
const CID_LEN: usize = 8;

/// The secrets of an endpoint.
#[derive(Clone)]
pub struct EndpointKeys {
    /// For stateless resets.
    pub reset: Arc<dyn HmacKey>,
    /// For address-validation tokens.
    pub token: Arc<dyn HandshakeTokenKey>,
}

/// The cryptography of the control connections: real TLS on a host, a stand-in in a virtual world.
#[derive(Clone)]
pub struct ControlCrypto {
    /// For connections that we dial.
    pub client: Arc<dyn ClientConfig>,
    /// For connections that come in.
    pub server: Arc<dyn ServerConfig>,
    /// The endpoint's secrets.
    pub keys: EndpointKeys,
    /// The calendar clock that tokens are dated with; `None` for the system's.
    pub calendar: Option<Arc<dyn TimeSource>>,
    /// Randomness for connection ids.
    pub random: Random,
}

/// Connection ids from the core's randomness.
struct Cids(Random);

impl ConnectionIdGenerator for Cids {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; CID_LEN];
        self.0.fill(&mut bytes);
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        CID_LEN
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

pub(super) fn endpoint(keys: &EndpointKeys, random: &mut Random) -> EndpointConfig {
    let mut config = EndpointConfig::new(keys.reset.clone());
    let mut seed = [0; 32];
    random.fill(&mut seed);
    let cids = random.fork();
    // The fixed bit tells QUIC from data on the shared port.
    config
        .grease_quic_bit(false)
        .rng_seed(Some(seed))
        .cid_generator(move || Box::new(Cids(cids.clone())));
    config
}

pub(super) fn server(crypto: &ControlCrypto) -> quinn_proto::ServerConfig {
    let mut config =
        quinn_proto::ServerConfig::new(crypto.server.clone(), crypto.keys.token.clone());
    config
        .transport_config(Arc::new(transport()))
        .max_incoming(HALF_OPEN_MAX)
        .incoming_buffer_size(HALF_OPEN_BYTES)
        .incoming_buffer_size_total(HALF_OPEN_BYTES_ALL);
    if let Some(calendar) = &crypto.calendar {
        config.time_source(calendar.clone());
    }
    config
}

pub(super) fn client(crypto: &ControlCrypto) -> quinn_proto::ClientConfig {
    let mut config = quinn_proto::ClientConfig::new(crypto.client.clone());
    let random = Mutex::new(crypto.random.clone());
    config.transport_config(Arc::new(transport())).initial_dst_cid_provider(Arc::new(move || {
        let mut bytes = [0; 20];
        // A poisoned lock still holds a generator.
        let mut random = random.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        random.fill(&mut bytes);
        ConnectionId::new(&bytes)
    }));
    config
}

fn transport() -> TransportConfig {
    let mut config = TransportConfig::default();
    // Our own probes decide whether a peer lives. A short first guess of the round trip, because
    // set-up repeats itself anyway.
    config
        .max_idle_timeout(None)
        .initial_rtt(Duration::from_millis(100))
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS_BEGIN))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(u64::from(CONNECTION_WINDOW))
        .crypto_buffer_size(CRYPTO_BYTES)
        .datagram_receive_buffer_size(None)
        .mtu_discovery_config(None)
        .allow_spin(false)
        .enable_segmentation_offload(false)
        .congestion_controller_factory(Arc::new(NewRenoConfig::default()));
    config
}
