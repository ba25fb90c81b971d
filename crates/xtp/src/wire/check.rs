//! The checksum: RFC 1071's one's-complement sum of 16-bit words, without a pseudo-header.

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

/// Words that are added beside each other: as many as a compiler keeps in registers.
const LANES: usize = 4;
const LOW: u64 = 0xFFFF_FFFF;

/// The sum as words of 32 bits in the order of this machine, whose halves are put in their places
/// at the end: the order of bytes does not matter to the sum (RFC 1071, section 2). 2^32 words fit,
/// and wider words fold to the same 16 bits because 2^16 is 1 in this arithmetic.
fn sum_of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let (blocks, words) = words.as_chunks::<LANES>();
    let mut lanes = [[0_u64; 2]; LANES];
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(lane, word)| add(lane, word));
    }
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
    let mut total = [0; 2];
    words.iter().chain([&last]).for_each(|word| add(&mut total, word));
    let total = lanes.iter().chain([&total]).flatten().fold(0_u64, |a, b| a.wrapping_add(*b));
    u16::from_be_bytes(fold(total).to_ne_bytes()).into()
}

/// Both halves apart, so that nothing is carried out of 64 bits.
fn add([high, low]: &mut [u64; 2], word: &[u8; 8]) {
    let word = u64::from_ne_bytes(*word);
    *high = high.wrapping_add(word >> 32);
    *low = low.wrapping_add(word & LOW);
}

fn fold(mut total: u64) -> u16 {
    while total > 0xFFFF {
        total = (total & 0xFFFF).wrapping_add(total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_that_are_known() {
        assert_eq!(sum(&[&[0, 1, 0xF2, 3, 0xF4, 0xF5, 0xF6, 0xF7]]), 0xDDF2, "RFC 1071, 3");
        assert_eq!((sum(&[&[0xFF; 65_534]]), sum(&[&[0; 100]]), sum(&[])), (0xFFFF, 0, 0));
        let odd: Vec<u8> = (0..100).chain([7]).collect();
        assert_eq!(sum(&[&odd]), sum(&[&odd[..64], &odd[64..]]));
        assert_eq!(sum(&[&odd]), sum(&[&odd, &[0]]), "an odd last byte is the high one");
    }
}
