//! [`Breaker`]: holds what does not yield to others, where the path does not carry it.
//!
//! ```text
//!   bit/s   what is sent
//!   6M   ---------------------.     held: half of what has come, and a quarter more
//!                             |     every 5 s in which that is carried
//!   1M   - - - - the path - - | - - - - - _.-^| - - - _.-  until nothing is held any more
//!                             |____..--^^^    |__..-^^
//!            10 s of: less than half comes, or a tenth is lost behind a queue of 100 ms
//! ```
//!
//! A flow whose modules report nothing keeps the bound that was agreed, and no controller holds it.
//! That is right for a path that carries the bound, also one that loses by itself; one that does
//! not would be filled for as long as the flow lasts, and all others with it.
//!
//! Sources: RFC 8084 (circuit breakers; here the rate falls, where it lets flows end), RFC 8085,
//! section 3.1.10. The thresholds are own ones.
//!
//! Invariants: what it judges by is of [`HELD_WINDOW`] at least and [`SAMPLES_MAX`] samples at
//! most; it holds no less than [`RATE_BPS_MIN`]; a delay that stays when less is sent is no queue.

use crate::counting::Counted;
use crate::pacer::Pacer;
use dacapo_base::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// How long the path has not carried what is sent before that is held.
const WINDOW: Duration = Duration::from_secs(10);

/// The same while something is held.
const HELD_WINDOW: Duration = Duration::from_secs(5);

/// Samples are at least so far apart.
const APART_MIN: Duration = Duration::from_millis(250);

const SAMPLES_MAX: usize = 64;

/// Where nothing was answered for so long the path was cut, and what was sent into that is no sign
/// of too much. Where it only was too much, contact is lost first and nothing is sent, so that
/// questions are answered again: after 3.3 s (see [`crate::Life`]).
const GAP_MIN: Duration = Duration::from_secs(4);

/// Fewer packets in the window are held by nothing: they fill no path.
const PACKETS_MIN: u64 = 256;

/// So many show what became of what is held; where fewer are sent for so long, nothing is.
const HELD_PACKETS_MIN: u64 = 16;
const IDLE_AFTER: Duration = Duration::from_secs(30);

/// It holds no less than this, which shows whether the path carries more again.
pub(crate) const RATE_BPS_MIN: u64 = 32_000;

/// A path that loses so much is not what the flows were agreed for, in millionths.
const LOSS_PPM_MAX: u64 = 500_000;

/// So much is a sign where a queue stands as well.
const QUEUED_LOSS_PPM_MAX: u64 = 100_000;

/// What is later than the least by this is a queue.
const QUEUE_MIN: Duration = Duration::from_millis(100);

/// What changes for flows that no controller holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// What the path has lost lately, in millionths.
    pub loss_ppm: u32,
    /// What they are held to together, in bit/s; `None`: to nothing but their bounds any more.
    pub rate_bps: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    counted: Counted,
    rtt: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Breaker {
    /// The oldest first; the window is not over while it is younger.
    samples: VecDeque<Sample>,
    /// The least round trip since less was sent.
    rtt_min: Option<Duration>,
    /// What is held now, and what was sent when it was not, in bit/s.
    rate_bps: Option<u64>,
    wanted_bps: u64,
    pacer: Pacer,
}

impl Breaker {
    #[inline]
    pub fn is_holding(&self) -> bool {
        self.rate_bps.is_some()
    }

    /// What is held to, in bit/s.
    pub fn rate_bps(&self) -> Option<u64> {
        self.rate_bps
    }

    /// Bytes that may leave now.
    pub fn allowance(&mut self, now: Time) -> usize {
        self.pacer.allowance(now)
    }

    /// So many bytes of what it holds have left.
    #[inline]
    pub fn take(&mut self, now: Time, bytes: u64) {
        self.pacer.take(now, bytes);
    }

    /// When something may leave, if that is not now.
    pub fn ready_at(&self, now: Time) -> Option<Time> {
        self.pacer.ready_at(now)
    }

    /// The path is another one.
    pub fn begin_anew(&mut self) {
        self.samples.clear();
        self.rtt_min = None;
    }

