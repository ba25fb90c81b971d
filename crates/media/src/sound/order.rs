//! Samples from the order of AU files into that of everything else, and back.
//!
//! ```text
//!   S16  12 34  <->  34 12        U8  signed  <->  unsigned: the highest bit        G.711  same
//! ```
//!
//! Done twice it gives the same bytes again.
//!
//! Decoder: of the sound of AU files.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use crate::format::SampleEncoding;

/// Whether samples of this encoding are other bytes in an AU file than elsewhere.
pub(super) fn is_turned(encoding: SampleEncoding) -> bool {
    !encoding.is_companded()
}

/// Turns whole samples; what is left at the end stays as it is.
pub(super) fn turn(encoding: SampleEncoding, sound: &mut [u8]) {
    if encoding == SampleEncoding::U8 {
        sound.iter_mut().for_each(|sample| *sample ^= 0x80);
    } else if is_turned(encoding) {
        let len = usize::from(encoding.byte_len());
        sound.chunks_exact_mut(len).for_each(<[u8]>::reverse);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_turned_each_and_turned_back() {
        let bytes: Vec<u8> = (0..24).collect();
        for encoding in SampleEncoding::ALL {
            let mut sound = bytes.clone();
            turn(encoding, &mut sound);
            assert_eq!(sound == bytes, encoding.is_companded());
            assert_eq!(sound != bytes, is_turned(encoding));
            turn(encoding, &mut sound);
            assert_eq!(sound, bytes);
        }
        let mut sound = [1, 2, 3, 4, 5, 6, 7];
        turn(SampleEncoding::S24, &mut sound);
        assert_eq!(sound, [3, 2, 1, 6, 5, 4, 7]);
        let mut sound = [0x80, 0xFF, 0x00, 0x7F];
        turn(SampleEncoding::U8, &mut sound);
        assert_eq!(sound, [0x00, 0x7F, 0x80, 0xFF]);
    }
}
