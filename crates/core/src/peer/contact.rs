//! [`Contact`]: whether there is contact with a peer: lost, back, given up.
//!
//! ```text
//!            no answer for 2.8 s                 a probe is answered
//!   contact ---------------------> contact lost ---------------------> contact
//!      |  no session is set up          |  longer than a session waits: it is given up
//!      v                                |  the peer was started anew: all are
//!    the peer is lost <-----------------'  when none is left
//! ```
//!
//! While contact is lost sources are paused and nothing of a flow is sent; what was fed waits, what
//! comes all the same is taken, and the watchdogs of commands stand still. The dialer tries further
//! connections meanwhile: the first WELCOME says whether the peer was started anew.
//!
//! Invariants: each session hears of lost contact and of its return in turn; a peer without contact
//! has at least one session that is set up, and none that closes.

use dacapo_base::Time;
use std::time::Duration;

/// When contact is back a stream may take so long until something is acknowledged.
const CALM_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Contact {
    /// Since when contact is lost and flows wait for it.
    lost_since: Option<Time>,
    /// Contact came back, and streams need no more patience than usual from then on.
    calm_at: Option<Time>,
    /// The application has asked for the connection while contact was lost.
    is_asked_for: bool,
}

impl Contact {
    pub fn lost_since(&self) -> Option<Time> {
        self.lost_since
    }

    pub fn calm_at(&self) -> Option<Time> {
        self.calm_at
    }

    /// The application asks for the peer.
    pub fn ask(&mut self) {
        self.is_asked_for = self.lost_since.is_some();
    }

    pub fn lose(&mut self, now: Time) {
        (self.lost_since, self.calm_at) = (Some(now), None);
    }

    /// It is back: after how long, and whether the application has asked meanwhile.
    pub fn restore(&mut self, now: Time) -> Option<(Duration, bool)> {
        let since = self.lost_since.take()?;
        self.calm_at = Some(now + CALM_AFTER);
        Some((now.since(since), std::mem::take(&mut self.is_asked_for)))
    }

    /// Some time after contact is back streams are what they were before: true once.
    pub fn calms_down(&mut self, now: Time) -> bool {
        let is_due = self.lost_since.is_none() && self.calm_at.is_some_and(|at| at <= now);
        if is_due {
            self.calm_at = None;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_once_and_calms_down_five_seconds_later() {
        let at = |secs| Time::ZERO + Duration::from_secs(secs);
        let mut contact = Contact::default();
        assert_eq!(contact.restore(at(1)), None);
        contact.ask();
        contact.lose(at(2));
        assert_eq!(contact.lost_since(), Some(at(2)));
        assert!(!contact.calms_down(at(60)));
        assert_eq!(contact.restore(at(9)), Some((Duration::from_secs(7), false)));
        assert_eq!(contact.restore(at(9)), None);
        assert!(!contact.calms_down(at(13)) && contact.calms_down(at(14)));
        assert!(!contact.calms_down(at(15)), "once");
        contact.lose(at(20));
        contact.ask();
        assert_eq!(contact.restore(at(21)), Some((Duration::from_secs(1), true)));
        contact.lose(at(22));
        assert_eq!(contact.calm_at(), None, "it is lost again before that");
    }
}
