//! [`Strength`]: how many parities a block needs, by what receivers say of their losses.
//!
//! ```text
//!   receiver   blocks of a second: sources, lost, runs --report-->   sender, sums of a minute
//!   sender     the losses that there may be for that  -->  the fewest parities that leave no more
//!              than may stay lost; at most those of the operating point
//! ```
//!
//! A path that loses less than was assumed gets fewer parities; one that loses more gets those that
//! were agreed, for which there is room. Of few losses it is not known how many there are: as many
//! runs are reckoned with as 1 in 40 paths would have beyond what was seen, so that little is saved
//! before much has come. What a single report shows counts as soon as it is worse and no chance.
//!
//! Several receivers report for themselves, and the worst counts.
//!
//! Invariants: at most [`RECEIVERS_MAX`] receivers are known; never more parities than agreed, and
//! never none, without which nobody sees that a block ended early.

use super::chain::left;
use dacapo_lift::PPB;

/// How many receivers are known; of more the one that is silent for longest is forgotten.
const RECEIVERS_MAX: usize = 64;

/// Parities stay as agreed until so many sources were reported.
const SOURCES_MIN: u64 = 2_000;

/// Sums lose this part of themselves with each report: they show some 64 of them.
const FADES: u64 = 64;

/// Sums are kept in thousandths, of which little gets lost in fading.
const SCALE: u64 = 1_000;

/// Runs are taken to be longer than they were seen, by a quarter, and no shorter than this.
const BURST_MILLI_MIN: u64 = 2_000;

/// So many runs in one report are no chance: it counts by itself.
const RUNS_TOLD: u64 = 3;

/// What a receiver has seen in some blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// How many sources the blocks had.
    pub sources: u64,
    /// How many of these did not come.
    pub lost: u64,
    /// In how many runs.
    pub runs: u64,
}

impl Seen {
    /// What a block that is over has shown: which of its sources are missing, in order.
    pub fn of(sources: u8, missing: impl Iterator<Item = u8>) -> Self {
        let mut seen = Self { sources: sources.into(), ..Self::default() };
        let mut before = None;
        for index in missing {
            seen.lost += 1;
            seen.runs += u64::from(before.is_none_or(|before| before + 1 != u16::from(index)));
            before = Some(u16::from(index));
        }
        seen
    }

    pub fn add(&mut self, other: &Self) {
        self.sources += other.sources;
        self.lost += other.lost;
        self.runs += other.runs;
    }

    /// Lets them fade, and adds what was seen since.
    fn follow(&mut self, new: &Self) {
        let next = |sum: u64, new: u64| sum - sum / FADES + new.saturating_mul(SCALE);
        self.sources = next(self.sources, new.sources);
        self.lost = next(self.lost, new.lost);
        self.runs = next(self.runs, new.runs);
    }

    fn whole(&self) -> Self {
        let whole = |sum: u64| sum / SCALE;
        Self { sources: whole(self.sources), lost: whole(self.lost), runs: whole(self.runs) }
    }

    /// The mean run of losses, in thousandths of a packet.
    fn burst_milli(&self) -> u64 {
        let milli = self.lost.saturating_mul(1_250) / self.runs.max(1);
        milli.max(BURST_MILLI_MIN)
    }

    /// The share of losses, in ppb, and the length of their runs, that there may be where this was
    /// seen, with `more` runs than were.
    fn may_be(&self, more: u64) -> (u64, u64) {
        let burst = self.burst_milli();
        let lost = self.lost.saturating_add(more.saturating_mul(burst) / 1_000);
        let share = u128::from(lost) * u128::from(PPB) / u128::from(self.sources.max(1));
        (u64::try_from(share).unwrap_or(PPB).min(PPB), burst)
    }
}

#[derive(Clone, Copy, Debug)]
struct Receiver {
    id: u32,
    lately: Seen,
    last: Seen,
}

#[derive(Debug, Default)]
pub(super) struct Strength {
    /// The one that reported last at the end.
    receivers: Vec<Receiver>,
}

impl Strength {
    /// A receiver says what it has seen since it said something before.
    pub fn hear(&mut self, id: u32, seen: Seen) {
        let at = self.receivers.iter().position(|it| it.id == id);
        let mut receiver = match at {
            Some(at) => self.receivers.remove(at),
            None => Receiver { id, lately: Seen::default(), last: seen },
        };
        receiver.lately.follow(&seen);
        receiver.last = seen;
        if self.receivers.len() == RECEIVERS_MAX {
            self.receivers.remove(0);
        }
        self.receivers.push(receiver);
    }

