//! [`Curve`]: how large a window may be so long after the last loss (RFC 9438, sections 4.2, 4.3).
//!
//! ```text
//!   W(t) = C (t - K)³ + W_max                         ╱   beyond W_max: is there more?
//!                                 ___________________╱
//!   W_max ─────────────────────⌒                          near it, slowly
//!          ╱                                              back there, fast
//!   0.7 ─ ╱
//!         0                    K                          t
//! ```
//!
//! Beside it goes the window of a flow that grows by a packet in a round trip as TCP Reno does:
//! where that is larger it holds, so that nobody is slower than Reno.
//!
//! Invariants: integers only, in bytes and µs, so that every machine reckons the same; saturating.

use dacapo_base::Time;
use std::time::Duration;

/// C is 0.4 packets per s³.
const C_TENTHS: u128 = 4;

/// µs³ in s³.
const CUBE: u128 = 1_000_000_000_000_000_000;

/// No loss is longer ago than this, in µs: three hours.
const T_MAX: u128 = 10_000_000_000;

/// As much as Reno grows in a round trip, a flow grows that keeps 0.7 of its window at a loss, so
/// that both have as much on average: 3 (1 - 0.7) / (1 + 0.7).
const ALPHA: (u128, u128) = (9, 17);

/// Since a loss, or since there was none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    began: Time,
    /// W_max, in bytes.
    plateau: u64,
    /// K, in µs.
    reached_us: u128,
    mss: u64,
    /// The window of Reno's, in 1/1,024 bytes, and from where on it grows as fast as Reno.
    reno_parts: u128,
    prior: u64,
}

impl Curve {
    /// From `window` on, where `plateau` was too much and `prior` was the window.
    pub fn new(now: Time, (window, plateau, prior): (u64, u64, u64), mss: u64) -> Self {
        let missing = u128::from(plateau.saturating_sub(window));
        let cube = missing.saturating_mul(10 * CUBE) / (C_TENTHS * u128::from(mss.max(1)));
        Self {
            began: now,
            plateau: plateau.max(window),
            reached_us: cube_root(cube),
            mss,
            reno_parts: u128::from(window) << 10,
            prior,
        }
    }

    /// Time in which the window was not used does not count.
    pub fn pause(&mut self, by: Duration) {
        self.began += by;
    }

    /// The window at a time, as the cubic has it.
    fn at(&self, time: Time) -> u64 {
        let us = time.since(self.began).as_micros().min(T_MAX);
        let off = us.abs_diff(self.reached_us).min(T_MAX);
        let bytes = C_TENTHS * u128::from(self.mss) * off * off * off / (10 * CUBE);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if us < self.reached_us {
            self.plateau.saturating_sub(bytes)
        } else {
            self.plateau.saturating_add(bytes)
        }
    }

    /// The window after so many bytes of it have come.
    pub fn grow(&mut self, now: Time, window: u64, delivered: u64, rtt: Duration) -> u64 {
        let whole = u128::from(window.max(1));
        let more = (u128::from(delivered) * u128::from(self.mss)) << 10;
        let is_behind = self.reno_parts >> 10 < u128::from(self.prior);
        let (part, of) = if is_behind { ALPHA } else { (1, 1) };
        self.reno_parts = self.reno_parts.saturating_add(more * part / of / whole);
        let reno = u64::try_from(self.reno_parts >> 10).unwrap_or(u64::MAX);
        if self.at(now) < reno {
            return window.max(reno);
        }
        let target = self.at(now + rtt).clamp(window, window.saturating_add(window / 2));
        let step = u128::from(target - window) * u128::from(delivered) / whole;
        window.saturating_add(u64::try_from(step).unwrap_or(u64::MAX))
    }
}

/// The cube root, rounded down.
fn cube_root(cube: u128) -> u128 {
    // Below 2^42 the cube of nothing overflows.
    let (mut low, mut high) = (0_u128, 1 << 42);
    while high - low > 1 {
        let middle = low.midpoint(high);
        *(if middle * middle * middle <= cube { &mut low } else { &mut high }) = middle;
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    fn s(s: f64) -> Time {
        Time::ZERO + Duration::from_secs_f64(s)
    }

    #[test]
    fn roots_are_whole() {
        let whole = |it: u128| it * it * it;
        for root in [0, 1, 2, 9, 1_000_000, (1 << 42) - 1] {
            assert_eq!(cube_root(whole(root)), root);
            assert_eq!(cube_root(whole(root + 1) - 1), root);
        }
    }

    #[test]
    fn it_is_where_the_rfc_says() {
        // Of 100 packets 70 are left: back there after the root of 75 s³, 4.217 s.
        let curve = Curve::new(Time::ZERO, (70 * MSS, 100 * MSS, 100 * MSS), MSS);
        assert!((4_217_000..4_218_000).contains(&curve.reached_us), "{}", curve.reached_us);
        for (at, packets) in [(0.0, 70.0), (1.0, 86.68), (4.217, 100.0), (6.217, 103.2)] {
            let window = curve.at(s(at)) as f64 / MSS as f64;
            assert!((window - packets).abs() < 0.02, "{at}: {window}");
        }
    }

    #[test]
    fn a_window_that_is_all_used_follows_it() {
        let rtt = Duration::from_millis(100);
        let mut curve = Curve::new(Time::ZERO, (700 * MSS, 1_000 * MSS, 1_000 * MSS), MSS);
        let (mut now, mut window) = (Time::ZERO, 700 * MSS);
        for _ in 0..150 {
            now += rtt;
            window = curve.grow(now, window, window, rtt);
            let ideal = curve.at(now + rtt);
            assert!(window.abs_diff(ideal) * 50 <= ideal, "{window} of {ideal}");
        }
        assert!(window > 1_000 * MSS, "15 s: it looks for more");
    }

    #[test]
    fn over_a_short_way_it_is_no_slower_than_reno() {
        // 1 ms: Reno grows by 0.53 packets in each, and by 1 from where it was before.
        let rtt = Duration::from_millis(1);
        let mut curve = Curve::new(Time::ZERO, (14 * MSS, 20 * MSS, 20 * MSS), MSS);
        let (mut now, mut window) = (Time::ZERO, 14 * MSS);
        for _ in 0..12 {
            now += rtt;
            window = curve.grow(now, window, window, rtt);
        }
        assert!((20 * MSS..21 * MSS).contains(&window), "{window}");
        for _ in 0..10 {
            now += rtt;
            window = curve.grow(now, window, window, rtt);
        }
        assert!((29 * MSS..31 * MSS).contains(&window), "{window}");
    }

    #[test]
    fn nothing_panics_at_the_ends() {
        let far = Time::from_nanos(u64::MAX);
        for (window, plateau) in [(0, 0), (0, u64::MAX), (u64::MAX, u64::MAX), (u64::MAX, 0)] {
            let mut curve = Curve::new(Time::ZERO, (window, plateau, plateau), 1);
            for (now, delivered) in [(Time::ZERO, 0), (far, u64::MAX), (s(1.0), 1)] {
                assert!(curve.grow(now, window, delivered, Duration::MAX) >= window);
            }
        }
    }
}
