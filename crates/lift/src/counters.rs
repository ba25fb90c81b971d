//! Counters that the runner keeps for every module, because it owns the loop.

use crate::DropReason;

/// What went through a module in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionCounters {
    /// Packets offered (a train counts its segments).
    pub packets: u64,
    /// Payload bytes offered.
    pub bytes: u64,
    /// Packets that the module took out of their slots (a train counts its segments).
    pub held: u64,
    /// Packets that the module emitted in this direction.
    pub emitted: u64,
    /// Packets given up, by reason.
    pub dropped: [u64; DropReason::COUNT],
    /// Packets of the batches whose time was taken: one in some, see [`crate::Meter`].
    pub timed_packets: u64,
    /// The time that those took, in nanoseconds.
    pub timed_ns: u64,
}

impl DirectionCounters {
    /// Packets given up for any reason.
    #[must_use]
    pub fn dropped_count(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// The time that a packet takes, in nanoseconds, from those that were timed; `None` before the
    /// first.
    #[must_use]
    pub fn ns_per_packet(&self) -> Option<f64> {
        (self.timed_packets > 0).then(|| self.timed_ns as f64 / self.timed_packets as f64)
    }
}

/// What went through a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleCounters {
    /// Towards the network.
    pub down: DirectionCounters,
    /// Towards the application.
    pub up: DirectionCounters,
    /// Timers that fired.
    pub timeouts: u64,
    /// Packets that the module reported lost.
    pub lost: u64,
    /// Messages to the peer's module, and notes, that were refused ([`crate::Cx`]).
    pub refused: u64,
}
