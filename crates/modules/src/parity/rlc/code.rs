//! The code of `fec-rlc`: sums of sources over the field of 256 elements, by factors that look
//! random.
//!
//! ```text
//!   sources   … 41 42 43 44
//!   repair    = a·41 + b·42 + c·43 + d·44      a to d: 1 to 255, by the repair's number and key
//! ```
//!
//! As many repairs as sources are missing give those back but for 1 case in some 250, in which one
//! more does.
//!
//! Source: RFC 8681 (sliding window random linear codes). It draws factors one after the other from
//! a generator that the key starts (RFC 8682); here each is a hash of its own, the last step of
//! MurmurHash3 (Appleby), so that a receiver computes those of what is missing alone.

use crate::blocks::sums::{add, set};
use dacapo_wire::sliding::low;

/// The golden ratio in 32 bits, which is odd: numbers that follow each other get far apart.
const APART: u32 = 0x9E37_79B9;

/// The factors of a repair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factors(u32);

impl Factors {
    /// Those of the repair of a window that ends with `last`.
    pub fn of(last: u64, key: u8) -> Self {
        Self(mixed(low(last) << 8 | u32::from(key)))
    }

    /// What the source with this number is multiplied by; never 0.
    #[inline]
    pub fn of_source(self, number: u64) -> u8 {
        let hash = mixed(self.0 ^ low(number).wrapping_mul(APART));
        // A share of 255 elements.
        1 + ((u64::from(hash) * 255) >> 32) as u8
    }
}

/// A number of which each bit depends on each of `bits`.
#[inline]
fn mixed(mut bits: u32) -> u32 {
    bits = (bits ^ bits >> 16).wrapping_mul(0x85EB_CA6B);
    bits = (bits ^ bits >> 13).wrapping_mul(0xC2B2_AE35);
    bits ^ bits >> 16
}

/// Adds sources to the sums, one for each of `repairs`: with a repair's own bytes in its sum, what
/// is left is of the sources that were not added.
pub(super) fn add_sources<'a>(
    sums: &mut [Vec<u8>],
    repairs: &[Factors],
    sources: impl IntoIterator<Item = (u64, &'a [u8])>,
) {
    add(sums, repairs, sources, Factors::of_source);
}

/// Makes the sums of sources for each of `repairs`, of nothing.
pub(super) fn set_sources<'a>(
    sums: &mut [Vec<u8>],
    repairs: &[Factors],
    sources: impl IntoIterator<Item = (u64, &'a [u8])>,
) {
    set(sums, repairs, sources, Factors::of_source);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_even_and_never_nothing() {
        let mut counts = [0_u32; 256];
        for last in 0..1_000 {
            let factors = Factors::of(last, 3);
            (last..last + 255).for_each(|it| counts[usize::from(factors.of_source(it))] += 1);
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }

    /// Two repairs give back two sources where their factors are no multiples of each other.
    #[test]
    fn repairs_of_one_window_and_of_the_next_are_as_good_as_random_ones() {
        for (later, other_key) in [(0, 1), (4, 0), (4, 1)] {
            let alike = |last: u64| {
                let of = |factors: Factors| [last, last - 1].map(|it| factors.of_source(it));
                let [a, b] = of(Factors::of(last, 7));
                let [c, d] = of(Factors::of(last + later, 7 + other_key));
                dacapo_gf256::mul(a, d) == dacapo_gf256::mul(b, c)
            };
            let count = (1..100_000).filter(|last| alike(*last)).count();
            assert!((300..500).contains(&count), "{count} of 100,000, {later} later");
        }
    }
}
