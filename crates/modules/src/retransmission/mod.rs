//! Retransmission: the receiver says what is missing, and the sender sends it again.

pub mod nak;
pub mod selective;

mod emitting;
mod gap;
mod gaps;
mod given_up;
mod in_order;
mod kept;
mod profile;
mod receiving;
mod round_trip;
mod sending;
