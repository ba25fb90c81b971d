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
//! runs are reckoned with as fewer than 1 in 40 paths would have beyond what was seen, so that
//! little is saved before much has come. What a few reports show counts as soon as it is worse and
//! no chance.
//!
//! Several receivers report for themselves, and the worst counts, until it is silent for long.
//!
//! Invariants: at most [`RECEIVERS_MAX`] receivers are known; never more parities than agreed, and
//! never none, without which nobody sees that a block ended early; one report costs one search.

use super::chain::Chain;
use crate::blocks::seen::Seen;
use dacapo_base::Time;
use dacapo_lift::PPB;
use std::time::Duration;

/// How many receivers are known; of more the one that is silent for longest is forgotten.
const RECEIVERS_MAX: usize = 64;

/// Parities stay as agreed until so many sources were reported.
const SOURCES_MIN: u64 = 2_000;

/// Sums lose this part of themselves with each report: one shows some 64 of them, the other 8.
const FADES: u64 = 64;
const FADES_SOON: u64 = 8;

/// A report counts for no more sources than this: what was seen while nobody was asked, or told,
/// must not hide what comes.
const SOURCES_MAX: u64 = 20_000;

/// Who has not reported for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Sums are kept in thousandths, of which little gets lost in fading.
const SCALE: u64 = 1_000;

/// Runs are taken to be longer than they were seen, by a quarter, and no shorter than this.
const BURST_MILLI_MIN: u64 = 2_000;

/// So many runs in a few reports are no chance: they count by themselves.
const RUNS_TOLD: u64 = 3;

impl Seen {
    /// As much of it as counts.
    fn bounded(&self) -> Self {
        let Self { sources, lost, runs } = *self;
        let part = |count: u64| count.min(SOURCES_MAX);
        if sources <= SOURCES_MAX {
            return Self { sources, lost: part(lost), runs: part(runs) };
        }
        let share = |count: u64| (count.saturating_mul(SOURCES_MAX) / sources).min(SOURCES_MAX);
        Self { sources: SOURCES_MAX, lost: share(lost), runs: share(runs) }
    }

    /// Lets them fade by one part in so many, and adds what was seen since.
    fn follow(&mut self, new: &Self, fades: u64) {
        let next = |sum: u64, new: u64| sum - sum / fades + new.saturating_mul(SCALE);
        self.sources = next(self.sources, new.sources);
        self.lost = next(self.lost, new.lost);
        self.runs = next(self.runs, new.runs);
    }

    fn whole(&self) -> Self {
        let whole = |sum: u64| sum.saturating_add(SCALE / 2) / SCALE;
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
    soon: Seen,
    heard: Time,
    /// How many parities it needs, by its last report.
    needs: u8,
}

/// What blocks may have, and what may stay lost of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    /// How many sources blocks have.
    pub sources: u8,
    /// The most parities.
    pub most: u8,
    /// What may stay lost.
    pub left_ppb: u64,
}

#[derive(Debug, Default)]
pub(super) struct Strength {
    /// The one that reported last at the end.
    receivers: Vec<Receiver>,
}

impl Strength {
    /// A receiver says what it has seen since it said something before.
    pub fn hear(&mut self, now: Time, id: u32, seen: &Seen, aim: Aim) {
        self.receivers.retain(|it| it.id == id || now.since(it.heard) < SILENCE_MAX);
        let at = self.receivers.iter().position(|it| it.id == id);
        let nothing = Seen::default();
        let mut receiver = at.map_or(
            Receiver { id, lately: nothing, soon: nothing, heard: now, needs: aim.most },
            |at| self.receivers.remove(at),
        );
        receiver.heard = now;
        receiver.lately.follow(&seen.bounded(), FADES);
        receiver.soon.follow(&seen.bounded(), FADES_SOON);
        receiver.needs = receiver.parities(aim);
        if self.receivers.len() == RECEIVERS_MAX {
            self.receivers.remove(0);
        }
        self.receivers.push(receiver);
    }

    /// How many parities are enough for all; at most `most`.
    pub fn parities(&self, most: u8) -> u8 {
        self.receivers.iter().map(|it| it.needs).max().map_or(most, |needs| needs.min(most))
    }

    /// Forgets what was reported: something else is asked.
    pub fn forget(&mut self) {
        self.receivers.clear();
    }
}

impl Receiver {
    fn parities(&self, aim: Aim) -> u8 {
        let (lately, soon) = (self.lately.whole(), self.soon.whole());
        if lately.sources < SOURCES_MIN {
            return aim.most;
        }
        // Twice the root, and some, is what fewer than 1 in 40 exceed.
        let more = 2 * lately.runs.isqrt() + 4;
        let needs = fewest(lately.may_be(more), aim);
        if soon.runs < RUNS_TOLD { needs } else { needs.max(fewest(soon.may_be(0), aim)) }
    }
}