    /// How many parities blocks of so many sources need, so that no more than `left_ppb` stays
    /// lost; at most `most`.
    pub fn parities(&self, sources: u8, most: u8, left_ppb: u64) -> u8 {
        let needed = |it: &Receiver| it.parities(sources, most, left_ppb);
        self.receivers.iter().map(needed).max().unwrap_or(most)
    }
}

impl Receiver {
    fn parities(&self, sources: u8, most: u8, left_ppb: u64) -> u8 {
        let lately = self.lately.whole();
        if lately.sources < SOURCES_MIN {
            return most;
        }
        let may_be = lately.may_be(2 * lately.runs.isqrt() + 2);
        let is = if self.last.runs < RUNS_TOLD { may_be } else { self.last.may_be(0) };
        let leaves = |parities: u8, (loss, burst): (u64, u64)| {
            left(loss, burst, sources.into(), parities.into())
        };
        let is_enough =
            |parities: &u8| [may_be, is].iter().all(|it| leaves(*parities, *it) <= left_ppb);
        (1..most).find(is_enough).unwrap_or(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: u64 = 100_000;

    fn seen(sources: u64, lost: u64, runs: u64) -> Seen {
        Seen { sources, lost, runs }
    }

    #[test]
    fn a_block_says_how_much_of_it_is_missing_and_in_how_many_runs() {
        assert_eq!(Seen::of(9, [0, 1, 4, 6, 7, 8].into_iter()), seen(9, 6, 3));
        assert_eq!(Seen::of(9, std::iter::empty()), seen(9, 0, 0));
        assert_eq!(Seen::of(255, [253, 254].into_iter()), seen(255, 2, 1));
    }

    #[test]
    fn little_is_saved_before_much_has_come_and_then_more_and_more() {
        let mut strength = Strength::default();
        let mut parities = Vec::new();
        for _ in 0..40 {
            strength.hear(7, seen(400, 0, 0));
            parities.push(strength.parities(32, 14, FEW));
        }
        assert_eq!(parities[..4], [14; 4], "fewer than 2,000 were seen");
        assert!(parities.is_sorted_by(|a, b| a >= b), "{parities:?}");
        let last = parities[39];
        assert!((2..=6).contains(&last), "{last}");
    }

    #[test]
    fn a_second_that_is_worse_counts_at_once_and_is_forgotten_slowly() {
        let mut strength = Strength::default();
        (0..40).for_each(|_| strength.hear(7, seen(400, 0, 0)));
        let calm = strength.parities(32, 14, FEW);
        strength.hear(7, seen(400, 20, 5));
        assert_eq!(strength.parities(32, 14, FEW), 14);
        strength.hear(7, seen(400, 0, 0));
        assert!(strength.parities(32, 14, FEW) > calm);
        (0..300).for_each(|_| strength.hear(7, seen(400, 0, 0)));
        assert!(strength.parities(32, 14, FEW) <= calm);
    }

    #[test]
    fn the_worst_of_several_receivers_counts_and_no_more_than_so_many_are_known() {
        let mut strength = Strength::default();
        for _ in 0..40 {
            strength.hear(1, seen(400, 0, 0));
            strength.hear(2, seen(400, 8, 2));
        }
        assert_eq!(strength.parities(32, 14, FEW), 14);
        (100..100 + RECEIVERS_MAX as u32).for_each(|id| {
            (0..40).for_each(|_| strength.hear(id, seen(400, 0, 0)));
        });
        assert_eq!(strength.receivers.len(), RECEIVERS_MAX);
        assert!(strength.parities(32, 14, FEW) < 14, "the second is silent");
    }

    #[test]
    fn what_nobody_can_have_seen_does_no_harm() {
        let mut strength = Strength::default();
        let most = u64::from(u32::MAX);
        for (sources, lost, runs) in [(0, most, most), (most, most, 0), (1, 0, most), (most, 0, 0)]
        {
            (0..100).for_each(|_| strength.hear(7, seen(sources, lost, runs)));
            assert!((1..=14).contains(&strength.parities(32, 14, FEW)));
        }
        assert_eq!(Strength::default().parities(32, 14, FEW), 14);
        assert_eq!(strength.parities(32, 0, FEW), 0, "none were agreed");
    }
}
