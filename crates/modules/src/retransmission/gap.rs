//! [`Gap`]: packets that follow each other and are missing.
//!
//! ```text
//!   first          first + count
//!     .  .  .  .  .|                 each is of use for `apart` longer than the one before
//!     by          by + 4 apart
//! ```

use dacapo_base::Time;
use dacapo_wire::retransmission::{ATTEMPTS_MAX, RANGES_MAX, Range};
use std::time::Duration;

/// A last question is asked again so much later: more than most runs of losses take, and not at
/// once.
pub(super) const APART_MAX: Duration = Duration::from_millis(15);
pub(super) const APART_MIN: Duration = Duration::from_millis(2);

/// Packets that follow each other and are missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub first: u64,
    pub count: u64,
    /// When it was seen that they are missing.
    pub seen: Time,
    /// Until when the first is of use, and how much longer each other than the one before.
    pub by: Time,
    pub apart: Duration,
    /// When they are to be asked for.
    pub ask: Option<Time>,
    /// When they were asked for last, and first.
    pub asked_last: Time,
    pub asked_first: Time,
    pub attempts: u8,
    /// Some of it was given up before.
    pub is_cut: bool,
    /// The question for which there is no other time has been asked, and is asked once more.
    pub is_last: bool,
}

impl Gap {
    pub fn end(&self) -> u64 {
        self.first + self.count
    }

    /// How many of them, from the first on, are of no use at this time.
    pub fn overdue(&self, at: Time) -> u64 {
        if at < self.by {
            return 0;
        }
        let apart = self.apart.as_nanos();
        let later = at.since(self.by).as_nanos().checked_div(apart).unwrap_or(u128::MAX);
        u64::try_from(later).unwrap_or(u64::MAX).saturating_add(1).min(self.count)
    }

    /// Until when the last of them is of use.
    fn last_by(&self) -> Time {
        self.by + self.apart * self.count.saturating_sub(1) as u32
    }

    /// Leaves the first of them out.
    pub fn skip(&mut self, count: u64) {
        self.first += count;
        self.count -= count;
        self.by += self.apart * count as u32;
    }

    /// When they were asked for, for this time; known of the first and of the last.
    pub fn asked_at(&self, attempt: u8) -> Option<Time> {
        match attempt {
            _ if attempt == self.attempts => Some(self.asked_last),
            1 => Some(self.asked_first),
            _ => None,
        }
    }

    /// Adds what is of use when an answer comes to the ranges, and says when it is to be asked for
    /// again: while that would not be too late, and no more often than it can be. The last time it
    /// is asked for twice, so far apart that a run of losses rarely takes both.
    pub fn ask(&mut self, ranges: &mut Vec<Range>, now: Time, comes: Time, wait: Duration) {
        let overdue = self.overdue(comes);
        if overdue == self.count || self.attempts == ATTEMPTS_MAX {
            self.ask = None;
            return;
        }
        if ranges.len() == RANGES_MAX {
            return;
        }
        self.attempts += 1;
        self.asked_last = now;
        if self.attempts == 1 {
            self.asked_first = now;
        }
        let is_too_late = self.overdue(comes + wait) == self.count;
        let again = (self.last_by().since(comes) / 2).min(APART_MAX);
        let is_worth = is_too_late && !self.is_last && again >= APART_MIN;
        self.ask = Some(now + if is_worth { again } else { wait });
        self.is_last = is_too_late;
        // There are no more than can be missing, which 16 bits count.
        let (first, count) = ((self.first + overdue) as u32, (self.count - overdue) as u16);
        ranges.push(Range { first, count, attempt: self.attempts });
    }
}
