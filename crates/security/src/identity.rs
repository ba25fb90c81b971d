//! [`Identity`]: an Ed25519 key, the certificate that carries it, and what is made of them once.
//!
//! The certificate is not stored: the same key always gives the same certificate (fixed name and
//! dates, a serial number from the key, and Ed25519 signatures have no randomness), and nobody
//! looks at anything but the key in it.
//!
//! ```text
//!   key (PKCS#8) --> certificate --> TLS server and client configuration, shared by all sessions
//!         |
//!         '--> Fingerprint
//! ```

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::signature::Ed25519KeyPair;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use crate::fingerprint::Fingerprint;
use crate::{store, tls};

/// Who a core is: one Ed25519 key, presented in every control connection.
///
/// Clones are cheap and stand for the same key.
#[derive(Clone)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    fingerprint: Fingerprint,
    /// Signs handshakes.
    pub(crate) key: Arc<CertifiedKey>,
    pub(crate) server: Arc<QuicServerConfig>,
    pub(crate) client: Arc<QuicClientConfig>,
}

impl Identity {
    /// Makes an identity that lives only in memory.
    ///
    /// # Errors
    /// [`IdentityError::Key`] when the system gives no randomness.
    pub fn generate() -> Result<Self, IdentityError> {
        Self::from_key(&new_key()?)
    }

    /// Loads the identity in `dir`, or makes one there when there is none.
    ///
    /// `dir` is created with mode 0700, the key file `identity.key` with mode 0600. It appears
    /// whole or not at all, and of several processes that start at once all get the same identity.
    ///
    /// # Errors
    /// When the key file is exposed to others, is not a key, or cannot be read or made. A file
    /// that is there is never changed.
    pub fn load_or_create(dir: &Path) -> Result<Self, IdentityError> {
        Self::from_key(&store::load_or_create(dir)?)
    }

    /// The fingerprint that peers see.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The self-signed certificate, in DER.
    #[must_use]
    pub fn certificate_der(&self) -> &[u8] {
        &self.certificate
    }

    pub(crate) fn from_key(key: &PrivatePkcs8KeyDer<'_>) -> Result<Self, IdentityError> {
        let certified = certify(key)?;
        let certificate = certified.end_entity_cert().map_err(IdentityError::key)?;
        let certificate = certificate.clone().into_owned();
        Ok(Self {
            fingerprint: tls::fingerprint_of(&certificate).map_err(IdentityError::key)?,
            certificate,
            server: Arc::new(tls::server_config(certified.clone(), tls::ALPN)?),
            client: Arc::new(tls::client_config(certified.clone(), tls::ALPN, None)?),
            key: certified,
        })
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

/// A fresh key from the randomness of the system.
pub(crate) fn new_key() -> Result<PrivatePkcs8KeyDer<'static>, IdentityError> {
    // Version 1 of the format, without the public key, is what other tools read.
    let key = Ed25519KeyPair::generate().and_then(|pair| pair.to_pkcs8v1());
    let key = key.map_err(|_| IdentityError::key("the system gave no randomness"))?;
    Ok(PrivatePkcs8KeyDer::from(key.as_ref().to_vec()))
}

/// The key with its certificate, ready to sign handshakes.
pub(crate) fn certify(key: &PrivatePkcs8KeyDer<'_>) -> Result<Arc<CertifiedKey>, IdentityError> {
    let pair = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(key, &rcgen::PKCS_ED25519)
        .map_err(IdentityError::key)?;
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, "dacapo");
    let certificate = params.self_signed(&pair).map_err(IdentityError::key)?;
    let signer =
        rustls::crypto::aws_lc_rs::sign::any_eddsa_type(key).map_err(IdentityError::key)?;
    Ok(Arc::new(CertifiedKey::new(vec![certificate.into()], signer)))
}

/// Why there is no identity.
#[derive(Debug)]
#[non_exhaustive]
pub enum IdentityError {
    /// The directory is not there and cannot be made.
    CreateDirectory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others than the owner may read or write the key file.
    Exposed {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A key could not be made or used; not a matter of files.
    Key {
        /// What went wrong, without key material.
        detail: String,
    },
    /// The key file is truncated or holds something else.
    Malformed {
        /// The key file.
        path: PathBuf,
    },
    /// Something that is not a file has the name of the key file.
    NotAFile {
        /// What is in the way.
        path: PathBuf,
    },
    /// The key file is there and cannot be read.
    Read {
        /// The key file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A new key file cannot be written.
    Write {
        /// The key file that should be made.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl IdentityError {
    pub(crate) fn key(detail: impl fmt::Display) -> Self {
        Self::Key { detail: detail.to_string() }
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateDirectory { path, source } => {
                write!(
                    f,
                    "cannot create the directory {} for the identity: {source}; ",
                    show(path)
                )?;
                f.write_str("create it, or set XDG_STATE_HOME to a directory of yours")
            }
            Self::Exposed { path, mode } => {
                let path = show(path);
                write!(f, "the private key {path} is open to others (mode {mode:04o}): ")?;
                write!(
                    f,
                    "run chmod 600 {path}; if they may have read it, move it away instead, "
                )?;
                f.write_str("and the next start makes a new identity")
            }
            Self::Key { detail } => write!(f, "cannot make or use an Ed25519 key: {detail}"),
            Self::Malformed { path } => {
                write!(f, "{} is not an Ed25519 private key (PKCS#8 in PEM): it is ", show(path))?;
                f.write_str("truncated or belongs to another program; restore it from a backup, ")?;
                f.write_str("or move it away, and the next start makes a new identity")
            }
            Self::NotAFile { path } => {
                write!(f, "{} is not a file: move it away", show(path))
            }
            Self::Read { path, source } => {
                write!(f, "cannot read the private key {}: {source}; ", show(path))?;
                f.write_str("give it and its directory to the user who runs this program")
            }
            Self::Write { path, source } => {
                write!(f, "cannot write the private key {}: {source}; ", show(path))?;
                f.write_str(
                    "its directory must be writable and on a file system with hard links; ",
                )?;
                f.write_str("XDG_STATE_HOME chooses another")
            }
        }
    }
}

fn show(path: &Path) -> std::path::Display<'_> {
    path.display()
}

impl std::error::Error for IdentityError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::CreateDirectory { source, .. }
            | Self::Read { source, .. }
            | Self::Write { source, .. } => Some(source),
            Self::Exposed { .. }
            | Self::Key { .. }
            | Self::Malformed { .. }
            | Self::NotAFile { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_identity_has_a_key_of_its_own() {
        let (one, other) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_eq!(format!("{one:?}"), format!("Identity({})", one.fingerprint()));
    }

    #[test]
    fn the_same_key_gives_the_same_certificate_and_fingerprint() {
        let key = new_key().unwrap();
        let (one, again) = (Identity::from_key(&key).unwrap(), Identity::from_key(&key).unwrap());
        assert_eq!(one.certificate_der(), again.certificate_der());
        assert_eq!(one.fingerprint(), again.fingerprint());
    }

    #[test]
    fn the_fingerprint_is_over_the_public_key_alone() {
        use aws_lc_rs::signature::KeyPair as _;
        let key = new_key().unwrap();
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.secret_pkcs8_der()).unwrap();
        let mut spki = tls::ED25519_SPKI_PREFIX.to_vec();
        spki.extend_from_slice(pair.public_key().as_ref());
        let expected = Fingerprint::of_public_key(&spki);
        assert_eq!(Identity::from_key(&key).unwrap().fingerprint(), expected);
    }
}
