//! [`Below`]: the transport of a stream controls itself, as kernel TCP, QUIC and XTP do.
//!
//! Nothing is held back above it; what it measures is told to [`crate::Path::handle_below`].

use crate::controller::{Controller, ControllerEntry, ControllerSpec};

/// See the module.
#[derive(Debug, Default)]
pub struct Below;

/// What is known of it.
pub static SPEC: ControllerSpec = ControllerSpec {
    name: "below",
    summary: "the transport controls itself, and says what it measures",
    source: "RFC 9293, RFC 9002, XTP 4.0",
    datagrams: false,
    usual: None,
};

/// As a catalogue has it.
#[must_use]
pub fn entry() -> ControllerEntry {
    ControllerEntry::new(&SPEC, |_, _| Box::new(Below))
}

impl Controller for Below {}
