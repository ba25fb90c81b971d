//! Counters of a transport.
//!
//! What it is not: rates or times; whoever wants those takes two snapshots.

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
    pub(crate) fn count(&mut self, datagrams: usize, bytes: usize) {
        self.datagrams += datagrams as u64;
        self.bytes += bytes as u64;
        self.trains += u64::from(datagrams > 1);
    }
}

/// How many datagrams the sends had: 1, 2, 3–4, 5–8, 9–16, 17–32, 33 and more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentCounts(pub [u64; 7]);

impl SegmentCounts {
    pub(crate) fn count(&mut self, datagrams: usize) {
        let bucket = datagrams.max(1).next_power_of_two().trailing_zeros() as usize;
        let last = self.0.len() - 1;
        self.0[bucket.min(last)] += 1;
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
}

impl Drops {
    /// All reasons together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.kernel_overflow + self.queue_full + self.too_long + self.closed
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

/// Counters of a transport since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportStats {
    /// Taken from the core.
    pub sent: Traffic,
    /// Handed to the core.
    pub received: Traffic,
    /// System calls, or what stands for them, that took what was sent.
    pub send_calls: u64,
    /// Datagrams per send.
    pub segments_per_send: SegmentCounts,
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
    /// Counts one send of `datagrams` that together have `bytes`.
    pub(crate) fn count_sent(&mut self, datagrams: usize, bytes: usize, calls: u32) {
        self.sent.count(datagrams, bytes);
        self.send_calls += u64::from(calls);
        self.segments_per_send.count(datagrams);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_send_is_in_the_bucket_of_its_length() {
        let mut counts = SegmentCounts::default();
        for datagrams in [1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 1_000] {
            counts.count(datagrams);
        }
        assert_eq!(counts.0, [1, 1, 2, 2, 2, 2, 3]);
    }

    #[test]
    fn a_train_is_one_train_and_several_datagrams() {
        let mut stats = TransportStats::default();
        stats.count_sent(5, 6_000, 1);
        stats.count_sent(1, 0, 1);
        assert_eq!(stats.sent, Traffic { datagrams: 6, bytes: 6_000, trains: 1 });
        assert_eq!(stats.send_calls, 2);
    }
}
