//! [`Rounds`]: round trips, by what had come when something left, and what was seen in the one that
//! runs.
//!
//! ```text
//!   end of a round = what has come now; over when something comes that left after that
//! ```

use super::losses::Count;
use super::sampler::Sample;
use dacapo_base::Time;
use std::time::Duration;

/// What a round has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    pub count: Count,
    /// The shortest round trip, all of them together, and how many.
    pub rtt: Option<Duration>,
    rtt_sum: Duration,
    rtt_count: u32,
    /// The fastest delivery, in bytes per second.
    pub rate: u64,
    /// Some of it left while the application had no more.
    pub is_app_limited: bool,
}

impl Round {
    /// A round trip was measured.
    pub fn note_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(self.rtt.map_or(rtt, |known| known.min(rtt)));
        self.rtt_sum = self.rtt_sum.saturating_add(rtt);
        self.rtt_count = self.rtt_count.saturating_add(1);
    }

    /// Whether all round trips took longer than the shortest: there is a queue.
    pub fn has_queue(&self, rtt_min: Duration) -> bool {
        self.rtt.is_some_and(|rtt| rtt > rtt_min.saturating_add(queue_min(rtt_min)))
    }

    /// How much longer than the shortest round trips took as a rule.
    pub fn longer(&self, rtt_min: Duration) -> Duration {
        (self.rtt_sum / self.rtt_count.max(1)).saturating_sub(rtt_min)
    }
}

/// A round trip is remembered for so long at least, and twice as long at most.
const FLOOR_SPAN: Duration = Duration::from_secs(30);

/// The shortest round trip lately: whoever has filled the queue meanwhile, by this it is seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Floor {
    since: Option<Time>,
    least: [Option<Duration>; 2],
}

impl Floor {
    /// A round trip was measured.
    pub fn note(&mut self, now: Time, rtt: Duration) {
        if self.since.is_none_or(|since| now.since(since) >= FLOOR_SPAN) {
            (self.since, self.least) = (Some(now), [None, self.least[0]]);
        }
        self.least[0] = Some(self.least[0].map_or(rtt, |known| known.min(rtt)));
    }

    /// The shortest.
    pub fn least(&self) -> Option<Duration> {
        self.least.into_iter().flatten().min()
    }
}

/// So much longer than the shortest are the round trips of a queue, at least: an eighth, and a
/// millisecond.
fn queue_min(rtt_min: Duration) -> Duration {
    rtt_min / 8 + Duration::from_millis(1)
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    end: u64,
    /// The one that runs.
    pub running: Round,
}

impl Rounds {
    /// Something has come, by which `delivered` bytes have: the round that it ends, if it does.
    pub fn handle(&mut self, sample: &Sample, delivered: u64) -> Option<Round> {
        self.running.rate = self.running.rate.max(sample.rate.unwrap_or(0));
        self.running.is_app_limited |= sample.is_app_limited;
        if sample.delivered_before < self.end {
            return None;
        }
        self.end = delivered;
        Some(std::mem::take(&mut self.running))
    }
}
