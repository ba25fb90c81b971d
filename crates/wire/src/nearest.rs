//! Numbers of which only the low bits are sent.

/// The number nearest to `expected` whose low `bits` bits, 1 to 32, are those of `low`; of two that
/// are as near the smaller. `None` when it would lie before 0 or beyond 64 bits.
pub(crate) fn nearest(low: u32, bits: u32, expected: u64) -> Option<u64> {
    let beside = 32_u32.saturating_sub(bits);
    // The upper half of these bits is behind.
    let ahead = low.wrapping_sub(expected as u32).wrapping_shl(beside).cast_signed();
    expected.checked_add_signed(i64::from(ahead.wrapping_shr(beside)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_extended_to_the_nearest() {
        for bits in [24, 28, 32] {
            let (wrap, mask) = (1_u64 << bits, u32::MAX >> (32 - bits));
            assert_eq!([nearest(5, bits, 3), nearest(3, bits, 5)], [Some(5), Some(3)]);
            assert_eq!(nearest(2, bits, wrap - 2), Some(wrap + 2));
            assert_eq!(nearest(mask, bits, wrap + 1), Some(wrap - 1));
            assert_eq!(nearest(mask, bits, 3), None);
            assert_eq!(nearest(0, bits, 7 * wrap + 5), Some(7 * wrap));
            assert_eq!(nearest(1, bits, u64::MAX), None);
        }
    }
}
