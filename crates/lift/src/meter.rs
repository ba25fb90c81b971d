//! [`Meter`]: what the time of modules is taken with, of one batch in some.
//!
//! One reading for each module and batch: the end of one module is the start of the next.

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

/// When the meter is read, and what it showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metering {
    meter: Meter,
    /// So many passes before one is timed.
    left: u32,
    /// The last reading.
    stamp: u64,
}

impl Metering {
    pub fn new(meter: Meter) -> Self {
        Self { meter, left: 0, stamp: 0 }
    }

    /// Whether the next pass is timed: one in some.
    #[inline]
    pub fn is_next(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        self.left = self.meter.every.saturating_sub(1);
        self.stamp = (self.meter.read_ns)();
        true
    }

    /// The time since the last reading.
    pub fn lap(&mut self) -> u64 {
        let now = (self.meter.read_ns)();
        now.saturating_sub(std::mem::replace(&mut self.stamp, now))
            .saturating_sub(self.meter.cost_ns)
    }
}
