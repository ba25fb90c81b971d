//! [`Liveness`]: signs of life of a peer on the control connection, and when it is asked for some.
//!
//! The data path has probes of its own; these are for a peer without one, and for what was said
//! and is to arrive soon.

use dacapo_base::Time;
use std::time::Duration;

/// After which silence a peer without a data path is asked for life, how often, and when it is
/// gone: after such a silence, and so many questions in vain.
struct Asking {
    after: Duration,
    every: Duration,
    lost: Duration,
    times: u8,
}

/// Nothing depends on it.
const IDLE: Asking = Asking {
    after: Duration::from_secs(10),
    every: Duration::from_secs(2),
    lost: Duration::from_secs(30),
    times: 10,
};

/// Sessions wait for it. The last questions have had too little time; with 30 % lost each way the
/// answers to 26 fail with 0.51^26 < 10^-7.
const IN_SESSION: Asking = Asking {
    after: Duration::from_millis(750),
    every: ACKS_EVERY,
    lost: Duration::from_millis(5_700),
    times: 33,
};

impl Asking {
    fn of(has_sessions: bool) -> &'static Self {
        if has_sessions { &IN_SESSION } else { &IDLE }
    }
}

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
    /// How often it was asked since it was heard.
    asked: u8,
}

impl Liveness {
    pub fn new(now: Time) -> Self {
        Self { heard: 0, heard_at: now, acked: 0, ping_at: now, acks: 0, asked: 0 }
    }

    /// What the connection has counted; true when something has come.
    pub fn handle_counts(&mut self, now: Time, heard: u64, acked: u64) -> bool {
        let is_new = heard != self.heard;
        if is_new {
            (self.heard, self.heard_at, self.asked) = (heard, now, 0);
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
            self.asked = self.asked.saturating_add(1);
        }
        is_due
    }

    /// When a peer that is not probed is due.
    pub fn unprobed_due(&self, has_sessions: bool) -> Time {
        let asking = Asking::of(has_sessions);
        if self.asked >= asking.times {
            return self.heard_at + asking.lost;
        }
        (self.heard_at + asking.after).max(self.ping_at)
    }

    /// A peer that has not opened the data path yet is asked for life on the control connection.
    pub fn watch_unprobed(&mut self, now: Time, has_sessions: bool) -> Silence {
        if self.unprobed_due(has_sessions) > now {
            return Silence::None;
        }
        let asking = Asking::of(has_sessions);
        if self.asked >= asking.times {
            return Silence::Lost;
        }
        (self.asked, self.ping_at) = (self.asked.saturating_add(1), now + asking.every);
        Silence::Ask
    }

    /// For how long nothing has come of it.
    pub fn silence(&self, now: Time) -> Duration {
        now.since(self.heard_at)
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
        assert_eq!(life.unprobed_due(false), at(10_000));
        assert_eq!(life.watch_unprobed(at(9_999), false), Silence::None);
        for asked in 0..10 {
            let due = at(10_000 + 2_000 * asked);
            assert_eq!(life.watch_unprobed(due, false), Silence::Ask);
            assert_eq!(life.watch_unprobed(due, false), Silence::None);
        }
        assert_eq!(life.unprobed_due(false), at(30_000));
        assert_eq!(life.watch_unprobed(at(30_000), false), Silence::Lost);
        assert_eq!(life.silence(at(30_000)), Duration::from_secs(30));
        life.shift(Duration::from_secs(1));
        assert_ne!(life.watch_unprobed(at(30_999), false), Silence::Lost, "that does not count");
        assert!(life.handle_counts(at(30_999), 1, 0));
        assert_eq!(life.watch_unprobed(at(40_998), false), Silence::None);
    }

    #[test]
    fn where_sessions_wait_for_it_it_is_lost_after_five_seconds_of_questions() {
        for begin in [0, 9_000, 29_000] {
            let mut life = Liveness::new(at(0));
            let first = at(begin.max(750));
            for asked in 0..33 {
                let due = first + Duration::from_millis(150) * asked;
                assert_eq!(life.watch_unprobed(due, true), Silence::Ask, "{begin} {asked}");
            }
            let over = at(5_700).max(first + Duration::from_millis(4_800));
            assert!(life.unprobed_due(true) <= over);
            assert_eq!(life.watch_unprobed(over, true), Silence::Lost);
            assert!(life.handle_counts(over, 1, 0), "one answer is enough");
            assert_eq!(life.watch_unprobed(over, true), Silence::None);
        }
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
