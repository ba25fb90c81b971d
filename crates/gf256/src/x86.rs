//! The same by vector instructions of x86-64, where the processor has them.
//!
//! ```text
//!   GFNI and AVX-512    64 bytes   a matrix of bits times each byte (Intel SDM, GF2P8AFFINEQB)
//!   AVX2                32 bytes   two tables of 16, one for each half of a byte (VPSHUFB)
//! ```
//!
//! A rest of less than that is copied into a block of its own, with zeros behind it.
#![allow(unsafe_code, reason = "vector instructions exist only where the processor says so")]

use crate::slices::Product;
use crate::tables::{HIGH, LOW, MATRIX};
use std::arch::x86_64::{
    __m256i, __m512i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_loadu_si256, _mm256_set1_epi8, _mm256_shuffle_epi8, _mm256_srli_epi16,
    _mm256_storeu_si256, _mm256_xor_si256, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512,
    _mm512_set1_epi64, _mm512_storeu_si512, _mm512_xor_si512,
};

/// Adds products of slices that are at least as long as `into`; false, and nothing done, where the
/// processor has none of the instructions.
#[inline]
pub(crate) fn add_products(into: &mut [u8], products: &[Product<'_>]) -> bool {
    let has_matrices = std::arch::is_x86_feature_detected!("gfni")
        && std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw");
    if has_matrices {
        // SAFETY: the processor has been asked for the three features of this function.
        unsafe { by_matrices(into, products) };
    } else if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has been asked for the feature of this function.
        unsafe { by_shuffles(into, products) };
    } else {
        return false;
    }
    true
}

/// The bytes of a slice from `at` on, and zeros where it ends.
#[inline]
fn block<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    let mut block = [0; N];
    let rest = from.get(at..).unwrap_or_default();
    let len = rest.len().min(N);
    block[..len].copy_from_slice(&rest[..len]);
    block
}

/// The sum, block by block: what the two ways have in common. It is a macro, because a function of
/// one way can be made part of the loop only within that way's features.
macro_rules! block_by_block {
    ($(#[$features:meta])* fn $name:ident: $len:literal, $load:ident, $add:ident, $times:ident,
        $store:ident) => {
        $(#[$features])*
        fn $name(into: &mut [u8], products: &[Product<'_>]) {
            let mut blocks = into.chunks_exact_mut($len);
            let mut at = 0;
            for block in &mut blocks {
                let Ok(into): Result<&mut [u8; $len], _> = block.try_into() else { return };
                let mut sum = $load(into);
                for &(factor, from) in products {
                    let Some(from) = from.get(at..).and_then(<[u8]>::first_chunk) else { return };
                    sum = $add(sum, $times(factor, $load(from)));
                }
                $store(into, sum);
                at += $len;
            }
            let rest = blocks.into_remainder();
            if rest.is_empty() {
                return;
            }
            let mut sum = $load(&block(rest, 0));
            for &(factor, from) in products {
                sum = $add(sum, $times(factor, $load(&block(from, at))));
            }
            let mut last = [0; $len];
            $store(&mut last, sum);
            rest.copy_from_slice(&last[..rest.len()]);
        }
    };
}

block_by_block! {
    #[target_feature(enable = "gfni,avx512f,avx512bw")]
    fn by_matrices: 64, load_64, _mm512_xor_si512, matrix_times, store_64
}

block_by_block! {
    #[target_feature(enable = "avx2")]
    fn by_shuffles: 32, load_32, _mm256_xor_si256, halves_times, store_32
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

#[inline]
#[target_feature(enable = "avx2")]
fn halves_times(factor: u8, bytes: __m256i) -> __m256i {
    let half = _mm256_set1_epi8(15);
    let low = _mm256_and_si256(bytes, half);
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), half);
    let low = _mm256_shuffle_epi8(table(&LOW[usize::from(factor)]), low);
    let high = _mm256_shuffle_epi8(table(&HIGH[usize::from(factor)]), high);
    _mm256_xor_si256(low, high)
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
fn load_32(from: &[u8; 32]) -> __m256i {
    // SAFETY: the reference is to 32 bytes, and the instruction takes any alignment.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_32(into: &mut [u8; 32], bytes: __m256i) {
    // SAFETY: the reference is to 32 bytes, and the instruction takes any alignment.
    unsafe { _mm256_storeu_si256(into.as_mut_ptr().cast(), bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_and_matrices_give_the_same() {
        let from: Vec<u8> = (0..300_u32).map(|at| (at * 167 + 13) as u8).collect();
        for factor in 0..=255 {
            let products: [Product<'_>; 2] = [(factor, &from), (factor ^ 0x5A, &from[17..])];
            let len = usize::from(factor) + 20;
            let (mut shuffled, mut others) = (vec![9; len], vec![9; len]);
            if !std::arch::is_x86_feature_detected!("avx2") {
                return;
            }
            // SAFETY: the processor has been asked for the feature of this function.
            unsafe { by_shuffles(&mut shuffled, &products) };
            assert!(add_products(&mut others, &products));
            let expected = |at: usize| {
                products.iter().fold(9, |sum, (by, from)| sum ^ crate::mul(*by, from[at]))
            };
            assert!(shuffled.iter().enumerate().all(|(at, byte)| *byte == expected(at)));
            assert_eq!(shuffled, others, "factor {factor}");
        }
    }
}
