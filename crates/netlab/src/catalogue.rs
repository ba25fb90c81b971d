//! The modules and transports of a world: all that exist.
//!
//! What it is not: what an application has; that is the catalogue of the library.

use dacapo_lift::Catalogue;

/// Every module, over every transport that carries flows between hosts.
#[must_use]
pub fn catalogue() -> Catalogue {
    Catalogue::new(dacapo_modules::entries()).with_transports(dacapo_transport::specs())
}
