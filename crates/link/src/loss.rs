//! [`Loss`]: which items the link loses: none, independent ones, or bursts.
//!
//! ```text
//!                    p_enter
//!        +--------+ -----------> +-------+       loss_good: probability of loss in Good
//!   .--> |  Good  |              |  Bad  | <--.  loss_bad:  probability of loss in Bad
//!   `--- +--------+ <----------- +-------+ ---'  the state steps once per item sent, then decides
//!                    p_leave
//! ```
//!
//! Bursts in time are the same chain with a step for every microsecond that passes: who sends less
//! meets as many of them, and loses fewer items to each.
//!
//! Invariants: the chain starts in its stationary distribution, so the first items are as likely
//! to be lost as later ones; it steps for every item sent, also for those that something else
//! drops. Sources: E. N. Gilbert, "Capacity of a burst-noise channel" (1960); E. O. Elliott,
//! "Estimates of error rates for codes on burst-noise channels" (1963).

use crate::config::ConfigError;
use crate::dice::LossThrow;
use crate::fate::DropReason;
use dacapo_base::{Random, Time};
use std::time::Duration;

/// A step of bursts in time. The chance of a state after many steps is a power of one, which
/// multiplication alone makes the same on every machine.
const STEP: Duration = Duration::from_micros(1);

/// The shortest and the longest mean burst in time.
const TIMED_MIN: Duration = Duration::from_micros(10);
const TIMED_MAX: Duration = Duration::from_secs(3_600);

/// A model of loss.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Loss {
    /// Nothing is lost.
    #[default]
    None,
    /// Each item is lost with probability `p`, independent of all others.
    Random {
        /// Probability, 0 to 1.
        p: f64,
    },
    /// Two states with a probability of loss each.
    GilbertElliott {
        /// Probability per item of going from the good to the bad state, 0 to 1.
        p_enter: f64,
        /// Probability per item of going back, 0 to 1.
        p_leave: f64,
        /// Probability of loss in the good state, 0 to 1.
        loss_good: f64,
        /// Probability of loss in the bad state, 0 to 1.
        loss_bad: f64,
    },
    /// Two states that change with the time that passes, however much is sent; in the bad one
    /// everything is lost.
    Timed {
        /// The share of the time that is bad, 0 to less than 1.
        share: f64,
        /// How long it stays bad on average.
        mean: Duration,
    },
}

impl Loss {
    /// Bursts in which everything is lost, `mean_burst_len` items long on average (1 or more, each
    /// length geometric), so that `mean_loss` of all items are lost (0 to 1).
    ///
    /// Between two bursts lies at least one item, so `mean_loss` can be at most
    /// `mean_burst_len / (mean_burst_len + 1)`; and bursts of mean length 1 never touch, which is
    /// not the same as independent loss.
    ///
    /// # Errors
    /// [`ConfigError::Probability`] when `mean_loss` is none, [`ConfigError::Burst`] when no chain
    /// has these two means.
    pub fn burst(mean_loss: f64, mean_burst_len: f64) -> Result<Self, ConfigError> {
        check_probability("loss", mean_loss)?;
        let p_leave = 1.0 / mean_burst_len;
        let p_enter = mean_loss * p_leave / (1.0 - mean_loss);
        let feasible = mean_burst_len >= 1.0 && mean_burst_len.is_finite() && p_enter <= 1.0;
        if !feasible {
            return Err(ConfigError::Burst { mean_loss, mean_burst_len });
        }
        Ok(Self::GilbertElliott { p_enter, p_leave, loss_good: 0.0, loss_bad: 1.0 })
    }

    /// Bursts in which everything is lost, `mean` long on average (10 us to an hour, each length
    /// without memory), so that `mean_loss` of the time is lost (0 to less than 1).
    ///
    /// # Errors
    /// [`ConfigError::Probability`] when `mean_loss` is none, [`ConfigError::BurstTime`] when there
    /// are no such bursts.
    pub fn burst_time(mean_loss: f64, mean: Duration) -> Result<Self, ConfigError> {
        let loss = Self::Timed { share: mean_loss, mean };
        loss.validate().map(|()| loss)
    }

