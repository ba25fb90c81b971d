//! Timeliness: what comes too late is not handed over.

mod profile;
pub mod use_by;
