//! [`Saying`]: when a receiver says what has come, and what all say of the packet that came last.
//!
//! ```text
//!   64 packets, or asked: at once      fewer: after 20 ms      something is missing: after 1 ms
//! ```

use dacapo_base::{Time, earlier};
use dacapo_wire::acknowledgement::State;
use std::time::Duration;

/// How many packets are acknowledged at once.
pub const ACK_PACKETS: usize = 64;

/// After how long fewer are (RFC 9000, section 13.2.1, says 25 ms).
pub const ACK_AFTER: Duration = Duration::from_millis(20);

/// The same where something is missing, or came twice.
const ACK_SOON: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub struct Saying {
    /// What came last, and when.
    last: Option<(u32, u8, Time)>,
    duplicates: u32,
    /// How many have come that are not acknowledged.
    pending: usize,
    due: Option<Time>,
}

impl Saying {
    /// So many packets came `now`, the first with this number and attempt.
    pub fn note(&mut self, now: Time, (low, attempt): (u32, u8), count: usize) {
        self.last = Some((low.wrapping_add(count as u32 - 1), attempt, now));
        self.pending += count;
    }

    /// They had come before.
    pub fn note_duplicate(&mut self, now: Time) {
        self.duplicates = self.duplicates.wrapping_add(1);
        self.due = earlier(self.due, Some(now + ACK_SOON));
    }

    /// Whether enough have come to be acknowledged now; if not they are soon, where something is
    /// missing sooner.
    pub fn is_enough(&mut self, now: Time, is_missing: bool) -> bool {
        let after = if is_missing { ACK_SOON } else { ACK_AFTER };
        self.due = earlier(self.due, Some(now + after));
        self.pending >= ACK_PACKETS
    }

    /// Whether any came since it was said last.
    pub fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// When it is to be said, if not before.
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// Whether it is.
    pub fn is_due(&self, now: Time) -> bool {
        self.due.is_some_and(|at| at <= now)
    }

    /// It is said now: what all say; nothing before anything came.
    pub fn say(&mut self, now: Time) -> Option<State> {
        self.rest();
        let (number, attempt, came) = self.last?;
        let held_us = u32::try_from(now.since(came).as_micros()).unwrap_or(u32::MAX);
        Some(State { number, attempt, held_us, duplicates: self.duplicates })
    }

    /// Nothing is to be said.
    pub fn rest(&mut self) {
        (self.pending, self.due) = (0, None);
    }
}
