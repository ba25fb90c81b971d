//! The field of 256 elements: products of numbers, and sums of products of slices.
//!
//! What block codes against losses are made of (RFC 5510 section 8.1): bytes are polynomials over
//! two elements, a sum is an exclusive or, and a product is taken modulo
//! x⁸ + x⁴ + x³ + x² + 1, of which x generates all elements but 0.
//!
//! ```text
//!   into     i0 i1 i2 …            into ^= 3·a ^ 7·b
//!   a        a0 a1 a2 …
//!   b        b0 b1 b2 …            64 bytes at once by GFNI, 32 by a shuffle, or one by one
//! ```
//!
//! Invariants: nothing panics and nothing allocates; every way to compute gives the same bytes.

mod slices;
mod tables;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use slices::{Product, add_products, set_products};

use tables::{EXP, LOG};

/// The product of two elements.
#[must_use]
#[inline]
pub fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[usize::from(LOG[usize::from(a)]) + usize::from(LOG[usize::from(b)])]
}

/// The element whose product with `a` is 1; 0 for 0, which has none.
#[must_use]
#[inline]
pub fn inverse(a: u8) -> u8 {
    if a == 0 { 0 } else { EXP[255 - usize::from(LOG[usize::from(a)])] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication as it is defined: bit by bit, then modulo the polynomial.
    fn product(a: u8, b: u8) -> u8 {
        let (mut a, mut sum) = (u16::from(a), 0_u16);
        for bit in 0..8 {
            if b >> bit & 1 == 1 {
                sum ^= a;
            }
            a <<= 1;
            if a & 0x100 != 0 {
                a ^= 0x11D;
            }
        }
        sum as u8
    }

    #[test]
    fn products_are_those_of_polynomials() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(mul(a, b), product(a, b), "{a} times {b}");
            }
        }
    }

    #[test]
    fn every_element_but_nothing_has_an_inverse() {
        assert_eq!(inverse(0), 0);
        for a in 1..=255 {
            assert_eq!(mul(a, inverse(a)), 1, "{a}");
        }
    }
}
