//! `CoDel`: Controlled Delay, the queue management of RFC 8289, section 5.
//!
//! ```text
//!                     what leaves waited >= target for a whole interval: drop one
//!    ( not dropping ) ----------------------------------------------------------> ( dropping )
//!          ^                                                                        |   |  ^
//!          |  one that leaves waited < target, or one packet is left                |   |  |
//!          +------------------------------------------------------------------------+   +--+
//!                                       the next drop is interval / sqrt(drops so far) later
//! ```
//!
//! What is ECN-capable is marked in place of the drop, and leaves. Invariants: whatever waited for
//! less than the target leaves unmarked; nothing is dropped while no more than the longest packet
//! seen is behind it. It needs no chance; of all functions the square root alone is used, which
//! IEEE 754 makes the same everywhere.

use crate::carry::Carry;
use crate::fifo::{Entry, Fifo};
use crate::stats::LinkStats;
use dacapo_base::Time;
use std::time::Duration;

/// So many intervals after the last drop it still remembers how often it had to.
const MEMORY_INTERVALS: u32 = 16;

/// The state machine.
#[derive(Clone, Debug)]
pub(crate) struct CoDel {
    target: Duration,
    interval: Duration,
    /// When the wait will have been too long for an interval.
    above_until: Option<Time>,
    next_drop: Time,
    /// Drops, or marks, since it began to drop.
    count: u32,
    /// What the count was when it began.
    count_begun: u32,
    is_dropping: bool,
    /// The longest packet seen, bytes.
    len_max: usize,
}

impl CoDel {
    pub(crate) fn new(target: Duration, interval: Duration) -> Self {
        Self {
            target,
            interval,
            above_until: None,
            next_drop: Time::ZERO,
            count: 0,
            count_begun: 0,
            is_dropping: false,
            len_max: 0,
        }
    }

    /// The next one that leaves; nothing when all that waited was dropped.
    pub(crate) fn take<T: Carry>(
        &mut self,
        now: Time,
        fifo: &mut Fifo<T>,
        stats: &mut LinkStats,
    ) -> Option<Entry<T>> {
        let (mut head, mut may_drop) = self.pull(now, fifo);
        if !self.is_dropping {
            if may_drop {
                let mut first = head?;
                head = if first.mark(stats) {
                    Some(first)
                } else {
                    first.discard(stats);
                    self.pull(now, fifo).0
                };
                self.begin(now);
            }
            return head;
        }
        self.is_dropping = may_drop;
        while self.is_dropping && now >= self.next_drop {
            let mut first = head?;
            self.count = self.count.saturating_add(1);
            if first.mark(stats) {
                self.next_drop = self.after(self.next_drop);
                return Some(first);
            }
            first.discard(stats);
            (head, may_drop) = self.pull(now, fifo);
            if may_drop {
                self.next_drop = self.after(self.next_drop);
            } else {
                self.is_dropping = false;
            }
        }
        head
    }

    /// The head, and whether it may be dropped.
    fn pull<T>(&mut self, now: Time, fifo: &mut Fifo<T>) -> (Option<Entry<T>>, bool) {
        let Some(entry) = fifo.pop() else {
            self.above_until = None;
            return (None, false);
        };
        self.len_max = self.len_max.max(entry.len);
        if now.since(entry.ticket.sent) < self.target || fifo.bytes() <= self.len_max {
            self.above_until = None;
            return (Some(entry), false);
        }
        let until = *self.above_until.get_or_insert(now + self.interval);
        (Some(entry), now >= until)
    }

    /// Begins to drop. Where it did so a short time ago, that was too seldom.
    fn begin(&mut self, now: Time) {
        let more = self.count.saturating_sub(self.count_begun);
        let is_recent = now.since(self.next_drop) < self.interval * MEMORY_INTERVALS;
        self.count = if more > 1 && is_recent { more } else { 1 };
        self.count_begun = self.count;
        self.next_drop = self.after(now);
        self.is_dropping = true;
    }

    /// The control law.
    fn after(&self, time: Time) -> Time {
        let ns = self.interval.as_nanos() as f64 / f64::from(self.count).sqrt();
        time + Duration::from_nanos(ns as u64)
    }
}

#[cfg(test)]
#[path = "codel_tests.rs"]
mod tests;
