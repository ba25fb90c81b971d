//! [`wait`]: how many sources are missing for which no repair has come yet, where losses come in
//! runs, and for how long.
//!
//! ```text
//!   packets    s  s  x  x  s  s  r  s  s  s  s  r         x: a source that is lost
//!   missing    0  0  1  2  2  2  1  1  1  1  1  0         at 0 all are computed
//! ```
//!
//! Each lost source is one more, each repair that comes one fewer. The chain of two states that
//! loses packets (Gilbert 1960) is that of `turns.rs`. It goes on with each source: a run lasts as
//! long whatever repairs leave meanwhile. A repair leaves right behind a source. Where a run goes
//! on more often than not, it shares the fate of that; single losses do not depend on each other.
//!
//! Probabilities are binary fractions, added and multiplied in an order that is fixed, which gives
//! the same bits on every machine.

use crate::parity::turns::Turns;
use dacapo_wire::sliding::SOURCES_MAX;

/// More missing sources than these count as so many.
const MISSING_MAX: usize = 128;

/// What is less likely is not looked at by itself.
const HARDLY: f64 = 1e-11;

/// The share of repairs that say something new: factors are drawn of 255.
const NEW: f64 = 254.0 / 255.0;

/// How many sources are looked at, which differ in how long it takes until the next repair.
const PHASES: u64 = 5;

/// What counts as one repair that is due.
const WHOLE: u64 = 100;

/// What a path loses, and how often repairs leave, of how many sources.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    pub loss_ppb: u64,
    pub burst_milli: u64,
    pub percent: u64,
    pub window: u64,
}

type Chances = [f64; MISSING_MAX + 1];

/// How likely it is that so many are missing, after some packets.
#[derive(Clone)]
struct Walk {
    /// The chances that a run of losses begins with the next source, and that it ends.
    begins: f64,
    ends: f64,
    /// The chance that a repair is lost or not by itself, as the next packet would be.
    alone: f64,
    percent: u64,
    /// What of a repair is due.
    credit: u64,
    /// No more than these are told apart.
    most: usize,
    /// More than these are not likely.
    top: usize,
    /// So many are missing, and the last source did not get lost, or did.
    good: Chances,
    bad: Chances,
    /// The chances that the next source is lost, too.
    lost: Chances,
}

impl Walk {
    /// Behind the first source.
    fn new(losses: &Losses, most: usize) -> Self {
        let Turns { loss, begins, ends } = Turns::of(losses.loss_ppb, losses.burst_milli);
        let alone = 1_000.0 / losses.burst_milli.max(1_000) as f64;
        let [mut good, mut bad, lost] = [[0.0; MISSING_MAX + 1]; 3];
        (good[0], bad[1]) = (1.0 - loss, loss);
        let percent = losses.percent;
        Self { begins, ends, alone, percent, credit: 0, most, top: 1, good, bad, lost }
    }

    /// A source, which is one more where it is lost.
    fn source(&mut self) {
        let (begins, ends, count) = (self.begins, self.ends, self.top + 1);
        let (good, bad) = (&mut self.good[..count], &self.bad[..count]);
        for ((good, bad), lost) in good.iter_mut().zip(bad).zip(&mut self.lost) {
            *lost = *good * begins + bad * (1.0 - ends);
            *good = *good * (1.0 - begins) + bad * ends;
        }
        let next = self.lost[self.top];
        self.bad[0] = 0.0;
        self.bad[1..count].copy_from_slice(&self.lost[..count - 1]);
        if self.top < self.most && next > HARDLY {
            self.top += 1;
            (self.good[self.top], self.bad[self.top]) = (0.0, next);
        } else {
            self.bad[self.top] += next;
        }
    }

    /// The repair that is due behind a source, if one is.
    fn repair(&mut self) {
        self.credit += self.percent;
        if self.credit < WHOLE {
            return;
        }
        self.credit -= WHOLE;
        // That it comes behind a source that came, and behind one that was lost.
        let [begins, ends] = [self.begins, self.ends].map(|it| it * self.alone);
        let (comes, comes_again) = ((1.0 - begins) * NEW, ends * NEW);
        for (chances, comes) in [(&mut self.good, comes), (&mut self.bad, comes_again)] {
            for missing in 1..=self.top {
                let fewer = chances[missing] * comes;
                chances[missing] -= fewer;
                chances[missing - 1] += fewer;
            }
        }
    }

    /// The repair behind a source, and the next source.
    fn next(&mut self) {
        self.repair();
        self.source();
    }

    /// The same where the last source is lost.
    fn only_lost(&self) -> Self {
        Self { good: [0.0; MISSING_MAX + 1], ..self.clone() }
    }

    /// Takes out where nothing is missing any more.
    fn forget_solved(&mut self) {
        (self.good[0], self.bad[0]) = (0.0, 0.0);
    }

    /// Takes out where more are missing than repairs can come for; how likely that was.
    fn take_hopeless(&mut self, repairs: usize) -> f64 {
        let mut share = 0.0;
        while self.top > repairs {
            share += self.good[self.top] + self.bad[self.top];
            (self.good[self.top], self.bad[self.top]) = (0.0, 0.0);
            self.top -= 1;
        }
        share
    }

