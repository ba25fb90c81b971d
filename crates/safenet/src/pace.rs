//! [`Pace`]: rate and burst over the associations of one group, of which each message has its own.
//!
//! ```text
//!   full_at   when the whole burst will have been earned back
//!   may begin when now >= full_at - burst / rate
//!   begins         full_at = max(full_at, now) + len / rate
//! ```
//!
//! The generic cell rate algorithm (ITU-T I.371) with messages as cells. Within a message XTP keeps
//! the rate itself and begins with a whole burst, so at most two bursts follow each other; the
//! mean is kept.

use crate::config::Traffic;
use dacapo_base::Time;

/// When the next message may begin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    full_at: Time,
}

impl Pace {
    /// From when on a message may begin.
    pub fn ready_at(&self, traffic: Traffic) -> Time {
        self.full_at - traffic.duration(traffic.burst.into())
    }

    /// A message of `len` bytes begins.
    pub fn take(&mut self, now: Time, traffic: Traffic, len: u64) {
        self.full_at = self.full_at.max(now) + traffic.duration(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_the_rate_and_a_rest_earns_no_more_than_a_burst() {
        let traffic = Traffic { rate: 1_000_000, burst: 10_000 };
        let (mut pace, mut now, start) = (Pace::default(), Time::from_millis(500), 500.0);
        for _ in 0..100 {
            now = now.max(pace.ready_at(traffic));
            pace.take(now, traffic, 5_000);
        }
        // 500,000 bytes, of which the first burst and the last message cost no waiting.
        let took_ms = now.as_secs_f64() * 1e3 - start;
        assert!((484.0..=491.0).contains(&took_ms), "{took_ms}");
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut pace = Pace::default();
        for traffic in [Traffic::default(), Traffic { rate: 5, burst: 0 }] {
            pace.take(Time::ZERO, traffic, u64::MAX);
            assert_eq!(pace.ready_at(traffic), Time::ZERO);
        }
    }
}
