//! The modules and transports of a world: all that exist.

use dacapo_lift::Catalogue;

/// Every module, over every transport that carries flows between hosts.
#[must_use]
pub fn catalogue() -> Catalogue {
    Catalogue::new(dacapo_modules::entries()).with_transports(dacapo_transport::specs())
}
