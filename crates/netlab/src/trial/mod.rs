//! [`Trial`]: one session between two cores under whatever faults, run to its end, and the oracles
//! that hold for it.
//!
//! ```text
//!   Trial (links, flows, faults and when) -- run --> Outcome -- check --> Ok, or what broke
//!
//!   connect ... both ready ... running ......... accounted ... closed ... nothing left
//!      |  from_start: faults by the time from here
//!                              |  from_running: faults by the time from here
//! ```
//!
//! The form in which every fault in virtual time is written down: a link each way that may change
//! on the way, cuts, clocks, kills, changes of epoch, flows over datagrams and streams.
//!
//! Invariant: the same trial gives the same outcome, datagram by datagram.

mod check;
mod run;

pub use check::check;
pub use run::{run, set_up};

use crate::Trace;
use crate::scenario::UnitOnLink;
use crate::traffic::{Pattern, Record};
use dacapo_core::{Error, Ledger};
use dacapo_lift::Catalogue;
use dacapo_link::{LinkConfig, LinkStats};
use dacapo_wire::session::Direction;
use std::collections::BTreeMap;
use std::time::Duration;

/// An end of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It serves.
    Creator,
    /// It dials and joins.
    Participant,
}

impl End {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Creator, Self::Participant];

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// The links, or cuts, or drifts: one for what goes to the participant, one for what comes back.
#[derive(Clone, Debug, PartialEq)]
pub struct EachWay<T> {
    /// From the creator to the participant.
    pub to_participant: T,
    /// From the participant to the creator.
    pub to_creator: T,
}

impl<T: Clone> EachWay<T> {
    /// The same both ways.
    #[must_use]
    pub fn both(it: T) -> Self {
        Self { to_participant: it.clone(), to_creator: it }
    }
}

/// Something that happens to a world at a moment.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The links are others from now on.
    Links(Box<EachWay<LinkConfig>>),
    /// Nothing enters the links that are `true`.
    Cut(EachWay<bool>),
    /// The clock of an end shows so much more at once.
    Jump(End, Duration),
    /// The clock of an end gains parts per million from now on.
    Drift(End, i32),
    /// The calendar of both ends is ahead by this much.
    Calendar(Duration),
    /// An end neither runs nor hears, or goes on again.
    Freeze(End, bool),
    /// An end is killed.
    Kill(End),
    /// Every byte stream breaks.
    BreakStreams,
    /// No byte of a stream gets through, or they do again.
    HoldStreams(bool),
}

/// What carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Datagrams.
    Udp,
    /// A byte stream of its own.
    Tcp,
}

/// A flow of a trial.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// The graphs, by the modules' names: it begins with the first and changes to them in turn.
    pub graphs: Vec<Vec<&'static str>>,
    /// What carries it.
    pub carrier: Carrier,
    /// Who sends.
    pub direction: Direction,
    /// The units.
    pub pattern: Pattern,
    /// The hard bound of the rate, bits per second.
    pub bound_bps: u64,
}

impl FlowPlan {
    /// `count` units of 16 to 300 bytes, a millisecond apart, in datagrams to the participant,
    /// checked and in order.
    #[must_use]
    pub fn new(seed: u64, count: u64) -> Self {
        let every = Duration::from_millis(1);
        Self {
            graphs: vec![vec!["segment", "sequence", "checksum"]],
            carrier: Carrier::Udp,
            direction: Direction::ToParticipant,
            pattern: Pattern { count, every, len_min: 16, len_max: 300, seed },
            bound_bps: 100_000_000,
        }
    }

    fn has(&self, module: &str) -> bool {
        self.graphs.iter().all(|graph| graph.contains(&module))
    }

    /// True when units come up in the order in which they were sent.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.carrier == Carrier::Tcp || self.has("sequence")
    }

    /// True when altered units are not delivered.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.carrier == Carrier::Tcp || self.has("checksum")
    }
}

