//! Integrity: altered packets are found and not delivered.

pub mod checksum;
pub mod sum16;
pub mod xxh3;

mod tail;
