//! Ordering: packets are numbered, put in order, and counted when they are missing.

pub mod sequence;

mod profile;
