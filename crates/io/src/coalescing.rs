//! [`Coalescing`]: lets what comes in a stream of trains gather before it is looked at.
//!
//! ```text
//!   each wake-up brings a train, one close behind the other  ->  rest, then take several at once
//!   a rest has brought no more than a wake-up would           ->  no rests for 1 ms, 2, 4 … 64 ms
//! ```
//!
//! Who sleeps at a socket is woken for every train, and on one host the sender pays for that: 11 %
//! of its time, and a fifth of the receiver's. Who rests instead is woken by nobody. It is what
//! network cards do with interrupts.
//!
//! A question and its answer never come so close that rests begin, or the first rest shows that the
//! other end waits too, and they end.
//!
//! Invariant: what comes waits at most [`REST`] and the system's slack of 50 µs longer than
//! without.

use dacapo_base::Time;
use std::time::Duration;

/// How long things gather.
const REST: Duration = Duration::from_micros(30);

/// Looks that come so close, and bring so much, one behind the other, are a stream of trains.
const CLOSE: Duration = Duration::from_micros(200);
const TRAIN: u64 = 16 * 1024;
const PACKET: u64 = 1_024;
const LOOKS: u8 = 16;

/// A rest was worth it when it brought so much: more than one train, or than a few packets.
const WORTH: u64 = 80 * 1024;
const WORTH_OF_PACKETS: u64 = 8 * 1024;

/// How long there are no rests after one that was not worth it.
const OFF_MIN: Duration = Duration::from_millis(1);
const OFF_MAX: Duration = Duration::from_millis(64);

/// What was seen of the last looks.
#[derive(Clone, Debug)]
pub struct Coalescing {
    /// What a look brings of a stream, and a rest that is worth it, bytes.
    train: u64,
    worth: u64,
    received: u64,
    asked_at: Time,
    looked_at: Time,
    /// Looks of a stream of trains, up to [`LOOKS`].
    streak: u8,
    has_rested: bool,
    off: Duration,
    off_until: Time,
}

impl Default for Coalescing {
    fn default() -> Self {
        Self {
            train: TRAIN,
            worth: WORTH,
            received: 0,
            asked_at: Time::ZERO,
            looked_at: Time::ZERO,
            streak: 0,
            has_rested: false,
            off: OFF_MIN,
            off_until: Time::ZERO,
        }
    }
}

impl Coalescing {
    /// For a network on which each packet comes by itself, however close behind the other.
    #[must_use]
    pub fn of_packets() -> Self {
        Self { train: PACKET, worth: WORTH_OF_PACKETS, ..Self::default() }
    }

    /// How long to rest before the next wait; `received` is how many bytes have come in all.
    #[must_use]
    pub fn rest(&mut self, now: Time, received: u64) -> Option<Duration> {
        let got = received.saturating_sub(self.received);
        self.received = received;
        // Work on what came is no wait, and takes the longer the more has gathered.
        let since = self.looked_at.since(std::mem::replace(&mut self.asked_at, now));
        let is_train = got >= self.train && since < CLOSE;
        self.streak = if is_train { (self.streak + 1).min(LOOKS) } else { 0 };
        if std::mem::take(&mut self.has_rested) {
            self.judge(now, got >= self.worth);
        }
        if self.streak < LOOKS || now < self.off_until {
            return None;
        }
        self.has_rested = true;
        Some(REST)
    }

    fn judge(&mut self, now: Time, was_worth_it: bool) {
        if was_worth_it {
            self.off = OFF_MIN;
            return;
        }
        self.off_until = now + self.off;
        self.off = (self.off * 2).min(OFF_MAX);
        self.streak = 0;
    }

    /// A look is over.
    pub fn looked(&mut self, now: Time) {
        self.looked_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A receiver in virtual time.
    struct World {
        coalescing: Coalescing,
        /// How long what came is worked on.
        work: Duration,
        now: Time,
        received: u64,
        rests: u32,
        longest: Duration,
    }

    impl World {
        fn new() -> Self {
            let (now, longest) = (Time::from_millis(1), Duration::ZERO);
            let (coalescing, work) = (Coalescing::default(), Duration::from_micros(4));
            Self { coalescing, work, now, received: 0, rests: 0, longest }
        }

        /// Sleeps until something comes, or rests first; `come` says how much has come after the
        /// time that passed.
        fn look(&mut self, wake: Duration, come: impl Fn(Duration) -> u64) {
            let rest = self.coalescing.rest(self.now, self.received);
            self.rests += u32::from(rest.is_some());
            self.longest = self.longest.max(rest.unwrap_or_default());
            let slept = rest.unwrap_or_default().max(wake);
            self.now += slept;
            self.received += come(slept);
            self.coalescing.looked(self.now);
            self.now += self.work;
        }
    }

    const EVERY: Duration = Duration::from_micros(12);

    #[test]
    fn packets_that_come_one_by_one_gather_where_there_are_no_trains() {
        let mut world = World { coalescing: Coalescing::of_packets(), ..World::new() };
        let come = |slept: Duration| (slept.as_micros() as u64 / 4).max(1) * 1_472;
        for _ in 0..1_000 {
            world.look(Duration::from_micros(4), come);
        }
        assert!(world.rests > 900, "{} rests", world.rests);
        let mut world = World { coalescing: Coalescing::of_packets(), ..World::new() };
        while world.now < Time::from_millis(1_001) {
            world.look(EVERY, |_| 1_472);
        }
        assert!((1..=24).contains(&world.rests), "{} rests for an echo", world.rests);
    }

    #[test]
    fn a_stream_of_trains_gathers_and_never_for_longer_than_said() {
        let mut world = World::new();
        let per_us = 60 * 1024 / 12;
        for _ in 0..1_000 {
            world.look(EVERY, |slept| {
                let us = slept.as_micros() as u64 + 4;
                (us * per_us).max(60 * 1024)
            });
        }
        assert!(world.rests > 900, "{} rests", world.rests);
        assert!(world.longest <= REST && world.longest > Duration::ZERO);
    }

    /// Work of 300 µs on what has gathered is no pause of the stream.
    #[test]
    fn who_works_long_on_what_came_rests_all_the_same() {
        let mut world = World { work: Duration::from_micros(300), ..World::new() };
        for _ in 0..1_000 {
            world.look(EVERY, |_| 1_000 * 1_024);
        }
        assert!(world.rests > 900, "{} rests", world.rests);
    }

    #[test]
    fn who_waits_for_an_answer_is_delayed_once_in_a_while_only() {
        let mut world = World::new();
        // A question of 60 KiB at a time: a rest brings no more than a wake-up.
        while world.now < Time::from_millis(1_001) {
            world.look(EVERY, |_| 60 * 1024);
        }
        // 1 + 2 + … + 64 ms, then one in 64 ms.
        assert!((1..=24).contains(&world.rests), "{} rests in a second", world.rests);
    }

    #[test]
    fn what_is_small_or_far_between_never_waits() {
        for (wake_us, len) in [(3, 64), (12, 1_400), (250, 60 * 1024)] {
            let mut world = World::new();
            for _ in 0..1_000 {
                world.look(Duration::from_micros(wake_us), |_| len);
            }
            assert_eq!(world.rests, 0, "{len} bytes every {wake_us} µs");
        }
    }
}