    /// An answer says what had left and come, with a round trip; when something is held from now
    /// on, or nothing any more.
    pub fn handle_counted(&mut self, now: Time, counted: Counted, rtt: Duration) -> Option<Held> {
        self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        let is_cut = |last: &Sample| counted.at >= last.counted.at + GAP_MIN;
        if self.samples.back().is_some_and(is_cut) {
            self.samples.clear();
        }
        let is_next = |last: &Sample| counted.at >= last.counted.at + APART_MIN;
        if self.samples.back().is_none_or(is_next) {
            self.samples.push_back(Sample { counted, rtt });
        }
        if self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
        let (first, last) = (self.samples.front()?.counted, self.samples.back()?.counted);
        let passed = last.at.since(first.at);
        let is_over = match self.is_holding() {
            false => passed >= WINDOW,
            true if last.sent - first.sent < HELD_PACKETS_MIN => passed >= IDLE_AFTER,
            true => passed >= HELD_WINDOW,
        };
        if !is_over {
            return None;
        }
        let held = self.judge(&first, &last);
        self.samples.pop_front();
        let held = held?;
        self.samples.clear();
        let was_holding = self.is_holding();
        self.rate_bps = held.rate_bps;
        self.pacer.set_rate(now, held.rate_bps);
        (was_holding != self.is_holding()).then_some(held)
    }

    /// What is to be held after a window.
    fn judge(&mut self, first: &Counted, last: &Counted) -> Option<Held> {
        let sent = last.sent - first.sent;
        let lost = sent.saturating_sub(last.received.saturating_sub(first.received));
        let loss_ppm = lost.saturating_mul(1_000_000).checked_div(sent).unwrap_or(0);
        let passed_ns = last.at.since(first.at).as_nanos().max(1);
        let bits =
            u128::from(last.uncontrolled_bytes - first.uncontrolled_bytes) * 8 * 1_000_000_000;
        let rate_bps = u64::try_from(bits / passed_ns).unwrap_or(u64::MAX);
        let said = |rate_bps| Some(Held { loss_ppm: loss_ppm as u32, rate_bps });
        let is_little = sent < if self.is_holding() { HELD_PACKETS_MIN } else { PACKETS_MIN };
        if !is_little && self.is_overloaded(loss_ppm) {
            if !self.is_holding() {
                self.wanted_bps = rate_bps;
            }
            // What was measured then says nothing of the queue that is left.
            self.rtt_min = None;
            let came = u128::from(rate_bps) * u128::from(1_000_000 - loss_ppm) / 1_000_000;
            let rate_bps = u64::try_from(came / 2).unwrap_or(u64::MAX).max(RATE_BPS_MIN);
            return said(Some(rate_bps));
        }
        let more = self.rate_bps?;
        let more = more.saturating_add(more / 4);
        said((!is_little && more < self.wanted_bps).then_some(more))
    }

