//! [`InFlight`]: what has left for a path, and of which nothing is known yet.
//!
//! ```text
//!   sent --> oldest | .. | newest --delivered, lost: the oldest go
//!                                 '-sent a round trip before what has come: it has come or is lost
//! ```
//!
//! Reports count packets of the modules that make them; a module below may have made more of them.
//! So what was sent a round trip before the newest that came is in flight no longer, whoever
//! reports it later.
//!
//! Invariants: at most [`BATCHES_MAX`] batches; the sums are those of the batches; what is reported
//! beyond what is in flight changes nothing.

use dacapo_base::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// What leaves within this time is one batch.
const BATCH_TIME: Duration = Duration::from_millis(1);

/// The most batches; beyond, the newest grows.
const BATCHES_MAX: usize = 1_024;

#[derive(Clone, Copy, Debug)]
struct Batch {
    sent: Time,
    packets: u64,
    bytes: u64,
}

/// What has left, and of which nothing is known yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    batches: VecDeque<Batch>,
    packets: u64,
    bytes: u64,
    /// When something left, or was heard of, last.
    active: Time,
}

impl InFlight {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// When something left, or was heard of, last.
    pub fn active(&self) -> Time {
        self.active
    }

    pub fn handle_sent(&mut self, now: Time, packets: u64, bytes: u64) {
        (self.packets, self.bytes) = (self.packets + packets, self.bytes + bytes);
        self.active = now;
        let is_full = self.batches.len() >= BATCHES_MAX;
        match self.batches.back_mut() {
            Some(last) if is_full || now.since(last.sent) < BATCH_TIME => {
                (last.packets, last.bytes) = (last.packets + packets, last.bytes + bytes);
            }
            _ => self.batches.push_back(Batch { sent: now, packets, bytes }),
        }
    }

    /// How many bytes more a window lets leave; any number where it is `u64::MAX`.
    pub fn room_in(&self, window: u64) -> usize {
        if window == u64::MAX {
            return usize::MAX;
        }
        usize::try_from(window.saturating_sub(self.bytes)).unwrap_or(usize::MAX)
    }

    /// So many packets were heard of: their bytes, of the oldest.
    pub fn take(&mut self, now: Time, packets: u64) -> u64 {
        self.active = now;
        let (mut left, mut bytes) = (packets, 0);
        while let Some(first) = self.batches.front_mut().filter(|_| left > 0) {
            if first.packets > left {
                let part = first.bytes * left / first.packets;
                (first.packets, first.bytes) = (first.packets - left, first.bytes - part);
                (left, bytes) = (0, bytes + part);
            } else {
                (left, bytes) = (left - first.packets, bytes + first.bytes);
                self.batches.pop_front();
            }
        }
        (self.packets, self.bytes) = (self.packets - (packets - left), self.bytes - bytes);
        bytes
    }

    /// What was sent before this has come or is lost.
    pub fn forget_before(&mut self, before: Time) {
        while let Some(first) = self.batches.pop_front_if(|first| first.sent < before) {
            (self.packets, self.bytes) = (self.packets - first.packets, self.bytes - first.bytes);
        }
    }

    /// The time until now does not count as silence.
    pub fn stay_active(&mut self, now: Time) {
        self.active = self.active.max(now);
    }

    /// Everything: packets and bytes.
    pub fn take_all(&mut self) -> (u64, u64) {
        let all = (self.packets, self.bytes);
        self.batches.clear();
        (self.packets, self.bytes) = (0, 0);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn reports_take_the_oldest_and_never_more_than_there_is() {
        let mut it = InFlight::default();
        it.handle_sent(ms(0), 10, 10_000);
        it.handle_sent(ms(5), 10, 1_000);
        assert_eq!((it.take(ms(9), 5), it.packets(), it.bytes()), (5_000, 15, 6_000));
        assert_eq!((it.take(ms(9), 10), it.packets(), it.bytes()), (5_500, 5, 500));
        assert_eq!((it.take(ms(9), 99), it.packets(), it.bytes()), (500, 0, 0));
        assert_eq!((it.take(ms(10), 1), it.active()), (0, ms(10)));
    }

    #[test]
    fn what_is_older_than_what_has_come_is_in_flight_no_longer() {
        let mut it = InFlight::default();
        (0..10).for_each(|at| it.handle_sent(ms(at * 10), 1, 100));
        it.forget_before(ms(50));
        assert_eq!((it.packets(), it.bytes()), (5, 500));
        assert_eq!((it.take_all(), it.packets()), ((5, 500), 0));
    }

    #[test]
    fn sums_are_those_of_the_batches_and_memory_is_bounded() {
        for seed in 0..50 {
            let mut random = Random::from_number(seed);
            let (mut it, mut now) = (InFlight::default(), Time::ZERO);
            for _ in 0..4_000 {
                now += Duration::from_micros(random.below(5_000));
                match random.below(8) {
                    0 => drop(it.take(now, random.below(9))),
                    1 if random.chance(0.01) => it.forget_before(now),
                    _ => it.handle_sent(now, 1 + random.below(3), random.below(4_000)),
                }
                let sum = |field: fn(&Batch) -> u64| it.batches.iter().map(field).sum::<u64>();
                assert_eq!(sum(|batch| batch.packets), it.packets(), "seed {seed}");
                assert_eq!(sum(|batch| batch.bytes), it.bytes(), "seed {seed}");
                assert!(it.batches.len() <= BATCHES_MAX, "seed {seed}");
            }
        }
    }
}
