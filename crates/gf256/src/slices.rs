//! Sums of products of slices, by the fastest way that the processor has.

use crate::tables::{HIGH, LOW};

/// A slice, and what each of its bytes is multiplied by in each of the sums.
pub type Product<'a, const N: usize = 1> = ([u8; N], &'a [u8]);

/// Adds products to as many sums: what lies beyond the end of a slice counts as 0, and what lies
/// beyond the end of a sum is not looked at.
///
/// Several sums at once take less time than one after the other: each slice is read once.
pub fn add_products<const N: usize>(into: [&mut [u8]; N], products: &[Product<'_, N>]) {
    combine::<false, N>(into, products);
}

/// Makes as many sums of products: the same as [`add_products`] to zeros, and less to do.
pub fn set_products<const N: usize>(into: [&mut [u8]; N], products: &[Product<'_, N>]) {
    combine::<true, N>(into, products);
}

fn combine<const SET: bool, const N: usize>(mut into: [&mut [u8]; N], products: &[Product<'_, N>]) {
    let lens = into.iter().map(|sum| sum.len()).chain(products.iter().map(|it| it.1.len()));
    let both = lens.min().unwrap_or(0);
    fastest::<SET, N>(&mut into, products, both);
    for (at, sum) in into.into_iter().enumerate() {
        let rest = sum.get_mut(both..).unwrap_or_default();
        if rest.is_empty() {
            continue;
        }
        if SET {
            rest.fill(0);
        }
        for (factors, from) in products {
            let from = from.get(both..).unwrap_or_default();
            let len = from.len().min(rest.len());
            fastest::<false, 1>(&mut [&mut *rest], &[([factors[at]], from)], len);
        }
    }
}

/// The first `len` bytes of sums, which have as many, as slices do.
fn fastest<const SET: bool, const N: usize>(
    into: &mut [&mut [u8]; N],
    products: &[Product<'_, N>],
    len: usize,
) {
    if len == 0 {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if crate::x86::products::<SET, N>(into, products, len) {
        return;
    }
    if SET {
        into.iter_mut().for_each(|sum| sum[..len].fill(0));
    }
    one_by_one(into, products, len);
}

/// The same on any processor.
fn one_by_one<const N: usize>(into: &mut [&mut [u8]; N], products: &[Product<'_, N>], len: usize) {
    for (at, sum) in into.iter_mut().enumerate() {
        for (factors, from) in products {
            let factor = usize::from(factors[at]);
            let (low, high) = (&LOW[factor], &HIGH[factor]);
            for (into, from) in sum.iter_mut().zip(*from).take(len) {
                *into ^= low[usize::from(from & 15)] ^ high[usize::from(from >> 4)];
            }
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

    const FACTORS: [u8; 5] = [0, 1, 2, 0x8E, 255];

    /// The sums of sources by factors, of which each sum has other ones, byte by byte.
    fn sums<const N: usize>(into: &[Vec<u8>; N], sources: &[Vec<u8>]) -> [Vec<u8>; N] {
        let of = |sum: usize| {
            let mut bytes = into[sum].clone();
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte ^= products::<N>(sources)
                    .iter()
                    .map(|(by, from)| crate::mul(by[sum], from.get(at).copied().unwrap_or(0)))
                    .fold(0, |a, b| a ^ b);
            }
            bytes
        };
        std::array::from_fn(of)
    }

    fn products<const N: usize>(sources: &[Vec<u8>]) -> Vec<Product<'_, N>> {
        let factors =
            |at: usize| std::array::from_fn(|sum| FACTORS[at % 5].wrapping_mul(1 + 3 * sum as u8));
        sources.iter().enumerate().map(|(at, from)| (factors(at), from.as_slice())).collect()
    }

    /// Sums of these lengths of five sources of these, in every way.
    fn check<const N: usize>(lens: [usize; N], sources: [usize; 5]) {
        let sources: Vec<Vec<u8>> =
            (7..).zip(sources).map(|(seed, len)| bytes(len, seed)).collect();
        let mut seed = 2;
        let mut into = lens.map(|len| {
            seed += 1;
            bytes(len, seed)
        });
        let expected = sums(&into, &sources);
        let len = lens.into_iter().chain(sources.iter().map(Vec::len)).min().unwrap();
        let mut slowly = into.clone();
        one_by_one(&mut slowly.each_mut().map(Vec::as_mut_slice), &products(&sources), len);
        for (slow, expected) in slowly.iter().zip(&expected) {
            assert_eq!(slow[..len], expected[..len], "{lens:?} one by one");
        }
        add_products(into.each_mut().map(Vec::as_mut_slice), &products(&sources));
        assert_eq!(into, expected, "{lens:?}");
        let expected = sums(&lens.map(|len| vec![0; len]), &sources);
        set_products(into.each_mut().map(Vec::as_mut_slice), &products(&sources));
        assert_eq!(into, expected, "{lens:?} set");
    }

    #[test]
    fn slices_are_sums_of_products_of_their_bytes() {
        for len in [0, 1, 7, 31, 32, 33, 63, 64, 65, 95, 127, 200, 1_400, 1_402] {
            check([len; 1], [len; 5]);
            check([len; 2], [len; 5]);
            check([len; 3], [len; 5]);
            check([len; 4], [len; 5]);
        }
    }

    #[test]
    fn what_is_beyond_the_end_of_a_slice_counts_as_nothing() {
        for len in [0, 40, 70, 100, 300, 400] {
            check([len], [70, 300, 0, 65, 64]);
            check([len, 300, 90], [70, 300, 299, 200, 90]);
            check([400, len, 64, 33], [300, 70, 90, 100, 200]);
        }
    }
}
