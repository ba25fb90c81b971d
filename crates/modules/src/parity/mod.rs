//! Parity: some packets more for every block of them, from which as many that are lost can be
//! computed.

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
