//! [`RoundTrip`]: how long an answer takes, as RFC 6298 reckons it without its minimum of a second.
//!
//! ```text
//!   asked ------------------> | answered ------------------>      sample
//!   deviation = 3/4 deviation + 1/4 |mean - sample|
//!   mean      = 7/8 mean + 1/8 sample            wait = mean + 4 deviation, 1 ms at least
//! ```

use std::time::Duration;

/// How much later than the mean an answer is overdue at the soonest: timers look no more often.
const GRAIN: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrip {
    mean: Option<Duration>,
    deviation: Duration,
}

impl RoundTrip {
    pub fn add(&mut self, sample: Duration) {
        let Some(mean) = self.mean else {
            (self.mean, self.deviation) = (Some(sample), sample / 2);
            return;
        };
        self.deviation = self.deviation / 4 * 3 + mean.abs_diff(sample) / 4;
        self.mean = Some(mean / 8 * 7 + sample / 8);
    }

    /// It may be shorter by now: by one part in so many.
    pub fn shorten(&mut self, parts: u32) {
        self.mean = self.mean.map(|mean| mean - mean / parts);
    }

    /// How long an answer takes as a rule; nothing before the first.
    pub fn mean(&self) -> Duration {
        self.mean.unwrap_or_default()
    }

    /// How long to wait for an answer before it is asked again; `unknown` before the first.
    pub fn wait(&self, unknown: Duration) -> Duration {
        let wait = self.mean.map(|mean| mean + (self.deviation * 4).max(GRAIN));
        wait.unwrap_or(unknown.max(GRAIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn samples_that_do_not_differ_leave_their_time_and_little_more() {
        let mut it = RoundTrip::default();
        assert_eq!((it.mean(), it.wait(ms(70))), (ms(0), ms(70)));
        it.add(ms(40));
        assert_eq!((it.mean(), it.wait(ms(70))), (ms(40), ms(120)));
        (0..40).for_each(|_| it.add(ms(40)));
        assert_eq!(it.mean(), ms(40));
        assert_eq!(it.wait(ms(70)), ms(41));
    }
}
