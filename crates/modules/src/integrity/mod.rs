//! Integrity: altered packets are found and not delivered.
//!
//! What it is not: protection against an attacker; a checksum anybody can compute.

pub mod checksum;
