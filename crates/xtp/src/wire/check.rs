//! The checksum: RFC 1071's one's-complement sum of 16-bit words, without a pseudo-header.
//!
//! What it is not: strong; it finds every error of one bit and of 15 bits in a row, and does not
//! see that words changed their places.

/// The folded sum over pieces that follow each other; only the last may have an odd length. An odd
/// last byte is the high one of its word.
#[must_use]
pub fn sum(pieces: &[&[u8]]) -> u16 {
    let total = pieces.iter().fold(0_u64, |total, piece| total.wrapping_add(sum_of(piece)));
    fold(total)
}

/// What stands in `check` for this folded sum, which was made with zero in its place.
#[must_use]
pub const fn checksum(sum: u16) -> u16 {
    !sum
}

/// Four bytes at a time: 2^32 words of 32 bits fit, and 32-bit words fold to the same 16 bits
/// because 2^16 is 1 in this arithmetic (RFC 1071, section 2).
fn sum_of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let add = |total: u64, word: &[u8; 4]| total.wrapping_add(u32::from_be_bytes(*word).into());
    let mut last = [0; 4];
    last.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
    add(words.iter().fold(0, add), &last)
}

fn fold(mut total: u64) -> u16 {
    while total > 0xFFFF {
        total = (total & 0xFFFF).wrapping_add(total >> 16);
    }
    total as u16
}
