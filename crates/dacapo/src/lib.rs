//! The library that applications use: the catalogue, access modules, and a host to run them on.
//!
//! ```text
//!   session file -> plan -> SessionSpec, Publisher ----+
//!                                                      v
//!   application <-> Host (identity, clock, sockets) = Reactor + Core
//!                                                      ^
//!   offer -> access: sinks that save, play or count ---+
//! ```
//!
//! What it is not: the engine (`dacapo-core`), or a command line (`apps/dacapo`).

pub mod access;
pub mod command;
mod flow_ports;
pub mod host;
pub mod inspect;
pub mod plan;
mod quic_flows;
pub mod session;
pub mod transfer;
pub mod uri;
mod xtp_flows;

pub use dacapo_core as core;

pub use command::{Answer, Command};
pub use dacapo_core::{Code, Error, Fault};
pub use dacapo_qos::Attributes;
pub use dacapo_transport::{SegmentCounts, StatsByKind};
pub use host::Host;
pub use inspect::Inspection;
pub use plan::Plan;
pub use session::{
    Account, Creator, Direction, Endpoint, FlowAccount, FlowInfo, Got, Handed, MessageReceiver,
    MessageSender, Received, Session, connect, connect_with, create,
};
pub use uri::Uri;

/// The modules and transports that exist in this build.
#[must_use]
pub fn catalogue() -> dacapo_lift::Catalogue {
    let transports = dacapo_transport::specs();
    dacapo_lift::Catalogue::new(dacapo_modules::entries()).with_transports(transports)
}
