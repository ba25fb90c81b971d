//! Identities and the TLS configurations that present them.
//!
//! The Ed25519 key that makes a core the same core tomorrow, the [`Fingerprint`] by which people
//! and peers know it, and the TLS 1.3 configurations that show it in the control connection. Every
//! peer that proves possession of its key is let in as *unverified*; pinning and authorisation are
//! made above, from the fingerprint.
//!
//! ```text
//!  identity.key (0600) -- store --> Identity -- server_crypto, client_crypto --> quinn-proto
//!                                      |                                            |
//!                                 Fingerprint  <---- peer_fingerprint ---- peer_identity()
//! ```
//!
//! Invariants:
//! - A key that others can read, or a file that is not a key, is refused and never overwritten.
//! - However many processes start at once, a directory ends with one identity.
//! - TLS 1.3 only, both sides present a certificate, and the handshake signature is always checked
//!   against the key in it. No 0-RTT, no tickets, no resumption: every session proves the key anew.
//! - No `Debug` output and no error text holds key bytes.
//!
//! Sources: RFC 8446 (TLS 1.3), RFC 9001 (TLS in QUIC), RFC 8410 (Ed25519 in X.509 and PKCS#8),
//! RFC 7468 (PEM), the XDG base directory specification.

mod base64;
mod endpoint_keys;
mod fingerprint;
mod identity;
mod store;
mod tls;

pub use endpoint_keys::{EndpointKeys, endpoint_keys};
pub use fingerprint::{Fingerprint, FingerprintError};
pub use identity::{Identity, IdentityError};
pub use store::default_dir;
pub use tls::{
    ALPN, ALPN_FLOW, client_crypto, flow_client_crypto, flow_server_crypto, peer_fingerprint,
    server_crypto,
};
