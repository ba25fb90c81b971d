//! [`Rounds`]: round trips, by what had come when something left, and what was seen in the one that
//! runs.
//!
//! ```text
//!   end of a round = what has come now; over when something comes that left after that
//! ```

use super::losses::Count;
use super::sampler::Sample;
use std::time::Duration;

/// What a round has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    pub count: Count,
    /// The shortest round trip.
    pub rtt: Option<Duration>,
    /// The fastest delivery, in bytes per second.
    pub rate: u64,
    /// Some of it left while the application had no more.
    pub is_app_limited: bool,
}

impl Round {
    /// Whether round trips took longer than the shortest: an eighth, and a millisecond.
    pub fn has_queue(&self, rtt_min: Duration) -> bool {
        let more = rtt_min / 8 + Duration::from_millis(1);
        self.rtt.is_some_and(|rtt| rtt > rtt_min.saturating_add(more))
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    end: u64,
    pub now: Round,
}

impl Rounds {
    /// Something has come, by which `delivered` bytes have: the round that it ends, if it does.
    pub fn handle(&mut self, sample: &Sample, delivered: u64) -> Option<Round> {
        self.now.rate = self.now.rate.max(sample.rate.unwrap_or(0));
        self.now.is_app_limited |= sample.is_app_limited;
        if sample.delivered_before < self.end {
            return None;
        }
        self.end = delivered;
        Some(std::mem::take(&mut self.now))
    }
}
