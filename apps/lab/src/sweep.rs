//! [`sweep`]: the same run for many seeds, on every core of the machine, summed up.
//!
//! Invariant: a seed that fails does not stop the others, and is named in the error.

use crate::fault::Scale;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many failures an error tells in full.
const TOLD_MAX: usize = 5;

/// A sum over seeds.
pub trait Sum: Default + Send {
    /// Adds what another core came to.
    fn merge(&mut self, other: Self);
}

/// A seed that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Which.
    pub seed: u64,
    /// What broke.
    pub what: String,
}

/// Runs `one` for each seed and returns the sum and the seeds that failed, in order.
pub fn collect<S: Sum>(
    scale: &Scale,
    seeds: Range<u64>,
    one: impl Fn(u64, &mut S) -> Result<(), String> + Sync,
) -> (S, Vec<Failed>) {
    let (next, done) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let all = Mutex::new((S::default(), Vec::new()));
    let line = Mutex::new(scale.progress().begin(seeds.end - seeds.start));
    let work = || {
        let (mut sum, mut failed) = (S::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            if let Err(what) = guarded(seed, &mut sum, &one) {
                failed.push(Failed { seed, what });
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            line.lock().unwrap_or_else(PoisonError::into_inner).show(done);
        }
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.0.merge(sum);
        all.1.extend(failed);
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let (sum, mut failed) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort_by_key(|failed| failed.seed);
    (sum, failed)
}

/// Runs `one` for each seed of a row and returns the sum.
///
/// # Errors
/// The seeds that failed, what broke, and the command that repeats one.
pub fn sweep<S: Sum>(
    scale: &Scale,
    seeds: Range<u64>,
    id: &str,
    one: impl Fn(u64, &mut S) -> Result<(), String> + Sync,
) -> Result<S, String> {
    let count = seeds.end - seeds.start;
    let (sum, failed) = collect(scale, seeds, one);
    match told(&failed, count, id) {
        Some(error) => Err(error),
        None => Ok(sum),
    }
}

/// Failures of a row in words; `None` when there are none.
#[must_use]
pub fn told(failed: &[Failed], count: u64, id: &str) -> Option<String> {
    let first = failed.first()?.seed;
    let shown = failed.iter().take(TOLD_MAX).map(|it| format!("seed {}: {}", it.seed, it.what));
    let shown: Vec<String> = shown.collect();
    let more = failed.len().saturating_sub(TOLD_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let (failed, shown) = (failed.len(), shown.join("; "));
    let repeat = format!("dacapo-lab run {id} --seed {first}");
    Some(format!("{failed} of {count} failed: {shown}{more} (repeat: {repeat})"))
}

/// A panic is a failure of its seed like any other.
fn guarded<S>(
    seed: u64,
    sum: &mut S,
    one: &impl Fn(u64, &mut S) -> Result<(), String>,
) -> Result<(), String> {
    let run = std::panic::AssertUnwindSafe(|| one(seed, sum));
    std::panic::catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
        Err(format!("it panicked: {text}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Numbers(Vec<u64>);

    impl Sum for Numbers {
        fn merge(&mut self, other: Self) {
            self.0.extend(other.0);
        }
    }

    #[test]
    fn a_panic_is_a_failure_of_its_seed() {
        let one = |seed: u64, _: &mut Numbers| match seed {
            3 => panic!("seed {seed} is unlucky"),
            _ => Ok(()),
        };
        let (_, failed) = collect(&Scale::short(), 0..9, one);
        assert_eq!(failed, [Failed { seed: 3, what: "it panicked: seed 3 is unlucky".into() }]);
    }

    #[test]
    fn every_seed_is_run_once_and_failures_are_named_in_order() {
        let one = |seed: u64, sum: &mut Numbers| {
            sum.0.push(seed);
            if seed % 50 == 7 { Err("odd".to_owned()) } else { Ok(()) }
        };
        let (mut sum, failed) = collect(&Scale::short(), 10..500, one);
        sum.0.sort_unstable();
        assert_eq!(sum.0, (10..500).collect::<Vec<_>>());
        assert_eq!(failed.first(), Some(&Failed { seed: 57, what: "odd".into() }));
        assert_eq!(failed.len(), 9);
        let told = told(&failed, 490, "x").expect("something failed");
        assert!(told.contains("9 of 490") && told.contains("seed 57: odd"), "{told}");
        assert!(told.contains("4 more") && told.contains("run x --seed 57"), "{told}");
        assert!(sweep(&Scale::short(), 0..7, "x", one).is_ok());
    }
}
