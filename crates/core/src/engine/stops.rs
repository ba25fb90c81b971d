//! Time in which this end did not run: it does not count for what is waited for.
//!
//! ```text
//!   next_deadline said            handle_timeout is called
//!     --------------> due |------------ stopped -----------> now    all deadlines move so far
//! ```
//!
//! A process that was stopped, or whose host slept, finds at once that every deadline has passed:
//! before the other end, which may have been stopped with it, could answer.
//!
//! Invariant: who is called when it has asked to be has not been stopped, however long that was.

use super::{Core, SessionId};
use dacapo_base::Time;
use std::time::Duration;

/// Who is called later than this after its time did not run.
const STOPPED_AFTER: Duration = Duration::from_secs(1);

/// When a core is to be looked at, as far as who drives it has asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looks {
    due: Option<Time>,
    /// What was noticed when it was asked again.
    stopped: Duration,
}

impl Looks {
    /// Who drives the core asks at `now` when it is due.
    pub fn tell(&mut self, now: Time, due: Option<Time>) {
        self.notice(now);
        self.due = due.map(|due| due.max(now));
    }

    /// It is looked at; for how long it was stopped before that.
    pub fn look(&mut self, now: Time) -> Option<Duration> {
        self.notice(now);
        // Who drives it asks at once, or looks again.
        self.due = Some(now);
        let stopped = std::mem::take(&mut self.stopped);
        (!stopped.is_zero()).then_some(stopped)
    }

    fn notice(&mut self, now: Time) {
        let late = self.due.take().map_or(Duration::ZERO, |due| now.since(due));
        if late > STOPPED_AFTER {
            self.stopped += late;
        }
    }
}

impl Core {
    /// Moves every deadline by the time in which this end did not run.
    pub(super) fn note_stop(&mut self, now: Time) {
        let Some(stopped) = self.looks_at.look(now) else { return };
        let peers: Vec<_> = self.peers.iter().map(|(id, _)| *id).collect();
        for id in peers {
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.deadline = peer.deadline.map(|at| at + stopped);
                peer.heard_at += stopped;
                peer.lists.iter_mut().for_each(|(at, _)| *at += stopped);
            }
        }
        let sessions: Vec<SessionId> = self.sessions.iter().map(|(id, _)| *id).collect();
        for id in sessions {
            // Of one without contact they move when contact is back.
            if !self.is_suspended(id) {
                self.shift_watchdogs(id, stopped);
                self.shift_flows(id, stopped);
            }
        }
    }

    fn shift_flows(&mut self, id: SessionId, by: Duration) {
        let flows = self.sessions.get_mut(&id).into_iter().flat_map(|it| &mut it.flows);
        flows.for_each(|flow| flow.end.shift(by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_called_when_it_is_due_has_not_been_stopped() {
        let at = Time::from_millis;
        let mut looks = Looks::default();
        assert_eq!(looks.look(at(70_000)), None, "it begins");
        looks.tell(at(70_000), Some(at(100_000)));
        assert_eq!(looks.look(at(100_900)), None, "that is no stop");
        looks.tell(at(100_900), None);
        assert_eq!(looks.look(at(500_000)), None, "nothing was due");
        looks.tell(at(500_000), Some(at(1_000)));
        assert_eq!(looks.look(at(560_000)), Some(Duration::from_secs(60)), "it was overdue");
        assert_eq!(looks.look(at(640_000)), Some(Duration::from_secs(80)), "before it was asked");
        looks.tell(at(640_000), Some(at(900_000)));
        assert_eq!(looks.look(at(700_000)), None, "something came before");
        looks.tell(at(700_000), Some(at(700_500)));
        looks.tell(at(708_500), Some(at(709_000)));
        assert_eq!(looks.look(at(709_000)), Some(Duration::from_secs(8)), "asked again first");
    }
}
