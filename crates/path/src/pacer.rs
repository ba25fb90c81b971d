//! [`Pacer`]: spreads what leaves for a path over time, at the rate that its controller says.
//!
//! A flow's own bound is kept by the flow, which knows when it may send next without asking; this
//! is what all flows of a path keep together.
//!
//! Invariant: over any time t what leaves is at most rate × t, and what goes out in [`DEPTH`] or a
//! full datagram, and one packet.

use crate::TokenBucket;
use dacapo_base::Time;
use std::time::Duration;

/// What goes out at the rate in this time may go out at once.
const DEPTH: Duration = Duration::from_millis(2);

/// Before something leaves there must be what goes out in this time, so that a fast path gets
/// trains and a slow one single datagrams.
const QUANTUM: Duration = Duration::from_micros(500);

#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    /// `None`: nothing is paced.
    bucket: Option<TokenBucket>,
}

impl Pacer {
    /// The rate is this from now on, in bit/s; `None`: any.
    pub fn set_rate(&mut self, now: Time, rate_bps: Option<u64>) {
        match (&mut self.bucket, rate_bps) {
            (Some(bucket), Some(rate)) if bucket.rate_bps() == rate => {}
            (Some(bucket), Some(rate)) => bucket.set_rate(now, rate, DEPTH),
            (bucket, rate) => *bucket = rate.map(|rate| TokenBucket::new(now, rate, DEPTH)),
        }
    }

    /// Bytes that may leave now; a packet that is begun may be longer.
    pub fn allowance(&mut self, now: Time) -> usize {
        let Some(bucket) = &mut self.bucket else { return usize::MAX };
        if bucket.ready_at(now, quantum(bucket)) > now {
            return 0;
        }
        bucket.available(now)
    }

    /// So many bytes have left.
    pub fn take(&mut self, now: Time, bytes: u64) {
        if let Some(bucket) = &mut self.bucket {
            bucket.take(now, usize::try_from(bytes).unwrap_or(usize::MAX));
        }
    }

    /// When something may leave, if that is not now.
    pub fn ready_at(&self, now: Time) -> Option<Time> {
        let bucket = self.bucket.as_ref()?;
        Some(bucket.ready_at(now, quantum(bucket))).filter(|at| *at > now)
    }
}

/// What goes out in [`QUANTUM`], in bytes.
fn quantum(bucket: &TokenBucket) -> usize {
    let bits = u128::from(bucket.rate_bps()) * QUANTUM.as_micros() / 1_000_000;
    usize::try_from(bits / 8).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn at_every_rate_no_more_than_the_rate_and_a_burst_leaves_however_it_changes() {
        for seed in 0..100 {
            let mut random = Random::from_number(seed);
            let (mut pacer, mut now) = (Pacer::default(), Time::ZERO);
            let mut rate = 100_000 << random.below(17);
            pacer.set_rate(now, Some(rate));
            // Since when the rate is this, and what has left since, in bits.
            let (mut since, mut left) = (now, 0.0);
            for _ in 0..2_000 {
                now += Duration::from_nanos(random.below(2_000_000));
                while pacer.allowance(now) > 0 {
                    pacer.take(now, 1_452);
                    left += 1_452.0 * 8.0;
                }
                let burst = (rate as f64 * 0.002).max(12_000.0) + 1_452.0 * 8.0;
                let most = rate as f64 * now.since(since).as_secs_f64() + burst;
                assert!(left <= most + 1.0, "seed {seed}: {left} of {most} at {rate}");
                if random.chance(0.01) {
                    rate = 100_000 << random.below(17);
                    pacer.set_rate(now, Some(rate));
                    (since, left) = (now, 0.0);
                }
            }
        }
    }

    #[test]
    fn it_says_when_something_may_leave() {
        let (mut pacer, now) = (Pacer::default(), Time::ZERO);
        assert_eq!((pacer.allowance(now), pacer.ready_at(now)), (usize::MAX, None));
        pacer.set_rate(now, Some(1_000_000));
        assert_eq!((pacer.allowance(now), pacer.ready_at(now)), (1_500, None));
        pacer.take(now, 1_500);
        assert_eq!(pacer.allowance(now), 0);
        let at = pacer.ready_at(now).unwrap();
        assert_eq!(pacer.allowance(at - Duration::from_nanos(2)), 0);
        assert!(pacer.allowance(at) >= 62, "what goes out in 500 µs");
        pacer.set_rate(at, None);
        assert_eq!((pacer.allowance(at), pacer.ready_at(at)), (usize::MAX, None));
    }
}
