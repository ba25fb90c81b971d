//! Interleaving: packets leave in another order, so that a run of losses takes none of those that
//! stand beside each other.

mod blocks;
pub mod interleave;
mod order;
mod profile;
