//! The modules that are measured: one that touches a header, one that does nothing.

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
