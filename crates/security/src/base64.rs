//! Base64 with the standard alphabet, without padding, for fingerprints and PEM.
//!
//! Decoding is strict: no padding, no white space, no bits set that the encoder would have left
//! zero, so that a text stands for exactly one byte string.
//!
//! Source: RFC 4648, sections 3.5 and 4.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of `bytes`, without padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3).saturating_mul(4));
    for group in bytes.chunks(3) {
        let byte = |at: usize| group.get(at).copied().unwrap_or(0);
        let word = u32::from_be_bytes([0, byte(0), byte(1), byte(2)]);
        let letters = [word >> 18, word >> 12, word >> 6, word].map(letter);
        text.extend(letters.iter().take(group.len().saturating_add(1)));
    }
    text
}

/// The bytes of `text`, or `None` when the encoder does not produce that text.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len().div_ceil(4).saturating_mul(3));
    for group in text.as_bytes().chunks(4) {
        let len = group.len().checked_sub(1).filter(|&len| len > 0)?;
        let mut word = 0_u32;
        for at in 0..4 {
            word = (word << 6) | group.get(at).map_or(Some(0), |&letter| sextet(letter))?;
        }
        let [_, decoded @ ..] = word.to_be_bytes();
        let (kept, rest) = decoded.split_at_checked(len)?;
        if rest.iter().any(|&byte| byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

fn letter(word: u32) -> char {
    ALPHABET.get((word & 63) as usize).map_or('A', |&letter| char::from(letter))
}

fn sextet(letter: u8) -> Option<u32> {
    ALPHABET.iter().position(|&known| known == letter).and_then(|at| u32::try_from(at).ok())
}

#[cfg(test)]
mod tests {
    use dacapo_base::Random;

    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648_hold_without_their_padding() {
        let vectors =
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (bytes, text) in vectors {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn what_the_encoder_does_not_write_is_not_read() {
        for text in ["Z", "Zg==", "Zh", "Zm9", "Zm 8", "Zm8\n", "Zg-_", "é"] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }

    #[test]
    fn every_byte_string_survives_the_round_trip() {
        for seed in 0..500 {
            let mut random = Random::from_number(seed);
            let mut bytes = vec![0; random.below(100) as usize];
            random.fill(&mut bytes);
            assert_eq!(decode(&encode(&bytes)), Some(bytes), "seed {seed}");
        }
    }
}
