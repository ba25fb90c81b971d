//! Decoder: [`Receipt`], what a receiver says of each file it was sent.
//!
//! ```text
//!   0            8                  40
//!   | bytes      | SHA-256          |     a message of the stream back, in the order of the files
//! ```
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use dacapo::transfer::Digest;

/// Bytes of a receipt.
pub const RECEIPT_LEN: usize = 40;

/// What was saved of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Bytes.
    pub bytes: u64,
    /// Their SHA-256.
    pub digest: Digest,
}

impl Receipt {
    /// The bytes.
    pub fn emit(&self) -> [u8; RECEIPT_LEN] {
        let mut bytes = [0; RECEIPT_LEN];
        let fields = self.bytes.to_be_bytes().into_iter().chain(self.digest);
        bytes.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
        bytes
    }

    /// Reads one; `None` when it is none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (count, digest) = bytes.split_first_chunk::<8>()?;
        let digest: Digest = digest.try_into().ok()?;
        Some(Self { bytes: u64::from_be_bytes(*count), digest })
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_nothing_of_another_length() {
        let receipt = Receipt { bytes: 5_000_000_000, digest: [7; 32] };
        let bytes = receipt.emit();
        assert_eq!(Receipt::parse(&bytes), Some(receipt));
        for len in 0..RECEIPT_LEN {
            assert_eq!(Receipt::parse(&bytes[..len]), None, "{len}");
        }
        assert_eq!(Receipt::parse(&[0; RECEIPT_LEN + 1]), None);
    }
}
