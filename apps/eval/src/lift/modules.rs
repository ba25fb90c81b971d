//! The modules that are measured: one that touches a header, one that does nothing.
//!
//! What it is not: in a catalogue; no graph can be made of them.

use dacapo_lift::{Module, ModuleSpec};
pub use dacapo_lift::{TOUCHED, Touch};

static PASS: ModuleSpec = ModuleSpec {
    mechanism: "a measurement's",
    summary: "what a module costs",
    ..ModuleSpec::plain("pass", 0xF0F1)
};

/// Forwards.
#[derive(Default)]
pub struct Pass;

impl Module for Pass {
    fn spec(&self) -> &'static ModuleSpec {
        &PASS
    }
}