    fn is_overloaded(&self, loss_ppm: u64) -> bool {
        let least = self.samples.iter().map(|sample| sample.rtt).min().unwrap_or_default();
        let queue = least.saturating_sub(self.rtt_min.unwrap_or_default());
        loss_ppm >= LOSS_PPM_MAX || loss_ppm >= QUEUED_LOSS_PPM_MAX && queue >= QUEUE_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET_LEN: u64 = 1_250;

    /// A path and what is sent to it, a step every half second.
    struct World {
        breaker: Breaker,
        now: Time,
        counted: Counted,
        /// What waits before the bottleneck, in packets.
        queue: u64,
        told: Vec<Held>,
    }

    /// What the path takes in a step and keeps waiting at most, in packets, and loses by itself.
    #[derive(Clone, Copy)]
    struct Way {
        carries: u64,
        queue_max: u64,
        loss: f64,
        rtt: Duration,
    }

    const STEP: Duration = Duration::from_millis(500);

    impl World {
        fn new() -> Self {
            let (breaker, counted) = (Breaker::default(), Counted::default());
            Self { breaker, now: Time::ZERO, counted, queue: 0, told: Vec::new() }
        }

        /// Sends so many packets a step, or what is let out; how many left.
        fn run(&mut self, secs: u64, packets: u64, way: Way) -> u64 {
            let before = self.counted.sent;
            for _ in 0..2 * secs {
                self.now += STEP;
                let held = self.breaker.rate_bps().map(|rate| rate / 2 / 8 / PACKET_LEN);
                let sent = packets.min(held.unwrap_or(u64::MAX));
                let wait = STEP.mul_f64(self.queue as f64 / way.carries as f64);
                let come = (self.queue + sent).min(way.carries);
                self.queue = (self.queue + sent - come).min(way.queue_max);
                self.counted.sent += sent;
                self.counted.uncontrolled_bytes += sent * PACKET_LEN;
                self.counted.received += (come as f64 * (1.0 - way.loss)) as u64;
                self.counted.at = self.now;
                let told = self.breaker.handle_counted(self.now, self.counted, way.rtt + wait);
                self.told.extend(told);
            }
            self.counted.sent - before
        }
    }

    const ENOUGH: Way =
        Way { carries: 400, queue_max: 40, loss: 0.0, rtt: Duration::from_millis(60) };

    #[test]
    fn what_is_carried_is_not_held_whatever_the_path_loses_by_itself() {
        for loss in [0.0, 0.1, 0.3, 0.45] {
            let mut world = World::new();
            world.run(120, 275, Way { loss, ..ENOUGH });
            assert!(world.told.is_empty(), "{loss}: {:?}", world.told);
        }
    }

    #[test]
    fn what_is_not_carried_is_held_near_what_is_and_let_go_when_it_is_carried_again() {
        // 5.5 Mbit/s, of which a fifth is carried.
        let narrow = Way { carries: 55, queue_max: 30, ..ENOUGH };
        let mut world = World::new();
        world.run(30, 275, ENOUGH);
        world.run(12, 275, narrow);
        let [held] = world.told[..] else { panic!("{:?}", world.told) };
        assert!((500_000..=850_000).contains(&held.loss_ppm), "{held:?}");
        let rate = held.rate_bps.unwrap();
        assert!((500_000..=1_400_000).contains(&rate), "{held:?}");
        world.run(30, 275, narrow);
        let sent = world.run(200, 275, narrow);
        assert!((0.6..0.95).contains(&(sent as f64 / (400.0 * 55.0))), "{sent}");
        assert_eq!(world.told.len(), 1, "it is held all the time: {:?}", world.told);
        world.run(250, 275, ENOUGH);
        let [_, free] = world.told[..] else { panic!("{:?}", world.told) };
        assert_eq!(free.rate_bps, None);
        assert_eq!(world.run(1, 275, ENOUGH), 550);
    }

    #[test]
    fn a_queue_makes_less_loss_a_sign_and_a_longer_way_is_no_queue() {
        // A quarter more than is carried.
        let mut world = World::new();
        let narrow = Way { carries: 220, queue_max: 110, ..ENOUGH };
        world.run(10, 275, ENOUGH);
        world.run(20, 275, narrow);
        assert_eq!(world.told.len(), 1, "{:?}", world.told);
        let mut world = World::new();
        world.run(10, 275, ENOUGH);
        let far = Way { rtt: Duration::from_millis(300), loss: 0.15, ..ENOUGH };
        world.run(300, 275, far);
        let [held, free] = world.told[..] else { panic!("{:?}", world.told) };
        assert!(held.rate_bps.is_some() && free.rate_bps.is_none(), "once, and never again");
    }

    #[test]
    fn what_sends_little_is_not_held_and_nothing_less_than_the_least() {
        let mut world = World::new();
        world.run(120, 10, Way { carries: 1, queue_max: 1, ..ENOUGH });
        assert!(world.told.is_empty(), "{:?}", world.told);
        let mut world = World::new();
        world.run(120, 300, Way { loss: 1.0, ..ENOUGH });
        assert_eq!(world.breaker.rate_bps(), Some(RATE_BPS_MIN));
        world.run(60, 0, ENOUGH);
        assert_eq!(world.breaker.rate_bps(), None, "a flow that pauses begins as it was agreed");
    }

    #[test]
    fn a_path_that_was_cut_is_not_one_that_carries_too_little() {
        let mut world = World::new();
        for secs in [4, 10, 60] {
            world.run(20, 275, ENOUGH);
            // Until contact is known to be lost it sends, and nothing of that comes.
            world.counted.sent += 275 * 6;
            world.now += Duration::from_secs(secs);
        }
        world.run(20, 275, ENOUGH);
        assert!(world.told.is_empty(), "{:?}", world.told);
    }

    #[test]
    fn samples_are_bounded_however_often_is_asked() {
        let (mut breaker, mut counted) = (Breaker::default(), Counted::default());
        for ms in 0..20_000 {
            (counted.at, counted.sent) = (Time::from_millis(ms), ms);
            breaker.handle_counted(counted.at, counted, Duration::ZERO);
            assert!(breaker.samples.len() <= SAMPLES_MAX);
        }
        assert!(breaker.is_holding(), "nothing has come");
    }
}
