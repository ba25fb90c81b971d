//! Retransmission: the receiver says what is missing or what has come, and the sender sends again.

pub mod go_back;
pub mod group;
pub mod latest;
pub mod nak;
pub mod selective;
mod silence;

mod acknowledged;
mod budget;
mod gap;
mod gaps;
mod given_up;
mod in_order;
mod kept;
mod profile;
mod receiving;
mod round_trip;
mod sending;
mod tries;
