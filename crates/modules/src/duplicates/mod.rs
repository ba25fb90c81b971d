//! Duplicates: what comes again is dropped, and nothing waits for that.

pub mod dedup;

mod recent;
