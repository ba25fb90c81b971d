//! The two keys of a QUIC endpoint that are not TLS: stateless resets and address tokens.
//!
//! ```text
//!   64 random bytes   0 ........ 31 | 32 ....... 63
//!                     reset (HMAC)  | tokens (HKDF, then AES-256-GCM per token)
//! ```
//!
//! Neither is tied to the identity: both may change at every start. A reset key that changes only
//! costs peers of the previous run a timeout instead of a reset. Source: RFC 9000, sections 8.1
//! and 10.3.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::{hkdf, hmac};
use quinn_proto::crypto::{HandshakeTokenKey, HmacKey};

/// The keys that `quinn_proto::EndpointConfig` and `quinn_proto::ServerConfig` are made with.
#[derive(Clone)]
pub struct EndpointKeys {
    /// Signs connection ids into stateless reset tokens.
    pub reset: Arc<dyn HmacKey>,
    /// Seals retry and validation tokens.
    pub token: Arc<dyn HandshakeTokenKey>,
}

impl fmt::Debug for EndpointKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndpointKeys { .. }")
    }
}

/// Makes the keys from 64 bytes that must be random and secret.
#[must_use]
pub fn endpoint_keys(random: &[u8; 64]) -> EndpointKeys {
    let (reset, token) = random.split_at(32);
    EndpointKeys {
        reset: Arc::new(hmac::Key::new(hmac::HMAC_SHA256, reset)),
        token: Arc::new(hkdf::Salt::new(hkdf::HKDF_SHA256, b"dacapo/1 token").extract(token)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(keys: &EndpointKeys) -> Vec<u8> {
        let mut signature = vec![0; keys.reset.signature_len()];
        keys.reset.sign(b"connection id", &mut signature);
        signature
    }

    #[test]
    fn the_same_bytes_give_the_same_keys_and_other_bytes_give_others() {
        let (one, same, other) =
            (endpoint_keys(&[1; 64]), endpoint_keys(&[1; 64]), endpoint_keys(&[2; 64]));
        assert_eq!(signature(&one), signature(&same));
        assert_ne!(signature(&one), signature(&other));
        assert!(one.reset.verify(b"connection id", &signature(&one)).is_ok());
        assert!(one.reset.verify(b"connection id", &signature(&other)).is_err());
    }

    #[test]
    fn a_token_opens_only_with_its_key_and_unaltered() {
        let (one, other) = (endpoint_keys(&[1; 64]), endpoint_keys(&[2; 64]));
        let mut sealed = b"address".to_vec();
        one.token.aead_from_hkdf(b"nonce").seal(&mut sealed, b"").unwrap();
        let open = |keys: &EndpointKeys, nonce: &[u8], mut sealed: Vec<u8>| {
            let aead = keys.token.aead_from_hkdf(nonce);
            aead.open(&mut sealed, b"").map(|opened| opened.to_vec()).ok()
        };
        assert_eq!(open(&one, b"nonce", sealed.clone()).as_deref(), Some(&b"address"[..]));
        assert_eq!(open(&other, b"nonce", sealed.clone()), None);
        assert_eq!(open(&one, b"other", sealed.clone()), None);
        sealed[0] ^= 1;
        assert_eq!(open(&one, b"nonce", sealed), None);
    }
}
