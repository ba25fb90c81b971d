//! Ordering: packets are numbered, put in order, and counted when they are missing.
//!
//! What it is not: repair; what is missing stays missing.

pub mod sequence;

mod profile;
mod window;
