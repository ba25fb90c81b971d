//! Controller `steady`: all flows to a peer together keep to one rate, whatever comes of it.
//!
//! A toy: it yields to nobody and learns nothing. It shows where a controller stands: it is told
//! what leaves, comes and is lost, and says how much may be in flight and how fast it leaves.

use dacapo_path::{Controller, ControllerEntry, ControllerSpec};

/// What the catalogue is told.
pub static SPEC: ControllerSpec = ControllerSpec {
    name: "steady",
    summary: "one rate for all flows of a path; a toy",
    source: "own",
    datagrams: true,
    usual: None,
};

/// The catalogue's entry, for [`dacapo::Builder::controller`], with this rate.
#[must_use]
pub fn entry(rate_bps: u64) -> ControllerEntry {
    ControllerEntry::new(&SPEC, move |_, _| Box::new(Steady { rate_bps }))
}

struct Steady {
    rate_bps: u64,
}

impl Controller for Steady {
    fn rate_bps(&self) -> Option<u64> {
        Some(self.rate_bps)
    }
}
