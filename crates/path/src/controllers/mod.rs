//! The controllers that exist, a folder each.

pub mod bbr;
pub mod below;
pub mod cubic;
mod first;
pub mod reserved;
pub mod scream;

use crate::ControllerEntry;

/// All of them.
#[must_use]
pub fn entries() -> Vec<ControllerEntry> {
    vec![reserved::entry(), cubic::entry(), bbr::entry(), scream::entry(), below::entry()]
}
