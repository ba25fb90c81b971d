//! [`LinkStats`]: what a link has done so far, and [`DelayRecord`]: how long things took.
//!
//! Every figure is counted, none is computed from what was asked for.
//!
//! ```text
//!   sent + duplicated = delivered
//!                     + lost_random + lost_burst + corrupted_detected + dropped_queue
//!                     + dropped_aqm + dropped_partition + dropped_mtu + overflow
//!                     + in flight
//! ```
//!
//! Invariants: the equation above at every moment; bounded memory.

use crate::fate::DropReason;
use std::collections::BTreeMap;
use std::time::Duration;

/// Counters of one link. Items unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LinkStats {
    /// Handed to the link.
    pub sent: u64,
    /// Handed out at the far end, copies included.
    pub delivered: u64,
    /// Lost independently of their neighbours.
    pub lost_random: u64,
    /// Lost in the bad state of burst loss.
    pub lost_burst: u64,
    /// Copies made (also those that were dropped later).
    pub duplicated: u64,
    /// Held back on purpose (copies included).
    pub held_back: u64,
    /// Delivered after an item that was sent later, whatever the cause (copies not counted).
    pub reordered: u64,
    /// Corrupted and therefore dropped.
    pub corrupted_detected: u64,
    /// Corrupted and sent on. Not a drop.
    pub corrupted_undetected: u64,
    /// Corrupted so that a checksum of the item itself shows it, and sent on for the receiver to
    /// drop ([`crate::Carry::CHECKED`]). Not a drop of the link.
    pub corrupted_sent_on: u64,
    /// Dropped because the queue was full.
    pub dropped_queue: u64,
    /// Dropped by the active queue management.
    pub dropped_aqm: u64,
    /// Marked CE by the active queue management; what came with that mark is not counted. Not a
    /// drop.
    pub marked: u64,
    /// Dropped because the link was cut.
    pub dropped_partition: u64,
    /// Dropped because they were too large.
    pub dropped_mtu: u64,
    /// Dropped because too many were in flight.
    pub overflow: u64,
    /// Bytes handed to the link.
    pub sent_bytes: u64,
    /// Bytes handed out at the far end, copies included.
    pub delivered_bytes: u64,
    /// The delay of everything delivered: due time less sending time.
    pub delay: DelayRecord,
}

impl LinkStats {
    /// All items that were dropped, whatever the reason.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.lost_random
            + self.lost_burst
            + self.corrupted_detected
            + self.dropped_queue
            + self.dropped_aqm
            + self.dropped_partition
            + self.dropped_mtu
            + self.overflow
    }

    /// Whether every item is accounted for, given how many are in flight.
    #[must_use]
    pub const fn closes(&self, in_flight: usize) -> bool {
        self.sent + self.duplicated == self.delivered + self.dropped() + in_flight as u64
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        let counter = match reason {
            DropReason::Aqm => &mut self.dropped_aqm,
            DropReason::Corrupted => &mut self.corrupted_detected,
            DropReason::LossBurst => &mut self.lost_burst,
            DropReason::LossRandom => &mut self.lost_random,
            DropReason::Mtu => &mut self.dropped_mtu,
            DropReason::Overflow => &mut self.overflow,
            DropReason::Partition => &mut self.dropped_partition,
            DropReason::Queue => &mut self.dropped_queue,
        };
        *counter += 1;
    }
}

