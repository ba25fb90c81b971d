//! `DualPi2`: two queues with coupled marking, by the pseudocode of RFC 9332, appendix A.
//!
//! ```text
//!   ECT(1), CE ---> [ low latency ] -- mark: max(step above 1 ms, k p') --+
//!                                                                         +--> transmitter
//!   others -------> [   classic   ] -- drop or mark: p'^2 ---------------+
//!                                                    9 bytes of 10 for the low one, if both wait
//!   every 16 ms:  p' += alpha (wait - target) + beta (wait - wait before)
//!                 wait: that of the older head
//! ```
//!
//! A likelihood takes effect by `recur` of that appendix: it is added up, and each time that the
//! sum exceeds one, one is marked. So there is no chance in it, and marks lie evenly. The scheduler
//! is weighted: while both wait, the classic queue gets a tenth of the bytes (as in Linux), and the
//! other queue everything else. Overload (A.2): from `p'^2` = 1 / k^2 on, and so from `k p'` = 1
//! on, both queues drop with `p'^2`, whatever is ECN-capable.
//!
//! The gains, the interval and the step at 1 ms (in place of the ramp of that appendix) are those
//! of Linux, `net/sched/sch_dualpi2.c`. Its rule that nothing is marked or dropped while less than
//! two MTUs wait is left out; instead the step spares the last one that waits.
//!
//! Invariants: `p'` is in 0 to 1; an update is made for every 16 ms that pass, also where nothing
//! happens in them, in a bounded number of steps. IEEE basic operations only.

use crate::carry::Carry;
use crate::fifo::{Entry, Fifo};
use crate::stats::LinkStats;
use dacapo_base::Ecn;
use dacapo_base::Time;
use std::time::Duration;

/// The coupling factor k.
pub(crate) const COUPLING: f64 = 2.0;
/// Above this, what is in the low latency queue is marked.
const STEP: Duration = Duration::from_millis(1);
/// How often the probability is updated.
const UPDATE: Duration = Duration::from_millis(16);
/// The integral gain, Hz.
const ALPHA: f64 = 0.16;
/// The proportional gain, Hz.
const BETA: f64 = 3.2;
/// From this probability on the classic queue drops what is ECN-capable, too.
const CLASSIC_MAX: f64 = 1.0 / (COUPLING * COUPLING);
/// The shares of the queues while both wait.
const CLASSIC_WEIGHT: i64 = 10;
const LOW_WEIGHT: i64 = 90;

/// The state of both.
#[derive(Clone, Debug)]
pub(crate) struct DualPi2 {
    target_s: f64,
    /// `p'`.
    base: f64,
    wait_before_s: f64,
    next_update: Time,
    classic_mark: Recur,
    low_mark: Recur,
    low_drop: Recur,
    /// Above zero it is the turn of the classic queue: bytes, weighted.
    credit: i64,
}

/// A likelihood that takes effect evenly.
#[derive(Clone, Copy, Debug, Default)]
struct Recur(f64);

impl Recur {
    fn is_due(&mut self, likelihood: f64) -> bool {
        self.0 += likelihood;
        let is_due = self.0 > 1.0;
        self.0 -= f64::from(u8::from(is_due));
        is_due
    }
}

impl DualPi2 {
    /// One that has seen nothing until `now`.
    pub(crate) fn new(target: Duration, now: Time) -> Self {
        Self {
            target_s: target.as_secs_f64(),
            base: 0.0,
            wait_before_s: 0.0,
            next_update: now + UPDATE,
            classic_mark: Recur::default(),
            low_mark: Recur::default(),
            low_drop: Recur::default(),
            credit: 0,
        }
    }

    /// Something comes at `now`; `oldest` is what has waited longest.
    pub(crate) fn arrive(&mut self, now: Time, oldest: Option<Time>) {
        self.update(now, oldest);
        if oldest.is_none() {
            self.credit = 0;
        }
    }

