//! [`FlushTimer`]: until when what does not fill a packet waits for more that was announced.
//!
//! ```text
//!   written     a    b   c          first: 5 ms after a, until a has left
//!            ---|----|---|--------  later: 5 ms after b, which then is the first
//! ```
//!
//! Invariant: no byte waits longer than [`HOLD_MAX`] after it was written, however often more is
//! announced: what is written later never moves the time of what still waits.

use dacapo_base::Time;
use std::time::Duration;

/// How long what does not fill a packet waits for more that was announced (decided here).
const HOLD_MAX: Duration = Duration::from_millis(5);

/// What waits together.
#[derive(Clone, Copy, Debug)]
struct Wait {
    until: Time,
    /// One past its last byte.
    end: u64,
}

/// The waiting of one stream.
#[derive(Debug, Default)]
pub struct FlushTimer {
    first: Option<Wait>,
    later: Option<Wait>,
}

impl FlushTimer {
    /// More is announced for what ends at `end`; all before `next` has left.
    pub fn begin(&mut self, now: Time, next: u64, end: u64) {
        self.forget_left(next);
        let wait = Wait { until: now + HOLD_MAX, end };
        match (&self.first, &mut self.later) {
            (None, _) => self.first = Some(wait),
            (Some(_), None) => self.later = Some(wait),
            (Some(_), Some(later)) => later.end = end,
        }
    }

    /// Whether what waits goes out as it is; nothing waits then.
    pub fn is_over(&mut self, now: Time, next: u64) -> bool {
        self.forget_left(next);
        let is_over = self.first.is_some_and(|wait| wait.until <= now);
        if is_over {
            self.clear();
        }
        is_over
    }

    /// Nothing waits any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// When [`FlushTimer::is_over`] is to be asked; else `NEVER`.
    #[must_use]
    pub fn until(&self) -> Time {
        self.first.map_or(Time::NEVER, |wait| wait.until)
    }

    fn forget_left(&mut self, next: u64) {
        while self.first.is_some_and(|wait| wait.end <= next) {
            self.first = self.later.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;
    use std::collections::VecDeque;

    /// Bytes that are written at any times, and leave in packets of 1,000 or when they may wait no
    /// longer.
    #[test]
    fn no_byte_waits_longer_than_the_time() {
        for seed in 0..200 {
            let random = &mut Random::from_number(seed);
            let (mut flush_timer, mut now) = (FlushTimer::default(), Time::ZERO);
            let mut written: VecDeque<Time> = VecDeque::new();
            let (mut next, mut end, mut full) = (0_u64, 0_u64, 0);
            for _ in 0..500 {
                now += Duration::from_micros(random.below(4_000));
                // Whoever looks is late by no time.
                if flush_timer.until() <= now && flush_timer.is_over(flush_timer.until(), next) {
                    next = end;
                    written.clear();
                }
                let oldest = written.front().copied().unwrap_or(now);
                assert!(now.since(oldest) <= HOLD_MAX, "seed {seed}");
                let len = 1 + random.below(700);
                end += len;
                written.extend((0..len).map(|_| now));
                flush_timer.begin(now, next, end);
                while end - next >= 1_000 {
                    next += 1_000;
                    full += 1;
                    written.drain(..1_000);
                }
            }
            assert!(full > 10, "seed {seed}: {full} full packets");
        }
    }

    #[test]
    fn what_left_in_time_is_waited_for_no_longer() {
        let at = Time::from_millis;
        let mut flush_timer = FlushTimer::default();
        assert_eq!(flush_timer.until(), Time::NEVER);
        flush_timer.begin(at(0), 0, 10);
        flush_timer.begin(at(4), 0, 20);
        assert_eq!(flush_timer.until(), at(5));
        assert!(!flush_timer.is_over(at(5), 10), "the first has left");
        assert_eq!(flush_timer.until(), at(9));
        flush_timer.begin(at(8), 20, 30);
        assert_eq!(flush_timer.until(), at(13));
        assert!(flush_timer.is_over(at(13), 20));
        assert_eq!(flush_timer.until(), Time::NEVER);
    }
}
