//! [`WorldClock`]: the time of day in a virtual world, which quinn writes into its tokens.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use dacapo_base::Time;
use quinn_proto::TimeSource;

/// The time of day for `ServerConfig::time_source`: the epoch of Unix is the origin of the world.
#[derive(Debug, Default)]
pub struct WorldClock(AtomicU64);

impl WorldClock {
    /// A clock at the origin of the world.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Sets the time, before the endpoints of the world are driven at it.
    pub fn set(&self, now: Time) {
        self.0.store(now.as_nanos(), Ordering::Relaxed);
    }
}

impl TimeSource for WorldClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}
