//! Parity: some packets more, from which as many that are lost can be computed: for every block of
//! packets, or of those that were sent last.

pub mod rlc;
pub mod rs;

mod block;
mod chain;
mod code;
mod profile;
mod receiving;
mod report;
mod sending;
mod solving;
mod strength;
