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
    /// Time spent, in units of the injected meter.
    pub ticks: u64,
}

impl DirectionCounters {
    /// Packets given up for any reason.
    #[must_use]
    pub fn dropped_count(&self) -> u64 {
        self.dropped.iter().sum()
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
}
