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

pub mod host;

pub use dacapo_core as core;

/// The modules that exist in this build.
#[must_use]
pub fn catalogue() -> dacapo_lift::Catalogue {
    dacapo_lift::Catalogue::new(dacapo_modules::entries())
}
