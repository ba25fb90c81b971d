//! Blocks of packets, and parities from which as many of a block are computed as are missing: what
//! modules share that send these, after every block or when somebody asks.
//!
//! ```text
//!   sender     sources (heads) --> sums (code) --> parities, as trains (leaving)
//!   receiver   recovering --> receiving: blocks --> solving: what is missing of one --> up
//! ```

pub(crate) mod block;
pub(crate) mod code;
pub(crate) mod heads;
pub(crate) mod leaving;
pub(crate) mod receiving;
pub(crate) mod recovering;
pub(crate) mod seen;
pub(crate) mod sums;

mod solving;