/// A record of delays: extremes and mean exact, quantiles within 0.07 ms up to 4 s and within
/// 1/65,000 beyond (below 0.1 s within 1/2,000).
///
/// It is a sparse histogram with cells that grow with the value: at most 150,000 cells, usually as
/// many as the delays are spread.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DelayRecord {
    /// Lower bound of a cell in ns, and how many delays fell into it.
    cells: BTreeMap<u64, u64>,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl DelayRecord {
    /// Adds one delay (saturating at 584 years).
    pub fn record(&mut self, delay: Duration) {
        let ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
        self.sum_ns += u128::from(ns);
        let cell = ns.min(CELL_MAX_NS);
        *self.cells.entry(cell >> cell_shift(cell) << cell_shift(cell)).or_default() += 1;
    }

    /// How many delays were recorded.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The shortest delay; `None` when none was recorded.
    #[must_use]
    pub fn min(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos(self.min_ns))
    }

    /// The longest delay; `None` when none was recorded.
    #[must_use]
    pub fn max(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos(self.max_ns))
    }

    /// The mean delay; `None` when none was recorded.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        let mean_ns = self.sum_ns.checked_div(u128::from(self.count))?;
        Some(Duration::from_nanos(u64::try_from(mean_ns).unwrap_or(u64::MAX)))
    }

    /// The delay that half of all do not exceed; `None` when none was recorded.
    #[must_use]
    pub fn p50(&self) -> Option<Duration> {
        self.quantile(0.5)
    }

    /// The delay that 99 % of all do not exceed; `None` when none was recorded.
    #[must_use]
    pub fn p99(&self) -> Option<Duration> {
        self.quantile(0.99)
    }

    /// The delay that the share `q` of all does not exceed, `q` in 0 to 1 (clamped).
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let rank = (q * self.count as f64).ceil().clamp(1.0, (self.count as f64).max(1.0)) as u64;
        let mut seen = 0;
        let (&cell, _) = self.cells.iter().find(|&(_, &count)| {
            seen += count;
            seen >= rank
        })?;
        let middle = cell + ((1 << cell_shift(cell)) >> 1);
        Some(Duration::from_nanos(middle.clamp(self.min_ns, self.max_ns)))
    }
}

/// Above this (275 s; no valid delay without a long backlog) all delays share a cell.
const CELL_MAX_NS: u64 = 1 << 38;

/// The width of the cell of `ns` as a power of two: 1/1024 of the value or finer up to 0.13 s,
/// then 131 µs, then 1/32,768 of the value.
const fn cell_shift(ns: u64) -> u32 {
    match (ns | 1).ilog2() {
        log @ 0..=27 => log.saturating_sub(10),
        28..=32 => 17,
        log => log - 15,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn an_empty_record_has_no_figures() {
        let record = DelayRecord::default();
        assert_eq!((record.min(), record.max(), record.mean()), (None, None, None));
        assert_eq!((record.p50(), record.p99(), record.quantile(2.0)), (None, None, None));
    }

    #[test]
    fn a_constant_delay_is_recorded_exactly() {
        let mut record = DelayRecord::default();
        let delay = Duration::from_nanos(123_456_789);
        (0..100).for_each(|_| record.record(delay));
        for figure in [record.min(), record.max(), record.mean(), record.p50(), record.p99()] {
            assert_eq!(figure, Some(delay));
        }
    }

    #[test]
    fn quantiles_are_within_a_tenth_of_a_millisecond() {
        let mut random = Random::from_number(11);
        for span_ns in [50_000_u64, 3_000_000, 40_000_000, 900_000_000, 4_000_000_000] {
            let mut record = DelayRecord::default();
            let mut delays: Vec<u64> = (0..20_001).map(|_| random.below(span_ns)).collect();
            delays.iter().for_each(|&ns| record.record(Duration::from_nanos(ns)));
            delays.sort_unstable();
            for (q, index) in [(0.0, 0), (0.01, 200), (0.5, 10_000), (0.99, 19_800), (1.0, 20_000)]
            {
                let found = record.quantile(q).unwrap().as_nanos() as i64;
                let off = (found - delays[index] as i64).abs();
                assert!(off < 100_000, "span {span_ns}, q {q}: off by {off} ns");
            }
        }
    }

    #[test]
    fn cells_are_ordered_and_the_longest_delays_share_one() {
        let mut record = DelayRecord::default();
        for log in 0..64 {
            for ns in [(1_u64 << log) - 1, 1 << log, (1 << log) + 1] {
                let cell = ns >> cell_shift(ns) << cell_shift(ns);
                assert!(cell <= ns && ns - cell < 1 << cell_shift(ns));
                record.record(Duration::from_nanos(ns));
            }
        }
        assert!(record.cells.keys().all(|&cell| cell <= CELL_MAX_NS));
        assert_eq!(record.count(), 192);
        assert_eq!(record.max(), Some(Duration::from_nanos((1 << 63) + 1)));
    }
}
