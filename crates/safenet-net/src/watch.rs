//! [`Watch`]: whether who waits watches for a moment before it sleeps.
//!
//! A processor that sleeps costs 20 µs and more to wake up, at each end of a round trip; so who has
//! not waited long the last time watches for [`WATCH_MAX`], while a processor is free for that.
//! Sessions do the same.
//!
//! Invariant: who waits for nothing that comes soon does not watch.

use dacapo_base::Time;
use dacapo_sys::load::Load;
use std::time::Duration;

/// So long is watched.
pub const WATCH_MAX: Duration = Duration::from_micros(50);
/// It is worth it while what is waited for comes within this time.
const BRISK: Duration = Duration::from_micros(200);

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Packets came.
    Packets,
    /// Something else was to be done, such as to send again: the wait goes on after it.
    Work,
    /// Nothing: its time was over.
    Time,
}

/// Whether watching is worth it.
#[derive(Debug, Default)]
pub struct Watch {
    load: Load,
    is_brisk: bool,
}

impl Watch {
    /// Whether who begins to wait now is to watch first.
    pub fn is_worth(&mut self, now: Time) -> bool {
        self.is_brisk && self.load.is_processor_free(now)
    }

    /// A wait is over: how long it took, and what ended it.
    pub fn waited(&mut self, span: Duration, ended: Ended) {
        self.is_brisk = span < BRISK
            && match ended {
                Ended::Packets => true,
                Ended::Work => self.is_brisk,
                Ended::Time => false,
            };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_waited_long_or_in_vain_sleeps_the_next_time() {
        let mut watch = Watch::default();
        assert!(!watch.is_brisk, "nobody knows yet");
        watch.waited(Duration::from_micros(10), Ended::Work);
        assert!(!watch.is_brisk, "nothing has come");
        watch.waited(Duration::from_micros(10), Ended::Packets);
        assert!(watch.is_brisk);
        watch.waited(Duration::from_micros(10), Ended::Work);
        assert!(watch.is_brisk, "the wait goes on");
        watch.waited(Duration::from_micros(10), Ended::Time);
        assert!(!watch.is_brisk);
        for ended in [Ended::Packets, Ended::Work] {
            watch.waited(Duration::from_micros(10), Ended::Packets);
            watch.waited(Duration::from_millis(1), ended);
            assert!(!watch.is_brisk && !watch.is_worth(Time::ZERO), "{ended:?}");
        }
    }
}
