//! `Transmitter`: the rate of the link, or its trace, and the finite queue before it.
//!
//! ```text
//!   admit ---> [ waiting: at most packets, bytes ] ---> ( in transmission ) ---> departs
//!                start > now                             start <= now < end
//!   take  ------------------------------------------->      (queue elsewhere: `managed.rs`)
//! ```
//!
//! Invariants: starts and departures never decrease; the long-run rate is exact, because fractions
//! of a nanosecond are carried over while the transmitter stays busy; the transmitter never idles
//! while something waits. With a trace the next one in turn is in transmission until it has left,
//! also while there is no opportunity.

use crate::config::QueueLimit;
use crate::trace::{Place, Trace};
use dacapo_base::Time;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A server with a queue; its customers are known by their sequence number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transmitter {
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    busy_until: Time,
    /// The part of a nanosecond by which `busy_until` is too early, in units of 1/rate.
    carry: u128,
    /// Without a rate, what may leave when; without both, everything leaves at once.
    opportunities: Option<Opportunities>,
}

/// The opportunities of a trace, and how far they are used.
#[derive(Clone, Debug)]
struct Opportunities {
    trace: Arc<Trace>,
    /// The first one that is not used; `None` where that is the first after the next start.
    next: Option<Place>,
    /// Bytes that are left of the one before it.
    left: usize,
}

impl Opportunities {
    /// The transmitter begins at `now`, after it had nothing to do: what was before is lost.
    fn begin(&mut self, now: Time) {
        (self.next, self.left) = (Some(self.trace.first_after(now)), 0);
    }

    /// The first opportunity of one whose turn it is at `start`.
    fn next(&self, start: Time) -> Place {
        self.next.unwrap_or_else(|| self.trace.first_after(start))
    }

    /// Uses opportunities for `len` bytes, and says when the last of them leaves.
    fn serve(&mut self, start: Time, len: usize) -> Time {
        let len = len.max(1);
        if let Some(left) = self.left.checked_sub(len) {
            self.left = left;
            return start;
        }
        let rest = len - self.left;
        let count = rest.div_ceil(Trace::OPPORTUNITY_LEN);
        let last = self.trace.later(self.next(start), count as u64 - 1);
        self.left = count.saturating_mul(Trace::OPPORTUNITY_LEN).saturating_sub(rest);
        self.next = Some(self.trace.later(last, 1));
        self.trace.time_of(last)
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    sequence: u64,
    start: Time,
    len: usize,
}

/// An item whose departure a change of rate has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) sequence: u64,
    pub(crate) departs: Time,
}

impl Transmitter {
    /// One that has sent nothing.
    pub(crate) fn new(trace: Option<Arc<Trace>>) -> Self {
        let mut transmitter = Self::default();
        transmitter.set_trace(trace);
        transmitter
    }

    /// Sends by another trace from what comes next on; [`Transmitter::retime`] says what moves.
    pub(crate) fn set_trace(&mut self, trace: Option<Arc<Trace>>) {
        self.opportunities = trace.map(|trace| Opportunities { trace, next: None, left: 0 });
    }

    /// Takes an item of `len` bytes and says when its last bit departs; `None` when the queue is
    /// full.
    pub(crate) fn admit(
        &mut self,
        now: Time,
        (sequence, len): (u64, usize),
        rate: Option<u64>,
        limit: QueueLimit,
    ) -> Option<Time> {
        self.settle(now);
        let start = now.max(self.busy_until);
        if start > now && (rate.is_some() || self.opportunities.is_some()) {
            if !limit.has_capacity(self.waiting.len(), self.waiting_bytes, len) {
                return None;
            }
            self.waiting.push_back(Waiting { sequence, start, len });
            self.waiting_bytes += len;
        } else {
            self.begin(now);
        }
        Some(self.transmit(start, len, rate))
    }

