//! [`JitterShape`]: how the delay of an item varies, from one uniform number per item.
//!
//! Delay from rate and backlog is the transmitter's (`queue.rs`).
//!
//! ```text
//!   uniform    |________|        normal         _-^-_           both are centred on `delay`
//!              |        |                     _-     -_         and cut at zero: what would be
//!          -jitter   +jitter           -4 jitter   +4 jitter    negative arrives at once
//! ```
//!
//! Invariants: one number in, one delay out (rejection would draw a varying number of times); only
//! IEEE basic operations, because `f64::ln` may differ in its last bit between machines.
//! Source of the quantile: P. J. Acklam's rational approximation (relative error below 1.2e-9).

use std::time::Duration;

/// The distribution of the delay around its centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum JitterShape {
    /// All values within ± `jitter` are equally likely.
    #[default]
    Uniform,
    /// Normal with standard deviation `jitter`, truncated at ± 4 `jitter`.
    Normal,
}

/// Where the normal shape is cut, in standard deviations.
pub(crate) const NORMAL_CUT: f64 = 4.0;
/// The probability mass of the normal distribution below `-NORMAL_CUT`.
const NORMAL_CUT_MASS: f64 = 3.167_124_183_311_986e-5;

impl JitterShape {
    /// The name in configuration text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Normal => "normal",
        }
    }

    /// How far the delay can be from its centre.
    #[must_use]
    pub fn reach(self, jitter: Duration) -> Duration {
        match self {
            Self::Uniform => jitter,
            Self::Normal => jitter.saturating_mul(NORMAL_CUT as u32),
        }
    }

    /// The delay that belongs to `unit` in `[0, 1)`.
    pub(crate) fn delay(self, centre: Duration, jitter: Duration, unit: f64) -> Duration {
        if jitter.is_zero() {
            return centre;
        }
        let offset_ns = jitter.as_nanos() as f64 * self.quantile(unit);
        // The cast saturates at zero, which is the cut.
        Duration::from_nanos((centre.as_nanos() as f64 + offset_ns).round() as u64)
    }

    fn quantile(self, unit: f64) -> f64 {
        match self {
            Self::Uniform => 2.0 * unit - 1.0,
            Self::Normal => normal_quantile(NORMAL_CUT_MASS + unit * (1.0 - 2.0 * NORMAL_CUT_MASS)),
        }
    }
}

/// The value below which the standard normal distribution has mass `p`, for `p` in `(0, 1)`.
fn normal_quantile(p: f64) -> f64 {
    const TAIL: f64 = 0.024_25;
    if p < TAIL {
        normal_tail(p)
    } else if p > 1.0 - TAIL {
        -normal_tail(1.0 - p)
    } else {
        normal_middle(p - 0.5)
    }
}

fn normal_middle(q: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    let r = q * q;
    q * polynomial(&A, r) / polynomial(&B, r)
}

fn normal_tail(p: f64) -> f64 {
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    let q = (-2.0 * ln(p)).sqrt();
    polynomial(&C, q) / polynomial(&D, q)
}

/// Horner's rule, highest power first.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// The natural logarithm of a normal positive number, the same bits on every machine.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7FF) as i32 - 1_023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1_023 << 52));
    // ln m = 2 artanh((m - 1) / (m + 1)); the argument is at most 1/3, so 18 terms are plenty.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..18).rev().fold(0.0, |sum, k| sum * z * z + 1.0 / f64::from(2 * k + 1));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * z * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_agrees_with_that_of_the_system() {
        for x in [1e-9, 3.2e-5, 0.024, 0.5, 1.0, 1.999, 7.3, 1e12_f64] {
            assert!((ln(x) - x.ln()).abs() < 1e-13 * (1.0 + x.ln().abs()), "{x}");
        }
    }

    #[test]
    fn the_normal_quantile_hits_the_values_of_the_tables() {
        for (p, z) in [
            (0.5, 0.0),
            (0.841_344_746_068_543, 1.0),
            (0.977_249_868_051_821, 2.0),
            (0.998_650_101_968_370, 3.0),
            (NORMAL_CUT_MASS, -4.0),
        ] {
            assert!((normal_quantile(p) - z).abs() < 1e-7, "{p}: {}", normal_quantile(p));
        }
    }

    #[test]
    fn no_delay_is_below_zero_or_beyond_the_reach() {
        let (centre, jitter) = (Duration::from_millis(3), Duration::from_millis(5));
        for shape in [JitterShape::Uniform, JitterShape::Normal] {
            for step in 0..=10_000 {
                let unit = f64::from(step) / 10_001.0;
                let delay = shape.delay(centre, jitter, unit);
                assert!(delay <= centre + shape.reach(jitter), "{shape:?} {unit} {delay:?}");
            }
            assert_eq!(shape.delay(centre, jitter, 0.0), Duration::ZERO);
            assert_eq!(shape.delay(centre, jitter, 0.5), centre);
        }
    }

    #[test]
    fn without_jitter_the_delay_is_exact() {
        let centre = Duration::from_nanos(59_999_999_999);
        assert_eq!(JitterShape::Normal.delay(centre, Duration::ZERO, 0.99), centre);
    }
}
