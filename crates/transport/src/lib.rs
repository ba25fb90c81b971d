//! The Transport trait, its conformance suite, and the T-modules.
//!
//! The bottom of every protocol. A [`Transport`] carries datagrams between addresses in two lanes,
//! control and data, and says what it does to them in its [spec](Transport::spec). Datagrams arrive
//! as packets of the reactor's pool, trains of equal datagrams as one packet.
//!
//! It neither repairs, orders, paces nor parses; it does not know whose datagram is whose beyond
//! the address.
//!
//! ```text
//!            send(lane, remote, bytes, segment_len)     recv(now, pool) -> packets
//!                          |                                  ^
//!   Control  ==>  listening socket   -------- network --------+-- a burst of data
//!   Data     ==>  a socket per peer  -------- network --------+   never drops control (D7)
//!   both     ==>  one byte stream    ---- TCP, simulated ---->+   without lanes: all is data
//! ```
//!
//! Invariants, each with a test in [`conformance`]
//! - Boundaries: a datagram arrives whole or not at all, a train as the datagrams it is made of.
//! - Bounded: one call reads a bounded number of datagrams, and lanes and queues have limits.
//! - Counted: what a transport itself drops is in its [`TransportStats`] by reason.
//! - What the pool has no room for waits; it is not lost.
//! - Of a group ([`Membership`]) only what its source sends is handed up, to every member alike.
//!
//! T-modules, a folder each with the same file names: [`udp`], [`inproc`], [`tcp`], [`shm`],
//! [`quic`] and [`xtp`] in two modes each, and [`sim`] for worlds in virtual time. The last five
//! share the engine in [`stream`], and are opened stream by stream ([`StreamTransport`]); those
//! whose streams are descriptors are watched and accepted in [`stream::Connections`].

pub mod conformance;
pub mod entry;
mod group;
pub mod inproc;
mod mode;
mod pass_on;
mod ports;
pub mod quic;
mod repaired;
#[cfg(test)]
mod setting;
pub mod shm;
pub mod sim;
pub mod sockets;
mod stats;
pub mod stream;
pub mod tcp;
mod trains;
mod transport;
pub mod udp;
pub mod xtp;

pub use dacapo_lift::{Membership, TransportSpec, is_source_specific};
pub use group::JoinError;
pub use stats::{Drops, SegmentCounts, StatsByKind, StreamCounts, Traffic, TransportStats};
pub use stream::{StreamEvent, StreamTransport};
pub use transport::{
    Incoming, Outgoing, RecvOutcome, SendError, Sent, TooLong, TrafficClass, Transport,
};

/// The most datagrams or trains that one call of [`Transport::recv`] hands up per lane.
pub const RECV_PACKETS_MAX: usize = 64;

/// The bytes per lane after which one call of [`Transport::recv`] reads no further.
pub const RECV_BYTES_MAX: usize = 256 * 1024;

/// The most data lanes that one transport has open.
pub const DATA_LANES_MAX: usize = 256;
