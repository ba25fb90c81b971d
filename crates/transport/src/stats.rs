//! Counters of a transport.

use crate::{Outgoing, Sent, Transport};
use std::collections::BTreeMap;

/// What went one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Datagrams, those in trains counted one by one.
    pub datagrams: u64,
    /// Their bytes, without headers.
    pub bytes: u64,
    /// Trains of two datagrams or more.
    pub trains: u64,
}

impl Traffic {
    /// Counts so many datagrams that came or went as one.
    pub fn count(&mut self, datagrams: usize, bytes: usize) {
        self.datagrams += datagrams as u64;
        self.bytes += bytes as u64;
        self.trains += u64::from(datagrams > 1);
    }

    fn add(&mut self, other: &Self) {
        self.datagrams += other.datagrams;
        self.bytes += other.bytes;
        self.trains += other.trains;
    }
}

/// How many datagrams the calls of the system took: 1, 2–3, 4–7, 8–15, 16–31, 32–63, 64 and more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentCounts(pub [u64; 7]);

impl SegmentCounts {
    pub(crate) fn count(&mut self, datagrams: usize, calls: u64) {
        let bucket = datagrams.max(1).ilog2() as usize;
        let last = self.0.len() - 1;
        self.0[bucket.min(last)] += calls;
    }

    /// All calls together.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Half of the calls took at least so many datagrams: the lower edge of the bucket in which the
    /// median lies. `None` without a call.
    #[must_use]
    pub fn median_at_least(&self) -> Option<u64> {
        let half = self.calls().div_ceil(2);
        let mut longer = 0;
        for (bucket, count) in self.0.iter().enumerate().rev() {
            longer += count;
            if half > 0 && longer >= half {
                return Some(1 << bucket);
            }
        }
        None
    }

    /// What was counted after an earlier look.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut counts = *self;
        counts.0.iter_mut().zip(earlier.0).for_each(|(it, before)| *it = it.saturating_sub(before));
        counts
    }

    /// Counts what another counted too.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(it, more)| *it += more);
    }
}

/// What the transport gave up, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// The kernel's receive buffer was full. A train that arrived as one counts once.
    pub kernel_overflow: u64,
    /// The queue of the receiving end was full.
    pub queue_full: u64,
    /// Longer than a body of the pool.
    pub too_long: u64,
    /// The data lane, or the stream, was closed before they were read.
    pub closed: u64,
    /// Sent to a group by somebody else than the source for which it was joined.
    pub foreign: u64,
    /// Without a label that is expected, or with that of another stream.
    pub unlabelled: u64,
    /// Of a datagram in several parts one was lost on the way.
    pub incomplete: u64,
}

impl Drops {
    /// All reasons together.
    #[must_use]
    pub fn total(&self) -> u64 {
        let foreign = self.foreign + self.unlabelled + self.incomplete;
        self.kernel_overflow + self.queue_full + self.too_long + self.closed + foreign
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.kernel_overflow += other.kernel_overflow;
        self.queue_full += other.queue_full;
        self.too_long += other.too_long;
        self.closed += other.closed;
        self.foreign += other.foreign;
        self.unlabelled += other.unlabelled;
        self.incomplete += other.incomplete;
    }
}

/// What became of streams; all 0 where a transport has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Connections that others made to us.
    pub accepted: u64,
    /// Streams that were opened, by either end.
    pub opened: u64,
    /// Streams whose end was told.
    pub closed: u64,
    /// Connections closed because nobody expected their token, or no longer.
    pub unknown: u64,
    /// Connections that ended before a whole preface, or began with something else.
    pub malformed: u64,
    /// Connections closed because their preface was late.
    pub late: u64,
    /// Connections closed because too many without a preface came after them.
    pub displaced: u64,
    /// Streams and tokens refused because there were too many, or one from the same address.
    pub over_limit: u64,
    /// Streams that ended within a record or announced one that is too long.
    pub faults: u64,
}

impl StreamCounts {
    fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.opened += other.opened;
        self.closed += other.closed;
        self.unknown += other.unknown;
        self.malformed += other.malformed;
        self.late += other.late;
        self.displaced += other.displaced;
        self.over_limit += other.over_limit;
        self.faults += other.faults;
    }
}

/// Counters of a transport since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportStats {
    /// Taken from the core.
    pub sent: Traffic,
    /// Handed to the core.
    pub received: Traffic,
    /// System calls, or what stands for them, that took what was sent.
    pub send_calls: u64,
    /// Datagrams that each of these calls took.
    pub segments_per_call: SegmentCounts,
    /// Sends of which not everything was taken.
    pub would_blocks: u64,
    /// Calls of `recv` that found the pool full; what they found waited.
    pub pool_full: u64,
    /// Answers that nobody listens at a remote port.
    pub refused: u64,
    /// Answers that there is no way to a remote address.
    pub unreachable: u64,
    /// Datagrams that were too long to send.
    pub too_large: u64,
    /// Other errors of the system.
    pub errors: u64,
    /// What was given up, by reason.
    pub drops: Drops,
    /// What became of streams.
    pub streams: StreamCounts,
}