/// A session under faults.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What everything random follows from.
    pub seed: u64,
    /// The links at the beginning. To those that manage their queue nothing is ECN-capable
    /// ([`crate::Datagram`]).
    pub links: EachWay<LinkConfig>,
    /// The flows; changes of epoch are made in the first.
    pub flows: Vec<FlowPlan>,
    /// How often the first flow changes its graph while it runs.
    pub changes: u32,
    /// Faults, by the time from the beginning, in order.
    pub from_start: Vec<(Duration, Fault)>,
    /// Faults, by the time from when the flows run, in order.
    pub from_running: Vec<(Duration, Fault)>,
    /// Nothing but the usual end will do: it must be set up and end without an error.
    pub must_complete: bool,
    /// A unit that is not delivered must be one that the link took: for one flow over datagrams
    /// with units that fit one, on links on which nothing comes later than `sequence` waits, and
    /// whose queues nobody manages: [`check`] refuses others.
    pub exact: bool,
    /// From this time after the flows run every unit that is sent must arrive: the faults are over.
    pub healed_after: Option<Duration>,
    /// The most virtual time until everything is accounted for; then the participant closes.
    pub time_max: Duration,
    /// The modules; tests put in modules with planted bugs.
    pub catalogue: Catalogue,
}

impl Trial {
    /// One flow of 1,000 small units over these links, which must complete.
    #[must_use]
    pub fn new(seed: u64, links: EachWay<LinkConfig>) -> Self {
        Self {
            seed,
            links,
            flows: vec![FlowPlan::new(seed, 1_000)],
            changes: 0,
            from_start: Vec::new(),
            from_running: Vec::new(),
            must_complete: true,
            exact: false,
            healed_after: None,
            time_max: Duration::from_secs(60),
            catalogue: crate::catalogue(),
        }
    }
}

/// When what was reached on the way to a session, from `connect` on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stages {
    /// The participant has a connection (`PeerOpen`).
    pub open: Option<Duration>,
    /// The participant has the offer.
    pub offered: Option<Duration>,
    /// The creator has the answer: its end is ready.
    pub creator_ready: Option<Duration>,
    /// Both ends are ready.
    pub ready: Option<Duration>,
    /// The flows run.
    pub running: Option<Duration>,
    /// The participant was told that there is no session, or no more.
    pub failed: Option<Duration>,
}

/// What became of a flow.
#[derive(Clone, Debug, Default)]
pub struct FlowOutcome {
    /// What its sink saw.
    pub record: Record,
    /// The receiver's account.
    pub received: Option<Ledger>,
    /// The sender's account.
    pub sent: Option<Ledger>,
    /// Whether both ends saw the same bytes, where that can be said.
    pub hash: Option<bool>,
    /// How often it was reported ended, at the creator and at the participant.
    pub ends: [u32; 2],
    /// How often it was reported failed (a stream that did not open or broke).
    pub failures: u32,
}

/// How a trial ended.
#[derive(Debug)]
pub struct Outcome {
    /// When what was reached.
    pub stages: Stages,
    /// The flows.
    pub flows: Vec<FlowOutcome>,
    /// How the session ended, at the creator and at the participant; `None`: not reported.
    pub ended: [Option<Result<(), Error>>; 2],
    /// How often its end was reported.
    pub ends: [u32; 2],
    /// The loss of the peer before the participant said goodbye, if there was one.
    pub lost: [Option<Error>; 2],
    /// Every flow was accounted for before `time_max`.
    pub settled: bool,
    /// Changes that were begun, that were made and that failed, at the creator.
    pub changes: (u32, u32, u32),
    /// The record of the link to the participant and of the way back.
    pub links: EachWay<LinkStats>,
    /// Units of the only flow on the link, by number.
    pub units: BTreeMap<u64, UnitOnLink>,
    /// Packets that modules of the first flow's receiver dropped as altered, and as repeated.
    pub dropped: (u64, u64),
    /// The most bytes sent per byte received to an address that was not proved.
    pub amplification: f64,
    /// Views, sessions, control connections and streams that are left, at both ends.
    pub left: [usize; 4],
    /// When the last connection was gone after the session's end.
    pub cleared_after: Option<Duration>,
    /// An end was killed.
    pub killed: [bool; 2],
    /// The digest of the run.
    pub trace: Trace,
}

impl Outcome {
    /// Units delivered, of all flows.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.flows.iter().map(|flow| flow.record.numbers.len() as u64).sum()
    }

    /// The error with which it ended for an application at the participant, if any.
    #[must_use]
    pub fn error(&self) -> Option<&Error> {
        let ended = self.ended.iter().rev().flatten();
        ended.filter_map(|it| it.as_ref().err()).next().or(self.lost.iter().rev().flatten().next())
    }
}
