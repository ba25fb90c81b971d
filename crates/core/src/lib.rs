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

mod agreement;
mod channel;
mod command;
mod config;
mod control;
mod effect;
mod engine;
mod error;
mod events;
mod fanout;
mod flow;
mod graphs;
mod groups;
mod guarded;
mod ids;
mod known;
mod labels;
mod ledger;
mod network;
mod peer;
mod port;
mod queues;
mod ready_set;
mod ready_table;
mod schedule;
mod served;
mod session;
mod shared;
mod status;
mod suspension;

mod transmit;

pub use channel::StreamAsk;
pub use command::{Command, Done};
pub use config::{Controllers, CoreConfig, GIVE_UP_AFTER, PEERS_MAX, SESSIONS_MAX, VERSION};
pub use control::{ControlCrypto, EndpointKeys};
pub use engine::{Core, Forgets};
pub use error::{Code, Error, Fault};
pub use events::CoreEvent;
pub use groups::GroupAsk;
pub use ids::{PeerId, SessionId, StreamId};
pub use known::PathKnown;
pub use labels::LABELS_MAX;
pub use ledger::{Ledger, UnitHash};
pub use network::{ChannelEvent, NetworkEvent, Request};
pub use peer::{DialParams, HostLookup};
pub use port::{
    BeginError, CommandError, Ending, Port, Sink, Source, SourcePoll, Taken, UnitView, UnitWriter,
};
pub use queues::Queues;
pub use served::{JoinParams, JoinRequest, SessionProvider, SessionSpec};
pub use session::table;
pub use status::{CoreCounters, FlowStatus, ModuleStatus, PathStatus};
pub use transmit::{ListenerId, Offered, Payload, StreamWriter, Transmit, Way};
