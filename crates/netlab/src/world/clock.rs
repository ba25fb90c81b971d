//! [`NodeClock`]: the clock of one node, which need not be that of the world.
//!
//! ```text
//!   node  ^        / drift (parts per million)
//!         |      /
//!         |    |  <- a jump: the host slept and its clock went on
//!         |  /
//!         +---------------> world
//! ```
//!
//! Invariants: it never runs backwards; a clock that was never touched is that of the world,
//! exactly; at [`NodeClock::world`] of a deadline the node's clock shows the deadline or more.

use dacapo_base::Time;
use std::time::Duration;

const MILLION: i128 = 1_000_000;

/// The largest drift that a clock may be given, parts per million.
const DRIFT_PPM_MAX: i32 = 100_000;

/// A clock: from `since` on it shows `shown` and what has passed, a little faster or slower.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeClock {
    since: Time,
    shown: Time,
    drift_ppm: i32,
}

impl NodeClock {
    /// What it shows at a time of the world.
    pub fn local(&self, world: Time) -> Time {
        let passed = i128::from(world.as_nanos().saturating_sub(self.since.as_nanos()));
        let drifted = passed * (MILLION + i128::from(self.drift_ppm)) / MILLION;
        self.shown + nanos(drifted)
    }

    /// The first time of the world at which it shows `local` or more.
    pub fn world(&self, local: Time) -> Time {
        if local == Time::NEVER {
            return local;
        }
        let wanted = i128::from(local.as_nanos().saturating_sub(self.shown.as_nanos()));
        let rate = MILLION + i128::from(self.drift_ppm);
        self.since + nanos((wanted * MILLION + rate - 1) / rate)
    }

    /// It shows so much more at once.
    pub fn jump(&mut self, world: Time, by: Duration) {
        (self.shown, self.since) = (self.local(world) + by, world);
    }

    /// From now on it gains so much; negative: it loses. At most a tenth.
    pub fn drift(&mut self, world: Time, drift_ppm: i32) {
        self.jump(world, Duration::ZERO);
        self.drift_ppm = drift_ppm.clamp(-DRIFT_PPM_MAX, DRIFT_PPM_MAX);
    }
}

fn nanos(count: i128) -> Duration {
    Duration::from_nanos(u64::try_from(count).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn a_clock_that_was_never_touched_is_that_of_the_world() {
        let clock = NodeClock::default();
        for at in [Time::ZERO, Time::from_nanos(7), Time::from_millis(1 << 40), Time::NEVER] {
            assert_eq!((clock.local(at), clock.world(at)), (at, at));
        }
    }

    #[test]
    fn at_the_time_of_a_deadline_the_node_shows_it_and_just_before_it_does_not() {
        let mut random = Random::from_number(5);
        for _ in 0..1_000 {
            let mut clock = NodeClock::default();
            clock.drift(Time::from_nanos(random.below(1 << 40)), random.below(1_001) as i32 - 500);
            clock.jump(Time::from_nanos(1 << 41), Duration::from_secs(random.below(3_600)));
            let local = clock.local(Time::from_nanos(1 << 41)) + nanos(1 + (1 << 30));
            let at = clock.world(local);
            assert!(clock.local(at) >= local, "{clock:?}");
            assert!(clock.local(at - Duration::from_nanos(1)) < local, "{clock:?}");
        }
    }
}
