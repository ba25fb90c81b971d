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
pub mod host;
pub mod inspect;
pub mod plan;
pub mod uri;

pub use dacapo_core as core;

pub use command::{Answer, Command};
pub use host::Host;
pub use inspect::Inspection;
pub use plan::Plan;
pub use uri::Uri;

/// The modules that exist in this build.
#[must_use]
pub fn catalogue() -> dacapo_lift::Catalogue {
    dacapo_lift::Catalogue::new(dacapo_modules::entries())
}
