//! The arithmetic of a comparison: medians, percentiles, and which rounds were disturbed.
//!
//! Invariant: functions of numbers only, so that what is discarded can be worked out again from
//! the raw data.

/// The share by which a control may be off its own median before its round is disturbed.
const DEVIATION_MAX: f64 = 0.1;

/// The median of `values`; of an even number the mean of the two in the middle. None of nothing.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(sorted.len() / 2 - 1)?;
    Some(f64::midpoint(lower, upper))
}

/// The least and the greatest of `values`.
#[must_use]
pub fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    let greatest = values.iter().copied().max_by(f64::total_cmp)?;
    Some((least, greatest))
}

/// The value below which `share` (0 to 1) of `sorted` lies, by the nearest rank. None of nothing.
#[must_use]
pub fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Which rounds are disturbed: those in which a control is missing, or is off its own median over
/// all rounds by more than a tenth. `controls` holds a value, or none, per control and round.
#[must_use]
pub fn disturbed(controls: &[Vec<Option<f64>>]) -> Vec<bool> {
    let round_count = controls.iter().map(Vec::len).max().unwrap_or(0);
    let mut is_disturbed = vec![false; round_count];
    for control in controls {
        let there: Vec<f64> = control.iter().flatten().copied().collect();
        let Some(middle) = median(&there) else { continue };
        for (round, flag) in is_disturbed.iter_mut().enumerate() {
            let value = control.get(round).copied().flatten();
            *flag |= value.is_none_or(|it| (it - middle).abs() > middle * DEVIATION_MAX);
        }
    }
    is_disturbed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_numbers() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn the_spread_is_the_least_and_the_greatest() {
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some((1.0, 3.0)));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&values, 0.5), Some(50.0));
        assert_eq!(percentile(&values, 0.99), Some(99.0));
        assert_eq!(percentile(&values, 1.0), Some(100.0));
        assert_eq!(percentile(&values, 0.0), Some(1.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn a_round_is_disturbed_when_one_control_is_off_by_more_than_a_tenth() {
        let gso = vec![Some(40.0), Some(41.0), Some(30.0), Some(39.0), Some(40.0)];
        let tcp = vec![Some(20.0), Some(23.0), Some(20.0), Some(20.5), Some(19.0)];
        assert_eq!(disturbed(&[gso, tcp]), [false, true, true, false, false]);
    }

    #[test]
    fn a_deviation_of_a_tenth_is_still_quiet_and_a_missing_control_is_not() {
        let values = vec![Some(10.0), Some(11.0), Some(9.0), None, Some(10.0)];
        assert_eq!(disturbed(&[values]), [false, false, false, true, false]);
    }

    #[test]
    fn without_a_control_that_ever_ran_nothing_is_judged_by_it() {
        assert_eq!(disturbed(&[vec![None, None], vec![Some(1.0), Some(1.0)]]), [false, false]);
        assert!(disturbed(&[]).is_empty());
    }
}
