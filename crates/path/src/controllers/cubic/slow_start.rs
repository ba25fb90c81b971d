//! [`SlowStart`]: doubles the window in each round trip until round trips get longer (HyStart++,
//! RFC 9406).
//!
//! ```text
//!   doubling --round trips are an eighth longer (4 to 16 ms)--> growing by a quarter as fast
//!      ^                                                            |            |
//!      '------------- shorter again: it was no queue ---------------'            '-5 rounds-> over
//! ```

use dacapo_base::Time;
use std::time::Duration;

/// A round has been measured by so many round trips.
const SAMPLES: u32 = 8;

/// How much longer a round trip is where there is a queue: the eighth part, between these.
const LONGER_PARTS: u32 = 8;
const LONGER_MIN: Duration = Duration::from_millis(4);
const LONGER_MAX: Duration = Duration::from_millis(16);

/// How many times as slowly it grows when there seems to be a queue, and for how many rounds.
const SLOWER: u64 = 4;
const ROUNDS: u32 = 5;

/// Of one round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    rtt_min: Option<Duration>,
    samples: u32,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlowStart {
    /// What is sent from then on is of the next round.
    began: Time,
    last: Option<Duration>,
    round: Round,
    /// How long a round trip was when it seemed that there is a queue, and how many rounds it has
    /// seemed so.
    careful: Option<(Duration, u32)>,
}

impl SlowStart {
    /// How much larger the window is, now that so many bytes have come of what left `sent_at`;
    /// `None`: it is large enough.
    pub fn grow(
        &mut self,
        now: Time,
        delivered: u64,
        sent_at: Option<Time>,
        rtt: Option<Duration>,
    ) -> Option<u64> {
        if sent_at.is_some_and(|at| at >= self.began) {
            self.end_round(now);
            if self.careful.is_some_and(|(_, rounds)| rounds > ROUNDS) {
                return None;
            }
        }
        if let Some(rtt) = rtt {
            self.measure(rtt);
        }
        Some(if self.careful.is_some() { delivered / SLOWER } else { delivered })
    }

    fn end_round(&mut self, now: Time) {
        (self.last, self.began) = (self.round.rtt_min.or(self.last), now);
        self.round = Round::default();
        if let Some((_, rounds)) = &mut self.careful {
            *rounds += 1;
        }
    }

    fn measure(&mut self, rtt: Duration) {
        let shortest = self.round.rtt_min.map_or(rtt, |known| known.min(rtt));
        self.round = Round { rtt_min: Some(shortest), samples: self.round.samples + 1 };
        if self.round.samples < SAMPLES {
            return;
        }
        match (self.careful, self.last) {
            (Some((before, _)), _) if shortest < before => self.careful = None,
            (None, Some(last)) => {
                let longer = (last / LONGER_PARTS).clamp(LONGER_MIN, LONGER_MAX);
                if shortest >= last + longer {
                    self.careful = Some((shortest, 0));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A round of ten packets whose round trips take this: by how much the window grows.
    fn round(it: &mut SlowStart, now: &mut Time, rtt: Duration) -> Option<u64> {
        let sent = *now;
        *now += rtt;
        (0..10).map(|_| it.grow(*now, 1_000, Some(sent), Some(rtt))).sum()
    }

    #[test]
    fn it_doubles_while_round_trips_are_as_long_as_before() {
        let (mut it, mut now) = (SlowStart::default(), Time::ZERO);
        for at in 0..20 {
            let rtt = ms(40 + at % 3);
            assert_eq!(round(&mut it, &mut now, rtt), Some(10_000), "round {at}");
        }
    }

    #[test]
    fn a_queue_makes_it_slower_and_ends_it() {
        let (mut it, mut now) = (SlowStart::default(), Time::ZERO);
        (0..3).for_each(|_| assert_eq!(round(&mut it, &mut now, ms(40)), Some(10_000)));
        // 5 ms are the eighth part of 40.
        assert_eq!(round(&mut it, &mut now, ms(44)), Some(10_000));
        let grown = round(&mut it, &mut now, ms(50)).unwrap();
        assert!((4_000..10_000).contains(&grown), "{grown}: from its eighth packet on");
        for at in 0..5 {
            let grown = round(&mut it, &mut now, ms(50 + at));
            assert_eq!(grown, Some(2_500), "round {at}");
        }
        assert_eq!(round(&mut it, &mut now, ms(55)), None);
    }

    #[test]
    fn what_was_no_queue_is_forgotten() {
        let (mut it, mut now) = (SlowStart::default(), Time::ZERO);
        (0..2).for_each(|_| assert!(round(&mut it, &mut now, ms(40)).is_some()));
        round(&mut it, &mut now, ms(60));
        let slow = round(&mut it, &mut now, ms(60)).unwrap();
        assert_eq!(slow, 2_500);
        round(&mut it, &mut now, ms(40));
        assert_eq!(round(&mut it, &mut now, ms(40)), Some(10_000));
    }

    #[test]
    fn a_few_samples_say_nothing() {
        let (mut it, mut now) = (SlowStart::default(), Time::ZERO);
        round(&mut it, &mut now, ms(40));
        let sent = now;
        now += ms(200);
        let grown: Option<u64> =
            (0..7).map(|_| it.grow(now, 1_000, Some(sent), Some(ms(200)))).sum();
        assert_eq!(grown, Some(7_000));
    }
}
