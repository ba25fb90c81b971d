//! Cases in which it is known what must come of a packet, one test each, named by its number.
//!
//! 1 to 22: packets as bytes.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../common/mod.rs"]
mod common;
mod parsing;
