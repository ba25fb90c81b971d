//! The TLS configurations that present an identity, and what they show of the peer's.
//!
//! ```text
//!   client                                     server
//!   hello, ALPN dacapo/1        ---------->
//!                               <----------    hello, certificate, signature, finished
//!   certificate, signature, finished  ---->
//!        each side: certificate well-formed, Ed25519, signature over the transcript verifies
//! ```
//!
//! The certificate is only the envelope of the key: its name, dates and own signature are not
//! looked at, because nothing follows from them. What follows from the handshake is that the peer
//! holds the key, and [`peer_fingerprint`] names it.
//!
//! Invariants: TLS 1.3, Ed25519 and one certificate or no session; no 0-RTT, tickets, resumption
//! or server name on the wire; the provider is passed, never taken from the process.
//!
//! Sources: RFC 8446 sections 4.4.2 and 4.4.3, RFC 9001 section 4, RFC 8410.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::crypto::{ClientConfig, ServerConfig};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ParsedCertificate};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, OtherError, PeerIncompatible,
    SignatureScheme,
};

use crate::fingerprint::Fingerprint;
use crate::identity::{Identity, IdentityError};

/// The application protocol that both sides must name.
pub const ALPN: &[u8] = b"dacapo/1";

/// The application protocol of the connections that carry flows.
pub const ALPN_FLOW: &[u8] = b"dacapo-flow/1";

/// What comes before the 32 bytes of every Ed25519 key in a SubjectPublicKeyInfo (RFC 8410).
pub(crate) const ED25519_SPKI_PREFIX: &[u8] = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";
/// Ours take about 300 bytes.
const CERTIFICATE_LEN_MAX: usize = 2048;

/// The server side of control connections, for `quinn_proto::ServerConfig`.
#[must_use]
pub fn server_crypto(identity: &Identity) -> Arc<dyn ServerConfig> {
    identity.server.clone()
}

/// The client side of control connections, for `quinn_proto::ClientConfig`.
///
/// The server name given to `Endpoint::connect` is neither sent nor checked.
#[must_use]
pub fn client_crypto(identity: &Identity) -> Arc<dyn ClientConfig> {
    identity.client.clone()
}

/// The server side of connections that carry flows. It lets every peer pass, as that of control
/// does: who may have a flow is told by its token.
///
/// # Errors
/// [`IdentityError::Key`]; not for an identity that control uses.
pub fn flow_server_crypto(identity: &Identity) -> Result<Arc<dyn ServerConfig>, IdentityError> {
    Ok(Arc::new(server_config(identity.key.clone(), ALPN_FLOW)?))
}

/// The client side of a connection that carries a flow. It lets only `peer` pass, and ends the
/// handshake with anybody else before a byte of the flow or its token is said.
///
/// # Errors
/// [`IdentityError::Key`]; not for an identity that control uses.
pub fn flow_client_crypto(
    identity: &Identity,
    peer: Fingerprint,
) -> Result<Arc<dyn ClientConfig>, IdentityError> {
    Ok(Arc::new(client_config(identity.key.clone(), ALPN_FLOW, Some(peer))?))
}

/// The fingerprint of the key that the peer proved to hold, from `Session::peer_identity()` of a
/// session of this crate's configurations; `None` for anything else.
#[must_use]
pub fn peer_fingerprint(peer_identity: Box<dyn Any>) -> Option<Fingerprint> {
    let chain = peer_identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    fingerprint_of(chain.first()?).ok()
}

/// The fingerprint of the key in `certificate`, which must be an Ed25519 key.
pub(crate) fn fingerprint_of(
    certificate: &CertificateDer<'_>,
) -> Result<Fingerprint, rustls::Error> {
    if certificate.len() > CERTIFICATE_LEN_MAX {
        return Err(refuse(Refusal::TooLong));
    }
    let spki = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
    match spki.strip_prefix(ED25519_SPKI_PREFIX) {
        Some(key) if key.len() == 32 => Ok(Fingerprint::of_public_key(&spki)),
        _ => Err(refuse(Refusal::NotEd25519)),
    }
}

pub(crate) fn server_config(
    key: Arc<CertifiedKey>,
    alpn: &[u8],
) -> Result<QuicServerConfig, IdentityError> {
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(IdentityError::key)?
        .with_client_cert_verifier(Arc::new(AnyPeer))
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
    config.alpn_protocols = vec![alpn.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    QuicServerConfig::try_from(config).map_err(IdentityError::key)
}

pub(crate) fn client_config(
    key: Arc<CertifiedKey>,
    alpn: &[u8],
    only: Option<Fingerprint>,
) -> Result<QuicClientConfig, IdentityError> {
    let mut config = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(IdentityError::key)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Server { only }))
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
    config.alpn_protocols = vec![alpn.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    config.enable_sni = false;
    QuicClientConfig::try_from(config).map_err(IdentityError::key)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Lets in every peer that proves possession of the one Ed25519 key that it presents.
#[derive(Debug)]
pub(crate) struct AnyPeer;

impl AnyPeer {
    fn check(
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
    ) -> Result<(), rustls::Error> {
        if !others.is_empty() {
            return Err(refuse(Refusal::Chain));
        }
        fingerprint_of(certificate).map(drop)
    }

    fn check_signature(
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        // An Ed25519 key makes no other signature, but only what was offered may come.
        if signed.scheme != SignatureScheme::ED25519 {
            return Err(PeerIncompatible::NoSignatureSchemesInCommon.into());
        }
        let known = &provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn refuse_tls12() -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::Tls13RequiredForQuic.into())
    }
}

/// What a client lets in: every such server, or only the one that has this key.
#[derive(Debug)]
struct Server {
    only: Option<Fingerprint>,
}

impl ServerCertVerifier for Server {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        AnyPeer::check(end_entity, intermediates)?;
        match self.only {
            Some(only) if fingerprint_of(end_entity)? != only => Err(refuse(Refusal::OtherPeer)),
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        AnyPeer::refuse_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        AnyPeer::check_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

impl ClientCertVerifier for AnyPeer {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Self::check(end_entity, intermediates).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Self::refuse_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Self::check_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

/// Why a peer's certificate is refused though it is well-formed.
#[derive(Clone, Copy)]
enum Refusal {
    Chain,
    NotEd25519,
    OtherPeer,
    TooLong,
}

fn refuse(refusal: Refusal) -> rustls::Error {
    CertificateError::Other(OtherError(Arc::new(refusal))).into()
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chain => "more than one certificate; an identity is a single one",
            Self::NotEd25519 => "the certificate's key is not an Ed25519 key",
            Self::OtherPeer => "the key is not that of the peer of the control connection",
            Self::TooLong => "the certificate is longer than an identity needs",
        })
    }
}

/// What TLS says of it is for people, too.
impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests;
