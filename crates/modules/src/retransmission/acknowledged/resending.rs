//! [`Resending`]: what is to be sent again when the network takes it, and how much of it may be.
//!
//! ```text
//!   lost, probes ----> ranges ----the network takes so many----> what has not come, first to last
//! ```
//!
//! Invariants: whatever is said, no more is sent again than [`PARTS`] times as many packets as were
//! sent and have come (or [`PARTS_BEHIND`] times), and beyond that [`PROBES`] at a time; at most
//! [`AT_ONCE`] at once.

use super::outstanding::Outstanding;
use super::sending::Again;
use crate::window::WINDOW;
use dacapo_base::{Ranges, Time};
use std::ops::Range;
use std::time::Duration;

/// How many packets are sent again at once; the others follow when the network takes more.
const AT_ONCE: u64 = 256;

/// How often a packet is sent again on average at most: three in four are lost then.
const PARTS: u64 = 3;

/// The same where all behind a lost packet are sent again: with 64 packets under way a quarter of
/// them is lost then.
const PARTS_BEHIND: u64 = 16;

/// How many packets a probe has at most.
const PROBES: u64 = 2;

/// When what there was no memory for is tried anew.
const SOON: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(super) struct Resending {
    /// How often a packet is sent again on average at most.
    parts: u64,
    /// Some of it may have come.
    ranges: Ranges,
    /// There was no memory for it: it waits until then.
    short_until: Option<Time>,
    /// How many packets may be sent again, and how many beyond that, as probes.
    allowance: u64,
    probing: u64,
}

impl Resending {
    pub fn new(goes: Again) -> Self {
        let parts = if goes == Again::Lost { PARTS } else { PARTS_BEHIND };
        Self { parts, ..Self::default() }
    }

    /// So many packets more were sent, or have come.
    pub fn allow(&mut self, packets: u64) {
        let most = self.parts * WINDOW as u64;
        self.allowance = self.allowance.saturating_add(self.parts * packets).min(most);
    }

    /// These are to be sent again.
    pub fn insert(&mut self, range: Range<u64>) {
        self.ranges.insert(range);
    }

    /// These are, to ask.
    pub fn probe(&mut self, first: u64, last: u64) {
        self.ranges.insert(first..first + 1);
        self.ranges.insert(last..last + 1);
        self.probing = PROBES;
    }

    /// Whether something is to be sent again that may be.
    pub fn is_wanted(&self) -> bool {
        !self.ranges.is_empty() && self.short_until.is_none() && self.allowance + self.probing > 0
    }

    /// How many may be, where the network takes so many.
    pub fn room(&self, packets: u64) -> u64 {
        packets.min(AT_ONCE).min(self.allowance + self.probing)
    }

    /// The first that has not come, and those that follow it, at most so many.
    pub fn next(&mut self, outstanding: &Outstanding, count_max: u64) -> Option<Range<u64>> {
        let has_come = |number: &u64| outstanding.get(*number).is_none();
        loop {
            let range = self.ranges.first()?.clone();
            let Some(first) = range.clone().find(|number| !has_come(number)) else {
                self.ranges.remove(range, |_| ());
                continue;
            };
            self.ranges.remove(range.start..first, |_| ());
            let most = range.end.min(first + count_max);
            let end = (first..most).find(has_come).unwrap_or(most);
            return Some(first..end);
        }
    }

    /// These were sent again.
    pub fn note_sent(&mut self, range: Range<u64>) {
        let count = range.end - range.start;
        self.probing -= self.probing.min(count.saturating_sub(self.allowance));
        self.allowance = self.allowance.saturating_sub(count);
        self.ranges.remove(range, |_| ());
    }

    /// There is no memory now.
    pub fn wait(&mut self, now: Time) {
        self.short_until = Some(now + SOON);
    }

    /// When it is tried anew.
    pub fn due(&self) -> Option<Time> {
        self.short_until
    }

    /// The time has come that [`Resending::due`] said, or not yet.
    pub fn look(&mut self, now: Time) {
        self.short_until = self.short_until.filter(|at| *at > now);
    }

    /// Forgets what is to be sent again.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.short_until = None;
    }
}
