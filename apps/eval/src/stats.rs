//! The arithmetic of a comparison: medians, their intervals, and which rounds are noisy.
//!
//! Invariant: functions of numbers only, and the same numbers give the same result for ever, so
//! that every figure can be worked out again from the samples that are kept.

/// The share by which a control may be off its own median before its round is noisy.
pub const NOISE_MAX: f64 = 0.15;

/// How often values are drawn again for an interval.
const RESAMPLES: usize = 4_000;

/// Where the drawing begins: always the same, so that a table can be compared with its samples.
const SEED: u64 = 0x1998_2026_da0c_a900;

/// A median, how sure it is, and what it was made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Of an even number of values the mean of the two in the middle.
    pub median: f64,
    /// The median lies from here, in 95 of 100 draws of as many values (percentile bootstrap,
    /// Efron 1979).
    pub low: f64,
    /// … to here.
    pub high: f64,
    /// The smallest value.
    pub least: f64,
    /// The largest.
    pub greatest: f64,
    /// How many there are.
    pub count: usize,
}

impl Estimate {
    /// Of these values; `None` of nothing, or when one of them is no number.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, greatest) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = interval(&sorted);
        Some(Self { median: middle(&sorted)?, low, high, least, greatest, count: sorted.len() })
    }

    /// Whether all of the interval is above `value`.
    #[must_use]
    pub fn is_above(&self, value: f64) -> bool {
        self.low > value
    }

    /// Whether all of the interval is below `value`.
    #[must_use]
    pub fn is_below(&self, value: f64) -> bool {
        self.high < value
    }
}

/// The tenth part of values from below, 0 of nothing: of times that are only ever too long, because
/// something else runs, the fast ones count.
#[must_use]
pub fn undisturbed(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 10).copied().unwrap_or(0.0)
}

/// The median of `values`, 0 of nothing: for a table of what was measured, in which there is some.
#[must_use]
pub fn median_or_0(values: &[f64]) -> f64 {
    median(values).unwrap_or(0.0)
}

/// The median of `values`; `None` of nothing.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    middle(&sorted)
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*sorted.get(sorted.len() / 2 - 1)?, upper))
}

/// The 95 % interval of the median of `sorted`, which is not empty.
fn interval(sorted: &[f64]) -> (f64, f64) {
    let mut random = SplitMix(SEED);
    let mut medians = Vec::with_capacity(RESAMPLES);
    let mut places = vec![0; sorted.len()];
    for _ in 0..RESAMPLES {
        places.iter_mut().for_each(|place| *place = random.below(sorted.len()));
        places.sort_unstable();
        let drawn = |at: usize| sorted[places[at]];
        let half = places.len() / 2;
        let is_odd = places.len() % 2 == 1;
        medians.push(if is_odd {
            drawn(half)
        } else {
            f64::midpoint(drawn(half - 1), drawn(half))
        });
    }
    medians.sort_by(f64::total_cmp);
    (medians[RESAMPLES / 40], medians[RESAMPLES - 1 - RESAMPLES / 40])
}

/// Random numbers of no quality that matters here (Steele, Lea, Flood 2014).
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * bound as u128) >> 64) as usize
    }
}

/// Which rounds are noisy: those in which a control is missing, or off its own median over all
/// rounds by more than [`NOISE_MAX`]. `controls` has a value, or none, by control and round.
#[must_use]
pub fn noisy(controls: &[Vec<Option<f64>>]) -> Vec<bool> {
    let round_count = controls.iter().map(Vec::len).max().unwrap_or(0);
    let mut is_noisy = vec![false; round_count];
    for control in controls {
        let there: Vec<f64> = control.iter().flatten().copied().collect();
        let Some(middle) = median(&there) else { continue };
        for (round, flag) in is_noisy.iter_mut().enumerate() {
            let value = control.get(round).copied().flatten();
            *flag |= value.is_none_or(|it| (it - middle).abs() > middle * NOISE_MAX);
        }
    }
    is_noisy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_numbers() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!((median(&[]), median_or_0(&[])), (None, 0.0));
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None, "what is no number is no figure");
    }

    #[test]
    fn one_value_is_its_own_interval_and_equal_values_have_none() {
        let one = Estimate::of(&[7.0]).unwrap();
        assert_eq!((one.low, one.median, one.high, one.count), (7.0, 7.0, 7.0, 1));
        let equal = Estimate::of(&[2.0; 7]).unwrap();
        assert_eq!((equal.low, equal.high), (2.0, 2.0));
    }

    #[test]
    fn an_interval_of_the_median_covers_it_in_about_95_of_100_experiments() {
        // Values from 0 to 999, each as likely: the median of all is 499.5.
        let mut random = SplitMix(7);
        let mut covered = 0;
        for _ in 0..400 {
            let values: Vec<f64> = (0..15).map(|_| random.below(1_000) as f64).collect();
            let it = Estimate::of(&values).unwrap();
            covered += usize::from(it.low <= 499.5 && 499.5 <= it.high);
        }
        assert!((364..=396).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn ahead_is_who_is_ahead_with_all_of_the_interval() {
        let it = Estimate::of(&[1.1, 1.2, 1.0, 1.3, 1.15, 1.12, 1.18]).unwrap();
        assert!(it.low <= it.median && it.median <= it.high, "{it:?}");
        assert!(!it.is_above(1.12) && !it.is_below(1.12), "{it:?}");
        assert!(it.is_above(0.9) && it.is_below(1.4), "{it:?}");
    }

    #[test]
    fn the_same_values_in_another_order_give_the_same_interval() {
        let there = Estimate::of(&[5.0, 1.0, 4.0, 2.0, 9.0]);
        assert_eq!(there, Estimate::of(&[9.0, 5.0, 4.0, 2.0, 1.0]));
    }

    #[test]
    fn a_round_is_noisy_when_one_control_is_off_by_more_than_15_of_100() {
        let gso = vec![Some(40.0), Some(41.0), Some(30.0), Some(39.0), Some(40.0)];
        let tcp = vec![Some(20.0), Some(24.0), Some(20.0), Some(20.5), Some(19.0)];
        assert_eq!(noisy(&[gso, tcp]), [false, true, true, false, false]);
        let missing = vec![Some(10.0), Some(11.5), Some(8.5), None, Some(10.0)];
        assert_eq!(noisy(&[missing]), [false, false, false, true, false]);
    }

    #[test]
    fn without_a_control_that_ever_ran_nothing_is_judged_by_it() {
        assert_eq!(noisy(&[vec![None, None], vec![Some(1.0), Some(1.0)]]), [false, false]);
        assert!(noisy(&[]).is_empty());
    }
}
