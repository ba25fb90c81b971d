//! [`FlowOut`]: what a flow tells the rest of the core.

use crate::error::Error;
use crate::ledger::Ledger;
use dacapo_wire::message::Message;

/// What a flow tells the rest of the core.
#[derive(Debug, Default)]
pub(crate) struct FlowOut {
    pub messages: Vec<Message>,
    pub events: Vec<FlowEvent>,
}

/// What happened in a flow.
#[derive(Debug)]
pub(crate) enum FlowEvent {
    /// The flow ended and this is its account.
    Ended { ledger: Ledger, hash: Option<bool> },
    /// The flow runs in this epoch and the one before is gone.
    Changed { epoch: u64 },
    /// The flow goes on in its old epoch.
    ChangeFailed(Error),
    /// A label is no longer used.
    Retire(u32),
    /// The source failed.
    Failed(Error),
}

impl FlowOut {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.events.is_empty()
    }
}
