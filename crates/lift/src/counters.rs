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
    /// Packets of the batches whose time was taken: one in some, see [`Meter`].
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

/// A clock for the time that modules take.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// What it shows, in nanoseconds from anywhere.
    pub read_ns: fn() -> u64,
    /// What reading it takes; that is not the module's time.
    pub cost_ns: u64,
    /// One batch in so many is timed; all with 1, and with 0.
    pub every: u32,
}

impl Meter {
    /// One batch in so many is timed.
    const EVERY: u32 = 64;

    /// A meter that times one batch in 64. It is read some times to learn what that costs.
    #[must_use]
    pub fn new(read_ns: fn() -> u64) -> Self {
        let cost = |_| {
            let before = read_ns();
            read_ns().saturating_sub(before)
        };
        let cost_ns = (0..32).map(cost).min().unwrap_or(0);
        Self { read_ns, cost_ns, every: Self::EVERY }
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
