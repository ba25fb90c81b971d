//! [`add`]: packets into sums over the field of 256 elements, each by a factor of its own.
//!
//! ```text
//!   sources   s0 s1 s2 …          sum 0 += a·s0 + b·s1 + c·s2        a to f: by sum and source
//!                                 sum 1 += d·s0 + e·s1 + f·s2
//! ```

use dacapo_gf256::{Product, add_products, set_products};

/// How many sources are added in one pass over the sums.
const CHUNK: usize = 16;

/// Adds sources, which `K` names, to as many sums as there are keys: each by what `factor` says for
/// the key of the sum and the name of the source.
pub(crate) fn add<'a, K: Copy + Default, S: Copy>(
    sums: &mut [Vec<u8>],
    keys: &[S],
    sources: impl IntoIterator<Item = (K, &'a [u8])>,
    factor: impl Fn(S, K) -> u8,
) {
    combine(sums, keys, sources, factor, false);
}

/// Makes sums of sources: what was in them is gone, but for how long they are.
pub(crate) fn set<'a, K: Copy + Default, S: Copy>(
    sums: &mut [Vec<u8>],
    keys: &[S],
    sources: impl IntoIterator<Item = (K, &'a [u8])>,
    factor: impl Fn(S, K) -> u8,
) {
    combine(sums, keys, sources, factor, true);
}

fn combine<'a, K: Copy + Default, S: Copy>(
    sums: &mut [Vec<u8>],
    keys: &[S],
    sources: impl IntoIterator<Item = (K, &'a [u8])>,
    factor: impl Fn(S, K) -> u8,
    mut is_new: bool,
) {
    let mut sources = sources.into_iter();
    loop {
        let mut chunk: [(K, &[u8]); CHUNK] = [(K::default(), &[]); CHUNK];
        let mut count = 0;
        for (place, source) in chunk.iter_mut().zip(&mut sources) {
            (*place, count) = (source, count + 1);
        }
        let chunk = chunk.get(..count).unwrap_or_default();
        if !chunk.is_empty() {
            chunk_to_all(sums, keys, chunk, &factor, is_new);
            is_new = false;
        }
        if count < CHUNK {
            break;
        }
    }
    if is_new {
        sums.iter_mut().for_each(|sum| sum.fill(0));
    }
}

/// A chunk to all sums, to four of them at once.
fn chunk_to_all<K: Copy, S: Copy>(
    sums: &mut [Vec<u8>],
    keys: &[S],
    chunk: &[(K, &[u8])],
    factor: &impl Fn(S, K) -> u8,
    is_new: bool,
) {
    for (sums, keys) in sums.chunks_mut(4).zip(keys.chunks(4)) {
        match (sums, keys) {
            ([a, b, c, d], &[e, f, g, h]) => to([a, b, c, d], [e, f, g, h], chunk, factor, is_new),
            ([a, b, c, ..], &[e, f, g, ..]) => to([a, b, c], [e, f, g], chunk, factor, is_new),
            ([a, b, ..], &[e, f, ..]) => to([a, b], [e, f], chunk, factor, is_new),
            ([a, ..], &[e, ..]) => to([a], [e], chunk, factor, is_new),
            _ => {}
        }
    }
}

fn to<K: Copy, S: Copy, const N: usize>(
    sums: [&mut Vec<u8>; N],
    keys: [S; N],
    chunk: &[(K, &[u8])],
    factor: &impl Fn(S, K) -> u8,
    is_new: bool,
) {
    let mut products: [Product<'_, N>; CHUNK] = [([0; N], &[]); CHUNK];
    for (product, (source, bytes)) in products.iter_mut().zip(chunk) {
        *product = (keys.map(|key| factor(key, *source)), bytes);
    }
    let products = products.get(..chunk.len()).unwrap_or_default();
    let sums = sums.map(Vec::as_mut_slice);
    if is_new { set_products(sums, products) } else { add_products(sums, products) }
}
