//! [`Fingerprint`]: the short form of a public key that people compare and configurations pin.
//!
//! It covers the key (SubjectPublicKeyInfo), not the certificate around it: names and dates in a
//! self-signed certificate prove nothing, and the certificate may be made anew from the same key.
//!
//! ```text
//!   SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU
//!   '--.--''---------------------.---------------------'
//!    hash            43 letters of base64, no padding (as ssh-keygen prints)
//! ```

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest;

use crate::base64;

const PREFIX: &str = "SHA256:";

/// SHA-256 over the SubjectPublicKeyInfo of a public key, in DER.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a SubjectPublicKeyInfo in DER.
    #[must_use]
    pub fn of_public_key(spki: &[u8]) -> Self {
        let digest = digest::digest(&digest::SHA256, spki);
        let mut bytes = [0; 32];
        // SHA-256 gives 32 bytes, so both have the same length.
        for (to, from) in bytes.iter_mut().zip(digest.as_ref()) {
            *to = *from;
        }
        Self(bytes)
    }

    /// The fingerprint that these 32 bytes are.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes of the digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", base64::encode(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let letters = text.strip_prefix(PREFIX).ok_or(FingerprintError::Prefix)?;
        let bytes = base64::decode(letters).ok_or(FingerprintError::Digest)?;
        bytes.try_into().map(Self).map_err(|_| FingerprintError::Digest)
    }
}

/// Why a text is not a [`Fingerprint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FingerprintError {
    /// It does not hold 32 bytes in base64 after the prefix.
    Digest,
    /// It does not begin with `SHA256:`.
    Prefix,
}

impl fmt::Display for FingerprintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Digest => {
                "a fingerprint has 43 letters of base64 without padding after \"SHA256:\": copy it \
                 whole, as the peer shows it"
            }
            Self::Prefix => {
                "a fingerprint begins with \"SHA256:\": copy it whole, as the peer shows it"
            }
        })
    }
}

impl std::error::Error for FingerprintError {}

#[cfg(test)]
mod tests {
    use dacapo_base::Random;

    use super::*;

    #[test]
    fn it_reads_like_ssh_and_hashes_like_sha256() {
        // SHA-256 of nothing, FIPS 180-4.
        let text = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU";
        assert_eq!(Fingerprint::of_public_key(b"").to_string(), text);
        assert_eq!(text.parse(), Ok(Fingerprint::of_public_key(b"")));
    }

    #[test]
    fn every_fingerprint_survives_the_round_trip() {
        for seed in 0..200 {
            let mut bytes = [0; 32];
            Random::from_number(seed).fill(&mut bytes);
            let fingerprint = Fingerprint::from_bytes(bytes);
            assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint), "seed {seed}");
        }
    }

    #[test]
    fn cut_padded_or_foreign_texts_are_refused() {
        let whole = Fingerprint::from_bytes([7; 32]).to_string();
        for text in [whole[..whole.len() - 1].to_owned(), format!("{whole}="), format!("{whole}A")]
        {
            assert_eq!(text.parse::<Fingerprint>(), Err(FingerprintError::Digest), "{text}");
        }
        for text in ["", "MD5:00", "sha256:47DE"] {
            assert_eq!(text.parse::<Fingerprint>(), Err(FingerprintError::Prefix), "{text}");
        }
    }
}
