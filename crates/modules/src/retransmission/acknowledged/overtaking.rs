//! [`Overtaking`]: how long a packet may be overtaken before it is lost (RFC 8985).
//!
//! ```text
//!   sent 1 2 3        come   2 3 . . . 1       1 has only been late
//!                            |<------->|       the last round trip, and quarters of the shortest
//! ```
//!
//! Invariant: it waits for one quarter at least and [`QUARTERS_MAX`] at most.

use super::sending::UNKNOWN;
use dacapo_base::Time;
use std::time::Duration;

/// How many quarters of a round trip packets may overtake each other, at most.
const QUARTERS_MAX: u32 = 4;

/// After so many recoveries from losses, in which nothing came twice, it is one again (RFC 8985,
/// section 6.2.4).
const PERSISTS: u32 = 16;

#[derive(Debug, Default)]
pub(super) struct Overtaking {
    /// The shortest round trip that was seen, and the last.
    round_min: Option<Duration>,
    round_last: Duration,
    /// For how many quarters of a round trip more what was overtaken is waited for.
    quarters: u32,
    /// After how many more recoveries for none.
    persists: u32,
    /// When the last one began: what left before and is lost is of it.
    recovers_since: Option<Time>,
    /// How many the peer says that came twice.
    duplicates: u32,
}

impl Overtaking {
    /// A round trip was measured.
    pub fn measure(&mut self, sample: Duration) {
        self.round_min = Some(self.round_min.map_or(sample, |min| min.min(sample)));
        self.round_last = sample;
    }

    /// The shortest round trip; nothing before the first.
    pub fn round_min(&self) -> Duration {
        self.round_min.unwrap_or_default()
    }

    /// What came twice was sent again too early: what is overtaken is waited for longer.
    pub fn learn(&mut self, duplicates: u32) {
        let more = duplicates.wrapping_sub(self.duplicates);
        if more > 0 && more < u32::MAX / 2 {
            self.duplicates = duplicates;
            self.wait_longer();
        }
    }

    /// What was lost had only been late: it is waited for longer, or until nothing of the kind has
    /// been for long.
    pub fn wait_longer(&mut self) {
        self.quarters = (self.quarters + 1).min(QUARTERS_MAX - 1);
        self.persists = PERSISTS;
    }

    /// Something was lost, of which the newest left then.
    pub fn note_lost(&mut self, now: Time, left: Option<Time>) {
        if left.is_some_and(|left| self.recovers_since.is_some_and(|since| left <= since)) {
            return;
        }
        self.recovers_since = Some(now);
        self.persists = self.persists.saturating_sub(1);
        self.quarters = if self.persists > 0 { self.quarters } else { 0 };
    }

    /// After how long a packet is lost that others have overtaken: when those have come that left
    /// with it, and as much later as packets may overtake each other. Where a queue grows, a mean
    /// is behind the times.
    pub fn overdue(&self) -> Duration {
        let Some(round_min) = self.round_min else { return UNKNOWN };
        self.round_last + round_min / QUARTERS_MAX * (self.quarters + 1)
    }
}
