//! What a configuration predicts: means and variances in closed form, for `verify.rs`.
//!
//! Nothing here shares code with the sampling in `delay.rs` and `loss.rs`, so an error there cannot
//! hide behind the same error here.
//!
//! Sources: moments of the truncated and of the rectified normal distribution (Johnson, Kotz,
//! Balakrishnan, "Continuous Univariate Distributions"); the autocovariance of a two-state Markov
//! chain; erf by Abramowitz and Stegun 7.1.26 (error below 1.5e-7).

use crate::config::LinkConfig;
use crate::delay::{JitterShape, NORMAL_CUT};
use crate::loss::Loss;
use std::time::Duration;

/// Mean and variance of a figure of one item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moments {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

impl Moments {
    fn from_raw(mean: f64, mean_square: f64) -> Self {
        Self { mean, variance: (mean_square - mean * mean).max(0.0) }
    }

    /// Of a probability.
    pub(crate) fn of_chance(p: f64) -> Self {
        Self { mean: p, variance: p * (1.0 - p) }
    }
}

/// The propagation delay with jitter in seconds, without hold-back and transmission.
pub(crate) fn delay(config: &LinkConfig) -> Moments {
    let (centre, jitter) = (config.delay.as_secs_f64(), config.jitter.as_secs_f64());
    if jitter == 0.0 {
        return Moments { mean: centre, variance: 0.0 };
    }
    match config.jitter_shape {
        JitterShape::Uniform => uniform_delay(centre, jitter),
        JitterShape::Normal => normal_delay(centre, jitter),
    }
}

fn uniform_delay(centre: f64, jitter: f64) -> Moments {
    if centre >= jitter {
        return Moments { mean: centre, variance: jitter * jitter / 3.0 };
    }
    let top = centre + jitter;
    Moments::from_raw(top * top / (4.0 * jitter), top * top * top / (6.0 * jitter))
}

fn normal_delay(centre: f64, sigma: f64) -> Moments {
    let (low, high) = ((-centre / sigma).max(-NORMAL_CUT), NORMAL_CUT);
    let mass = normal_mass(high) - normal_mass(low);
    let slope = normal_density(low) - normal_density(high);
    let bend = low * normal_density(low) - high * normal_density(high);
    let whole = normal_mass(NORMAL_CUT) - normal_mass(-NORMAL_CUT);
    let mean = (centre * mass + sigma * slope) / whole;
    // Taken about the centre first: about zero the difference of squares would lose the digits.
    let below = (normal_mass(low) - normal_mass(-NORMAL_CUT)) * centre * centre;
    let square_about_centre = (sigma * sigma * (mass + bend) + below) / whole;
    let shift = mean - centre;
    Moments { mean, variance: (square_about_centre - shift * shift).max(0.0) }
}

/// The additional delay by hold-back in seconds.
pub(crate) fn hold(config: &LinkConfig) -> Moments {
    let (p, most) = (config.reorder, config.reorder_by.as_secs_f64());
    Moments::from_raw(p * most / 2.0, p * most * most / 3.0)
}

/// The additional delay of an item that is held back, in seconds.
pub(crate) fn hold_of_held(config: &LinkConfig) -> Moments {
    hold(&LinkConfig { reorder: 1.0, ..config.clone() })
}

/// The share of items whose delay is within half a `jitter` of the centre: tells the shapes apart.
/// `None` without jitter or when the cut at zero is in the way.
pub(crate) fn share_near_centre(config: &LinkConfig) -> Option<f64> {
    let whole = config.jitter_shape.reach(config.jitter) <= config.delay;
    let fine = config.jitter.as_nanos() >= 1_000;
    (whole && fine).then(|| match config.jitter_shape {
        JitterShape::Uniform => 0.5,
        JitterShape::Normal => {
            (2.0 * normal_mass(0.5) - 1.0) / (2.0 * normal_mass(NORMAL_CUT) - 1.0)
        }
    })
}

/// The loss of an item; the variance is that of the mean of many times their number, so it
/// contains what neighbours share that are so far `apart`.
pub(crate) fn loss(loss: &Loss, apart: Duration) -> Moments {
    let independent = Moments::of_chance(loss.mean_loss());
    let (loss_good, loss_bad) = match *loss {
        Loss::GilbertElliott { loss_good, loss_bad, .. } => (loss_good, loss_bad),
        Loss::Timed { .. } => (0.0, 1.0),
        Loss::None | Loss::Random { .. } => return independent,
    };
    let (bad, memory) = (loss.share_bad(), loss_memory(loss, apart));
    if memory >= 1.0 {
        return independent;
    }
    let spread = (loss_bad - loss_good).powi(2) * bad * (1.0 - bad);
    let shared = 2.0 * spread * memory / (1.0 - memory);
    Moments { variance: (independent.variance + shared).max(0.0), ..independent }
}

