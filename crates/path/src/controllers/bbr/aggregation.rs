//! [`Aggregation`]: how many bytes are acknowledged at once, beyond what comes at the path's speed
//! meanwhile (draft-ietf-ccwg-bbr, section 5.5.9).
//!
//! ```text
//!   acknowledged   4 . . . . . 4 . . . . .     expected at the path's speed:  ~~~~~~~~~
//!   beyond that    4           4               so much more may be in flight
//! ```
//!
//! Without it a path of microseconds whose receiver answers after milliseconds is kept to what it
//! has got once: four packets in flight are slow, and a slow path needs no more than four.

use dacapo_base::Time;

/// The most is that of so many rounds at least, and twice as many at most.
const ROUNDS: u32 = 5;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Aggregation {
    since: Option<Time>,
    /// What was acknowledged since then.
    acked: u64,
    /// The most beyond what was expected, of the rounds that run and of those before.
    most: [u64; 2],
    rounds: u32,
}

impl Aggregation {
    /// So many bytes are acknowledged, of a path that delivers so many a second; no more than may
    /// be in flight count.
    pub fn handle(&mut self, now: Time, bytes: u64, rate: u64, window: u64) {
        let since = *self.since.get_or_insert(now);
        let ns = now.since(since).as_nanos();
        let expected = u64::try_from(u128::from(rate) * ns / 1_000_000_000).unwrap_or(u64::MAX);
        let beyond = if self.acked <= expected {
            (self.since, self.acked) = (Some(now), bytes);
            bytes
        } else {
            self.acked = self.acked.saturating_add(bytes);
            self.acked - expected
        };
        self.most[0] = self.most[0].max(beyond.min(window));
    }

    /// A round is over.
    pub fn end_round(&mut self) {
        self.rounds += 1;
        if self.rounds >= ROUNDS {
            (self.rounds, self.most) = (0, [0, self.most[0]]);
        }
    }

    /// So many bytes more may be in flight.
    pub fn extra(&self) -> u64 {
        self.most[0].max(self.most[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_at_once_may_be_in_flight_besides_and_is_forgotten() {
        let (mut it, ms) = (Aggregation::default(), Time::from_millis);
        // 100 bytes a millisecond, one by one.
        (0..50).for_each(|at| it.handle(ms(at), 100, 100_000, 9_000));
        assert!(it.extra() <= 200, "{}", it.extra());
        // As fast, ten at once.
        (0..20).for_each(|at| it.handle(ms(50 + at * 10), 1_000, 100_000, 9_000));
        assert!((900..=1_200).contains(&it.extra()), "{}", it.extra());
        it.handle(ms(400), 50_000, 100_000, 9_000);
        assert_eq!(it.extra(), 9_000, "no more than may be in flight");
        (0..10).for_each(|_| it.end_round());
        assert_eq!(it.extra(), 0);
        it.handle(ms(500), u64::MAX, u64::MAX, u64::MAX);
        it.handle(ms(501), u64::MAX, u64::MAX, u64::MAX);
    }
}
