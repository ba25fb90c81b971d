//! [`add`]: packets into sums over the field of 256 elements, each by a factor of its own.
//!
//! ```text
//!   sources   s0 s1 s2 …          sum 0 += a·s0 + b·s1 + c·s2        a to f: by sum and source
//!                                 sum 1 += d·s0 + e·s1 + f·s2
//! ```

use dacapo_gf256::{Product, add_products};

/// How many sources are added in one pass over a sum.
const CHUNK: usize = 16;

/// Adds sources, which `K` names, to as many sums as there are keys: each by what `factor` says for
/// the key of the sum and the name of the source.
pub(crate) fn add<'a, K: Copy + Default, S: Copy>(
    sums: &mut [Vec<u8>],
    keys: &[S],
    sources: impl IntoIterator<Item = (K, &'a [u8])>,
    factor: impl Fn(S, K) -> u8,
) {
    let mut sources = sources.into_iter();
    loop {
        let mut chunk: [(K, &[u8]); CHUNK] = [(K::default(), &[]); CHUNK];
        let mut count = 0;
        for (place, source) in chunk.iter_mut().zip(&mut sources) {
            (*place, count) = (source, count + 1);
        }
        let chunk = chunk.get(..count).unwrap_or_default();
        for (sum, key) in sums.iter_mut().zip(keys) {
            let mut products: [Product<'_>; CHUNK] = [(0, &[]); CHUNK];
            for (product, (source, bytes)) in products.iter_mut().zip(chunk) {
                *product = (factor(*key, *source), bytes);
            }
            add_products(sum, products.get(..count).unwrap_or_default());
        }
        if count < CHUNK {
            return;
        }
    }
}
