//! The library that applications use: endpoints and their sessions, the catalogue, access modules.
//!
//! ```text
//!   session file, SessionBuilder -> plan -> Creator --+
//!                                                     v
//!   application -- calls, Command, units ----> Endpoint (identity, sockets, threads)
//!               <-- Event, units, accounts --     |  = Reactor + Core, once for each worker
//!                                                 v
//!   catalogue: modules, transports, access modules (files, test media, bytes; save, play, count)
//! ```

pub mod access;
mod catalogue;
pub mod command;
pub mod host;
pub mod inspect;
mod misuse;
mod param;
mod place;
pub mod plan;
pub mod session;
pub mod transfer;
pub mod uri;

#[cfg(feature = "emulator")]
pub use dacapo_emulator as emulator;
#[cfg(feature = "safenet-net")]
pub use dacapo_safenet_net as safenet_net;
#[cfg(feature = "xtp-net")]
pub use dacapo_xtp_net as xtp_net;

pub use catalogue::{Catalogue, catalogue};
pub use command::{Answer, MediaCommand};
pub use dacapo_base::{Address, Random, Time, failpoint, patience};
pub use dacapo_core::{Code, Error, Fault, Ledger};
pub use dacapo_qos::{Attributes, FieldValue, Fields, FlowBuilder, Role, SessionBuilder};
pub use dacapo_reactor::Reactor;
pub use dacapo_security::Identity;
pub use dacapo_transport::entry::{Dial, Dialed};
pub use dacapo_transport::{SegmentCounts, StatsByKind};
pub use host::Host;
pub use inspect::Inspection;
pub use place::{Place, PlaceError};
pub use plan::Plan;
#[cfg(feature = "async")]
pub use session::AsyncEndpoint;
pub use session::{
    Account, Builder, Change, Command, Creator, Deadline, Direction, Endpoint, Event, Events,
    FlowAccount, FlowId, FlowInfo, FlowReceiver, FlowSender, Got, Join, Measured, MessageReceiver,
    MessageSender, ModuleFigures, Outcome, PeerId, RECONSIDER_EVERY, Received, Reconsider,
    SendOutcome, Session, SessionId, Ticket, Turned, UnitView, Wait, connect, connect_with, create,
};
pub use uri::Uri;

/// What flows are asked to be, and what is assumed of a path.
pub mod attributes {
    pub use dacapo_qos::{
        AttributeKey, Attributes, MAX_GIVE_UP_NS, PathAssumption, TextError, level,
    };
}

/// What a [`Host`] turns, for programs that measure it: commands to it, and what it tells.
pub mod engine {
    pub use dacapo_core::{
        Command, Core, CoreConfig, CoreEvent, DialParams, Done, GIVE_UP_AFTER, JoinParams, PeerId,
        SessionId,
    };
}

/// Media files, and movies that are made.
pub mod media {
    pub use dacapo_media::testmovie::{SIDE_MAX, SIDE_MIN, TestMovie, TestSound};
    pub use dacapo_media::{FileInput, Format, avi};
}

/// What two ends tell each other of sessions and flows.
pub mod offer {
    pub use dacapo_wire::graph::{GraphForm, NodeForm};
    pub use dacapo_wire::hub::SessionEntry;
    pub use dacapo_wire::medium::{Medium, SampleEncoding};
    pub use dacapo_wire::session::{Direction, FLOW_ALL, FlowOffer, MODULE_ACCESS};
}

/// What modules and transports say of themselves, and why they drop packets.
pub mod spec {
    pub use dacapo_core::{PathKnown, PathStatus};
    pub use dacapo_lift::{
        Catalogue, Cost, DirectionCounters, DropReason, FlowPort, ModuleCounters, ModuleSpec,
        ParamSpec, ParamUnit, Params, PathSeen, PortProtocol, Property, TransportSpec,
    };
    pub use dacapo_path::{ClockOffset, ControllerSpec, Estimates, Leads};
}

/// What access modules are made of: sources and sinks of units, and who provides them to those who
/// join.
pub mod port {
    pub use dacapo_core::{
        BeginError, CommandError, Ending, JoinRequest, Port, SessionProvider, SessionSpec, Sink,
        Source, SourcePoll, Taken, UnitView, UnitWriter,
    };
    pub use dacapo_packet::Loan;
}

/// Quantities and names as people write and read them.
pub mod text {
    pub use dacapo_qos::{
        format_duration, format_rate, format_size, nearest, parse_duration, parse_rate, parse_size,
    };
    pub use dacapo_wire::text::sanitise;
}
