//! A flow at one end: the access part, the epochs, and its share of the path part.
//!
//! ```text
//!   Sender                                         Receiver
//!   Feed: source                                   Delivery: sink
//!     | poll_unit                                    ^ handle_unit
//!   splice ........ units wait here only           UnitTracker .. numbers, order over epochs
//!     | feed(credit)                                 ^
//!   epoch n | epoch n+1     TxEpochs               epoch n | epoch n+1     RxEpochs
//!     |                                              ^
//!   Egress: queue, pace, label -> datagrams        label -> epoch
//! ```

pub(crate) mod chain;
pub(crate) mod epoch;
mod out;
pub(crate) mod receiver;
pub(crate) mod sender;
pub(crate) mod splice;
pub(crate) mod tail;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod unit_buffer;

pub(crate) use dacapo_lift::Context;
pub(crate) use out::{FlowEvent, FlowOut, FlowSeen, ModuleMessage, ModulesTold};

use crate::ledger::UnitHash;
use dacapo_packet::Layout;
use std::time::Duration;

/// What the path knows of its times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathTimes {
    pub rtt: Duration,
    /// By how much the round trips of the last while differed.
    pub variation: Duration,
    /// Contact is lost: what is on its way over a reliable transport cannot come now.
    pub is_lost: bool,
}

/// What a flow has lost, without which it goes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The way between the ends.
    Way,
    /// A graph, one of whose modules has panicked: it lets nothing pass any more.
    Graph,
}

/// What was agreed of a flow for as long as it lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowParams {
    /// Its place in the session.
    pub id: u16,
    /// The longest unit, in bytes.
    pub unit_len_max: usize,
    /// Both ends hash every unit and compare.
    pub digest: bool,
}

impl FlowParams {
    /// The hash over units, where one was agreed.
    pub fn hash(&self) -> Option<UnitHash> {
        self.digest.then(UnitHash::default)
    }
}

/// The hash as it is sent: 0 where none was agreed.
pub(crate) fn hash_bytes(hash: Option<&UnitHash>) -> [u8; 32] {
    hash.map(|hash| hash.to_bytes()).unwrap_or_default()
}

/// The layout for `len` bytes that lie in one segment: no larger than they need, because where
/// datagrams are long a body of the full size would be mostly empty.
pub(crate) fn fitted(layout: &Layout, len: usize) -> Layout {
    let segment = if len <= layout.segment { len.max(1) } else { layout.segment };
    Layout { segment, ..*layout }
}
