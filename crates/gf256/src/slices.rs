//! Sums of products of slices, by the fastest way that the processor has.

use crate::tables::{HIGH, LOW};

/// A slice and the number that each of its bytes is multiplied by.
pub type Product<'a> = (u8, &'a [u8]);

/// Adds products to `into`: what lies beyond the end of a slice counts as 0, and what lies beyond
/// the end of `into` is not looked at.
pub fn add_products(into: &mut [u8], products: &[Product<'_>]) {
    let shortest = products.iter().map(|(_, from)| from.len()).min().unwrap_or(0);
    let (both, rest) = into.split_at_mut(shortest.min(into.len()));
    fastest(both, products);
    if rest.is_empty() {
        return;
    }
    for (factor, from) in products {
        let from = from.get(shortest..).unwrap_or_default();
        let len = from.len().min(rest.len());
        fastest(&mut rest[..len], &[(*factor, from)]);
    }
}

/// Adds products of slices that are at least as long as `into`.
fn fastest(into: &mut [u8], products: &[Product<'_>]) {
    if into.is_empty() {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if crate::x86::add_products(into, products) {
        return;
    }
    one_by_one(into, products);
}

/// The same on any processor.
fn one_by_one(into: &mut [u8], products: &[Product<'_>]) {
    for &(factor, from) in products {
        let (low, high) = (&LOW[usize::from(factor)], &HIGH[usize::from(factor)]);
        for (into, from) in into.iter_mut().zip(from) {
            *into ^= low[usize::from(from & 15)] ^ high[usize::from(from >> 4)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes without a pattern.
    fn bytes(len: usize, seed: u32) -> Vec<u8> {
        let mut state = seed.wrapping_mul(2_654_435_761) | 1;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        };
        (0..len).map(next).collect()
    }

    #[test]
    fn slices_are_sums_of_products_of_their_bytes() {
        for len in [0, 1, 7, 31, 32, 33, 63, 64, 65, 200, 1_400, 1_402] {
            let sources: Vec<Vec<u8>> = (0..5).map(|at| bytes(len, 7 + at)).collect();
            let products: Vec<Product<'_>> =
                [0, 1, 2, 0x8E, 255].into_iter().zip(sources.iter().map(Vec::as_slice)).collect();
            let mut into = bytes(len, 3);
            let mut expected = into.clone();
            for (at, byte) in expected.iter_mut().enumerate() {
                *byte ^= products.iter().fold(0, |sum, (by, from)| sum ^ crate::mul(*by, from[at]));
            }
            let mut slowly = into.clone();
            one_by_one(&mut slowly, &products);
            assert_eq!(slowly, expected, "{len} bytes one by one");
            add_products(&mut into, &products);
            assert_eq!(into, expected, "{len} bytes");
        }
    }

    #[test]
    fn what_is_beyond_the_end_of_a_slice_counts_as_nothing() {
        let (long, short) = (bytes(300, 1), bytes(70, 2));
        let products: [Product<'_>; 3] = [(3, &short), (5, &long), (7, &[])];
        for len in [0, 40, 70, 100, 300, 400] {
            let mut into = vec![0; len];
            add_products(&mut into, &products);
            let at = |from: &[u8], at: usize| from.get(at).copied().unwrap_or(0);
            let expected =
                |place| crate::mul(3, at(&short, place)) ^ crate::mul(5, at(&long, place));
            assert!(into.iter().enumerate().all(|(at, byte)| *byte == expected(at)), "{len}");
        }
    }
}
