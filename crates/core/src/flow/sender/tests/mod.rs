//! The parts of a sender, each by itself.

mod account;
mod egress;
mod epochs;
mod feed;
mod whole;
