//! The same by vector instructions of x86-64, where the processor has them.
//!
//! ```text
//!   GFNI and AVX-512    64 bytes      a matrix of bits times each byte (Intel SDM, GF2P8AFFINEQB)
//!   AVX2                twice 32      two tables of 16, one for each half of a byte (VPSHUFB)
//!   AVX2                twice 32      nothing to multiply by but 1
//! ```
//!
//! Sums that are no whole number of blocks end with one that lies over the block before it, of
//! which what was added is left out; less than a block is copied into one, with zeros behind it.
#![allow(unsafe_code, reason = "vector instructions exist only where the processor says so")]

use crate::slices::Product;
use crate::tables::{HIGH, LOW, MATRIX};
use std::arch::x86_64::{
    __m256i, __m512i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_loadu_si256, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_srli_epi16, _mm256_storeu_si256, _mm256_xor_si256, _mm512_and_si512,
    _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_storeu_si512, _mm512_xor_si512,
};

/// Adds products to the first `len` bytes of sums, or `SET`s these to their sums; sums and slices
/// have as many. False, and nothing done, where the processor has none of the instructions.
#[inline]
pub(crate) fn products<const SET: bool, const N: usize>(
    into: &mut [&mut [u8]; N],
    products: &[Product<'_, N>],
    len: usize,
) -> bool {
    if !std::arch::is_x86_feature_detected!("avx2") {
        return false;
    }
    let has_matrices = std::arch::is_x86_feature_detected!("gfni")
        && std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw");
    if products.iter().all(|(factors, _)| *factors == [1; N]) {
        // SAFETY: the processor has been asked for the feature of this function.
        unsafe { by_nothing::all::<SET, N>(into, products, len) };
    } else if has_matrices {
        // SAFETY: the processor has been asked for the three features of this function.
        unsafe { by_matrices::all::<SET, N>(into, products, len) };
    } else {
        // SAFETY: the processor has been asked for the feature of this function.
        unsafe { by_shuffles::all::<SET, N>(into, products, len) };
    }
    true
}

/// As many zeros, and as many ones: a block that begins among the zeros keeps what is behind them.
static KEEP: [u8; 128] = {
    let mut keep = [0; 128];
    let mut at = 64;
    while at < 128 {
        (keep[at], at) = (0xFF, at + 1);
    }
    keep
};

/// The bytes of a slice from `at` on, which it has.
#[inline]
fn whole<const L: usize>(from: &[u8], at: usize) -> &[u8; L] {
    from.get(at..).and_then(<[u8]>::first_chunk).unwrap_or(const { &[0; L] })
}

/// The first `len` bytes of a slice, and zeros.
#[inline]
fn padded<const L: usize>(from: &[u8], len: usize) -> [u8; L] {
    let mut block = [0; L];
    block[..len].copy_from_slice(&from[..len]);
    block
}

/// The sums, block by block: what the three ways have in common. It is a macro, because a function
/// of one way can be made part of the loop only within that way's features.
macro_rules! block_by_block {
    ($features:literal mod $name:ident: $len:literal of $vector:ty, $load:ident, $store:ident,
        $zero:ident, $add:ident, $and:ident, $halves:ident, $times:ident) => {
        mod $name {
            use super::*;

            /// The first `len` bytes of sums, as [`super::products`] says.
            #[target_feature(enable = $features)]
            pub(super) fn all<const SET: bool, const N: usize>(
                into: &mut [&mut [u8]; N],
                products: &[Product<'_, N>],
                len: usize,
            ) {
                let mut at = 0;
                while at + $len <= len {
                    let sums = sums(products, |from| $load(whole(from, at)));
                    for (into, sum) in into.iter_mut().zip(sums) {
                        let Some(block) = into[at..].first_chunk_mut() else { return };
                        $store(block, if SET { sum } else { $add($load(block), sum) });
                    }
                    at += $len;
                }
                if at == len {
                    return;
                }
                match len.checked_sub($len) {
                    Some(last) => last_block::<SET, N>(into, products, last, at - last),
                    None => few::<SET, N>(into, products, len),
                }
            }

            /// The block that begins there, of which so many bytes are done.
            #[target_feature(enable = $features)]
            fn last_block<const SET: bool, const N: usize>(
                into: &mut [&mut [u8]; N],
                products: &[Product<'_, N>],
                at: usize,
                done: usize,
            ) {
                let keep = $load(whole(&KEEP, 64 - done));
                let sums = sums(products, |from| $load(whole(from, at)));
                for (into, sum) in into.iter_mut().zip(sums) {
                    let Some(block) = into[at..].first_chunk_mut() else { return };
                    // To be set once more does not change what is done.
                    let added = $add($load(block), $and(sum, keep));
                    $store(block, if SET { sum } else { added });
                }
            }

            /// Less than a block.
            #[target_feature(enable = $features)]
            fn few<const SET: bool, const N: usize>(
                into: &mut [&mut [u8]; N],
                products: &[Product<'_, N>],
                len: usize,
            ) {
                let sums = sums(products, |from| $load(&padded(from, len)));
                for (into, sum) in into.iter_mut().zip(sums) {
                    let mut block = padded(into, len);
                    let added = $add($load(&block), sum);
                    $store(&mut block, if SET { sum } else { added });
                    into[..len].copy_from_slice(&block[..len]);
                }
            }

            /// The sums of the products of the blocks that `load` says.
            #[inline]
            #[target_feature(enable = $features)]
            fn sums<const N: usize>(
                products: &[Product<'_, N>],
                load: impl Fn(&[u8]) -> $vector,
            ) -> [$vector; N] {
                let mut sums = [$zero(); N];
                for (factors, from) in products {
                    let halves = $halves(load(from));
                    for (sum, factor) in sums.iter_mut().zip(factors) {
                        *sum = $add(*sum, $times(*factor, halves));
                    }
                }
                sums
            }
        }
    };
}

block_by_block! {
    "gfni,avx512f,avx512bw" mod by_matrices: 64 of __m512i, load_64, store_64,
        _mm512_setzero_si512, _mm512_xor_si512, _mm512_and_si512, as_it_is, matrix_times
}

block_by_block! {
    "avx2" mod by_shuffles: 64 of Pair, load_pair, store_pair,
        zeros, xor_pair, and_pair, halves, halves_times
}

block_by_block! {
    "avx2" mod by_nothing: 64 of Pair, load_pair, store_pair,
        zeros, xor_pair, and_pair, pair_as_it_is, once
}

#[inline]
#[target_feature(enable = "avx512f")]
fn as_it_is(bytes: __m512i) -> __m512i {
    bytes
}

#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn matrix_times(factor: u8, bytes: __m512i) -> __m512i {
    let matrix = _mm512_set1_epi64(MATRIX[usize::from(factor)].cast_signed());
    _mm512_gf2p8affine_epi64_epi8::<0>(bytes, matrix)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_64(from: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is to 64 bytes, and the instruction takes any alignment.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_64(into: &mut [u8; 64], bytes: __m512i) {
    // SAFETY: the reference is to 64 bytes, and the instruction takes any alignment.
    unsafe { _mm512_storeu_si512(into.as_mut_ptr().cast(), bytes) }
}

/// Two vectors, for which a table is looked up once.
type Pair = [__m256i; 2];

#[inline]
#[target_feature(enable = "avx2")]
fn zeros() -> Pair {
    [_mm256_setzero_si256(); 2]
}

#[inline]
#[target_feature(enable = "avx2")]
fn xor_pair([a, b]: Pair, [c, d]: Pair) -> Pair {
    [_mm256_xor_si256(a, c), _mm256_xor_si256(b, d)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn and_pair([a, b]: Pair, [c, d]: Pair) -> Pair {
    [_mm256_and_si256(a, c), _mm256_and_si256(b, d)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn pair_as_it_is(bytes: Pair) -> Pair {
    bytes
}

#[inline]
#[target_feature(enable = "avx2")]
fn once(_: u8, bytes: Pair) -> Pair {
    bytes
}

/// The lower half of each byte, and the higher.
#[inline]
#[target_feature(enable = "avx2")]
fn halves([a, b]: Pair) -> [Pair; 2] {
    let half = _mm256_set1_epi8(15);
    let higher = [_mm256_srli_epi16::<4>(a), _mm256_srli_epi16::<4>(b)];
    [and_pair([a, b], [half; 2]), and_pair(higher, [half; 2])]
}

#[inline]
#[target_feature(enable = "avx2")]
fn halves_times(factor: u8, [[a, b], [c, d]]: [Pair; 2]) -> Pair {
    let (low, high) = (table(&LOW[usize::from(factor)]), table(&HIGH[usize::from(factor)]));
    let low = [_mm256_shuffle_epi8(low, a), _mm256_shuffle_epi8(low, b)];
    let high = [_mm256_shuffle_epi8(high, c), _mm256_shuffle_epi8(high, d)];
    xor_pair(low, high)
}

#[inline]
#[target_feature(enable = "avx2")]
fn table(of: &[u8; 16]) -> __m256i {
    // SAFETY: the reference is to 16 bytes, and the instruction takes any alignment.
    let once = unsafe { _mm_loadu_si128(of.as_ptr().cast()) };
    _mm256_broadcastsi128_si256(once)
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_pair(from: &[u8; 64]) -> Pair {
    let at = from.as_ptr();
    // SAFETY: the reference is to 64 bytes, and the instruction takes any alignment.
    unsafe { [_mm256_loadu_si256(at.cast()), _mm256_loadu_si256(at.add(32).cast())] }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_pair(into: &mut [u8; 64], [a, b]: Pair) {
    let at = into.as_mut_ptr();
    // SAFETY: the reference is to 64 bytes, and the instruction takes any alignment.
    unsafe {
        _mm256_storeu_si256(at.cast(), a);
        _mm256_storeu_si256(at.add(32).cast(), b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_and_matrices_give_the_same() {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return;
        }
        let from: Vec<u8> = (0..400_u32).map(|at| (at * 167 + 13) as u8).collect();
        for factor in 0..=255 {
            let products: [Product<'_, 2>; 2] =
                [([factor, 7], &from), ([factor ^ 0x5A, 1], &from[17..])];
            let len = usize::from(factor) + 20;
            let (mut shuffled, mut others) = ([[9; 300]; 2], [[9; 300]; 2]);
            // SAFETY: the processor has been asked for the feature of this function.
            unsafe {
                by_shuffles::all::<false, 2>(
                    &mut shuffled.each_mut().map(|it| &mut it[..]),
                    &products,
                    len,
                );
            }
            let mut into = others.each_mut().map(|it| &mut it[..]);
            assert!(super::products::<false, 2>(&mut into, &products, len));
            let expected = |sum: usize, at: usize| {
                let product = |(by, from): &Product<'_, 2>| crate::mul(by[sum], from[at]);
                let is_added = at < len;
                products.iter().map(product).filter(|_| is_added).fold(9, |a, b| a ^ b)
            };
            for (sum, bytes) in shuffled.iter().enumerate() {
                assert!((0..300).all(|at| bytes[at] == expected(sum, at)), "factor {factor}");
            }
            assert_eq!(shuffled, others, "factor {factor}");
        }
    }
}
