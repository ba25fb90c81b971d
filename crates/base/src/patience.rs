//! [`Tolerance`]: how long a test waits before it says that something hangs.
//!
//! A machine that is shared stops a process for minutes, and a test that then goes on has waited
//! long by the clock without a chance to see anything. So what counts is from one look to the next,
//! and each step at most [`STEP_MAX`]:
//!
//! ```text
//!   looks    |- 5 ms -|- 5 ms -|- 5 ms, then stopped for 3 minutes -|- 5 ms -|
//!   counts       5        5                    1,000                    5
//! ```
//!
//! Nothing but a hang is to use it up, so it may be long.
//!
//! Invariant: who looks again and again, and lets time pass in between, comes to an end.

use std::time::{Duration, Instant};

/// The most that counts of the time from one look to the next, and the longest that a call may
/// block in between.
pub const STEP_MAX: Duration = Duration::from_secs(1);

/// Asks until there is an answer; `None` when it hangs, after `most` in which it could have come.
/// What is asked lets time pass before it says that there is none: it sleeps a moment, or blocks
/// for [`STEP_MAX`] at most.
pub fn until<T>(
    clock: impl Fn() -> Instant,
    most: Duration,
    mut ask: impl FnMut() -> Option<T>,
) -> Option<T> {
    let mut patience = Tolerance::new(clock(), most);
    loop {
        let answer = ask();
        if answer.is_some() || !patience.lasts(clock()) {
            return answer;
        }
    }
}

/// What is left of a wait.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    left: Duration,
    looked: Instant,
}

impl Tolerance {
    /// From now on, this long.
    #[must_use]
    pub fn new(now: Instant, most: Duration) -> Self {
        Self { left: most, looked: now }
    }

    /// Takes a look: whether anything is left.
    #[must_use]
    pub fn lasts(&mut self, now: Instant) -> bool {
        let step = now.saturating_duration_since(self.looked).min(STEP_MAX);
        self.looked = now;
        self.left = self.left.saturating_sub(step);
        !self.left.is_zero()
    }
}