    /// Whether it has nothing to do at `now`.
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        self.busy_until <= now
    }

    /// When it takes the next of those that wait elsewhere, the oldest of them since `since`.
    pub(crate) fn next_take(&self, since: Time) -> Time {
        let start = since.max(self.busy_until);
        match &self.opportunities {
            Some(opportunities) if self.is_idle(since) => {
                opportunities.trace.time_of(opportunities.trace.first_after(since))
            }
            Some(opportunities) if opportunities.left == 0 => {
                opportunities.trace.time_of(opportunities.next(start))
            }
            _ => start,
        }
    }

    /// Takes one of `len` bytes of those that wait elsewhere, at [`Transmitter::next_take`], and
    /// says when its last bit departs.
    pub(crate) fn take(&mut self, since: Time, len: usize, rate: Option<u64>) -> Time {
        if self.is_idle(since) {
            self.begin(since);
        }
        let start = since.max(self.busy_until);
        self.transmit(start, len, rate)
    }

    /// It begins anew, after it had nothing to do.
    fn begin(&mut self, now: Time) {
        self.carry = 0;
        if let Some(opportunities) = &mut self.opportunities {
            opportunities.begin(now);
        }
    }

    /// Replans what waits for a new rate or trace, from the end of the item in transmission on
    /// (which finishes as it was to). The moved ones come in order of their sequence.
    pub(crate) fn retime(&mut self, now: Time, rate: Option<u64>) -> Vec<Moved> {
        self.settle(now);
        // What waits elsewhere, for an opportunity that the old trace had not yet, starts now.
        self.busy_until = self.busy_until.max(now);
        // It is of the old rate, of which it is less than a nanosecond.
        self.carry = 0;
        let Some(first) = self.waiting.front() else { return Vec::new() };
        let mut start = first.start;
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut moved = Vec::with_capacity(waiting.len());
        for item in &mut waiting {
            item.start = start;
            start = self.transmit(start, item.len, rate);
            moved.push(Moved { sequence: item.sequence, departs: start });
        }
        self.waiting = waiting;
        moved
    }

    /// Forgets what has started by `now`.
    fn settle(&mut self, now: Time) {
        while let Some(first) = self.waiting.front()
            && first.start <= now
        {
            self.waiting_bytes -= first.len;
            self.waiting.pop_front();
        }
    }

    // Each item goes through it, from one of three places.
    #[inline(always)]
    fn transmit(&mut self, start: Time, len: usize, rate: Option<u64>) -> Time {
        if let Some(rate) = rate.map(u128::from).filter(|&rate| rate > 0) {
            let total = len as u128 * 8 * 1_000_000_000 + self.carry;
            self.carry = total % rate;
            let ns = u64::try_from(total / rate).unwrap_or(u64::MAX);
            self.busy_until = start + Duration::from_nanos(ns);
        } else if let Some(opportunities) = &mut self.opportunities {
            self.busy_until = opportunities.serve(start, len);
        } else {
            self.busy_until = start;
        }
        self.busy_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000;
    const WIDE: QueueLimit = QueueLimit { packets: 1_000_000, bytes: 1_000_000_000 };

    #[test]
    fn back_to_back_items_depart_at_the_rate_exactly() {
        let mut transmitter = Transmitter::default();
        // 3 bytes at 7 Mbit/s are 3428.57 ns: the fractions must not add up to an error.
        let last = (0..700_000)
            .map(|n| transmitter.admit(Time::ZERO, (n, 3), Some(7 * MBIT), WIDE).unwrap())
            .last();
        assert_eq!(last, Some(Time::from_millis(2_400)));
    }

    #[test]
    fn an_idle_transmitter_starts_at_once() {
        let mut transmitter = Transmitter::default();
        let none = QueueLimit { packets: 0, bytes: 0 };
        let at = Time::from_millis(5);
        let departs = transmitter.admit(at, (0, 1_250), Some(10 * MBIT), none);
        assert_eq!(departs, Some(Time::from_millis(6)));
        assert_eq!(transmitter.admit(at, (1, 1), Some(10 * MBIT), none), None);
        let later = transmitter.admit(Time::from_millis(6), (2, 1_250), Some(10 * MBIT), none);
        assert_eq!(later, Some(Time::from_millis(7)));
    }

    #[test]
    fn the_queue_is_bounded_in_items_and_in_bytes() {
        for (limit, fit) in [
            (QueueLimit { packets: 3, bytes: 1_000_000 }, 1 + 3),
            (QueueLimit { packets: 1_000, bytes: 4_999 }, 1 + 4),
            (QueueLimit { packets: 1_000, bytes: 5_000 }, 1 + 5),
        ] {
            let mut transmitter = Transmitter::default();
            let admitted = (0..20)
                .filter(|&n| transmitter.admit(Time::ZERO, (n, 1_000), Some(MBIT), limit).is_some())
                .count();
            assert_eq!(admitted, fit, "{limit:?}");
        }
    }

    #[test]
    fn what_has_started_makes_room_in_bytes_too() {
        let mut transmitter = Transmitter::default();
        let limit = QueueLimit { packets: 1_000, bytes: 2_500 };
        for round in 0..100 {
            // Each item takes 1 ms: one is on the wire and two wait when it starts.
            let now = Time::from_millis(round * 3);
            let admitted = (0..5)
                .filter(|n| transmitter.admit(now, (*n, 1_250), Some(10 * MBIT), limit).is_some());
            assert_eq!(admitted.count(), 3, "round {round}");
        }
    }

    #[test]
    fn a_new_rate_replans_what_waits_and_not_what_is_on_the_wire() {
        let mut transmitter = Transmitter::default();
        for n in 0..4 {
            assert!(transmitter.admit(Time::ZERO, (n, 1_250), Some(10 * MBIT), WIDE).is_some());
        }
        let moved = transmitter.retime(Time::from_micros(500), Some(MBIT));
        let expected = [(1, 11), (2, 21), (3, 31)]
            .map(|(sequence, ms)| Moved { sequence, departs: Time::from_millis(ms) });
        assert_eq!(moved, expected);
        let unlimited = transmitter.retime(Time::from_millis(11), None);
        assert!(unlimited.iter().all(|moved| moved.departs == Time::from_millis(21)));
        assert_eq!(unlimited.len(), 1, "the one that starts at 11 ms is on the wire");
    }

    #[test]
    fn a_new_rate_forgets_the_fraction_of_the_old_one_also_where_nothing_waits() {
        let now = Time::from_nanos(5);
        let mut transmitter = Transmitter::default();
        // 8,000 bits at 700 Gbit/s are 11.43 ns. What is left over would be 300 s at 1 bit/s.
        let first = transmitter.admit(Time::ZERO, (0, 1_000), Some(700_000 * MBIT), WIDE);
        assert_eq!(first, Some(Time::from_nanos(11)));
        assert!(transmitter.retime(now, Some(1)).is_empty());
        let departs = Time::from_nanos(11) + Duration::from_secs(8);
        let mut managed = transmitter.clone();
        assert_eq!(transmitter.admit(now, (1, 1), Some(1), WIDE), Some(departs));
        assert_eq!(managed.take(now, 1, Some(1)), departs, "of those that wait elsewhere");
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut transmitter = Transmitter::default();
        let none = QueueLimit { packets: 0, bytes: 0 };
        for n in 0..100 {
            assert_eq!(transmitter.admit(Time::ZERO, (n, 9_000), None, none), Some(Time::ZERO));
        }
    }
}
