//! [`Credit`]: how many bytes may leave now, by a rate and a burst.
//!
//! ```text
//!   credit  burst |‾‾‾|_     |‾‾‾|__    |‾‾|___       set to the burst, not added to it:
//!                 |     |___ |      |__ |      |      what was not used is gone
//!                 0       interval      2             interval = burst / rate
//! ```
//!
//! XTP 4.0, "rate control": the credit is set to BURST at the end of each interval of BURST / RATE.
//! A packet that is longer than the burst leaves alone, in an interval of which nothing was used;
//! what it took too much is paid from the next ones, so that the mean is kept (decided here: who
//! sets a burst while a flow runs does not know how long its packets are).
//!
//! Invariants: in an interval at most a burst leaves, or one packet that is longer; over any time t
//! at most `rate * t` and two bursts; some time whatever waits may leave.

use dacapo_base::Time;
use dacapo_packet::{Kind, Packet};
use std::time::Duration;

const NANOS_PER_SEC: u128 = 1_000_000_000;

/// A rate that says nothing, in bytes/s: the largest that XTP's field of 32 bits holds.
pub(super) const UNLIMITED: u64 = u32::MAX as u64;

/// How long an interval takes, in ns, rounded up, at a rate in bytes/s and a burst in bytes; `None`
/// where nothing is limited.
pub(super) fn interval_ns(rate: u64, burst: u64) -> Option<u64> {
    if rate >= UNLIMITED {
        return None;
    }
    let nanos = (u128::from(burst) * NANOS_PER_SEC).div_ceil(u128::from(rate.max(1)));
    Some(u64::try_from(nanos).unwrap_or(u64::MAX).max(1))
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    /// In bytes, at least 1.
    burst: i64,
    interval_ns: u64,
}

impl Limit {
    fn new(rate: u64, burst: u64) -> Option<Self> {
        let interval_ns = interval_ns(rate, burst)?;
        Some(Self { burst: i64::try_from(burst).unwrap_or(i64::MAX).max(1), interval_ns })
    }

    fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval_ns)
    }
}

/// How much may leave now.
#[derive(Debug)]
pub(super) struct Credit {
    limit: Option<Limit>,
    /// Bytes that may still leave in this interval; below 0 what is still to be paid.
    left: i64,
    /// The end of the running interval; `None` until something leaves.
    ends: Option<Time>,
}

impl Credit {
    /// A full one, at a rate in bytes/s and a burst in bytes; the first interval begins with what
    /// leaves first.
    pub fn new(rate: u64, burst: u64) -> Self {
        Self::of(Limit::new(rate, burst))
    }

    fn of(limit: Option<Limit>) -> Self {
        Self { limit, left: limit.map_or(0, |limit| limit.burst), ends: None }
    }

    /// Rate and burst are these from now on: the running interval ends when it would have with
    /// them, or now, and what is left of it is no more than the new burst.
    pub fn set(&mut self, now: Time, rate: u64, burst: u64) {
        self.fill(now);
        let limit = Limit::new(rate, burst);
        let (Some(old), Some(new), Some(ends)) = (self.limit, limit, self.ends) else {
            *self = Self::of(limit);
            return;
        };
        let began = ends - old.interval();
        (self.limit, self.left) = (limit, self.left.min(new.burst));
        self.ends = Some((began + new.interval()).max(now));
        self.fill(now);
    }

