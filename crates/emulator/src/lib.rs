//! The link emulator in real time: between UDP sockets, and between network namespaces.
//!
//! Two [`dacapo_link::Link`]s, one each way, driven by a thread with a clock. [`Relay`] stands
//! between UDP clients and a server and needs no rights; [`Tunnel`] connects two network namespaces
//! by TUN devices and carries everything that is IP, which only root can set up.
//!
//! ```text
//!   client A ─┐               ┌───────── forward ────────>┐          ┌─ a socket for A ─┐
//!   client B ─┴─ one socket ──┤                           ├──────────┴─ a socket for B ─┴─ server
//!                             └<────────── back ──────────┘
//!
//!   namespace 1 ─ TUN ────────┬───────── forward ────────>┬──────────── TUN ─ namespace 2
//!                             └<────────── back ──────────┘
//!
//!   one turn:  wait(deadline) -> the clock -> what is due goes out -> what is there goes in
//! ```
//!
//! Invariants:
//! - Both links draw from one seed ([`directions`]): the same seed and the same datagrams in the
//!   same order have the same fates as in virtual time.
//! - One clock read per turn stands for all that happens in it; a datagram never leaves before it
//!   is due, and how much later it leaves is recorded ([`PathStats::lateness`]).
//! - Nothing is lost without a counter: what a link dropped, what the far end did not take
//!   ([`PathStats::unsent`]) and what the kernel dropped before it was read
//!   ([`PathStats::kernel_drops`]).
//! - Memory is bounded by the links' `in_flight_max` and by the number of clients.
//!
//! The length of a datagram, which rate, queue and MTU count, is that of its payload in a relay and
//! that of the whole IP packet in a tunnel. Both show a link the congestion mark of what they
//! carry, and hand on the one that it sets.

mod clients;
mod config;
mod packet;
mod path;
mod relay;
mod runner;
mod train;
mod tunnel;

pub use config::parse_link;
pub use packet::IpPacket;
pub use path::{PathStats, Way, directions};
pub use relay::{Relay, RelayConfig, RelayHandle};
pub use tunnel::{Tunnel, TunnelConfig, TunnelError, TunnelHandle};

/// What a link does, and what it has done.
pub use dacapo_link::{Aqm, DelayRecord, LinkConfig, LinkStats, Loss, ParseError};
pub use dacapo_link::{Trace, TraceError, TraceSource};
