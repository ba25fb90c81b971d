//! Shares in billionths: the arithmetic of profiles; and [`Holes`]: how much of an ordered stream
//! comes how late, where what is lost is sent again.
//!
//! A share is rounded up, so that what is predicted is never better than what the formula says, and
//! only nothing gives nothing.
//!
//! Invariants: integers only; everything saturates and nothing panics; each result grows (or falls)
//! with each argument, without which no profile could keep the order of services.

use crate::PPB;

/// `a` times `b` through `by`, rounded up; 0 when `by` is 0 and so is the product.
#[must_use]
pub fn ratio(a: u64, b: u64, by: u64) -> u64 {
    let product = u128::from(a).saturating_mul(u128::from(b));
    u64::try_from(product.div_ceil(u128::from(by.max(1)))).unwrap_or(u64::MAX)
}

/// `a` times `b` through `by`, rounded down: of what is better when there is more of it.
#[must_use]
pub fn part(a: u64, b: u64, by: u64) -> u64 {
    let product = u128::from(a).saturating_mul(u128::from(b)) / u128::from(by.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// The share `a` of the share `b`, in ppb.
#[must_use]
pub fn both(a: u64, b: u64) -> u64 {
    ratio(a, b, PPB)
}

const MILLISECOND: u64 = 1_000_000;

/// No delay beyond that is told from others: 100 s.
const LATE_MAX_NS: u64 = 100_000 * MILLISECOND;

/// How often a packet is sent, at the most that is reckoned with.
const TRIES_MAX: u32 = 8;

/// The lengths of runs of losses that are reckoned with, in thousandths of the mean, and how many
/// of a thousand runs are so long: about what lengths without a memory are.
const RUNS: [(u64, u64); 4] = [(310, 500), (1_100, 300), (2_200, 150), (4_000, 50)];

/// Losses of an ordered stream of which everything is sent again until it comes, and behind which
/// everything waits.
///
/// ```text
///   sent     1 x . . . . . 2'          2 is lost: it comes later, and so does
///   up       1             2 3 4 5 6 7   what came behind it meanwhile
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holes {
    /// The share of packets that are lost, in ppb; a packet that is sent again is, too.
    pub loss_ppb: u64,
    /// The mean length of a run of losses, in thousandths of packets, at least 1,000.
    pub burst_milli: u64,
    /// How far packets are apart, in ns, at least 1.
    pub apart_ns: u64,
    /// How much later than the first time it comes that is sent again and lost again, in ns.
    pub again_ns: u64,
}

impl Holes {
    /// The share of packets that come more than `late_ns` later than without losses, in ppb: of
    /// each run those lost themselves, and those behind them that wait as long. `first_ns` says how
    /// much later the first of a run of so many thousandths of packets comes, when it is sent again
    /// for the first time.
    pub fn share_later(&self, late_ns: u64, first_ns: impl Fn(u64) -> u64) -> u64 {
        let begins = ratio(self.loss_ppb, 1_000, self.burst_milli.max(1_000));
        let mut share = 0_u64;
        for (len, of_thousand) in RUNS {
            let run_milli = ratio(self.burst_milli, len, 1_000).max(1_000);
            let mut came = first_ns(run_milli);
            let mut runs = ratio(begins, of_thousand, 1_000);
            let mut counted = 0;
            for _ in 0..TRIES_MAX {
                // Where each of the packets begins to wait does not fall on the time asked for.
                let late_milli = part(came.saturating_sub(late_ns), 1_000, self.apart_ns);
                let late_milli = late_milli.saturating_add(500 * u64::from(late_milli > 0));
                share = share.saturating_add(part(runs, late_milli - counted, 1_000));
                counted = late_milli;
                (runs, came) = (both(runs, self.loss_ppb), came.saturating_add(self.again_ns));
                if runs == 0 {
                    break;
                }
            }
        }
        share.min(PPB)
    }

    /// How much later than without losses all but this share come, in ns, to half a millisecond.
    pub fn later_than_all_but(&self, share_ppb: u64, first_ns: impl Fn(u64) -> u64) -> u64 {
        let is_more = |late: u64| self.share_later(late, &first_ns) >= share_ppb.max(1);
        if !is_more(0) {
            return 0;
        }
        let (mut short, mut long) =
            (0, first_ns(8_000_u64.saturating_mul(self.burst_milli) / 1_000));
        while is_more(long) && long < LATE_MAX_NS {
            (short, long) = (long, long.saturating_mul(2).max(1));
        }
        while long - short > MILLISECOND / 2 {
            let middle = short.midpoint(long);
            *(if is_more(middle) { &mut short } else { &mut long }) = middle;
        }
        long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_probability_rounded_up() {
        assert_eq!(both(PPB / 2, PPB / 2), PPB / 4);
        assert_eq!((both(1, 1), both(0, PPB), both(PPB, PPB)), (1, 0, PPB));
        assert_eq!((ratio(0, 0, 0), part(0, 0, 0)), (0, 0));
        assert_eq!((part(u64::MAX, u64::MAX, 1), part(7, 1, 2)), (u64::MAX, 3));
    }

    #[test]
    fn fewer_are_later_than_more() {
        let holes = Holes {
            loss_ppb: 50_000_000,
            burst_milli: 1_000,
            apart_ns: 2_000_000,
            again_ns: 100_000_000,
        };
        let later = |late: u64| holes.share_later(late, |_| 100_000_000);
        // Nearly all wait for one of the 50 before them; few for one that is lost twice.
        assert_eq!(later(0), PPB);
        assert!((100_000_000..200_000_000).contains(&later(100_000_000)), "{}", later(100_000_000));
        assert!(later(300_000_000) < 1_000_000, "{}", later(300_000_000));
        for late in (0..1_000).map(|ms| ms * 1_000_000) {
            assert!(later(late + 1_000_000) <= later(late), "{late}");
        }
        for share in [10_000_000, 100_000, 1_000] {
            let late = holes.later_than_all_but(share, |_| 100_000_000);
            assert!(later(late) < share && later(late - 1_000_000) >= share, "{share}: {late}");
        }
        assert_eq!(Holes { loss_ppb: 0, ..holes }.later_than_all_but(1, |_| 100_000_000), 0);
    }
}
