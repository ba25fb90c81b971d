//! [`Reserved`]: the path carries what its flows are bounded to, and more is not asked of it.
//!
//! Each flow keeps its own bound; where a path has moved, all of them together also keep to what
//! was measured before, while nothing has been delivered on the new one.

use crate::controller::{
    Controller, ControllerCx, ControllerEntry, ControllerSpec, Delivered, Leads,
};

/// See the module.
#[derive(Debug, Default)]
pub struct Reserved {
    rate_bps: Option<u64>,
}

/// What is known of it.
pub static SPEC: ControllerSpec = ControllerSpec {
    name: "reserved",
    summary: "flows keep the bounds that were agreed, and nothing yields",
    source: "own",
    datagrams: true,
    usual: Some(Leads::Here),
};

/// As a catalogue has it.
#[must_use]
pub fn entry() -> ControllerEntry {
    ControllerEntry::new(&SPEC, |_, prior| Box::new(Reserved { rate_bps: prior.rate_bps_max }))
}

impl Controller for Reserved {
    fn on_delivered(&mut self, _: &ControllerCx, _: &Delivered) {
        self.rate_bps = None;
    }

    fn rate_bps(&self) -> Option<u64> {
        self.rate_bps
    }
}