/// How many items count as one independent item.
pub(crate) fn loss_stretch(loss: &Loss, apart: Duration) -> f64 {
    let memory = loss_memory(loss, apart);
    if memory < 1.0 { ((1.0 + memory) / (1.0 - memory)).max(1.0) } else { 1.0 }
}

/// The mean length of a run of losses, in items that are so far `apart`; `None` where nothing or
/// everything is lost.
pub(crate) fn burst_len(loss: &Loss, apart: Duration) -> Option<f64> {
    let Loss::Timed { share, .. } = *loss else { return loss.mean_burst_len() };
    // One that is lost is the last of its run when the next is not.
    (share > 0.0).then(|| 1.0 / ((1.0 - share) * (1.0 - loss_memory(loss, apart))))
}

/// The correlation of the states of neighbours that are so far apart, -1 to 1.
fn loss_memory(loss: &Loss, apart: Duration) -> f64 {
    match *loss {
        Loss::None | Loss::Random { .. } => 0.0,
        Loss::GilbertElliott { p_enter, p_leave, .. } => 1.0 - p_enter - p_leave,
        // It leaves each state at its own rate, and forgets at both together.
        Loss::Timed { share, mean } => {
            (-apart.as_secs_f64() / (mean.as_secs_f64() * (1.0 - share))).exp()
        }
    }
}

/// When CoDel first drops of a queue to which a fifth more comes than leaves, an item in `service`:
/// the wait grows by a sixth of the time, so it has been `target` for an interval.
pub(crate) fn codel_first_drop(
    target: Duration,
    interval: Duration,
    service: Duration,
) -> Duration {
    // Nothing is judged while no more than one is behind what leaves.
    let wait = target.max(service * 2);
    wait * 6 + interval
}

/// How often CoDel drops from its first drop on, in so many intervals: each drop comes
/// 1 / sqrt(drops so far) of one after the one before.
pub(crate) fn codel_drops(intervals: f64) -> f64 {
    let (mut at, mut count) = (0.0, 0.0_f64);
    while at <= intervals {
        count += 1.0;
        at += 1.0 / count.sqrt();
    }
    count
}

fn normal_density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// The mass of the standard normal distribution below `z`.
fn normal_mass(z: f64) -> f64 {
    0.5 * (1.0 + erf(z * std::f64::consts::FRAC_1_SQRT_2))
}

fn erf(x: f64) -> f64 {
    const A: [f64; 5] =
        [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let series = A.iter().fold(0.0, |sum, a| sum * t + a) * t;
    (1.0 - series * (-x * x).exp()).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn config(delay_ms: u64, jitter_ms: u64, jitter_shape: JitterShape) -> LinkConfig {
        LinkConfig {
            delay: Duration::from_millis(delay_ms),
            jitter: Duration::from_millis(jitter_ms),
            jitter_shape,
            ..LinkConfig::default()
        }
    }

    /// The moments by adding up the definition, a fine grid of the density.
    fn by_integration(centre: f64, spread: f64, shape: JitterShape) -> Moments {
        let reach = if shape == JitterShape::Normal { 4.0 } else { 1.0 };
        let (mut mass, mut sum, mut square) = (0.0, 0.0, 0.0);
        for step in 0..200_000 {
            let z = reach * (f64::from(2 * step + 1) / 200_000.0 - 1.0);
            let weight = if shape == JitterShape::Normal { (-0.5 * z * z).exp() } else { 1.0 };
            let x = (centre + spread * z).max(0.0);
            mass += weight;
            sum += weight * x;
            square += weight * x * x;
        }
        Moments::from_raw(sum / mass, square / mass)
    }

    #[test]
    fn delay_moments_agree_with_integration() {
        for shape in [JitterShape::Uniform, JitterShape::Normal] {
            for (delay_ms, jitter_ms) in [(100, 10), (20, 20), (10, 20), (0, 30), (3, 1), (50, 40)]
            {
                let closed = delay(&config(delay_ms, jitter_ms, shape));
                let (centre, spread) = (delay_ms as f64 / 1e3, jitter_ms as f64 / 1e3);
                let summed = by_integration(centre, spread, shape);
                let name = format!("{shape:?} {delay_ms} {jitter_ms}: {closed:?} {summed:?}");
                assert!((closed.mean - summed.mean).abs() < 1e-5 * spread, "{name}");
                let off = (closed.variance - summed.variance).abs();
                assert!(off < 1e-4 * spread * spread, "{name}");
            }
        }
    }

    #[test]
    fn burst_loss_varies_more_than_independent_loss() {
        let burst = Loss::burst(0.05, 10.0).unwrap();
        let of = |it: &Loss| loss(it, Duration::ZERO).variance;
        let ratio = of(&burst) / of(&Loss::Random { p: 0.05 });
        // (1 + m) / (1 - m) with m = 1 - 0.1 - 0.1 * 0.05 / 0.95.
        assert!((ratio - 18.0).abs() < 1e-9, "{ratio}");
        assert!((loss_stretch(&burst, Duration::ZERO) - ratio).abs() < 1e-9);
    }
}
