//! Sockets, and when who has them looks, for every protocol that is run over them.
//!
//! ```text
//!   transport: udp, quic, xtp    xtp-net: UDP, IP, TCP    reactor, host, sessions: loops
//!          |                            |                          |
//!   Sockets, Watching, ReadPrediction, address            LastReady, Coalescing
//!          '------------------------ sys: a call each -------------'
//! ```
//!
//! Invariants: nothing here blocks; a socket that takes no more keeps one train and takes no other;
//! an error that the system has kept of an earlier datagram costs the next one nothing where
//! [`send_past`] sends it.

pub mod address;
mod coalescing;
mod errors;
mod last_ready;
mod pause;
mod read_prediction;
mod sending;
mod sockets;
mod watching;

pub use coalescing::Coalescing;
pub use errors::{BindError, DialError};
pub use last_ready::LastReady;
pub use pause::Pause;
pub use read_prediction::ReadPrediction;
pub use sending::{Kept, send_past};
pub use sockets::{
    Came, Departure, LISTEN_ADDRS_MAX, READS_MAX, Round, SendOutcome, SocketCounts, Sockets,
    connected,
};
pub use watching::Watching;
