//! A stand-in for TLS in QUIC, so that whole cores run in virtual time and repeat from a seed.
//!
//! The traits of `quinn_proto::crypto` with messages of fixed length and no randomness. quinn's
//! state machine takes the way it takes with TLS 1.3 and client certificates: three levels of keys,
//! the same flights, the same sizes, identities known at the same points, key updates, retry.
//! Payloads and headers stay in the clear, everybody can compute every key. Only integrity is real:
//! a damaged packet is dropped, as by an AEAD.
//!
//! ```text
//!   client                                level         server
//!   ClientHello (name, ALPN, parameters)  Initial    -->
//!                                         Initial    <-- ServerHello
//!                                         Handshake  <-- Parameters (ALPN), Identity, Finished
//!   Identity, Finished                    Handshake  -->
//!   streams, key updates                  1-RTT      <->
//! ```
//!
//! Invariants: everything follows from the bytes given at construction and from what arrived;
//! malformed handshake bytes are a `TransportError`, never a panic; at most one message is kept.
//!
//! What else draws randomness or reads a clock in quinn-proto 0.11.19, and what pins it:
//!
//! - endpoint and connections (packet number gaps, grease, challenges): `EndpointConfig::rng_seed`
//! - connection ids: `EndpointConfig::cid_generator` with [`cid::SeededCids`]
//! - a client's first destination id: `ClientConfig::initial_dst_cid_provider` with
//!   [`cid::initial_dst_cids`]
//! - reset and token keys, when defaulted: [`hmac_key`], [`token_key`]
//! - the time of day in tokens: `ServerConfig::time_source` with [`clock::WorldClock`]
//! - BBR takes a seed from the system: cannot be pinned, not to be used in a world
//! - CUBIC, the default, takes a cube root from the system's mathematical library: the same on one
//!   machine, perhaps not on another; NewReno counts in whole numbers
//!
//! Its maps with seeded hashes are only looked up; those that it iterates hash without a seed.
//! Sources: RFC 8446, RFC 9001 (sections 4 to 6).

pub mod cid;
pub mod clock;
mod config;
mod keys;
mod message;
mod mix;
mod session;
#[cfg(test)]
mod tests;

pub use config::{
    ALPN, client_config, control_crypto, hmac_key, peer_identity, server_config, token_key,
};
