//! A world of whole cores in virtual time, from a seed.
//!
//! [`World`], which runs cores (control plane, flows, everything) in one thread on a virtual clock,
//! over links of the emulator; [`plain_tls`], the stand-in for TLS that makes this repeatable;
//! [`traffic`], sources and sinks that know what must arrive; [`scenario`], runs that end in
//! figures to be checked; [`trial`], sessions under faults of every kind, with the oracles that
//! hold for them; [`mixed`], trials with everything in them, drawn from a seed; [`seeds`],
//! runs of many; [`raw`], a peer that speaks QUIC and on it whatever a test says.
//!
//! ```text
//!   Core A -- poll_transmit --> Link A->B -- due --> handle_datagram -- Core B
//!     ^                                                                  |
//!     +------------------------ Link B->A <------------------------------+
//!   clock: jumps to the earliest deadline of a core or arrival on a link
//! ```
//!
//! Invariant: the same seed gives the same trace, byte for byte.

mod catalogue;
pub mod mixed;
pub mod plain_tls;
pub mod raw;
pub mod scenario;
pub mod seeds;
mod stream;
mod trace;
pub mod traffic;
pub mod trial;
mod world;

pub use catalogue::catalogue;
pub use trace::Trace;
pub use world::{Crossing, Datagram, NodeId, World};
