//! Redundancy: more is sent than is needed, so that what is lost need not be asked for.

pub mod repeat;

mod profile;
mod waiting;
