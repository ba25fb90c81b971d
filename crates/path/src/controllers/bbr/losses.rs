//! [`Losses`]: what a path loses by itself, and what it loses because too much is sent.
//!
//! ```text
//!   half asked for, no queue   lost: the path's own share, of the last hundreds of packets
//!   else                       lost beyond that share, by more than chance: too much
//! ```
//!
//! Our own: BBR takes all above 2 % for too much, and stops on a path that loses more by itself.
//!
//! Invariants: integers; shares in millionths; a share is known from [`KNOWN_MIN`] packets on.

use dacapo_base::Time;
use std::time::Duration;

/// So much more than the path's own share is too much (draft-ietf-ccwg-bbr, section 2.7).
const TOO_MUCH_PPM: u64 = 20_000;

/// From so many packets on the path's own share is known; of eight times as many half is
/// forgotten when there are others.
pub(super) const KNOWN_MIN: u64 = 128;

/// The most that is believed.
const OWN_MAX_PPM: u64 = 300_000;

/// A share that nothing has confirmed for so long is forgotten.
const OLD_AFTER: Duration = Duration::from_secs(30);

/// A share that is made up for is confirmed so often.
const CONFIRM_AFTER: Duration = Duration::from_secs(10);

/// Packets that came and that were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub came: u64,
    pub lost: u64,
}

impl Count {
    pub fn add(&mut self, more: Self) {
        self.came = self.came.saturating_add(more.came);
        self.lost = self.lost.saturating_add(more.lost);
    }

    pub fn all(self) -> u64 {
        self.came.saturating_add(self.lost)
    }

    fn share_ppm(self) -> u64 {
        let share = u128::from(self.lost) * 1_000_000 / u128::from(self.all().max(1));
        u64::try_from(share).unwrap_or(1_000_000)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Losses {
    own: Count,
    seen: Option<Time>,
    /// What was lost before the path was asked for more, whosever doing it was.
    before: Count,
}

impl Losses {
    /// So much came and was lost where no queue was.
    pub fn note_own(&mut self, now: Time, count: Count) {
        while self.own.all() >= 8 * KNOWN_MIN {
            self.own = Count { came: self.own.came / 2, lost: self.own.lost / 2 };
        }
        self.own.add(count);
        self.seen = Some(now);
    }

    /// The share that the path loses by itself; none while that is not known.
    pub fn own_ppm(&self, now: Time) -> u64 {
        let is_old = self.seen.is_none_or(|at| now.since(at) > OLD_AFTER);
        if is_old || self.own.all() < KNOWN_MIN {
            return 0;
        }
        self.own.share_ppm().min(OWN_MAX_PPM)
    }

    /// Whether what is made up for is to be listened to again: who shares a full queue may have
    /// heard the others' doing.
    pub fn is_to_be_confirmed(&self, now: Time) -> bool {
        self.own_ppm(now) >= TOO_MUCH_PPM
            && self.seen.is_some_and(|at| now.since(at) >= CONFIRM_AFTER)
    }

    /// So much came and was lost before the path is asked for more.
    pub fn note_before(&mut self, count: Count) {
        self.before = count;
    }

    /// Whether so many losses are more than the path's own, and than there were before it was asked
    /// for more.
    pub fn are_more_than_before(&self, now: Time, count: Count) -> bool {
        let is_known = self.before.all() >= KNOWN_MIN;
        let before = if is_known { self.before.share_ppm().min(OWN_MAX_PPM) } else { 0 };
        exceed(self.own_ppm(now).max(before), count)
    }

    /// Whether so many losses are more than the path's own.
    pub fn are_too_many(&self, now: Time, count: Count) -> bool {
        exceed(self.own_ppm(now), count)
    }
}

/// Whether so many losses are 2 % more than this share, and more than chance makes of that: twice
/// its deviation, as of a Poisson count, and two.
fn exceed(own: u64, count: Count) -> bool {
    let share = u128::from(own + TOO_MUCH_PPM);
    let expected = u128::from(count.all()) * share / 1_000_000;
    u128::from(count.lost) > expected + 2 * expected.isqrt() + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(came: u64, lost: u64) -> Count {
        Count { came, lost }
    }

    #[test]
    fn what_is_lost_without_a_queue_is_the_paths_own() {
        let (mut it, now) = (Losses::default(), Time::ZERO);
        assert!(it.are_too_many(now, count(950, 50)), "5 % of a path of which nothing is known");
        (0..40).for_each(|_| it.note_own(now, count(95, 5)));
        // Halves of what is forgotten are rounded down.
        assert!((49_000..=50_000).contains(&it.own_ppm(now)), "{}", it.own_ppm(now));
        assert!(!it.are_too_many(now, count(950, 50)) && !it.are_too_many(now, count(90, 10)));
        assert!(it.are_too_many(now, count(880, 120)));
        assert!(it.own_ppm(now + OLD_AFTER + Duration::from_secs(1)) == 0, "long ago");
    }

    #[test]
    fn what_is_made_up_for_is_confirmed_and_a_little_is_not() {
        let (mut it, now) = (Losses::default(), Time::ZERO);
        assert!(!it.is_to_be_confirmed(now + CONFIRM_AFTER));
        it.note_own(now, count(990, 10));
        assert!(!it.is_to_be_confirmed(now + CONFIRM_AFTER));
        it.note_own(now, count(900, 100));
        assert!(!it.is_to_be_confirmed(now) && it.is_to_be_confirmed(now + CONFIRM_AFTER));
    }

    #[test]
    fn two_losses_are_chance_and_a_path_that_loses_all_is_not_believed() {
        let (mut it, now) = (Losses::default(), Time::ZERO);
        assert!(!it.are_too_many(now, count(3, 2)));
        (0..40).for_each(|_| it.note_own(now, count(0, 100)));
        assert_eq!(it.own_ppm(now), OWN_MAX_PPM);
        it.note_own(now, count(u64::MAX, u64::MAX));
        assert!(!it.are_too_many(now, count(u64::MAX, 0)));
    }
}