    /// A bursty loss from a seed: 0.1 to 10 % of all items, in runs of 1 to 30 on average, small
    /// figures more often than large ones.
    #[must_use]
    pub fn drawn(seed: u64) -> Self {
        let mut random = Random::from_number(seed);
        let mut small = |least: f64, most: f64| {
            let unit = random.unit();
            least + (most - least) * unit * unit
        };
        // There is a chain with any two of them.
        Self::burst(small(0.001, 0.1), small(1.0, 30.0)).unwrap_or_default()
    }

    /// The share of items that is lost in the long run.
    #[must_use]
    pub fn mean_loss(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Random { p } => p,
            Self::GilbertElliott { loss_good, loss_bad, .. } => {
                let bad = self.share_bad();
                bad * loss_bad + (1.0 - bad) * loss_good
            }
            Self::Timed { share, .. } => share,
        }
    }

    /// The mean length of a run of consecutive losses, in items; `None` when nothing or everything
    /// is lost, and for bursts in time, where it depends on what is sent.
    #[must_use]
    pub fn mean_burst_len(&self) -> Option<f64> {
        let mean_loss = self.mean_loss();
        // Each run has exactly one loss that follows a success.
        let runs = mean_loss - self.loss_pair()?;
        (mean_loss > 0.0 && runs > 0.0).then(|| mean_loss / runs)
    }

    /// The share of items that meets the bad state in the long run.
    pub(crate) fn share_bad(&self) -> f64 {
        match *self {
            Self::GilbertElliott { p_enter, p_leave, .. } if p_enter + p_leave > 0.0 => {
                p_enter / (p_enter + p_leave)
            }
            Self::Timed { share, .. } => share,
            // A chain that never moves starts, and stays, in the good state.
            Self::None | Self::Random { .. } | Self::GilbertElliott { .. } => 0.0,
        }
    }

    /// The probability that two neighbours are both lost, where it does not depend on the time
    /// between them.
    fn loss_pair(&self) -> Option<f64> {
        Some(match *self {
            Self::None => 0.0,
            Self::Random { p } => p * p,
            Self::Timed { .. } => return None,
            Self::GilbertElliott { p_enter, p_leave, loss_good, loss_bad } => {
                let bad = self.share_bad();
                let after_good = (1.0 - p_enter) * loss_good + p_enter * loss_bad;
                let after_bad = (1.0 - p_leave) * loss_bad + p_leave * loss_good;
                (1.0 - bad) * loss_good * after_good + bad * loss_bad * after_bad
            }
        })
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match *self {
            Self::None => Ok(()),
            Self::Random { p } => check_probability("loss", p),
            Self::GilbertElliott { p_enter, p_leave, loss_good, loss_bad } => {
                check_probability("gilbert p_enter", p_enter)?;
                check_probability("gilbert p_leave", p_leave)?;
                check_probability("gilbert loss_good", loss_good)?;
                check_probability("gilbert loss_bad", loss_bad)
            }
            Self::Timed { share, mean } => {
                check_probability("loss", share)?;
                let shortest = mean.as_secs_f64() * (1.0 - share);
                let is_possible = shortest >= STEP.as_secs_f64() && TIMED_MIN <= mean;
                let is_possible = is_possible && mean <= TIMED_MAX;
                let refused = ConfigError::BurstTime { mean_loss: share, mean };
                if is_possible { Ok(()) } else { Err(refused) }
            }
        }
    }
}

/// How much of a state of bursts in time is left after so many steps, 1 to 0. It leaves each state
/// at its own rate, and forgets at both together.
fn memory(share: f64, mean: Duration, steps: u64) -> f64 {
    let forgets = STEP.as_secs_f64() / (mean.as_secs_f64() * (1.0 - share));
    power((1.0 - forgets).max(0.0), steps)
}

/// `base` so many times with itself.
fn power(base: f64, mut count: u64) -> f64 {
    let (mut power, mut square) = (1.0, base);
    while count > 0 && power > 0.0 {
        if count % 2 == 1 {
            power *= square;
        }
        square *= square;
        count /= 2;
    }
    power
}

/// 0 to 1 and a number.
pub(crate) fn check_probability(name: &'static str, value: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError::Probability { name, value })
    }
}

