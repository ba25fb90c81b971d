//! Integrity: altered packets are found and not delivered.

pub mod checksum;