    /// The next one that leaves, while what came at `oldest` has waited longest; nothing when all
    /// that waited was dropped.
    pub(crate) fn take<T: Carry>(
        &mut self,
        now: Time,
        oldest: Time,
        classic: &mut Fifo<T>,
        low: &mut Fifo<T>,
        stats: &mut LinkStats,
    ) -> Option<Entry<T>> {
        self.update(now, Some(oldest));
        loop {
            let is_low = !low.is_empty() && (classic.is_empty() || self.credit <= 0);
            let both_wait = !low.is_empty() && !classic.is_empty();
            let mut entry = if is_low { low.pop()? } else { classic.pop()? };
            let is_dropped = match is_low {
                true => self.judge_low(now, &mut entry, !low.is_empty(), stats),
                false => self.judge_classic(&mut entry, stats),
            };
            if is_dropped {
                entry.discard(stats);
                continue;
            }
            if both_wait {
                let weight = if is_low { CLASSIC_WEIGHT } else { -LOW_WEIGHT };
                let len = i64::try_from(entry.len).unwrap_or(i64::MAX);
                self.credit = self.credit.saturating_add(len.saturating_mul(weight));
            }
            return Some(entry);
        }
    }

    /// Marks one of the low latency queue, or says that it is to be dropped. The step does not hold
    /// for the last one in it: at a low rate each would be marked for its own length.
    fn judge_low<T: Carry>(
        &mut self,
        now: Time,
        entry: &mut Entry<T>,
        is_followed: bool,
        stats: &mut LinkStats,
    ) -> bool {
        let coupled = COUPLING * self.base;
        let is_above = is_followed && now.since(entry.ticket.sent) > STEP;
        let likelihood = if coupled < 1.0 {
            if is_above { 1.0 } else { coupled }
        } else {
            if self.low_drop.is_due(self.base * self.base) {
                return true;
            }
            1.0
        };
        if self.low_mark.is_due(likelihood) {
            entry.mark(stats);
        }
        false
    }

    /// The same of the classic queue.
    fn judge_classic<T: Carry>(&mut self, entry: &mut Entry<T>, stats: &mut LinkStats) -> bool {
        let likelihood = self.base * self.base;
        if !self.classic_mark.is_due(likelihood) {
            return false;
        }
        if entry.ecn == Ecn::NotEct || likelihood >= CLASSIC_MAX {
            return true;
        }
        entry.mark(stats);
        false
    }

    /// Makes the updates that are due until `now`, with the same heads at all of them.
    fn update(&mut self, now: Time, oldest: Option<Time>) {
        if self.next_update > now {
            return;
        }
        let update_ns = UPDATE.as_nanos() as u64;
        let count = 1 + now.since(self.next_update).as_nanos() as u64 / update_ns;
        let at = |number: u64| {
            let ns = self.next_update.as_nanos();
            Time::from_nanos(ns.saturating_add(number.saturating_mul(update_ns)))
        };
        let (first, last, next) = (self.next_update, at(count - 1), at(count));
        match oldest {
            // An empty queue lowers it by as much each time.
            None => {
                self.step(0.0);
                let more = (count - 1) as f64 * ALPHA * self.target_s;
                self.base = (self.base - more).max(0.0);
            }
            Some(oldest) => self.step_often(first, count, oldest),
        }
        self.wait_before_s = oldest.map_or(0.0, |oldest| last.since(oldest).as_secs_f64());
        self.next_update = next;
    }

    /// `count` updates from `first` on, while the head that came at `oldest` waits.
    fn step_often(&mut self, first: Time, count: u64, oldest: Time) {
        let mut now = first;
        for _ in 0..count {
            let wait_s = now.since(oldest).as_secs_f64();
            self.step(wait_s);
            // The wait grows, so there it stays: 60 s are 3,750 updates, and 20 more raise it to 1.
            if self.base >= 1.0 && wait_s >= self.target_s {
                return;
            }
            now += UPDATE;
        }
    }

    fn step(&mut self, wait_s: f64) {
        let change = ALPHA * (wait_s - self.target_s) + BETA * (wait_s - self.wait_before_s);
        self.base = (self.base + change).clamp(0.0, 1.0);
        self.wait_before_s = wait_s;
    }

    #[cfg(test)]
    pub(crate) fn base(&self) -> f64 {
        self.base
    }
}

#[cfg(test)]
#[path = "dualpi2_tests.rs"]
mod tests;
