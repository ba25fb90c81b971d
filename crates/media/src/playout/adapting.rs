//! [`Adapting`]: how much of the playout delay is used, and how much of it is kept.
//!
//! ```text
//!   most    ------.                          the delay that was agreed: what is repaired by then
//!   kept           \______________/----      follows what is used, between `least` and `most`
//!   used      .  .    .   .  .   '   .       of the last arrivals the largest, and an eighth more
//!   least   - - - - - - - - - - - - - -
//! ```
//!
//! Nothing is known at first, so as much is kept as may be. What is kept becomes less by 5 ms in a
//! second, which nobody sees or hears, and more by 100 ms in a second where more is used: what is
//! late is not shown, and that everybody sees.
//!
//! Sources: the largest of two windows, as the least is found for a round trip (Kathleen Nichols'
//! windowed minimum); Moon, Kurose and Towsley, "Packet Audio Playout Delay Adjustment" (1998), for
//! following what is seen instead of a mean and its deviation.
//!
//! Invariants: what is kept lies between the bounds; between two arrivals it becomes less by one
//! part in 200 of the time between them at most, and more by one in 10; memory does not grow.

use dacapo_base::Time;
use std::time::Duration;

/// The largest of this one and the one before it counts.
const WINDOW: Duration = Duration::from_secs(10);

/// What is kept beyond what is used: an eighth, and so much.
const MARGIN_NS: i64 = 3_000_000;

/// What is kept moves by one of so many parts of the time.
const LESS: i64 = 200;
const MORE: i64 = 10;

/// Longer than that nothing has come, and nothing is known of the time.
const GAP_MAX: Duration = Duration::from_secs(1);

/// How much of the playout delay is kept.
#[derive(Clone, Debug)]
pub(super) struct Adapting {
    least_ns: i64,
    most_ns: i64,
    kept_ns: i64,
    /// The most that was used in this window, and in the one before it.
    used_ns: [Option<i64>; 2],
    /// When this window began.
    since: Option<Time>,
    /// When something came last.
    last: Option<Time>,
}

impl Adapting {
    /// Between these; the whole of `most` where there is no least.
    pub fn new(least: Option<Duration>, most: Duration) -> Self {
        let most_ns = whole(most);
        let least_ns = least.map_or(most_ns, whole).min(most_ns);
        let (used_ns, since, last) = ([None; 2], None, None);
        Self { least_ns, most_ns, kept_ns: most_ns, used_ns, since, last }
    }

    /// How much is kept.
    pub fn kept(&self) -> Duration {
        Duration::from_nanos(self.kept_ns.unsigned_abs())
    }

    /// How much earlier than with the whole delay things are shown: 0 or less.
    pub fn moved_ns(&self) -> i64 {
        self.kept_ns.saturating_sub(self.most_ns)
    }

    /// How much there should be, by what was used; all of it while not enough is known.
    pub fn wanted(&self) -> Duration {
        Duration::from_nanos(self.wanted_ns().unsigned_abs())
    }

    fn wanted_ns(&self) -> i64 {
        let [now, before] = self.used_ns;
        // A window has to be over, unless more than all that is kept was used.
        let Some(before) = before else { return self.most_ns };
        let used = now.map_or(before, |now| now.max(before)).max(0);
        let wanted = used.saturating_add(used >> 3).saturating_add(MARGIN_NS);
        wanted.clamp(self.least_ns, self.most_ns)
    }

    /// Something has come `now`, and has used so much of the delay; flows that are shown together
    /// want `together` of it.
    pub fn handle_arrival(&mut self, now: Time, used_ns: i64, together: Duration) {
        let since = *self.since.get_or_insert(now);
        if now.since(since) >= WINDOW {
            self.used_ns = [None, self.used_ns.first().copied().flatten()];
            self.since = Some(now);
        }
        if let Some(most) = self.used_ns.first_mut() {
            *most = Some(most.map_or(used_ns, |most| most.max(used_ns)));
        }
        let passed = self.last.replace(now).map_or(Duration::ZERO, |last| now.since(last));
        let passed = whole(passed.min(GAP_MAX));
        let wanted = self.wanted_ns().max(whole(together)).clamp(self.least_ns, self.most_ns);
        let less = passed.checked_div(LESS).unwrap_or(0);
        let more = passed.checked_div(MORE).unwrap_or(0);
        let lowest = self.kept_ns.saturating_sub(less);
        let highest = self.kept_ns.saturating_add(more);
        self.kept_ns = wanted.clamp(lowest, highest);
    }

    /// What comes does not fit what was known: all of it is kept again.
    pub fn begin_anew(&mut self) {
        (self.kept_ns, self.used_ns) = (self.most_ns, [None; 2]);
        (self.since, self.last) = (None, None);
    }
}

fn whole(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "what overflows fails the test")]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Arrivals 20 ms apart from `from` seconds on, which use so much; what is kept then.
    fn arrive(adapting: &mut Adapting, seconds: std::ops::Range<u64>, used: u64) -> Duration {
        for at in (seconds.start * 1_000..seconds.end * 1_000).step_by(20) {
            let before = adapting.kept();
            adapting.handle_arrival(Time::from_millis(at), whole(ms(used)), Duration::ZERO);
            let kept = adapting.kept();
            assert!(before.saturating_sub(kept) <= ms(20) / 200, "{before:?} {kept:?}");
            assert!(kept.saturating_sub(before) <= ms(2), "{before:?} {kept:?}");
        }
        adapting.kept()
    }

    #[test]
    fn it_keeps_what_is_used_and_some_more() {
        let mut adapting = Adapting::new(Some(ms(20)), ms(200));
        assert_eq!(arrive(&mut adapting, 0..10, 40), ms(200), "one window has to be over");
        // 40, an eighth and 3 ms.
        assert_eq!(arrive(&mut adapting, 10..60, 40), ms(48));
        // More is used: within a second and a half it is there, and stays for two windows.
        assert_eq!(arrive(&mut adapting, 60..62, 160), ms(183));
        assert_eq!(arrive(&mut adapting, 62..70, 40), ms(183));
        assert_eq!(arrive(&mut adapting, 70..140, 40), ms(48));
        assert_eq!(arrive(&mut adapting, 140..200, 0), ms(20), "the least");
    }

    #[test]
    fn without_a_least_all_of_it_is_kept() {
        let mut adapting = Adapting::new(None, ms(100));
        assert_eq!(arrive(&mut adapting, 0..60, 1), ms(100));
        assert_eq!((adapting.moved_ns(), adapting.wanted()), (0, ms(100)));
        let mut adapting = Adapting::new(Some(ms(300)), ms(100));
        assert_eq!(arrive(&mut adapting, 0..60, 1), ms(100), "no more than the most");
    }

    #[test]
    fn what_is_shown_together_keeps_what_the_others_want() {
        let mut adapting = Adapting::new(Some(ms(20)), ms(200));
        for at in 0..3_000 {
            adapting.handle_arrival(Time::from_millis(at * 20), whole(ms(10)), ms(90));
        }
        assert_eq!((adapting.kept(), adapting.wanted()), (ms(90), ms(20)));
        adapting.begin_anew();
        assert_eq!(adapting.kept(), ms(200));
    }

    #[test]
    fn a_long_gap_moves_it_no_further_than_a_second_does() {
        let mut adapting = Adapting::new(Some(ms(0)), ms(200));
        arrive(&mut adapting, 0..11, 1);
        let before = adapting.kept();
        adapting.handle_arrival(Time::from_millis(3_600_000), whole(ms(1)), Duration::ZERO);
        assert_eq!(before - adapting.kept(), ms(5));
    }
}
