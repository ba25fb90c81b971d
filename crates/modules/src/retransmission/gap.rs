//! [`Gap`]: packets that follow each other and are missing.
//!
//! ```text
//!   first          first + count
//!     .  .  .  .  .|                 each is of use for `apart` longer than the one before
//!     by          by + 4 apart
//! ```

use super::budget::Budget;
use dacapo_base::Time;
use dacapo_wire::retransmission::{ATTEMPTS_MAX, RANGES_MAX, Range};
use std::time::Duration;

/// How often a question is repeated behind which there is hardly time for another.
pub(super) const REPEATED_MAX: u8 = 2;

/// Hardly time: with less to spare than this, a question could not be repeated so often.
pub(super) const REPEATED_SPARE: Duration = Duration::from_millis(8);

/// So long before the last moment it is asked: a timer may be a millisecond late, and what is asked
/// leaves once in a millisecond.
pub(super) const IN_TIME: Duration = Duration::from_millis(2);

/// It is repeated so much later: more than most runs of losses take, and not at once.
const APART_MAX: Duration = Duration::from_millis(15);
const APART_MIN: Duration = Duration::from_millis(2);

/// How much later a question is repeated whose answer comes with so much to spare: half of it, for
/// another may follow.
fn again(spare: Duration) -> Option<Duration> {
    Some((spare / 2).min(APART_MAX)).filter(|apart| *apart >= APART_MIN)
}

/// How much later than the one before each leaves by which such a question is repeated.
pub(super) fn repeated(mut spare: Duration) -> impl Iterator<Item = Duration> {
    (0..REPEATED_MAX).map_while(move |_| {
        let apart = again(spare)?;
        spare -= apart;
        Some(apart)
    })
}

/// What is asked for at one time.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    pub now: Time,
    /// When an answer comes, as a rule.
    pub comes: Time,
    /// After how long it is overdue.
    pub wait: Duration,
    pub budget: &'a mut Budget,
    pub ranges: &'a mut Vec<Range>,
}

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
    /// When the answer to a question is overdue, and how often that was repeated.
    pub overdue: Time,
    pub repeated: u8,
}

impl Gap {
    pub fn end(&self) -> u64 {
        self.first + self.count
    }

    /// How many of them, from the first on, are of no use at this time.
    pub fn too_late(&self, at: Time) -> u64 {
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
    /// again: while that would not be too late, and no more often than it can be. Where there is
    /// hardly time for another question it is repeated before its answer is overdue, as far as the
    /// budget goes, so far apart that a run of losses rarely takes all.
    ///
    /// ```text
    ///   asked 1   1   1        2 |                 last_by: an answer to 2 comes in time, and
    ///         |-- wait ------->| |-- answer -->|   to one after it does not
    /// ```
    pub fn ask(&mut self, asking: &mut Asking<'_>) {
        let now = asking.now;
        let too_late = self.too_late(asking.comes);
        if too_late == self.count || self.attempts == ATTEMPTS_MAX {
            self.ask = None;
            return;
        }
        if asking.ranges.len() == RANGES_MAX {
            return;
        }
        let (count, is_repeated) = (self.count - too_late, now < self.overdue);
        if is_repeated && !asking.budget.covers(count) {
            self.repeated = REPEATED_MAX;
            self.ask = Some(self.overdue);
            return;
        }
        asking.budget.take(count);
        self.attempts += 1;
        self.asked_last = now;
        if self.attempts == 1 {
            self.asked_first = now;
        }
        if is_repeated {
            self.repeated += 1;
        } else {
            self.begin_to_wait(now, asking.comes, asking.wait);
        }
        self.ask = Some(self.next(now, asking.comes));
        // There are no more than can be missing, which 16 bits count.
        let (first, count) = ((self.first + too_late) as u32, count as u16);
        asking.ranges.push(Range { first, count, attempt: self.attempts });
    }

    /// They were asked for then, before it was seen that they are missing; an answer takes so long,
    /// and is overdue after `wait`.
    pub fn note_asked(&mut self, at: Time, answer: Duration, wait: Duration) {
        self.attempts = 1;
        (self.asked_first, self.asked_last) = (at, at);
        self.begin_to_wait(at, at + answer, wait);
        self.ask = Some(self.next(at, at + answer).max(self.seen));
    }

    /// They are asked for now, and answered then as a rule: that is overdue after `wait`, or, where
    /// nobody could ask again by then, as late as somebody can once it should have come.
    fn begin_to_wait(&mut self, now: Time, comes: Time, wait: Duration) {
        let last = self.last_by() - comes.since(now) - IN_TIME;
        let overdue = now + wait;
        self.overdue = if last > comes { overdue.min(last) } else { overdue };
        self.repeated = 0;
    }

    /// When it is asked for again after a question that leaves now and is answered then.
    fn next(&self, now: Time, comes: Time) -> Time {
        let last_by = self.last_by();
        let is_time = self.overdue + comes.since(now) + REPEATED_SPARE <= last_by;
        if is_time || self.repeated == REPEATED_MAX {
            return self.overdue;
        }
        // Not right before the next question.
        let apart = again(last_by.since(comes)).filter(|it| now + *it + APART_MIN <= self.overdue);
        apart.map_or(self.overdue, |apart| now + apart)
    }
}
