//! [`Tail`]: what was seen of the end of an epoch.

use dacapo_base::Time;
use std::time::Duration;

/// What was seen of the end of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Since when it is known that the sender has sent all of it.
    left: Option<Time>,
    /// When something came last that was missing.
    came: Time,
}

impl Tail {
    /// Its END came, or something of a later epoch.
    pub fn note_left(&mut self, now: Time) {
        self.left.get_or_insert(now);
    }

    /// A unit came that was missing, or contact is back.
    pub fn note_came(&mut self, now: Time) {
        self.came = now;
    }

    /// This end did not run for so long: that does not count.
    pub fn shift(&mut self, by: Duration) {
        self.came += by;
        self.left = self.left.map(|at| at + by);
    }

    /// Since when it is known that the sender has sent all of it.
    pub fn left(self) -> Option<Time> {
        self.left
    }

    /// When something came last that was missing.
    pub fn came(self) -> Time {
        self.came
    }
}
