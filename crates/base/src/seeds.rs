//! Many seeds, on all processors: for tests that run the same for each.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of the environment, or what it is without.
#[must_use]
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Calls `test` with every seed, in any order, from as many threads as there are processors.
pub fn each_seed(seeds: Range<u64>, test: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    test(seed);
                }
            });
        }
    });
}
