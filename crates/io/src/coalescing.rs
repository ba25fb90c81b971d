//! [`Coalescing`]: lets what comes in a stream gather before it is looked at.
//!
//! ```text
//!   each wake-up brings a train, one close behind the other  ->  rest, then take several at once
//!   each wake-up brings a packet or two, one behind the other ->  rest longer, and take a dozen
//!   a rest has brought too little                             ->  no rests for 1 ms, 2, 4 … 64 ms
//! ```
//!
//! Who sleeps at a socket is woken for every train, and on one host the sender pays for that: 11 %
//! of its time, and a fifth of the receiver's. Who is woken for every packet of an even stream
//! spends most of its time on that. Who rests instead is woken by nobody. It is what network cards
//! do with interrupts.
//!
//! A question and its answer never come so close that rests begin, or the first rest shows that the
//! other end waits too, and they end. So it is with an end that waits for acknowledgements: what
//! comes during a rest comes more slowly then than before.
//!
//! Invariant: what comes waits at most [`REST`], or [`LONG_REST`] in an even stream of packets, and
//! the system's slack of 50 µs longer than without.

use dacapo_base::Time;
use std::time::Duration;

/// How long trains gather.
const REST: Duration = Duration::from_micros(30);

/// How long packets gather that come evenly.
const LONG_REST: Duration = Duration::from_micros(200);

/// Looks that come so close, and bring so much, one behind the other, are a stream of trains, or of
/// packets.
const CLOSE: Duration = Duration::from_micros(200);
const TRAIN: u64 = 16 * 1024;
const PACKET: u64 = 1_024;
const LOOKS: u8 = 16;

/// A rest was worth it when it brought so much: more than one train, or than a few packets.
const WORTH: u64 = 80 * 1024;
const WORTH_OF_PACKETS: u64 = 8 * 1024;

/// A long rest was worth it when it brought as much as so many looks, ...
const WORTH_LOOKS: u64 = 4;
/// ... no more slowly than before it, but for what streams differ by, in per cent.
const RATE_PERCENT: u128 = 75;
/// After so many long rests it is looked again how fast packets come without.
const LONG_RESTS: u8 = 64;

/// How long there are no rests after one that was not worth it.
const OFF_MIN: Duration = Duration::from_millis(1);
const OFF_MAX: Duration = Duration::from_millis(64);

/// What is seen to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Trains,
    Packets,
}

/// What came within some time.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    bytes: u64,
    time: Duration,
}

impl Pace {
    fn add(&mut self, bytes: u64, time: Duration) {
        (self.bytes, self.time) = (self.bytes + bytes, self.time + time);
    }

    /// Whether it is nearly as fast as another.
    fn holds(&self, before: &Self) -> bool {
        let rate = |it: &Self, other: &Self| u128::from(it.bytes) * other.time.as_nanos();
        rate(self, before) * 100 >= rate(before, self) * RATE_PERCENT
    }
}

/// What was seen of the last looks.
#[derive(Clone, Debug)]
pub struct Coalescing {
    /// What a look brings of a stream, and a rest that is worth it, bytes.
    train: u64,
    worth: u64,
    received: u64,
    asked_at: Time,
    looked_at: Time,
    kind: Kind,
    /// Looks of a stream of that kind, up to [`LOOKS`], and what they brought.
    streak: u8,
    pace: Pace,
    /// Long rests since then.
    long_rests: u8,
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
            kind: Kind::Trains,
            streak: 0,
            pace: Pace::default(),
            long_rests: 0,
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
        let asked_at = std::mem::replace(&mut self.asked_at, now);
        let waited = self.looked_at.since(asked_at);
        let seen = Pace { bytes: got, time: now.since(asked_at) };
        if std::mem::take(&mut self.has_rested) {
            self.judge(now, seen);
        } else {
            self.note_look(seen, waited);
        }
        if self.streak < LOOKS || now < self.off_until {
            return None;
        }
        self.has_rested = true;
        Some(match self.kind {
            Kind::Trains => REST,
            Kind::Packets => LONG_REST,
        })
    }

    /// A look without a rest.
    fn note_look(&mut self, seen: Pace, waited: Duration) {
        let kind = if seen.bytes >= self.train { Kind::Trains } else { Kind::Packets };
        if seen.bytes < PACKET || waited >= CLOSE {
            self.streak = 0;
            return;
        }
        if kind != self.kind || self.streak == 0 {
            (self.kind, self.streak, self.pace) = (kind, 0, Pace::default());
            self.long_rests = 0;
        }
        if self.streak < LOOKS {
            self.streak += 1;
            self.pace.add(seen.bytes, seen.time);
        }
    }

    /// What a rest has brought.
    fn judge(&mut self, now: Time, seen: Pace) {
        let was_worth_it = match self.kind {
            Kind::Trains => seen.bytes >= self.worth,
            Kind::Packets => self.was_worth_long(&seen),
        };
        if !was_worth_it {
            self.off_until = now + self.off;
            self.off = (self.off * 2).min(OFF_MAX);
            self.streak = 0;
            return;
        }
        self.off = OFF_MIN;
        if self.kind == Kind::Packets {
            self.long_rests += 1;
            if self.long_rests == LONG_RESTS {
                self.streak = 0;
            }
        }
    }

    fn was_worth_long(&self, seen: &Pace) -> bool {
        let of_a_look = self.pace.bytes / u64::from(LOOKS);
        seen.bytes >= WORTH_LOOKS * of_a_look && seen.holds(&self.pace)
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

    /// A packet every 24 µs is 500 Mbit/s.
    fn even_stream(world: &World) -> impl Fn(Duration) -> u64 + use<> {
        let work_us = world.work.as_micros() as u64;
        move |slept| ((slept.as_micros() as u64 + work_us) / 24).max(1) * 1_472
    }

    #[test]
    fn an_even_stream_of_packets_gathers_and_never_for_longer_than_said() {
        let mut world = World::new();
        let come = even_stream(&world);
        let mut looks = 0;
        while world.now < Time::from_millis(1_001) {
            world.look(Duration::from_micros(20), &come);
            looks += 1;
        }
        // 41,667 packets come in a second.
        assert!((4_000..7_000).contains(&looks), "{looks} looks");
        assert!(world.longest <= LONG_REST);
    }

    /// A window of 12 packets, a round trip of 100 µs: a rest of 200 would halve what it carries.
    #[test]
    fn who_waits_for_acknowledgements_is_not_held_up() {
        let mut world = World::new();
        while world.now < Time::from_millis(1_001) {
            let before = world.rests;
            (0..6).for_each(|_| world.look(Duration::from_micros(12), |_| 2 * 1_400));
            world.look(Duration::from_micros(28), |_| 2 * 1_400);
            assert!(world.rests - before <= 1);
        }
        assert!((1..=24).contains(&world.rests), "{} rests in a second", world.rests);
    }

    #[test]
    fn who_asks_and_is_answered_in_packets_is_delayed_once_in_a_while_only() {
        let mut world = World::new();
        while world.now < Time::from_millis(1_001) {
            world.look(EVERY, |_| 1_400);
        }
        assert!((1..=24).contains(&world.rests), "{} rests in a second", world.rests);
    }

    #[test]
    fn what_is_small_or_far_between_never_waits() {
        for (wake_us, len) in [(3, 64), (12, 1_000), (250, 1_400), (250, 60 * 1024)] {
            let mut world = World::new();
            for _ in 0..1_000 {
                world.look(Duration::from_micros(wake_us), |_| len);
            }
            assert_eq!(world.rests, 0, "{len} bytes every {wake_us} µs");
        }
    }
}