    /// Begins the interval that it is time for.
    pub fn fill(&mut self, now: Time) {
        let (Some(limit), Some(ends)) = (self.limit, self.ends) else { return };
        if now < ends {
            return;
        }
        let passed_ns = u64::try_from(now.since(ends).as_nanos()).unwrap_or(u64::MAX);
        let count = (passed_ns / limit.interval_ns).saturating_add(1);
        let earned = limit.burst.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX));
        self.left = self.left.min(0).saturating_add(earned).min(limit.burst);
        let gone = Duration::from_nanos(limit.interval_ns.saturating_mul(count));
        self.ends = Some(ends + gone);
    }

    /// How many segments of a packet may leave now, from the first on. Marks, by which the ends of
    /// epochs are told, are never held up, as control packets of XTP are not.
    pub fn covers(&self, packet: &Packet) -> usize {
        let count = packet.segment_count();
        let Some(limit) = self.limit.filter(|_| packet.kind() != Kind::Mark) else { return count };
        if bytes(packet.payload_len()) <= self.left {
            return count;
        }
        let len = bytes(packet.segment_len(0));
        if len > limit.burst {
            return usize::from(self.left == limit.burst);
        }
        let some = usize::try_from(self.left.max(0) / len.max(1)).unwrap_or(usize::MAX);
        some.min(count.saturating_sub(1))
    }

    /// A packet leaves.
    pub fn take(&mut self, now: Time, packet: &Packet) {
        let Some(limit) = self.limit.filter(|_| packet.kind() != Kind::Mark) else { return };
        self.left = self.left.saturating_sub(bytes(packet.payload_len()));
        self.ends.get_or_insert(now + limit.interval());
    }

    /// When the first segment of a packet may leave that may not now: at the end of an interval
    /// after which all is paid.
    pub fn due(&self, packet: &Packet) -> Option<Time> {
        let (limit, ends) = (self.limit?, self.ends?);
        let needed = bytes(packet.segment_len(0)).min(limit.burst);
        let missing = needed.saturating_sub(self.left.min(0)).max(1);
        let more = u64::try_from((missing - 1) / limit.burst).unwrap_or(0);
        Some(ends + Duration::from_nanos(limit.interval_ns.saturating_mul(more)))
    }
}

