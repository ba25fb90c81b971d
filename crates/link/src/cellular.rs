//! [`Trace::cellular`]: the rate of a cellular link, from a seed.
//!
//! ```text
//!   60 Mbit/s |      .-.                    the rate walks at random, in steps of its logarithm,
//!             |   .-'   '-.        .-.      anew every 20 ms; and it ends, now and then, for up
//!             | -'         '-.   .'   '-    to 2 s
//!           0 |               |_|
//! ```
//!
//! As in Sprout (Winstein, Sivaraman and Balakrishnan, NSDI 2013) the rate is a random walk with
//! outages, in ticks of 20 ms. Different from it: the walk is one of the logarithm, because links
//! of today range over more than its 10 Mbit/s; opportunities lie evenly within a tick, and outages
//! are of uniform length, because theirs is bounded here.
//!
//! Invariants: whole numbers only, so the same seed is the same trace on every machine; between
//! outages the rate is 480 kbit/s to 60 Mbit/s; no two opportunities are more than 2.1 s apart.

use crate::trace::Trace;
use dacapo_base::Random;
use std::time::Duration;

/// How long the rate stays.
const TICK_MS: u64 = 20;
/// The lowest rate, kbit/s: bits per millisecond.
const RATE_MIN: u64 = 480;
/// Levels in a factor of two.
const OCTAVE: u64 = 64;
/// The level of the highest rate: 480 kbit/s * 2^6 * (64 + 61) / 64 = 60 Mbit/s.
const LEVEL_MAX: u64 = 6 * OCTAVE + 61;
/// The level changes by at most so much in a tick, both ways: a factor of 1.1.
const STEP: u64 = 9;
/// An outage begins in one of so many ticks: every 10 s.
const OUTAGE_EVERY: u64 = 500;
/// The longest outage, ticks; all lengths up to it are equally likely.
const OUTAGE_MAX: u64 = 100;
/// Bits of an opportunity.
const OPPORTUNITY_BITS: u64 = 8 * Trace::OPPORTUNITY_LEN as u64;
/// The longest trace that is made.
const DURATION_MAX: Duration = Duration::from_secs(600);

impl Trace {
    /// A link like one of a cellular network: 0 to 60 Mbit/s, with outages of up to 2 s, every 10 s
    /// on average. The same seed is the same trace on every machine, and a longer one begins alike,
    /// but for the last opportunity, which is where the trace ends. Of `duration`, whole
    /// milliseconds count, 1 ms to 10 minutes.
    #[must_use]
    pub fn cellular(seed: u64, duration: Duration) -> Self {
        let end_ms = duration.clamp(Duration::from_millis(1), DURATION_MAX).as_millis() as u64;
        let mut random = Random::from_number(seed);
        let (mut level, mut outage) = (random.below(LEVEL_MAX + 1), 0_u64);
        let (mut bits, mut at_ms) = (0, Vec::new());
        for tick in 0..end_ms.div_ceil(TICK_MS) {
            // Drawn in every tick, so that an outage does not shift what comes after it.
            level = moved(level, random.below(2 * STEP + 1));
            let (begins, length) = (random.below(OUTAGE_EVERY) == 0, random.below(OUTAGE_MAX));
            if outage > 0 {
                outage -= 1;
                continue;
            }
            // Not straight after another one, at whose end what waits leaves at once.
            if begins && bits < OPPORTUNITY_BITS {
                (outage, bits) = (length, OPPORTUNITY_BITS);
                continue;
            }
            let start_ms = tick * TICK_MS;
            for ms in start_ms..(start_ms + TICK_MS).min(end_ms) {
                bits += rate(level);
                while bits >= OPPORTUNITY_BITS {
                    bits -= OPPORTUNITY_BITS;
                    at_ms.push(ms as u32);
                }
            }
        }
        at_ms.push(end_ms as u32);
        Self::of_times(at_ms)
    }
}

