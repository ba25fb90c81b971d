//! What a QUIC transport is asked for: bounds, secrets, and how `quinn-proto` is told of them.
//!
//! The identities behind the keys are of who makes the transport.

use super::Mode;
use crate::sockets;
use quinn_proto::crypto::{ClientConfig, HandshakeTokenKey, HmacKey, ServerConfig};
use quinn_proto::{EndpointConfig, TransportConfig, VarInt};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest datagram in bytes of the unreliable mode: what a packet of 1,200 bytes, which every
/// path of QUIC takes (RFC 9000, section 14), has room for behind the longest header (25 bytes),
/// the frame's head (9) and the seal (16).
pub const DATAGRAM_LEN_MAX: usize = 1_150;

/// The shortest datagram that every path of QUIC takes.
const PATH_LEN_MIN: u16 = 1_200;

/// What an address that has shown no token may send, in bytes: a preface, and some.
const WINDOW_UNCLAIMED: u32 = 16 * 1024;

/// Bytes of handshake that are kept out of order.
const CRYPTO_BYTES: usize = 16 * 1024;

/// Bytes of datagrams that `quinn-proto` keeps between two looks: more than one packet of the
/// longest kind can hold, frames without bytes included, so that nothing is dropped in there.
const DATAGRAMS_RECV_BYTES: usize = 4 << 20;

/// Bytes of a first flight that wait for the decision to take a connection, of one and of all.
const INCOMING_BYTES: u64 = 16 * 1024;
const INCOMING_BYTES_ALL: u64 = 1 << 20;

/// What a QUIC transport is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its sockets.
    pub udp: sockets::Config,
    /// Bytes that a stream takes beyond those that are acknowledged.
    pub send_window: u32,
    /// Bytes that a stream may bring beyond those that are read.
    pub recv_window: u32,
    /// Bytes of datagrams that wait to be sent, per connection.
    pub departures_bytes: usize,
    /// Bytes of datagrams that have come and wait to be handed up, per connection.
    pub arrivals_bytes: usize,
    /// The most streams, up to [`crate::DATA_LANES_MAX`].
    pub streams_max: usize,
    /// From so many connections without a token on, whoever comes must prove its address first
    /// (Retry; RFC 9000, section 8.1).
    pub retry_from: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            udp: sockets::Config::default(),
            send_window: 4 << 20,
            recv_window: 4 << 20,
            departures_bytes: 256 * 1024,
            arrivals_bytes: 1 << 20,
            streams_max: crate::DATA_LANES_MAX,
            retry_from: 16,
        }
    }
}

/// What a listener proves itself with.
#[derive(Clone)]
pub struct ServerCrypto {
    /// Its side of the handshake. Only connections that name the transport's own application
    /// protocol are to pass it.
    pub tls: Arc<dyn ServerConfig>,
    /// For tokens that prove addresses.
    pub token: Arc<dyn HandshakeTokenKey>,
    /// What both kinds of transport have.
    pub common: Common,
}

/// What a dialer proves itself with.
#[derive(Clone)]
pub struct ClientCrypto {
    /// Its side of the handshake. It is to let nobody pass but the peer whose token it is to show:
    /// the token is said to whoever does.
    pub tls: Arc<dyn ClientConfig>,
    /// What both kinds of transport have.
    pub common: Common,
}

/// What listener and dialer need besides.
#[derive(Clone)]
pub struct Common {
    /// For stateless resets.
    pub reset: Arc<dyn HmacKey>,
    /// From which the endpoint's randomness is made.
    pub seed: [u8; 32],
    /// Where `Time::ZERO` lies on the clock that `quinn-proto` counts with; only differences count.
    pub origin: Instant,
}

pub(super) fn endpoint(common: &Common) -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::new(common.reset.clone());
    config.rng_seed(Some(common.seed)).grease_quic_bit(false);
    Arc::new(config)
}

pub(super) fn server(crypto: &ServerCrypto, mode: Mode, config: &Config) -> ServerSide {
    let mut transport = transport(mode, config);
    transport
        .receive_window(VarInt::from_u32(WINDOW_UNCLAIMED.min(config.recv_window)))
        .max_concurrent_bidi_streams(VarInt::from_u32(1));
    let mut server = ServerSide::new(crypto.tls.clone(), crypto.token.clone());
    server
        .transport_config(Arc::new(transport))
        // A stream is known by the address of its other end.
        .migration(false)
        .max_incoming(crate::stream::UNCLAIMED_MAX)
        .incoming_buffer_size(INCOMING_BYTES)
        .incoming_buffer_size_total(INCOMING_BYTES_ALL);
    server
}

type ServerSide = quinn_proto::ServerConfig;

pub(super) fn client(crypto: &ClientCrypto, mode: Mode, config: &Config) -> ClientSide {
    let mut transport = transport(mode, config);
    transport
        .receive_window(VarInt::from_u32(config.recv_window))
        .max_concurrent_bidi_streams(VarInt::from_u32(0));
    let mut client = ClientSide::new(crypto.tls.clone());
    client.transport_config(Arc::new(transport));
    client
}

type ClientSide = quinn_proto::ClientConfig;

fn transport(mode: Mode, config: &Config) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        // Our own watch decides when a stream is dead; see `watch`.
        .max_idle_timeout(None)
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(config.recv_window))
        .send_window(u64::from(config.send_window))
        .initial_rtt(Duration::from_millis(100))
        .crypto_buffer_size(CRYPTO_BYTES)
        .initial_mtu(PATH_LEN_MIN)
        .allow_spin(false)
        .enable_segmentation_offload(config.udp.gso);
    match mode {
        Mode::Streams => transport.datagram_receive_buffer_size(None),
        // Datagrams have one length, so longer packets would only be filled less.
        Mode::Datagrams => transport
            .mtu_discovery_config(None)
            .datagram_receive_buffer_size(Some(DATAGRAMS_RECV_BYTES))
            .datagram_send_buffer_size(config.departures_bytes),
    };
    transport
}
