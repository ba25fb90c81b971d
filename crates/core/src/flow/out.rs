//! [`FlowOut`]: what a flow tells the rest of the core.

use crate::error::Error;
use crate::ledger::Ledger;
use dacapo_lift::{PathSeen, Spread};
use dacapo_wire::message::Message;

/// What a flow tells the rest of the core.
#[derive(Debug, Default)]
pub(crate) struct FlowOut {
    pub messages: Vec<Message>,
    pub events: Vec<FlowEvent>,
    /// What modules tell: seldom anything, so it is kept apart.
    pub modules: Option<Box<ModulesTold>>,
    /// A packet waits for the path, which says when it may leave.
    pub is_held: bool,
}

/// What modules tell beyond their packets.
#[derive(Debug, Default)]
pub(crate) struct ModulesTold {
    /// What they say to those of the peer.
    pub asks: Vec<ModuleMessage>,
    /// What they have seen of the path.
    pub seen: FlowSeen,
    /// Which of them has panicked, and what it said.
    pub failure: Option<String>,
}

/// What the modules of a flow have seen of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowSeen {
    /// Of what has left this end.
    pub left: PathSeen,
    /// Of what has come.
    pub came: PathSeen,
}

impl FlowSeen {
    /// Leaves what a path is to hear of a flow that spreads so: what modules report of copies is of
    /// all paths together.
    pub fn keep_of_paths(&mut self, spread: Option<Spread>) {
        if spread == Some(Spread::Copies) {
            self.left = PathSeen::default();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty() && self.came.is_empty()
    }
}

/// A message of a module for that at the same place of the peer's graph.
#[derive(Debug)]
pub(crate) struct ModuleMessage {
    pub epoch: u64,
    pub place: usize,
    pub payload: Vec<u8>,
}

/// What happened in a flow.
#[derive(Debug)]
pub(crate) enum FlowEvent {
    /// The flow ended and this is its account.
    Ended { ledger: Box<Ledger>, hash: Option<bool>, failure: Option<String> },
    /// The flow runs in this epoch and the one before is gone.
    Changed { epoch: u64 },
    /// The flow goes on in its old epoch.
    ChangeFailed(Error),
    /// A label is no longer used.
    Retire(u32),
    /// The source failed, or a module, or the way is gone.
    Failed(Error),
}

impl FlowOut {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.events.is_empty() && self.modules.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_either_way_is_something() {
        let some = PathSeen { lost_packets: 1, ..PathSeen::default() };
        let none = PathSeen::default();
        assert!(FlowSeen { left: none, came: none }.is_empty());
        assert!(!FlowSeen { left: some, came: none }.is_empty());
        assert!(!FlowSeen { left: none, came: some }.is_empty());
    }
}
