//! [`Liveness`]: signs of life of a peer on the control connection, and when it is asked for some.
//!
//! The data path has probes of its own; these are for a peer without one, and for what was said
//! and is to arrive soon.

use dacapo_base::Time;
use std::time::Duration;

/// When a peer without a data path is asked for life, how often, and when contact with it is lost.
const UNPROBED_ASK: Duration = Duration::from_secs(10);
const UNPROBED_EVERY: Duration = Duration::from_secs(2);
pub(super) const UNPROBED_LOST: Duration = Duration::from_secs(30);

/// After something was said on the control connection it is asked for so many acknowledgements,
/// this often: enough for what was lost three times in a row.
const ACKS: u8 = 8;
const ACKS_EVERY: Duration = Duration::from_millis(150);

/// What is to be done about a peer that is not probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// It lives.
    None,
    /// It is to be asked.
    Ask,
    /// It is gone.
    Lost,
}

pub(super) struct Liveness {
    /// What [`crate::control::Control::heard`] said last.
    heard: u64,
    /// When that changed last.
    heard_at: Time,
    /// What [`crate::control::Control::acked`] said last.
    acked: u64,
    /// When QUIC is asked for a sign of life next, while our probes are not answered or none is
    /// asked.
    ping_at: Time,
    /// How many acknowledgements are still asked for.
    acks: u8,
}

impl Liveness {
    pub fn new(now: Time) -> Self {
        Self { heard: 0, heard_at: now, acked: 0, ping_at: now, acks: 0 }
    }

    /// What the connection has counted; true when something has come.
    pub fn handle_counts(&mut self, now: Time, heard: u64, acked: u64) -> bool {
        let is_new = heard != self.heard;
        if is_new {
            (self.heard, self.heard_at) = (heard, now);
        }
        if acked != std::mem::replace(&mut self.acked, acked) {
            self.acks = self.acks.saturating_sub(1);
        }
        is_new
    }

    /// What was said just now, or before contact was lost, is to arrive soon: QUIC notices what was
    /// lost by what is acknowledged after it, long before its own timers, which back off.
    pub fn solicit_acks(&mut self, now: Time) {
        if self.acks == 0 {
            self.ping_at = now + ACKS_EVERY;
        }
        self.acks = ACKS;
    }

    /// Whether acknowledgements are asked for.
    pub fn solicits(&self) -> bool {
        self.acks > 0
    }

    pub fn ping_at(&self) -> Time {
        self.ping_at
    }

    /// It is to be asked at once.
    pub fn ping_now(&mut self, now: Time) {
        self.ping_at = now;
    }

    /// Whether to ask now, for who is to be asked.
    pub fn ping(&mut self, now: Time) -> bool {
        let is_due = self.ping_at <= now;
        if is_due {
            self.ping_at = now + ACKS_EVERY;
        }
        is_due
    }

    /// When a peer that is not probed is due.
    pub fn unprobed_due(&self) -> Time {
        (self.heard_at + UNPROBED_ASK).max(self.ping_at).min(self.heard_at + UNPROBED_LOST)
    }

    /// A peer that has not opened the data path yet is asked for life on the control connection.
    pub fn watch_unprobed(&mut self, now: Time) -> Silence {
        let silence = now.since(self.heard_at);
        if silence >= UNPROBED_LOST {
            Silence::Lost
        } else if silence >= UNPROBED_ASK && self.ping_at <= now {
            self.ping_at = now + UNPROBED_EVERY;
            Silence::Ask
        } else {
            Silence::None
        }
    }

    /// This time does not count.
    pub fn shift(&mut self, by: Duration) {
        self.heard_at += by;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn a_silent_peer_is_asked_every_two_seconds_from_ten_on_and_lost_after_thirty() {
        let mut life = Liveness::new(at(0));
        assert_eq!(life.unprobed_due(), at(10_000));
        assert_eq!(life.watch_unprobed(at(9_999)), Silence::None);
        assert_eq!(life.watch_unprobed(at(10_000)), Silence::Ask);
        assert_eq!(life.watch_unprobed(at(11_999)), Silence::None);
        assert_eq!(life.unprobed_due(), at(12_000));
        assert_eq!(life.watch_unprobed(at(12_000)), Silence::Ask);
        assert_eq!(life.watch_unprobed(at(30_000)), Silence::Lost);
        life.shift(Duration::from_secs(1));
        assert_ne!(life.watch_unprobed(at(30_999)), Silence::Lost, "that second does not count");
        assert!(life.handle_counts(at(30_999), 1, 0));
        assert_eq!(life.watch_unprobed(at(40_998)), Silence::None);
    }

    #[test]
    fn what_was_said_is_asked_about_until_eight_acknowledgements_have_come() {
        let mut life = Liveness::new(at(0));
        assert!(!life.solicits());
        life.solicit_acks(at(0));
        assert!(life.solicits() && !life.ping(at(149)));
        assert!(life.ping(at(150)) && !life.ping(at(150)), "every 150 ms");
        for acked in 1..=8 {
            assert!(life.solicits());
            assert!(!life.handle_counts(at(200), 0, acked), "an acknowledgement alone is no news");
        }
        assert!(!life.solicits());
        life.solicit_acks(at(300));
        life.solicit_acks(at(400));
        assert_eq!(life.ping_at(), at(450), "what is said later does not put it off");
        life.ping_now(at(410));
        assert!(life.ping(at(410)));
    }
}
