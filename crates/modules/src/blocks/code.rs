//! The code of `fec-rs`: a Cauchy matrix over the field of 256 elements.
//!
//! ```text
//!               source 0    source 1    …
//!   parity 255   1/(255+0)   1/(255+1)           parity = sum of factor · source
//!   parity 254   1/(254+0)   1/(254+1)           (+ is an exclusive or)
//! ```
//!
//! Every square part of such a matrix has an inverse, which is known in closed form, so any as many
//! parities as sources are missing give those back. A factor follows from the two indices alone:
//! a block may end after any number of sources, and the next one may have more parities.
//!
//! Source: Blömer, Kalfane, Karp, Karpinski, Luby and Zuckerman, "An XOR-Based Erasure-Resilient
//! Coding Scheme" (1995), for the matrix; RFC 5510 for the field and for what a block is. Its
//! Vandermonde matrix is not used, because there a factor depends on how long the block gets.
//!
//! Invariants: indices of sources and of parities are never the same number; nothing panics.

use super::sums::{add, set};
use dacapo_gf256::{inverse, mul};

/// What source `source` is multiplied by in parity `parity`.
#[inline]
pub(super) fn factor(parity: u8, source: u8) -> u8 {
    inverse(parity ^ source)
}

/// Adds what is known of the sources to the sums, one for each of `parities`: with a parity's own
/// bytes in its sum, what is left is of the missing sources alone.
pub(crate) fn add_known<'a>(
    sums: &mut [Vec<u8>],
    parities: &[u8],
    known: impl IntoIterator<Item = (u8, &'a [u8])>,
) {
    add(sums, parities, known, factor);
}

/// Makes the sums of sources for each of `parities`, of nothing.
pub(crate) fn set_known<'a>(
    sums: &mut [Vec<u8>],
    parities: &[u8],
    known: impl IntoIterator<Item = (u8, &'a [u8])>,
) {
    set(sums, parities, known, factor);
}

/// Computes the missing sources from the sums, of which there are as many.
pub(super) fn solve(found: &mut [Vec<u8>], missing: &[u8], sums: &[Vec<u8>], parities: &[u8]) {
    let sums = parities.iter().copied().zip(sums.iter().map(Vec::as_slice));
    set(found, missing, sums, |source, parity| inverse_at(source, parity, missing, parities));
}

/// The entry of the inverse for a missing source and a parity: of a Cauchy matrix 1/(x + y) it is
/// the product of all (x + y') and (x' + y), through (x + y), all (x + x') and all (y + y').
fn inverse_at(source: u8, parity: u8, missing: &[u8], parities: &[u8]) -> u8 {
    let (mut above, mut below) = (1, parity ^ source);
    for &other in missing {
        above = mul(above, parity ^ other);
        if other != source {
            below = mul(below, source ^ other);
        }
    }
    for &other in parities {
        above = mul(above, source ^ other);
        if other != parity {
            below = mul(below, parity ^ other);
        }
    }
    mul(above, inverse(below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    fn shuffle(list: &mut [u8], random: &mut Random) {
        (1..list.len()).rev().for_each(|at| list.swap(at, random.below(at as u64 + 1) as usize));
    }

    /// Loses some sources of a block and gives as many parities.
    fn check(sources: usize, lost: usize, random: &mut Random) {
        let bytes = |random: &mut Random| -> Vec<u8> {
            (0..1 + random.below(90)).map(|_| random.next_u32() as u8).collect()
        };
        let block: Vec<Vec<u8>> = (0..sources).map(|_| bytes(random)).collect();
        let longest = block.iter().map(Vec::len).max().unwrap_or(0);
        let mut order: Vec<u8> = (0..sources as u8).collect();
        shuffle(&mut order, random);
        let missing = &order[..lost];
        let mut parities: Vec<u8> = (0..).map(|row| 255 - row).take(255 - sources).collect();
        shuffle(&mut parities, random);
        parities.truncate(lost);
        let all: Vec<(u8, &[u8])> =
            block.iter().enumerate().map(|(at, bytes)| (at as u8, bytes.as_slice())).collect();
        let mut sums = vec![vec![0; longest]; lost];
        add_known(&mut sums, &parities, all.iter().copied());
        let known = all.into_iter().filter(|(at, _)| !missing.contains(at));
        add_known(&mut sums, &parities, known);
        let mut all_found = vec![vec![0; longest]; lost];
        solve(&mut all_found, missing, &sums, &parities);
        for (source, found) in missing.iter().zip(all_found) {
            let sent = &block[usize::from(*source)];
            assert_eq!(&found[..sent.len()], sent, "{sources} sources, {missing:?} lost");
            assert!(found[sent.len()..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn any_parities_give_back_as_many_sources() {
        let mut random = Random::from_number(1);
        for _ in 0..300 {
            let sources = 1 + random.below(60) as usize;
            let lost = 1 + random.below(sources as u64) as usize;
            check(sources, lost.min(255 - sources), &mut random);
        }
        check(127, 127, &mut random);
        check(127, 1, &mut random);
    }

    #[test]
    fn a_single_parity_and_a_single_source_are_one_factor() {
        assert_eq!(factor(255, 0), inverse(255));
        assert_eq!(inverse_at(0, 255, &[0], &[255]), 255);
    }
}
