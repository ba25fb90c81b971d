//! [`Watch`]: how long a connection has been silent, and what is done about it.
//!
//! ```text
//!   heard ------- 10 s nothing at all ------> ping          keeps a way through routers open
//!   sent -------- 1 s nothing heard --------> hurry         again every second
//!   sent -------- patience, nothing heard --> dead
//! ```
//!
//! Why: QUIC's own timers double with every loss, so that after an outage it may wait as long again
//! as that was; a hurried connection goes on within a second. And its idle timeout is off: how
//! long a stream may be silent is the session's to say.

use dacapo_base::Time;
use std::time::Duration;

/// After so long without anything a sign of life is asked for.
const QUIET: Duration = Duration::from_secs(10);

/// Who does not hear for so long asks again.
const HURRY: Duration = Duration::from_secs(1);

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Ask for a sign of life.
    Ping,
    /// The same, and send what may be lost once more.
    Hurry,
    /// It is dead.
    GiveUp,
}

/// The silence of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// A count that rises with everything authentic that came, as it was at the last look.
    heard: u64,
    heard_at: Time,
    /// When it was looked at last since something was sent, if nothing has been heard since.
    asked_at: Option<Time>,
    /// How long nothing has been heard since then, as far as this end has looked: time in which it
    /// did not run is not silence of the other.
    silent: Duration,
    patience: Duration,
}

impl Watch {
    pub(super) fn new(now: Time, patience: Duration) -> Self {
        Self { heard: 0, heard_at: now, asked_at: None, silent: Duration::ZERO, patience }
    }

    pub(super) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// So much has been heard up to now.
    pub(super) fn handle_heard(&mut self, now: Time, heard: u64) {
        if heard != self.heard {
            (self.heard, self.heard_at, self.asked_at) = (heard, now, None);
        }
    }

    /// Something was sent.
    pub(super) fn handle_sent(&mut self, now: Time) {
        if self.asked_at.is_none() {
            (self.asked_at, self.silent) = (Some(now), Duration::ZERO);
        }
    }

    /// When something is due.
    pub(super) fn next_due(&self) -> Time {
        match self.asked_at {
            None => self.heard_at + QUIET,
            Some(at) => at + HURRY.min(self.patience.saturating_sub(self.silent)),
        }
    }

    /// What is due now.
    pub(super) fn poll(&mut self, now: Time) -> Option<Due> {
        if now < self.next_due() {
            return None;
        }
        let Some(at) = self.asked_at.replace(now) else {
            self.silent = Duration::ZERO;
            return Some(Due::Ping);
        };
        self.silent += now.since(at).min(HURRY);
        Some(if self.silent >= self.patience { Due::GiveUp } else { Due::Hurry })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Time = Time::from_millis;

    fn watch() -> Watch {
        Watch::new(AT(0), Duration::from_secs(5))
    }

    #[test]
    fn who_hears_nothing_hurries_every_second_and_gives_up_in_time() {
        let mut watch = watch();
        watch.handle_sent(AT(100));
        watch.handle_sent(AT(900));
        let mut due = Vec::new();
        for _ in 0..5 {
            let at = watch.next_due();
            due.push((at, watch.poll(at)));
        }
        let hurry = |ms| (AT(ms), Some(Due::Hurry));
        let all = [hurry(1_100), hurry(2_100), hurry(3_100), hurry(4_100)];
        assert_eq!(due[..4], all);
        assert_eq!(due[4], (AT(5_100), Some(Due::GiveUp)));
    }

    #[test]
    fn what_is_heard_ends_the_silence_and_a_quiet_way_is_kept_open() {
        let mut watch = watch();
        watch.handle_sent(AT(100));
        watch.handle_heard(AT(200), 0);
        assert_eq!(watch.next_due(), AT(1_100), "nothing authentic came");
        watch.handle_heard(AT(300), 1);
        assert_eq!(watch.poll(AT(10_299)), None);
        assert_eq!(watch.poll(AT(10_300)), Some(Due::Ping));
        assert_eq!(watch.poll(AT(11_300)), Some(Due::Hurry), "the ping was not answered");
        watch.handle_heard(AT(11_400), 2);
        assert_eq!(watch.next_due(), AT(21_400));
    }

    #[test]
    fn patience_can_grow_while_nothing_is_heard() {
        let mut watch = watch();
        watch.handle_sent(AT(0));
        for second in 1..5 {
            assert_eq!(watch.poll(AT(1_000 * second)), Some(Due::Hurry));
        }
        watch.set_patience(Duration::from_secs(6));
        assert_eq!(watch.poll(AT(5_000)), Some(Due::Hurry));
        assert_eq!(watch.poll(AT(6_000)), Some(Due::GiveUp));
    }

    #[test]
    fn time_in_which_nobody_looked_is_not_silence() {
        let mut watch = watch();
        watch.handle_sent(AT(0));
        assert_eq!(watch.poll(AT(3_600_000)), Some(Due::Hurry));
        assert_eq!(watch.next_due(), AT(3_601_000));
    }
}
