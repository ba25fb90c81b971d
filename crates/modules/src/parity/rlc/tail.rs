//! [`Tail`]: the repairs of the last sources before a flow pauses.
//!
//! ```text
//!   s s s s s                    r     r     r                  s s s …
//!           |<---- span/2 ------>|<- span/4 ->|
//! ```
//!
//! What follows a source protects it. Where nothing follows for half of the time in which that is
//! of use, repairs leave by themselves: as many as the sources have had that came since the flow
//! paused before, rounded up, so that a flow of single packets that are far apart sends each twice.
//! They are spread, so that a run of losses does not take them all.
//!
//! The timer is armed once in half a span, however many sources come: it looks whether any did.

use super::sending::{Sending, Terms};
use dacapo_base::Time;
use std::time::Duration;

/// The shortest time between repairs that a timer is armed for.
const GRAIN: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(super) struct Tail {
    is_armed: bool,
    /// How many repairs are still to be sent, and how far they are apart.
    left: usize,
    apart: Duration,
}

/// How long nothing must have come until a flow pauses.
pub(super) fn pause(span: Duration) -> Duration {
    span / 2
}

impl Tail {
    /// When to look whether the flow has paused, unless that is armed already.
    pub fn arm(&mut self, sending: &Sending, terms: &Terms) -> Option<Time> {
        if self.is_armed {
            return None;
        }
        let at = sending.last()? + pause(terms.span);
        self.is_armed = true;
        Some(at)
    }

    /// How many repairs are due now.
    pub fn due(&mut self, now: Time, sending: &mut Sending, terms: &Terms) -> usize {
        let has_paused = sending.last().is_some_and(|last| last + pause(terms.span) <= now);
        if self.left == 0 && has_paused && sending.is_flowing() {
            self.left = sending.pause(terms);
            self.apart = terms.span / 4 / self.left.max(1) as u32;
        }
        let together = GRAIN.as_nanos().div_ceil(self.apart.as_nanos().max(1));
        let due = self.left.min(together as usize);
        self.left -= due;
        due
    }

    /// When to look again, after that.
    pub fn arm_again(&mut self, now: Time, sending: &Sending, terms: &Terms) -> Option<Time> {
        let next = match sending.last() {
            None => None,
            Some(_) if self.left > 0 => Some(now + self.apart.max(GRAIN)),
            Some(last) if sending.is_flowing() => Some(last + pause(terms.span)),
            // Then nothing is kept any more.
            Some(last) => Some(last + terms.span),
        };
        self.is_armed = next.is_some();
        next
    }

    /// The flow ends: how many repairs are due at once.
    pub fn end(&mut self, sending: &mut Sending, terms: &Terms) -> usize {
        let due = self.left + sending.pause(terms);
        *self = Self::default();
        due
    }
}