/// The state of a [`Loss`] model.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossChain {
    /// `None` before the first item.
    bad: Option<bool>,
    /// Until when the steps of time are gone.
    at: Time,
}

impl LossChain {
    /// Decides about the next item, which is sent `now`.
    pub(crate) fn step(&mut self, loss: &Loss, throw: LossThrow, now: Time) -> Option<DropReason> {
        match *loss {
            Loss::None => None,
            Loss::Random { p } => (throw.loss < p).then_some(DropReason::LossRandom),
            Loss::GilbertElliott { p_enter, p_leave, loss_good, loss_bad } => {
                let bad = match self.bad {
                    None => throw.step < loss.share_bad(),
                    Some(false) => throw.step < p_enter,
                    Some(true) => throw.step >= p_leave,
                };
                self.bad = Some(bad);
                if bad {
                    (throw.loss < loss_bad).then_some(DropReason::LossBurst)
                } else {
                    (throw.loss < loss_good).then_some(DropReason::LossRandom)
                }
            }
            Loss::Timed { share, mean } => {
                // Less than a step is for the next item.
                let steps = (now.since(self.at).as_nanos() / STEP.as_nanos()) as u64;
                self.at += Duration::from_micros(steps);
                let memory = memory(share, mean, steps);
                let bad = match self.bad {
                    None => throw.step < share,
                    Some(false) => throw.step < share * (1.0 - memory),
                    Some(true) => throw.step < share + (1.0 - share) * memory,
                };
                self.bad = Some(bad);
                bad.then_some(DropReason::LossBurst)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(loss: &Loss, seed: u64, count: usize) -> Vec<Option<DropReason>> {
        let (mut chain, mut random) = (LossChain::default(), Random::from_number(seed));
        let mut throw = || LossThrow { step: random.unit(), loss: random.unit() };
        (0..count).map(|_| chain.step(loss, throw(), Time::ZERO)).collect()
    }

    /// Whether each of these items, so far apart, is lost.
    fn lost_in_time(loss: &Loss, apart: Duration, count: u64) -> Vec<bool> {
        let (mut chain, mut random) = (LossChain::default(), Random::from_number(7));
        let mut throw = || LossThrow { step: random.unit(), loss: random.unit() };
        let at = |number: u64| Time::ZERO + apart * number as u32;
        (0..count).map(|number| chain.step(loss, throw(), at(number)).is_some()).collect()
    }

    #[test]
    fn bursts_in_time_last_as_long_whatever_is_sent() {
        let loss = Loss::burst_time(0.1, Duration::from_millis(26)).unwrap();
        assert_eq!((loss.mean_loss(), loss.mean_burst_len()), (0.1, None));
        let fine = [Duration::from_nanos(25_900), Duration::from_micros(200)];
        for apart in fine.into_iter().chain([Duration::from_millis(2)]) {
            let lost = lost_in_time(&loss, apart, 1_000_000);
            let count = lost.iter().filter(|lost| **lost).count();
            let off = if apart < fine[1] { 40_000 } else { 15_000 };
            assert!(count.abs_diff(100_000) < off, "{count} of a million, {apart:?}");
            let runs = lost.split(|lost| !lost).filter(|run| !run.is_empty()).count();
            let mean_ms = apart.as_secs_f64() * 1e3 * count as f64 / runs as f64;
            let range = if apart < fine[1] { 18.0..36.0 } else { 22.0..31.0 };
            assert!(range.contains(&mean_ms), "{mean_ms} ms, {apart:?}");
        }
        // Those less than a step apart change the state, too: by the time of all.
        let short = Loss::burst_time(0.1, Duration::from_micros(20)).unwrap();
        let lost = lost_in_time(&short, Duration::from_nanos(300), 1_000_000);
        let runs = lost.split(|lost| !lost).filter(|run| !run.is_empty()).count();
        assert!((1_100..1_900).contains(&runs), "{runs} bursts in 0.3 s, expected 1,500");
        // Who sends once in a second meets one or the other state, with no memory.
        let lost = lost_in_time(&loss, Duration::from_secs(1), 4_000);
        let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count();
        assert!((20..65).contains(&pairs), "{pairs} of 4,000, expected 40");
    }

    #[test]
    fn bursts_in_time_that_cannot_be_are_refused() {
        let refused = |loss, mean| {
            let refused = Loss::burst_time(loss, mean).unwrap_err();
            assert!(matches!(refused, ConfigError::BurstTime { .. }), "{refused}");
        };
        refused(1.0, Duration::from_millis(1));
        refused(0.1, Duration::from_micros(9));
        refused(0.95, Duration::from_micros(10));
        refused(0.1, Duration::from_secs(3_601));
        let none = Loss::burst_time(1.5, Duration::from_millis(1));
        assert!(matches!(none, Err(ConfigError::Probability { .. })));
    }

    #[test]
    fn a_burst_model_has_the_means_that_were_asked_for() {
        for (mean_loss, burst_len) in [(0.01, 3.0), (0.05, 10.0), (0.3, 50.0), (0.5, 1.0)] {
            let loss = Loss::burst(mean_loss, burst_len).unwrap();
            assert!((loss.mean_loss() - mean_loss).abs() < 1e-12);
            assert!((loss.mean_burst_len().unwrap() - burst_len).abs() < 1e-9);
            assert_eq!(loss.validate(), Ok(()));
        }
    }

    #[test]
    fn impossible_bursts_are_refused() {
        for (mean_loss, burst_len) in [(0.9, 1.0), (1.0, 10.0), (0.1, 0.5), (0.1, f64::NAN)] {
            let refused = Loss::burst(mean_loss, burst_len);
            assert!(matches!(refused, Err(ConfigError::Burst { .. })), "{mean_loss} {burst_len}");
        }
        assert!(matches!(Loss::burst(0.1, f64::INFINITY), Err(ConfigError::Burst { .. })));
        assert!(matches!(Loss::burst(f64::NAN, 2.0), Err(ConfigError::Probability { .. })));
    }

    #[test]
    fn the_mean_burst_of_independent_loss_is_geometric() {
        assert_eq!(Loss::Random { p: 0.5 }.mean_burst_len(), Some(2.0));
        assert_eq!(Loss::Random { p: 0.0 }.mean_burst_len(), None);
        assert_eq!(Loss::Random { p: 1.0 }.mean_burst_len(), None);
        assert_eq!(Loss::None.mean_burst_len(), None);
    }

    #[test]
    fn bursts_of_mean_length_one_never_touch() {
        let lost = losses(&Loss::burst(0.3, 1.0).unwrap(), 5, 10_000);
        assert!(lost.windows(2).all(|pair| pair[0].is_none() || pair[1].is_none()));
        assert!(lost.iter().flatten().count() > 2_500);
    }

    #[test]
    fn the_first_item_is_lost_as_often_as_any_other() {
        let loss = Loss::burst(0.3, 50.0).unwrap();
        let lost = (0..4_000).filter(|&seed| losses(&loss, seed, 1)[0].is_some()).count();
        assert!((1_055..1_345).contains(&lost), "{lost} of 4000, expected 1200");
    }

    #[test]
    fn loss_in_the_good_state_counts_as_random() {
        let loss =
            Loss::GilbertElliott { p_enter: 0.0, p_leave: 0.0, loss_good: 1.0, loss_bad: 0.0 };
        assert!(losses(&loss, 1, 100).iter().all(|lost| *lost == Some(DropReason::LossRandom)));
    }

    #[test]
    fn drawn_losses_are_in_their_range_and_differ() {
        let (mut sum, mut longest) = (0.0, 0.0_f64);
        for seed in 0..1_000 {
            let loss = Loss::drawn(seed);
            assert_eq!((loss.validate(), loss), (Ok(()), Loss::drawn(seed)), "seed {seed}");
            let (mean, len) = (loss.mean_loss(), loss.mean_burst_len().unwrap());
            assert!((0.000_999..=0.100_1).contains(&mean), "seed {seed}: {mean}");
            assert!((0.999..=30.001).contains(&len), "seed {seed}: {len}");
            (sum, longest) = (sum + mean, longest.max(len));
        }
        // A third of the range above the least.
        assert!((0.031..0.037).contains(&(sum / 1_000.0)), "{sum}");
        assert!(longest > 29.0, "{longest}");
    }
}
