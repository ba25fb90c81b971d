//! [`Asker`]: who answers for those that are asked for packets.

use super::rank::Rank;
use crate::ids::{FanOutId, SessionId};
use dacapo_base::Time;

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    /// A flow of a session, by its place.
    Flow(SessionId, usize),
    /// What is sent once for several.
    FanOut(FanOutId),
}

/// One of those that are asked for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub rank: Rank,
    pub asked: Asked,
}

/// Who answers for those that are asked.
pub(crate) trait Asker {
    type Packet;

    /// Since when what one would give next has waited; `None` when it has nothing.
    fn waits_since(&mut self, asked: Asked) -> Option<Time>;

    /// The next packet of one.
    fn poll(&mut self, asked: Asked) -> Polled<Self::Packet>;
}

/// What one that is asked gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled<P> {
    /// A packet, and its length in bytes.
    Given(P, usize),
    /// What it has may not leave yet.
    Held,
    /// It has nothing.
    Nothing,
}

impl<P> Polled<P> {
    pub fn given(self) -> Option<(P, usize)> {
        match self {
            Self::Given(packet, len) => Some((packet, len)),
            Self::Held | Self::Nothing => None,
        }
    }
}
