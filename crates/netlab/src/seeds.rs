//! Runs of many seeds, for tests: a failure says its seed, and the command that repeats it alone.

use dacapo_base::seeds::each_seed;

/// Of a world's steps one in so many, if `DACAPO_VISIT_EVERY` says nothing else: looking at
/// everything takes as long as all else in a small world, and who sleeps too long is seen asleep at
/// each step until something wakes it. A prime, so that no rhythm of a flow avoids it.
const STEPS_PER_VISIT: u64 = 5;

/// What is said of a seed that breaks something; `test` is what follows `--test`, such as
/// `deadline one_seed`.
#[must_use]
pub fn failure(test: &str, seed: u64, reason: &str) -> String {
    format!(
        "seed {seed}: {reason}\nrepeat: DACAPO_SEED={seed} cargo test -p dacapo-netlab --test \
         {test} -- --nocapture"
    )
}

/// Calls `check` with each seed below `seeds`.
///
/// # Panics
/// With the [`failure`] of a seed of which it gives a reason.
pub fn check_seeds(test: &str, seeds: u64, check: impl Fn(u64) -> Option<String> + Sync) {
    each_seed(0..seeds, |seed| {
        if let Some(reason) = check(seed) {
            panic!("{}", failure(test, seed, &reason));
        }
    });
}

/// At each how many steps a world looks at everything besides what is ready, as the environment
/// says; 0: never.
#[must_use]
pub fn steps_per_visit() -> u64 {
    dacapo_base::seeds::number("DACAPO_VISIT_EVERY", STEPS_PER_VISIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_its_seed_and_how_to_repeat_it() {
        let text = failure("newest one_seed", 7, "a unit is missing");
        assert!(text.starts_with("seed 7: a unit is missing\n"), "{text}");
        let command = "DACAPO_SEED=7 cargo test -p dacapo-netlab --test newest one_seed";
        assert!(text.contains(command), "{text}");
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn one_seed_that_breaks_something_is_enough() {
        check_seeds("none", 20, |seed| (seed == 13).then(|| "it is the thirteenth".to_owned()));
    }
}
