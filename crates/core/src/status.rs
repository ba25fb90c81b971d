//! [`CoreCounters`] and [`FlowStatus`]: what a core shows of itself.

use crate::error::Error;
use crate::flow::receiver::Receiver;
use crate::flow::sender::Sender;
use crate::ledger::Ledger;
use dacapo_lift::{ModuleCounters, ModuleSpec};
use dacapo_wire::session::FlowOffer;

/// Counters of what belongs to no flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounters {
    /// Datagrams of the reserved range.
    pub reserved: u64,
    /// Datagrams that begin like ours and are not.
    pub malformed: u64,
    /// Data with a label that is not ours.
    pub unknown_label: u64,
    /// Data with a label that was taken back less than two minutes ago.
    pub old_label: u64,
    /// Probes with a token that is not ours, or answers to nothing.
    pub unknown_probe: u64,
    /// Changes of flows that the other end has proposed and that were refused.
    pub changes_refused: u64,
    /// Events that were dropped because the application did not read them.
    pub events_dropped: u64,
    /// Sessions that were looked at, once for each turn in which something had happened in them,
    /// was due or was under way; those in which nothing happens are not.
    pub sessions_watched: u64,
    /// Flows that were asked for something to send.
    pub flows_asked: u64,
    /// Peers that were looked at, counted as sessions are.
    pub peers_watched: u64,
    /// Control connections that were looked at, counted as sessions are.
    pub connections_watched: u64,
}

/// What a flow is doing, for display.
#[derive(Clone, Debug)]
pub struct FlowStatus {
    /// The offer as agreed.
    pub offer: FlowOffer,
    /// The epoch that runs.
    pub epoch: u64,
    /// The modules and their counters.
    pub modules: Vec<(&'static ModuleSpec, ModuleCounters)>,
    /// Units fed (sender), or known of (receiver).
    pub sent: u64,
    /// Units that were taken from the source and wait to be fed (sender).
    pub waiting: u64,
    /// The receiver's account so far; the sender's is known at the end.
    pub ledger: Option<Ledger>,
    /// Why it was not taken at set-up, by this end or the other.
    pub refused: Option<Error>,
}

impl FlowStatus {
    pub(crate) fn show_sender(&mut self, sender: &Sender) {
        let epoch = sender.current();
        self.epoch = epoch.number;
        self.modules = epoch.runner.modules().map(|(spec, seen)| (spec, *seen)).collect();
        (self.sent, self.waiting) = (sender.sent(), sender.waiting());
    }

    pub(crate) fn show_receiver(&mut self, receiver: &Receiver) {
        if let Some(epoch) = receiver.newest() {
            self.epoch = epoch.number;
            self.modules = epoch.runner.modules().map(|(spec, seen)| (spec, *seen)).collect();
        }
        let ledger = receiver.ledger().clone();
        (self.sent, self.ledger) = (ledger.sent, Some(ledger));
    }

    /// One of a flow that is sent for several, of whom this one takes part from unit `base` on.
    pub(crate) fn show_shared(&mut self, sender: &Sender, base: u64) {
        let epoch = self.epoch;
        self.show_sender(sender);
        (self.epoch, self.sent) = (epoch, self.sent.saturating_sub(base));
    }
}