    /// How many repairs leave with so many sources that follow.
    fn repairs_of(&self, sources: u64) -> usize {
        ((self.credit + sources * self.percent) / WHOLE) as usize
    }

    fn share(&self) -> f64 {
        let all = self.good.iter().zip(&self.bad).take(self.top + 1);
        all.map(|(good, bad)| good + bad).sum()
    }

    /// Goes on behind the last source, and adds to the shares how likely it is that something is
    /// missing, the last source with it.
    fn follow(mut self, shares: &mut [f64]) {
        let (mut hopeless, mut rest) = (0.0, shares.len() as u64);
        for share in shares {
            hopeless += self.take_hopeless(self.repairs_of(rest));
            self.repair();
            self.forget_solved();
            *share += hopeless + self.share();
            self.source();
            rest -= 1;
        }
    }
}

/// How likely it is that a source was lost and is not computed when so many were sent after it.
pub(super) type Shares = [f64; SOURCES_MAX as usize];

/// The shares for as many sources as a window has, the one itself among them.
pub(super) fn wait(losses: &Losses) -> Shares {
    let Losses { window, percent, .. } = *losses;
    let most = (2 * window * percent / WHOLE + 2).min(MISSING_MAX as u64) as usize;
    let mut walk = Walk::new(losses, most);
    // As it is in the midst of a flow.
    (1..window).for_each(|_| walk.next());
    let mut shares = [0.0; SOURCES_MAX as usize];
    for _ in 0..PHASES {
        walk.only_lost().follow(&mut shares[..window as usize]);
        // The phases lie a fifth of the time between two repairs apart.
        (0..(WHOLE / PHASES).div_ceil(percent)).for_each(|_| walk.next());
    }
    shares.iter_mut().for_each(|share| *share /= PHASES as f64);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;
    use dacapo_lift::PPB;

    /// The share that is not computed after so many sources.
    fn left(loss_ppb: u64, burst_milli: u64, percent: u64, sources: u64) -> f64 {
        let window = sources + 1;
        let shares = wait(&Losses { loss_ppb, burst_milli, percent, window });
        let shares = &shares[..window as usize];
        assert!(shares.is_sorted_by(|a, b| a + 1e-12 >= *b), "nothing is lost again");
        shares[sources as usize]
    }

    #[test]
    fn alone_a_source_is_lost_with_its_copy() {
        // A repair behind each source, which is in no other; and what is still missing before.
        let both = left(PPB / 10, 1_000, 100, 0) / (0.1 * (1.0 - 0.9 * NEW));
        assert!((1.0..1.1).contains(&both), "{both}");
        assert_eq!(left(0, 3_000, 25, 60), 0.0);
        assert!((left(PPB, 3_000, 25, 60) - 1.0).abs() < 1e-9);
        // As many sources as there can be, each with a repair.
        assert!(left(PPB / 2, 9_000, 100, SOURCES_MAX - 1) > 0.0);
    }

    #[test]
    fn runs_take_more_than_single_losses_do_and_more_repairs_give_more_back() {
        let of_runs = |burst| left(20_000_000, burst, 25, 60);
        assert!(of_runs(1_000) < of_runs(2_000) && of_runs(2_000) < of_runs(5_000));
        let of_repairs = |percent| left(20_000_000, 3_000, percent, 60);
        assert!((1..20).all(|it| of_repairs(5 * it) > of_repairs(5 * it + 5)));
        let of_time = |sources| left(20_000_000, 3_000, 25, sources);
        assert!((1..20).all(|it| of_time(4 * it) > of_time(4 * it + 4)));
    }

    #[test]
    fn as_much_stays_lost_as_when_a_chain_is_drawn() {
        let mut random = Random::from_number(5);
        for (loss, burst, percent, after) in
            [(0.05, 3.0, 25, 60), (0.1, 1.25, 25, 40), (0.02, 10.0, 50, 100), (0.03, 2.0, 12, 80)]
        {
            let (ends, mut is_lost, mut credit) = (1.0 / burst, false, 0);
            let begins = loss * ends / (1.0 - loss);
            // The sources that are missing, by their numbers, and how many repairs came for them.
            let (mut missing, mut repairs, mut late, count) = (Vec::new(), 0, 0, 1_000_000);
            for number in 0..count {
                is_lost ^= random.chance(if is_lost { ends } else { begins });
                missing.extend(is_lost.then_some(number));
                credit += percent;
                let is_due = credit >= 100;
                credit %= 100;
                let turns = if is_lost { ends } else { begins };
                let comes = is_lost == random.chance(turns / burst);
                if is_due && comes && !missing.is_empty() && random.chance(NEW) {
                    repairs += 1;
                }
                if repairs == missing.len() {
                    late += missing.iter().filter(|it| number - **it > after).count();
                    repairs = 0;
                    missing.clear();
                }
            }
            let drawn = late as f64 / count as f64;
            let says = left((loss * 1e9) as u64, (burst * 1e3) as u64, percent, after);
            assert!((drawn / says - 1.0).abs() < 0.25, "{drawn} drawn, {says} predicted");
        }
    }
}
