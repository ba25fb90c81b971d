//! [`Aqm`]: which active queue management works on the queue of a link, and its parameters.
//!
//! ```text
//!   codel     one queue; the head is dropped or marked where what leaves has waited for longer
//!             than `target` throughout an `interval`, then ever more often (RFC 8289)
//!   dualpi2   a queue for ECT(1) and CE beside one for the rest, coupled by a probability that
//!             keeps the longer wait at `target` (RFC 9332)
//! ```
//!
//! What is ECN-capable is marked where others are dropped. The limits of the queue hold beside it.

use std::time::Duration;

/// A way of managing the queue before the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aqm {
    /// Controlled Delay.
    CoDel {
        /// The wait that is acceptable for long, [`Aqm::TIME_MIN`] to [`Aqm::TIME_MAX`].
        target: Duration,
        /// For so long it may be exceeded: about the longest round trip; the same bounds.
        interval: Duration,
    },
    /// Dual queue, coupled by PI2.
    DualPi2 {
        /// The wait at which the classic queue is kept; the same bounds.
        target: Duration,
    },
}

impl Aqm {
    /// The shortest target and interval.
    pub const TIME_MIN: Duration = Duration::from_micros(1);
    /// The longest target and interval.
    pub const TIME_MAX: Duration = Duration::from_secs(60);
    /// CoDel as RFC 8289 recommends it: 5 ms, 100 ms.
    pub const CODEL: Self =
        Self::CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
    /// DualPI2 as RFC 9332 recommends it: 15 ms.
    pub const DUALPI2: Self = Self::DualPi2 { target: Duration::from_millis(15) };

    /// The name in configuration text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CoDel { .. } => "codel",
            Self::DualPi2 { .. } => "dualpi2",
        }
    }

    /// The wait that it aims at.
    #[must_use]
    pub const fn target(self) -> Duration {
        match self {
            Self::CoDel { target, .. } | Self::DualPi2 { target } => target,
        }
    }

    /// The interval of CoDel; the other one has none.
    #[must_use]
    pub const fn interval(self) -> Option<Duration> {
        match self {
            Self::CoDel { interval, .. } => Some(interval),
            Self::DualPi2 { .. } => None,
        }
    }

    /// The same kind with the parameters that its RFC recommends.
    #[must_use]
    pub const fn recommended(self) -> Self {
        match self {
            Self::CoDel { .. } => Self::CODEL,
            Self::DualPi2 { .. } => Self::DUALPI2,
        }
    }
}
