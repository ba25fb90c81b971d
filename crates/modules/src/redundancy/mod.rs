//! Redundancy: more is sent than is needed, so that what is lost need not be asked for.
//!
//! What it is not: repair on demand; nothing comes back from the receiver.

pub mod repeat;

mod profile;
mod waiting;