/// The fewest parities that leave no more than may stay lost of losses like these.
fn fewest((loss_ppb, burst_milli): (u64, u64), aim: Aim) -> u8 {
    let sources = u64::from(aim.sources);
    let mut chain = Chain::new(loss_ppb, burst_milli, aim.most.into());
    chain.pass(sources);
    let is_enough = |parities: &u8| {
        chain.pass(sources + u64::from(*parities));
        chain.left_ppb((*parities).into()) <= aim.left_ppb
    };
    (1..aim.most).find(is_enough).unwrap_or(aim.most)
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

    const AIM: Aim = Aim { sources: 32, most: 14, left_ppb: FEW };

    /// Seconds, each with a report of this.
    fn hear(strength: &mut Strength, from: u64, seconds: u64, id: u32, seen: Seen) {
        let at = |second| Time::from_millis(second * 1_000);
        (from..from + seconds).for_each(|second| strength.hear(at(second), id, &seen, AIM));
    }

    #[test]
    fn little_is_saved_before_much_has_come_and_then_more_and_more() {
        let mut strength = Strength::default();
        assert_eq!(strength.parities(14), 14);
        let mut parities = Vec::new();
        for second in 0..200 {
            hear(&mut strength, second, 1, 7, seen(400, 0, 0));
            parities.push(strength.parities(14));
        }
        assert_eq!(parities[..4], [14; 4], "fewer than 2,000 were seen");
        assert!(parities.is_sorted_by(|a, b| a >= b), "{parities:?}");
        let last = parities[199];
        assert!((2..=6).contains(&last), "{last}");
    }

    #[test]
    fn what_is_worse_counts_within_seconds_however_slow_the_flow_is() {
        for (sources, lost, runs) in [(400, 20, 5), (50, 3, 1)] {
            let mut strength = Strength::default();
            hear(&mut strength, 0, 200, 7, seen(sources, 0, 0));
            let calm = strength.parities(14);
            assert!(calm < 9, "{calm}");
            // 5 %, one run of three in a second where there are 50 packets.
            hear(&mut strength, 200, 5, 7, seen(sources, lost, runs));
            assert_eq!(strength.parities(14), 14, "{sources} a second");
            hear(&mut strength, 205, 20, 7, seen(sources, 0, 0));
            assert!(strength.parities(14) > calm);
            hear(&mut strength, 225, 600, 7, seen(sources, 0, 0));
            assert!(strength.parities(14) <= calm);
        }
    }

    #[test]
    fn one_report_of_an_hour_does_not_hide_what_comes_then() {
        let mut strength = Strength::default();
        hear(&mut strength, 0, 1, 7, seen(1_800_000, 0, 0));
        assert!(strength.parities(14) < 9);
        hear(&mut strength, 1, 4, 7, seen(500, 6, 2));
        assert_eq!(strength.parities(14), 14);
    }

    #[test]
    fn the_worst_of_several_receivers_counts_until_it_is_silent() {
        let mut strength = Strength::default();
        for second in 0..200 {
            hear(&mut strength, second, 1, 1, seen(400, 0, 0));
            hear(&mut strength, second, 1, 2, seen(400, 8, 2));
        }
        assert_eq!(strength.parities(14), 14);
        hear(&mut strength, 200, 29, 1, seen(400, 0, 0));
        assert_eq!(strength.parities(14), 14);
        hear(&mut strength, 229, 2, 1, seen(400, 0, 0));
        assert!(strength.parities(14) < 14, "the second is gone");
        (100..100 + RECEIVERS_MAX as u32 + 9)
            .for_each(|id| hear(&mut strength, 231, 1, id, seen(400, 0, 0)));
        assert_eq!(strength.receivers.len(), RECEIVERS_MAX);
        assert_eq!(strength.parities(14), 14, "they have shown nothing yet");
    }

    #[test]
    fn what_nobody_can_have_seen_does_no_harm() {
        let most = u64::from(u32::MAX);
        for (sources, lost, runs) in [(0, most, most), (most, most, 0), (1, most, most)] {
            let mut strength = Strength::default();
            hear(&mut strength, 0, 100, 7, seen(sources, lost, runs));
            assert_eq!(strength.parities(14), 14, "{sources}, {lost}, {runs}");
        }
        // Who says that nothing was lost gets less, and never nothing.
        let mut strength = Strength::default();
        hear(&mut strength, 0, 100, 7, seen(most, 0, 0));
        assert!((1..14).contains(&strength.parities(14)));
        assert_eq!(strength.parities(0), 0, "none were agreed");
    }
}
