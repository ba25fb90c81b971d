//! The T-modules `bond` and `bond-backup`: the datagrams of a flow by several paths to one peer.
//!
//! ```text
//!   bond          packet -+-> first path ---- x       the copy that comes first goes up, and
//!                         '-> second path ------->    the graph drops the other by its number
//!   bond-backup   packet ---> first path ------->     until it is silent, then the next that is
//!                    probes > second path <------     not
//! ```
//!
//! There is no header and no socket here: the paths are the core's (`core/src/peer/further.rs`),
//! their datagrams those of the transport that [carries](dacapo_lift::TransportSpec::over) the
//! bond, and who drops copies is a module that numbers packets, `dedup` or another.
//!
//! Source: SMPTE ST 2022-7 (the receiver takes what comes first and needs no switch).

mod spec;

pub use spec::{BACKUP_SPEC, SPEC};

use crate::entry::TransportEntry;

/// The bonds of datagrams of UDP.
#[must_use]
pub fn entries() -> Vec<TransportEntry> {
    vec![TransportEntry::carried(&SPEC), TransportEntry::carried(&BACKUP_SPEC)]
}
