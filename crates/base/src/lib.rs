//! Time and randomness, the two things that every engine is given.
//!
//! [`Time`], a point on one core's monotonic clock, and [`Random`], a seeded generator. Engines
//! take both as arguments and never ask the system for either, so a whole core runs in virtual time
//! and the same seed gives the same run, byte for byte.
//!
//! And [`Address`], where somebody is reached, which all may compare and one transport reads, and
//! [`Ranges`], a set of numbers, for what repairs; [`Ecn`], the congestion codepoint of a datagram.
//!
//! Beside them, for tests, [`failpoint!`], the named places where one ends the process (not in
//! release), [`seeds`], which tries many, [`Tolerance`], after which one that waits hangs, and
//! [`skip()`], which counts what cannot run on this host; and [`mod@panic`], what a panic says that
//! was caught.
//!
//! `dacapo-sys` reads the clock and the system's randomness, at the edge.
//!
//! ```text
//!   sys (CLOCK_MONOTONIC, getrandom)   netlab (virtual clock, seed)
//!                 \                      /
//!                  Time, Random as arguments
//!                            |
//!          every engine: link, lift, modules, path, core …
//! ```

mod address;
mod ecn;
pub mod failpoint;
pub mod panic;
pub mod patience;
mod random;
mod ranges;
pub mod seeds;
pub mod skip;
mod time;

pub use address::{ADDRESS_LEN_MAX, Address, AddressError, IP};
pub use ecn::Ecn;
pub use patience::Tolerance;
pub use random::Random;
pub use ranges::Ranges;
pub use skip::skip;
pub use time::{Time, earlier};
