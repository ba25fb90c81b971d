//! Cases in which it is known what must come of a packet, one test each, named by its number.
//!
//! 1 to 21: packets as bytes. 22 to 32: associations. 33 to 49 and 66: data. 50 to 60: endings.
//! 61 to 65: reliable groups. 67, what tshark says of all packets, is `tests/tshark.rs`.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod association;
#[path = "../common/mod.rs"]
mod common;
mod data;
mod endings;
mod groups;
mod parsing;
