//! [`Ticket`] and [`Outcome`]: what became of each message that was accepted, and the [`Sums`].
//!
//! Whether a message has ended its outbox knows, however late it is asked.

use std::fmt;

/// A message that was accepted for sending, by the sender that has given the ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket {
    /// The number of the outbox that has given it.
    pub(super) outbox: u64,
    pub(super) priority: u16,
    /// Messages that were accepted before.
    pub(super) order: u64,
}

/// Why a message came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The flow ended before any of it had been handed over: the peer has nothing of it.
    NotBegun,
    /// The flow ended while it was under way.
    UnderWay {
        /// Bytes that had been handed over to the flow.
        handed: u64,
    },
}

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it has been handed over to the flow, whose account says what of it arrived.
    Sent,
    /// The peer's user has not got all of it, and will not.
    Failed(Cause),
}

/// How many messages ended how: `accepted` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Messages that were accepted for sending.
    pub accepted: u64,
    /// [`Outcome::Sent`].
    pub sent: u64,
    /// [`Outcome::Failed`].
    pub failed: u64,
    /// Not ended yet.
    pub open: u64,
}

impl Sums {
    /// Whether every message is accounted for.
    #[must_use]
    pub const fn closes(&self) -> bool {
        let Self { accepted, sent, failed, open } = *self;
        accepted as u128 == sent as u128 + failed as u128 + open as u128
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBegun => f.write_str("the flow ended before any of it had gone"),
            Self::UnderWay { handed } => {
                write!(f, "the flow ended when {handed} of its bytes had gone")
            }
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent => f.write_str("sent"),
            Self::Failed(cause) => write!(f, "failed: {cause}"),
        }
    }
}