/// A step of the walk, of `step` less [`STEP`]; at both ends it turns back.
const fn moved(level: u64, step: u64) -> u64 {
    let at = (level + step).abs_diff(STEP);
    if at > LEVEL_MAX { 2 * LEVEL_MAX - at } else { at }
}

/// The rate of a level, bits per millisecond: twice as much every 64 levels, and straight between.
const fn rate(level: u64) -> u64 {
    let octave = RATE_MIN << (level / OCTAVE);
    octave * (OCTAVE + level % OCTAVE) / OCTAVE
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_same_seed_is_the_same_trace_on_every_machine() {
        let trace = Trace::cellular(7, MINUTE);
        assert_eq!(trace, Trace::cellular(7, MINUTE));
        assert_ne!(trace, Trace::cellular(8, MINUTE));
        let digest = trace.at_ms().iter().fold(0xCBF2_9CE4_8422_2325_u64, |digest, ms| {
            (digest ^ u64::from(*ms)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        assert_eq!((trace.at_ms().len(), digest), (4_858, 0x84E7_D987_FCDF_3BEB));
    }

    #[test]
    fn a_longer_one_begins_like_a_shorter_one() {
        let (short, long) = (Trace::cellular(3, MINUTE), Trace::cellular(3, MINUTE * 2));
        let (end, begin) = short.at_ms().split_last().unwrap();
        assert_eq!(begin, &long.at_ms()[..begin.len()]);
        assert_eq!((*end, long.duration()), (60_000, MINUTE * 2));
    }

    #[test]
    fn it_stays_below_60_mbit_and_is_never_out_for_more_than_two_seconds() {
        let (mut fastest, mut longest_ms, mut outages) = (0, 0, 0);
        for seed in 0..50 {
            let trace = Trace::cellular(seed, MINUTE);
            let at_ms = trace.at_ms();
            assert!(at_ms.is_sorted() && trace.duration() == MINUTE, "seed {seed}");
            // 100 ms at 60 Mbit/s are 500 opportunities, and one was begun before.
            let window = at_ms.windows(502).map(|it| it[501] - it[0]).min();
            assert!(window.is_none_or(|ms| ms >= 100), "seed {seed}: {window:?}");
            let gap_ms = at_ms.windows(2).map(|it| it[1] - it[0]).max().unwrap();
            assert!(gap_ms <= 2_100, "seed {seed}: nothing for {gap_ms} ms");
            let gaps = at_ms.windows(2).filter(|it| it[1] - it[0] > 200);
            (outages, longest_ms) = (outages + gaps.count(), longest_ms.max(gap_ms));
            fastest = fastest.max(trace.mean_bits_per_s());
        }
        // 50 minutes: 300 outages begin, of which nine in ten last for over 200 ms.
        assert!((200..340).contains(&outages), "{outages} outages");
        assert!(longest_ms > 1_900, "the longest lasted {longest_ms} ms");
        assert!((10_000_000..=60_000_000).contains(&fastest), "{fastest} bit/s");
    }

    #[test]
    fn any_duration_gives_a_trace() {
        for (duration, ms) in [
            (Duration::ZERO, 1),
            (Duration::from_millis(1), 1),
            (Duration::from_micros(20_999), 20),
            (Duration::from_millis(21), 21),
        ] {
            assert_eq!(Trace::cellular(1, duration).duration(), Duration::from_millis(ms));
        }
        assert_eq!(Trace::cellular(1, Duration::MAX).duration(), DURATION_MAX);
    }

    #[test]
    fn the_rate_doubles_every_octave_within_its_bounds() {
        assert_eq!((rate(0), rate(64), rate(96), rate(LEVEL_MAX)), (480, 960, 1_440, 60_000));
        assert!((0..LEVEL_MAX).all(|level| rate(level) < rate(level + 1)));
        assert_eq!([moved(0, 0), moved(0, 18), moved(5, 4), moved(5, 9)], [9, 9, 0, 5]);
        assert_eq!(
            [moved(LEVEL_MAX, 18), moved(LEVEL_MAX - 3, 11)],
            [LEVEL_MAX - 9, LEVEL_MAX - 1]
        );
    }
}
