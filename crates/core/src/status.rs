//! [`CoreCounters`] and [`FlowStatus`]: what a core shows of itself.

use crate::error::Error;
use crate::flow::receiver::Receiver;
use crate::flow::sender::Sender;
use crate::ids::StreamId;
use crate::known::PathKnown;
use crate::ledger::Ledger;
use dacapo_lift::{ModuleCounters, ModuleSpec, Runner};
use dacapo_path::{ClockOffset, Estimates, Path};
use dacapo_wire::session::FlowOffer;
use std::time::Duration;

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

/// What is known of the path to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathStatus {
    /// The round trip, as probed; `None` before the first answer.
    pub rtt: Option<Duration>,
    /// The clock of the peer, likewise.
    pub clock: Option<ClockOffset>,
    /// What controls what leaves, by its name; `none` when it has panicked.
    pub controller: &'static str,
    /// What flows that yield to nobody are held to together, in bit/s, because the path does not
    /// carry more.
    pub held_bps: Option<u64>,
    /// Bytes of acknowledged flows that have left and of which nothing is known yet.
    pub in_flight_bytes: u64,
    /// What modules of the flows with it have seen so far, and what follows from that.
    pub estimates: Estimates,
    /// By what a protocol would be chosen for it.
    pub known: PathKnown,
}

impl PathStatus {
    /// Of a path, of which so much is known.
    pub(crate) fn of(path: &Path, known: PathKnown) -> Self {
        Self {
            rtt: path.rtt(),
            clock: path.prober().map(|prober| *prober.offset()),
            controller: path.controller(),
            held_bps: path.held_bps(),
            in_flight_bytes: path.in_flight_bytes(),
            estimates: *path.estimates(),
            known,
        }
    }
}

/// What a module of a flow's graph has done, and shows of itself.
#[derive(Clone, Debug)]
pub struct ModuleStatus {
    /// Its facts.
    pub spec: &'static ModuleSpec,
    /// What went through it, and how long that took where it was timed.
    pub counters: ModuleCounters,
    /// The last value of each code that it shows ([`dacapo_lift::Cx::note`]).
    pub notes: Vec<(u16, i64)>,
}

impl ModuleStatus {
    pub(crate) fn of(runner: &Runner) -> Vec<Self> {
        let notes = |place| {
            let own = runner.notes().iter().filter(move |note| note.module == place);
            own.map(|note| (note.code, note.value)).collect()
        };
        let modules = runner.modules().enumerate();
        let status =
            |(place, (spec, counters)): (usize, (&'static ModuleSpec, &ModuleCounters))| Self {
                spec,
                counters: *counters,
                notes: notes(place),
            };
        modules.map(status).collect()
    }
}

/// What a flow is doing, for display.
#[derive(Clone, Debug)]
pub struct FlowStatus {
    /// The offer as agreed.
    pub offer: FlowOffer,
    /// The epoch that runs.
    pub epoch: u64,
    /// The modules of that epoch, from the application to the network.
    pub modules: Vec<ModuleStatus>,
    /// Units fed (sender), or known of (receiver).
    pub sent: u64,
    /// Units that were taken from the source and wait to be fed (sender).
    pub waiting: u64,
    /// The receiver's account so far; the sender's is known at the end.
    pub ledger: Option<Ledger>,
    /// Why it was not taken at set-up, by this end or the other.
    pub refused: Option<Error>,
    /// Its stream, where it has one.
    pub stream: Option<StreamId>,
    /// What is known of the path of that, as far as its transport was asked
    /// ([`crate::ChannelEvent::Estimates`]).
    pub path: Option<PathStatus>,
}

impl FlowStatus {
    pub(crate) fn show_sender(&mut self, sender: &Sender) {
        let epoch = sender.current();
        self.epoch = epoch.number;
        self.modules = ModuleStatus::of(&epoch.runner);
        (self.sent, self.waiting) = (sender.sent(), sender.waiting());
    }

    pub(crate) fn show_receiver(&mut self, receiver: &Receiver) {
        if let Some(epoch) = receiver.newest() {
            self.epoch = epoch.number;
            self.modules = ModuleStatus::of(&epoch.runner);
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
