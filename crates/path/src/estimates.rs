//! [`Estimates`]: what is known of a path besides its probes: what modules saw, and what a
//! transport says that controls itself.

use crate::PathSeen;
use dacapo_base::Time;
use std::time::Duration;

/// A rate is measured over so long at least, and over a round trip.
const RATE_SPAN_MIN: Duration = Duration::from_millis(100);

/// A share of losses is that of so many packets at least, and of twice as many at most.
const LOSS_SPAN: u64 = 1_024;

/// From so many runs of losses on it is known how long they are.
const RUNS_MIN: u64 = 32;

/// What a transport below says of the path of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BelowSeen {
    /// The smoothed round trip.
    pub rtt: Option<Duration>,
    /// How fast it has been delivering, in bit/s.
    pub delivery_rate_bps: Option<u64>,
    /// The most bytes that it lets be in flight.
    pub window_bytes: Option<u64>,
    /// Packets that it has sent, further transmissions included.
    pub sent_packets: u64,
    /// Those that it took for lost.
    pub lost_packets: u64,
}

/// What is known of a path besides its probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimates {
    /// What modules have seen so far of what left.
    pub seen: PathSeen,
    /// What modules have seen so far of what came.
    pub came: PathSeen,
    /// How fast the path has been delivering while something was in flight, in bit/s.
    pub delivery_rate_bps: Option<u64>,
    /// The share of packets that are lost, in millionths.
    pub loss_ppm: Option<u32>,
    /// The most bytes that a transport below lets be in flight.
    pub window_bytes: Option<u64>,
    rate: RateSpan,
    loss: LossSpan,
    counted: LossSpan,
}

impl Estimates {
    /// Modules have seen more, which is `delivered` bytes as they left.
    pub fn handle_seen(&mut self, now: Time, seen: &PathSeen, delivered: u64, rtt: Duration) {
        self.seen.add(seen);
        if delivered > 0 {
            let rate = self.rate.handle(now, delivered, rtt.max(RATE_SPAN_MIN));
            self.delivery_rate_bps = rate.or(self.delivery_rate_bps);
        }
        self.loss.handle(seen.delivered_packets, seen.lost_packets);
        self.say_loss();
    }

    /// So many packets had come with a mark of congestion, as both ends have counted.
    pub fn handle_marked(&mut self, packets: u64) {
        self.seen.marked_packets = self.seen.marked_packets.saturating_add(packets);
    }

    /// Both ends have counted: of so many packets so many have come.
    pub fn handle_counted(&mut self, sent: u64, received: u64) {
        self.counted.handle(received.min(sent), sent.saturating_sub(received));
        self.say_loss();
    }

    /// The mean length of a run of lost packets, in thousandths of a packet, once modules have seen
    /// enough of them.
    #[must_use]
    pub fn burst_milli(&self) -> Option<u64> {
        let runs = self.seen.lost_runs;
        let milli = u128::from(self.seen.lost_in_runs.max(runs)) * 1_000;
        (runs >= RUNS_MIN).then(|| (milli / u128::from(runs)) as u64)
    }

    /// What both ends have counted is of all packets; modules say nothing of some flows.
    fn say_loss(&mut self) {
        self.loss_ppm = self.counted.ppm().or(self.loss.ppm()).or(self.loss_ppm);
    }

    /// A transport below says what it has measured so far.
    pub fn handle_below(&mut self, below: &BelowSeen) {
        self.seen.rtt = below.rtt.or(self.seen.rtt);
        self.delivery_rate_bps = below.delivery_rate_bps.or(self.delivery_rate_bps);
        self.window_bytes = below.window_bytes;
        let sent = below.sent_packets.max(1);
        let share = below.lost_packets.min(sent).saturating_mul(1_000_000) / sent;
        self.loss_ppm = (below.sent_packets > 0).then_some(share as u32);
        self.seen.lost_packets = below.lost_packets;
    }

    /// Nothing is in flight: no time in which nothing was to be delivered counts.
    pub fn handle_idle(&mut self) {
        self.rate = RateSpan::default();
    }
}

/// What was delivered in the span that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RateSpan {
    since: Option<Time>,
    bytes: u64,
}

impl RateSpan {
    /// More was delivered: the rate, when the span is over.
    fn handle(&mut self, now: Time, bytes: u64, span: Duration) -> Option<u64> {
        let Some(since) = self.since else {
            // What came first was sent before the span.
            *self = Self { since: Some(now), bytes: 0 };
            return None;
        };
        self.bytes += bytes;
        let passed = now.since(since);
        if passed < span {
            return None;
        }
        let bits = u128::from(self.bytes) * 8 * 1_000_000_000;
        *self = Self { since: Some(now), bytes: 0 };
        u64::try_from(bits / passed.as_nanos().max(1)).ok()
    }
}

