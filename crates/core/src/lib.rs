//! Sessions, flows and the connection manager: [`Core`], a whole core as one sans-IO engine.
//!
//! `dacapo-reactor` gives it sockets and a clock. A flow has three parts: the access part (source,
//! splice, intake, sink) and the path part (label, pace, probes) survive a change of protocol; the
//! epoch part in between, a graph run by the Lift, is replaced by it.
//!
//! ```text
//!   application: Source, Sink, commands, events
//!        |
//!   Core: sessions -> flows -> splice | epoch n, epoch n+1 | labels, pace
//!        |            control connections (QUIC), probes, watchdogs
//!   Reactor: transports, poll, clock
//! ```

mod control;
mod engine;
mod error;
mod flow;
mod labels;
mod ledger;
mod peer;
mod port;
mod queues;
mod ready_set;
mod schedule;
mod session;

pub use control::{ControlCrypto, EndpointKeys};
pub use engine::{
    Core, CoreConfig, CoreCounters, CoreEvent, FlowStatus, GIVE_UP_AFTER, GroupAsk, Joining, Local,
    Look, PEERS_MAX, Payload, Publisher, SESSIONS_MAX, SessionId, SessionSpec, StreamAsk, StreamId,
    Transmit, VERSION, Way, Wishes,
};
pub use error::{Code, Error, Fault};
pub use labels::LABELS_MAX;
pub use ledger::{Ledger, UnitHash};
pub use peer::{DialParams, PeerId};
pub use port::{
    BeginError, CommandError, Ending, Port, Sink, Source, SourcePoll, Taken, UnitView, UnitWriter,
};
pub use queues::Queues;
pub use session::table;