fn bytes(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;
    use dacapo_packet::{Layout, Pool};

    fn packet(pool: &mut Pool, len: usize, segment: usize) -> Packet {
        let layout = Layout { head: 0, tail: 0, segment, segmented: true };
        pool.alloc_train(&layout, len).unwrap()
    }

    /// When the last of so many bytes leaves in packets of `len`, in seconds, and the most of any
    /// interval.
    fn run(rate: u64, burst: u64, len: usize, total: usize) -> (f64, usize) {
        let mut pool = Pool::new(1 << 20);
        let mut credit = Credit::new(rate, burst);
        let (mut now, mut left, mut in_interval, mut most) = (Time::ZERO, total, 0, 0);
        while left > 0 {
            let piece = packet(&mut pool, len.min(left), len);
            if credit.covers(&piece) == 1 {
                credit.take(now, &piece);
                left -= piece.payload_len();
                in_interval += piece.payload_len();
                most = most.max(in_interval);
            } else {
                (now, in_interval) = (credit.due(&piece).unwrap(), 0);
                credit.fill(now);
                assert_eq!(credit.covers(&piece), 1, "it may leave when it is due");
            }
            pool.free(piece);
        }
        (now.as_secs_f64(), most)
    }

    #[test]
    fn at_most_a_burst_leaves_in_an_interval() {
        // Of 10,000 bytes whole packets of 1,400 are 9,800: 102 intervals of 6.67 ms.
        let (end, most) = run(1_500_000, 10_000, 1_400, 1_000_000);
        assert!((0.655..0.690).contains(&end) && most == 9_800, "{end} {most}");
    }

    #[test]
    fn a_packet_longer_than_the_burst_leaves_alone_and_is_paid_for() {
        // 4,000 bytes are 2.67 bursts: one in every three intervals.
        let (end, most) = run(150_000, 1_500, 4_000, 400_000);
        assert!((2.9..3.0).contains(&end) && most == 4_000, "{end} {most}");
        let (end, most) = run(150_000, 1_500, 3_000, 300_000);
        assert!((1.9..2.0).contains(&end) && most == 3_000, "{end} {most}");
    }

    #[test]
    fn what_an_interval_did_not_use_is_gone() {
        let mut pool = Pool::new(1 << 20);
        let mut credit = Credit::new(100_000, 10_000);
        let [some, whole] = [4_000, 10_000].map(|len| packet(&mut pool, len, 10_000));
        credit.take(Time::ZERO, &some);
        for later in [5_000, 50_000] {
            let now = Time::from_millis(later);
            credit.fill(now);
            assert_eq!(credit.covers(&whole), 1, "one burst");
            credit.take(now, &whole);
            assert_eq!(credit.covers(&some), 0, "and no more");
            assert_eq!(credit.due(&some), Some(now + Duration::from_millis(100)));
        }
    }

    #[test]
    fn a_train_is_cut_where_the_credit_ends() {
        let mut pool = Pool::new(1 << 20);
        let train = packet(&mut pool, 9_500, 1_000);
        let mut credit = Credit::new(100_000, 4_500);
        assert_eq!(credit.covers(&train), 4);
        let some = packet(&mut pool, 4_000, 1_000);
        credit.take(Time::ZERO, &some);
        assert_eq!((credit.covers(&train), credit.covers(&some)), (0, 0));
        let short = packet(&mut pool, 500, 1_000);
        assert_eq!(credit.covers(&short), 1);
        let mut mark = packet(&mut pool, 600, 1_000);
        assert_eq!(credit.covers(&mark), 0);
        mark.set_kind(Kind::Mark);
        assert_eq!(credit.covers(&mark), 1);
        // All but the last, which is shorter, and all.
        assert_eq!(Credit::new(100_000, 9_499).covers(&train), 9);
        assert_eq!(Credit::new(100_000, 9_500).covers(&train), 10);
        assert_eq!(Credit::new(UNLIMITED, 1_500).covers(&train), 10);
        // Each of them is longer than the burst.
        assert_eq!(Credit::new(100_000, 999).covers(&train), 1);
    }

    #[test]
    fn what_is_set_holds_at_once_and_gives_no_second_burst() {
        let mut pool = Pool::new(1 << 20);
        let [some, whole] = [4_000, 10_000].map(|len| packet(&mut pool, len, 10_000));
        let mut credit = Credit::new(100_000, 10_000);
        credit.take(Time::ZERO, &whole);
        // Half as fast: the interval takes twice as long from its beginning on.
        credit.set(Time::from_millis(50), 50_000, 10_000);
        assert_eq!(credit.due(&some), Some(Time::from_millis(200)));
        // As fast as before: it is over. As often as one likes within it, and nothing comes of it.
        for _ in 0..3 {
            credit.set(Time::from_millis(110), 100_000, 10_000);
        }
        assert_eq!(credit.covers(&whole), 1);
        credit.take(Time::from_millis(110), &whole);
        for _ in 0..3 {
            credit.set(Time::from_millis(110), 100_000, 10_000);
            assert_eq!(credit.covers(&some), 0);
        }
        // A smaller burst takes away, a larger one gives from the next interval on.
        credit.set(Time::from_millis(300), 100_000, 4_000);
        assert_eq!((credit.covers(&some), credit.covers(&whole)), (1, 1), "it is longer, alone");
        credit.take(Time::from_millis(300), &some);
        credit.set(Time::from_millis(310), 100_000, 10_000);
        assert_eq!(credit.covers(&some), 0);
    }

    /// A number of up to so many bits whose order of magnitude is as random as its digits.
    fn wide(random: &mut Random, bits: u64) -> u64 {
        let most = 1 << random.below(bits);
        random.below(most)
    }

    /// Whatever is asked for whenever: what waits leaves when it is due, and over all time
    /// no more than the rate and two bursts.
    #[test]
    fn neither_rate_nor_burst_is_exceeded_and_all_leaves_some_time() {
        for seed in 0..200 {
            let mut random = Random::from_number(seed);
            let mut pool = Pool::new(1 << 20);
            let rate = 1_000 + wide(&mut random, 31);
            let burst = 1_500 + random.below(60_000);
            let (mut credit, mut now, mut sent) = (Credit::new(rate, burst), Time::ZERO, 0);
            for _ in 0..500 {
                let (len, segment) = (random.below(20_000) as usize, 1_400);
                let mut rest = packet(&mut pool, len, segment);
                while !rest.is_empty_slot() {
                    let count = credit.covers(&rest);
                    if count == 0 {
                        let due = credit.due(&rest).unwrap();
                        assert!(due > now, "seed {seed}: no progress");
                        now = due;
                        credit.fill(now);
                        continue;
                    }
                    let first = pool.split_first(&mut rest, count).unwrap_or_else(|| rest.take());
                    credit.take(now, &first);
                    sent += first.payload_len() as u64;
                    pool.free(first);
                }
                now += Duration::from_nanos(wide(&mut random, 30));
                credit.fill(now);
                let most = rate as f64 * now.as_secs_f64() + 2.0 * burst as f64;
                assert!(sent as f64 <= most + 1.0, "seed {seed}: {sent} of {most}");
            }
        }
    }
}
