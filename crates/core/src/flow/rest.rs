//! [`Rest`]: how long what is missing of an old epoch is waited for.
//!
//! ```text
//!   sender     n1 n2 n3 n4 END BEGIN e1 e2        one queue, in the order in which they were fed
//!   receiver   n1 n2    n4 END BEGIN e1 e2     n3
//!                          |<---- wait ---->|  late: counted from END, or anything of e
//!   control    SWITCHED, at any time              says where e begins, not what has left
//! ```
//!
//! Who sees END, or a packet of a later epoch, knows that all of the old one has left the sender:
//! they leave one queue in order. Then what is missing is lost, or late by as much as delays
//! differ. To know where the new epoch begins is no such sign: SWITCHED goes by the control
//! connection, and overtakes what waits for the pace, for as long as that takes.
//!
//! How much delays will differ cannot be known from a calm that was; that they seldom differ by
//! more than a round trip can. Where nobody waits for the old epoch there is no reason to be
//! sparing.
//!
//! What it is not: over a reliable transport, where what is missing comes (`receiver`).
//!
//! Invariant: a unit that comes begins the wait anew, and there are no more of those than missing
//! ones; so every old epoch is over some time, unless contact is lost and the rest waits for that.

use crate::flow::receiver::PathTimes;
use dacapo_base::Time;
use std::time::Duration;

/// The least time that a new epoch waits for the old one.
const HOLD_MIN: Duration = Duration::from_millis(5);

/// The least time that the end of a flow is waited for, or of an epoch for which nobody waits.
const END_WAIT_MIN: Duration = Duration::from_millis(200);

/// Without a sign that all of it has left, an epoch is given up when nothing has come for so long;
/// the sender gives it up on its own after 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// How long the end of a flow waits for its last packets; `modules` is what those wait themselves.
pub(crate) fn end_wait(path: PathTimes, modules: Duration) -> Duration {
    (path.rtt * 2).max(END_WAIT_MIN).max(modules)
}

/// What an old epoch is waited for by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// Units that must not overtake it: they are held, and every moment delays them.
    Order,
    /// Nobody.
    Nobody,
}

/// What was seen of an epoch's rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// Since when it is known that the sender has sent all of it.
    left: Option<Time>,
    /// When something came last that was missing.
    came: Time,
}

impl Rest {
    pub fn new() -> Self {
        Self { left: None, came: Time::ZERO }
    }

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

    /// When what is still missing is lost, as far as is known now: the next epoch's base is known
    /// since `base_at`, and the modules wait for so long themselves.
    pub fn over_at(
        &self,
        base_at: Time,
        path: PathTimes,
        modules: Duration,
        behind: Behind,
    ) -> Option<Time> {
        let Some(left) = self.left else {
            // What waits at the sender until contact is back has not left.
            return (!path.is_lost).then(|| base_at.max(self.came) + SILENCE_MAX);
        };
        let wait = match behind {
            Behind::Order => path.rtt.max(path.variation).max(HOLD_MIN).max(modules),
            Behind::Nobody => end_wait(path, modules).max(path.variation),
        };
        Some(left.max(self.came) + wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    const PATH: PathTimes = PathTimes { rtt: ms(40), variation: ms(3), is_lost: false };

    #[test]
    fn to_know_the_base_is_no_sign_that_all_has_left() {
        let mut rest = Rest::new();
        let over = |rest: &Rest| rest.over_at(at(100), PATH, ms(0), Behind::Order);
        assert_eq!(over(&rest), Some(at(5_100)));
        rest.note_came(at(300));
        assert_eq!(over(&rest), Some(at(5_300)));
        rest.note_left(at(320));
        rest.note_left(at(400));
        assert_eq!(over(&rest), Some(at(360)), "from the first sign on");
        rest.note_came(at(350));
        assert_eq!(over(&rest), Some(at(390)), "what comes begins the wait anew");
    }

    #[test]
    fn the_wait_is_the_longest_of_what_may_be_late() {
        let mut rest = Rest::new();
        rest.note_left(at(1_000));
        let over = |path, modules, behind| rest.over_at(at(1_000), path, modules, behind);
        let near = PathTimes { rtt: ms(1), variation: ms(2), is_lost: false };
        assert_eq!(over(near, ms(0), Behind::Order), Some(at(1_005)));
        assert_eq!(over(near, ms(70), Behind::Order), Some(at(1_070)));
        let unsteady = PathTimes { variation: ms(90), ..near };
        assert_eq!(over(unsteady, ms(0), Behind::Order), Some(at(1_090)));
        assert_eq!(over(near, ms(0), Behind::Nobody), Some(at(1_200)));
        let far = PathTimes { rtt: ms(300), ..near };
        assert_eq!(over(far, ms(0), Behind::Order), Some(at(1_300)));
        assert_eq!(over(far, ms(0), Behind::Nobody), Some(at(1_600)));
    }

    #[test]
    fn what_waits_for_contact_is_not_given_up() {
        let mut rest = Rest::new();
        let lost = PathTimes { is_lost: true, ..PATH };
        assert_eq!(rest.over_at(at(100), lost, ms(0), Behind::Order), None);
        rest.note_left(at(200));
        assert_eq!(rest.over_at(at(100), lost, ms(0), Behind::Order), Some(at(240)));
    }
}