impl TransportStats {
    /// Counts one send of `datagrams` that together have `bytes`, in calls that took as many each.
    pub(crate) fn count_sent(&mut self, datagrams: usize, bytes: usize, calls: u32) {
        self.count_taken(datagrams, bytes, calls, datagrams.div_ceil((calls as usize).max(1)));
    }

    /// The same, where every call but the last took `most` datagrams.
    pub(crate) fn count_taken(&mut self, datagrams: usize, bytes: usize, calls: u32, most: usize) {
        self.sent.count(datagrams, bytes);
        self.send_calls += u64::from(calls);
        let Some(before) = calls.checked_sub(1) else { return };
        self.segments_per_call.count(most, u64::from(before));
        self.segments_per_call.count(datagrams.saturating_sub(before as usize * most), 1);
    }

    /// Counts that the first `count` datagrams of a train were taken, in one call, and says so.
    pub fn count_front(&mut self, outgoing: &Outgoing<'_>, count: usize) -> Sent {
        let bytes_taken = outgoing.bytes.len().min(count * outgoing.datagram_len());
        if count > 0 {
            self.count_sent(count, bytes_taken, 1);
        }
        if count == outgoing.datagram_count() {
            return Sent::All;
        }
        self.would_blocks += 1;
        Sent::Blocked { bytes_taken }
    }

    /// Adds the counters of another transport.
    pub fn add(&mut self, other: &Self) {
        self.sent.add(&other.sent);
        self.received.add(&other.received);
        self.send_calls += other.send_calls;
        self.segments_per_call.add(&other.segments_per_call);
        self.would_blocks += other.would_blocks;
        self.pool_full += other.pool_full;
        self.refused += other.refused;
        self.unreachable += other.unreachable;
        self.too_large += other.too_large;
        self.errors += other.errors;
        self.drops.add(&other.drops);
        self.streams.add(&other.streams);
    }
}

/// The counters of several transports, by the names of their kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatsByKind(BTreeMap<&'static str, TransportStats>);

impl StatsByKind {
    /// Adds those of one transport.
    pub fn add(&mut self, transport: &(impl Transport + ?Sized)) {
        let kind = transport.spec().name;
        self.0.entry(kind).or_default().add(&transport.stats());
    }

    /// Adds those of others.
    pub fn add_all(&mut self, others: &Self) {
        for (kind, stats) in others.iter() {
            self.0.entry(kind).or_default().add(stats);
        }
    }

    /// Those of all transports of a kind; all 0 where there was none.
    #[must_use]
    pub fn of(&self, kind: &str) -> TransportStats {
        self.0.get(kind).copied().unwrap_or_default()
    }

    /// By kind, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &TransportStats)> {
        self.0.iter().map(|(kind, stats)| (*kind, stats))
    }

    /// All together.
    #[must_use]
    pub fn sum(&self) -> TransportStats {
        let mut sum = TransportStats::default();
        self.0.values().for_each(|stats| sum.add(stats));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_in_the_bucket_of_its_length() {
        let mut counts = SegmentCounts::default();
        for datagrams in [0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 1_000] {
            counts.count(datagrams, 1);
        }
        assert_eq!(counts.0, [2; 7]);
    }

    #[test]
    fn half_of_the_calls_took_at_least_the_median() {
        let median = |counts| SegmentCounts(counts).median_at_least();
        assert_eq!(median([0; 7]), None);
        assert_eq!(median([1, 0, 0, 0, 0, 0, 0]), Some(1));
        assert_eq!(median([5, 0, 0, 0, 5, 0, 0]), Some(16));
        assert_eq!(median([6, 0, 0, 0, 5, 0, 0]), Some(1));
        assert_eq!(median([1, 1, 1, 1, 1, 0, 9]), Some(64));
    }

    #[test]
    fn a_train_is_one_train_and_several_datagrams() {
        let mut stats = TransportStats::default();
        stats.count_sent(5, 6_000, 1);
        stats.count_sent(1, 0, 1);
        assert_eq!(stats.sent, Traffic { datagrams: 6, bytes: 6_000, trains: 1 });
        assert_eq!(stats.send_calls, 2);
        assert_eq!(stats.segments_per_call.0, [1, 0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn a_train_that_took_several_calls_is_counted_by_call() {
        let mut stats = TransportStats::default();
        stats.count_taken(50, 70_000, 2, 44);
        stats.count_taken(3, 3_000, 3, 1);
        assert_eq!(stats.segments_per_call.0, [3, 0, 1, 0, 0, 1, 0]);
        assert_eq!((stats.send_calls, stats.segments_per_call.calls()), (5, 5));
    }

    #[test]
    fn sums_and_differences_are_of_every_counter() {
        let mut one = TransportStats { errors: 3, would_blocks: 1, ..TransportStats::default() };
        one.count_sent(20, 20_000, 1);
        one.drops.too_long = 2;
        one.streams.faults = 4;
        let mut sum = one;
        sum.add(&one);
        assert_eq!((sum.errors, sum.would_blocks, sum.drops.too_long), (6, 2, 4));
        assert_eq!((sum.sent.datagrams, sum.send_calls, sum.streams.faults), (40, 2, 8));
        assert_eq!(sum.segments_per_call.since(&one.segments_per_call), one.segments_per_call);
    }
}
