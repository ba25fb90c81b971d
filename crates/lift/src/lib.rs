//! The Lift: the engine that carries packets through a running graph of modules.
//!
//! The contract that every C-module keeps ([`Module`], [`Cx`], [`Verdict`]), the graph as data and
//! the check of its legality ([`Graph`], [`Catalogue`], [`check`]), the engine that owns the loop
//! and the queues ([`Runner`]), and the suite that every module passes ([`conformance`]).
//!
//! ```text
//!   access part      units
//!      | feed, while credit() > 0      ^ take_up()
//!  +---v------------ Runner -----------|----+
//!  |  [segment ]--->[sequence]--->[checksum] |   down: slot in place, verdict out,
//!  |  [        ]<---[        ]<---[        ] |   effects through Cx, merged in slot order
//!  +---|-------------------------------^----+
//!      v take_down()                   | handle_up
//!   path part       packets
//! ```
//!
//! Invariants (each has a test in [`conformance`] or in `tests/`)
//! - In = forwarded + held + dropped, per module and direction; after [`Runner::flush`] no view of
//!   the pool is out.
//! - A module never sees a neighbour; effects apply after its call, before the next module's.
//! - The runner never offers a module more packets than its credit.
//! - Every queue is bounded; at its bound an emission is refused to the module that made it.

mod channel;
pub mod conformance;
mod context;
mod counters;
mod effects;
mod graph;
mod lanes;
mod legality;
mod load;
mod meter;
mod module;
mod profile;
mod runner;
mod service;
pub mod shares;
mod signals;
mod spec;
mod touch;
mod verdict;

pub use channel::{Membership, StreamParams, is_source_specific};
pub use context::{Bare, Cx};
pub use counters::{DirectionCounters, ModuleCounters};
pub use dacapo_path::{BelowSeen, ClockOffset, PathSeen};
pub use effects::{EMISSIONS_MAX, Emission};
pub use graph::{Built, Catalogue, Entry, Graph, Node, Params, twice};
pub use legality::{GRAPH_NODES_MAX, Illegal, Needs, Offer, SEGMENT_LEN_MIN, check};
pub use meter::Meter;
pub use module::{ControlError, Module, TimerId, Unread};
pub use profile::{Neutral, POINTS_MAX, Profile, TransportProfile};
pub use runner::{Context, Direction, Runner};
pub use service::{Cost, Figures, PPB, Path, Properties, Service, Setting, Units};
pub use signals::{MESSAGES_PER_SECOND, NOTES_MAX, Note, OPEN_MAX, ToPeer, Told};
pub use spec::{
    FlowPort, ModuleSpec, ParamSpec, ParamUnit, PortProtocol, Property, Setup, Stratum, TRUSTED,
};
pub use spec::{Spread, TransportSpec};
pub use touch::{TOUCHED, Touch};
pub use verdict::{DropReason, Verdict};