/// What became of the last packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LossSpan {
    packets: u64,
    lost: u64,
}

impl LossSpan {
    fn handle(&mut self, delivered: u64, lost: u64) {
        self.packets = self.packets.saturating_add(delivered).saturating_add(lost);
        self.lost = self.lost.saturating_add(lost);
        while self.packets >= 2 * LOSS_SPAN {
            (self.packets, self.lost) = (self.packets / 2, self.lost / 2);
        }
    }

    /// In millionths, once enough packets are known of.
    fn ppm(&self) -> Option<u32> {
        let is_known = self.packets >= LOSS_SPAN;
        is_known.then(|| (self.lost * 1_000_000 / self.packets) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(delivered: u64, lost: u64) -> PathSeen {
        PathSeen { delivered_packets: delivered, lost_packets: lost, ..PathSeen::default() }
    }

    #[test]
    fn the_rate_is_that_of_the_time_in_which_something_was_in_flight() {
        let mut it = Estimates::default();
        let mut now = Time::ZERO;
        for _ in 0..100 {
            now += Duration::from_millis(10);
            it.handle_seen(now, &seen(1, 0), 1_250, Duration::ZERO);
        }
        assert_eq!(it.delivery_rate_bps, Some(1_000_000));
        it.handle_idle();
        now += Duration::from_secs(60);
        for _ in 0..11 {
            it.handle_seen(now, &seen(1, 0), 2_500, Duration::ZERO);
            now += Duration::from_millis(10);
        }
        assert_eq!(it.delivery_rate_bps, Some(2_000_000), "the minute does not count");
    }

    #[test]
    fn the_share_that_is_lost_is_that_of_the_last_thousand_packets_or_two() {
        let mut it = Estimates::default();
        it.handle_seen(Time::ZERO, &seen(1_000, 10), 0, Duration::ZERO);
        assert_eq!(it.loss_ppm, None, "too few");
        (0..100).for_each(|_| it.handle_seen(Time::ZERO, &seen(99, 1), 0, Duration::ZERO));
        let near = it.loss_ppm.unwrap();
        assert!((9_000..=11_000).contains(&near), "{near}");
        (0..200).for_each(|_| it.handle_seen(Time::ZERO, &seen(50, 50), 0, Duration::ZERO));
        let near = it.loss_ppm.unwrap();
        assert!((490_000..=510_000).contains(&near), "{near}");
        it.handle_counted(4_000, 3_960);
        assert_eq!(it.loss_ppm, Some(10_000), "what both ends have counted is of all flows");
        let huge = seen(u64::MAX, u64::MAX);
        let mut loss = LossSpan::default();
        loss.handle(huge.delivered_packets, huge.lost_packets);
        assert!(loss.ppm().is_some());
    }

    #[test]
    fn how_long_runs_of_losses_are_is_known_from_thirty_two_on() {
        let mut it = Estimates::default();
        let runs = |lost_runs, lost_in_runs| PathSeen { lost_runs, lost_in_runs, ..seen(0, 0) };
        it.handle_seen(Time::ZERO, &runs(31, 93), 0, Duration::ZERO);
        assert_eq!(it.burst_milli(), None);
        it.handle_seen(Time::ZERO, &runs(9, 7), 0, Duration::ZERO);
        assert_eq!(it.burst_milli(), Some(2_500));
        it.handle_seen(Time::ZERO, &runs(u64::MAX, 0), 0, Duration::ZERO);
        assert_eq!(it.burst_milli(), Some(1_000), "a run has a packet");
    }

    #[test]
    fn what_is_below_speaks_for_itself() {
        let mut it = Estimates::default();
        let ms = Duration::from_millis;
        it.handle_below(&BelowSeen {
            rtt: Some(ms(20)),
            delivery_rate_bps: Some(5),
            window_bytes: Some(14_480),
            sent_packets: 200,
            lost_packets: 3,
        });
        assert_eq!((it.seen.rtt, it.delivery_rate_bps), (Some(ms(20)), Some(5)));
        assert_eq!((it.loss_ppm, it.window_bytes), (Some(15_000), Some(14_480)));
        it.handle_below(&BelowSeen::default());
        assert_eq!((it.seen.rtt, it.loss_ppm), (Some(ms(20)), None));
    }
}
