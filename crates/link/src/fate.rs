//! What becomes of an item: [`Fate`] (decided at sending), [`Delivery`] (handed out when due).
//!
//! A sender on a real network never learns its fate; the record is for worlds, traces and tests.

use dacapo_base::Time;
use std::fmt;
use std::time::Duration;

/// Why a link dropped an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The active queue management dropped it. Not part of a [`Fate`]: it is decided later.
    Aqm,
    /// Corrupted, and a checksum below the receiver saw it.
    Corrupted,
    /// Lost in the bad state of burst loss.
    LossBurst,
    /// Lost independently of its neighbours.
    LossRandom,
    /// Larger than the MTU, dropped without a sign.
    Mtu,
    /// As many items as allowed were in flight.
    Overflow,
    /// The link was cut.
    Partition,
    /// The queue before the transmitter was full.
    Queue,
}

impl DropReason {
    /// The name of the counter in [`crate::LinkStats`] that counts this reason.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aqm => "dropped_aqm",
            Self::Corrupted => "corrupted_detected",
            Self::LossBurst => "lost_burst",
            Self::LossRandom => "lost_random",
            Self::Mtu => "dropped_mtu",
            Self::Overflow => "overflow",
            Self::Partition => "dropped_partition",
            Self::Queue => "dropped_queue",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What was decided for one passage over the link: the item's own or its copy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It arrives.
    Arrives {
        /// When (a later change of rate moves it while it waits in the queue).
        due: Time,
        /// The additional delay that lets later items overtake; zero for most.
        held_back: Duration,
        /// Whether its content was altered.
        corrupted: bool,
    },
    /// It does not arrive.
    Dropped(DropReason),
    /// It waits in a queue with active queue management ([`crate::Aqm`]), which decides when the
    /// transmitter takes it: then it arrives, perhaps marked, or it is counted as `dropped_aqm`.
    Waits {
        /// The additional delay that it will have after the transmitter; zero for most.
        held_back: Duration,
        /// Whether its content will be altered.
        corrupted: bool,
    },
}

impl Passage {
    /// For how long it is held back, and whether it is altered; nothing of one that was dropped.
    pub(crate) const fn as_accepted(&self) -> Option<(Duration, bool)> {
        match *self {
            Self::Arrives { held_back, corrupted, .. } | Self::Waits { held_back, corrupted } => {
                Some((held_back, corrupted))
            }
            Self::Dropped(_) => None,
        }
    }
}

/// What was decided for one item when it was sent.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The passage of the item itself.
    pub item: Passage,
    /// The passage of its duplicate, if it was duplicated. A lost item has none.
    pub copy: Option<Passage>,
}

/// An item that reached the far end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<T> {
    /// The item.
    pub item: T,
    /// When it was sent.
    pub sent: Time,
    /// When it was due: exact, however late the link was polled.
    pub delivered: Time,
    /// Whether this is the duplicate of an item.
    pub copy: bool,
    /// Whether the content was altered.
    pub corrupted: bool,
}
