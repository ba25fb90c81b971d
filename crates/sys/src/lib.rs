//! System calls: the one crate below the transports that may hold unsafe code.
//!
//! Thin, safe wrappers of what the Linux kernel offers and `std` does not: UDP with segmentation
//! offload, IP and Ethernet without a transport, TCP that never blocks, shared memory and bells,
//! readiness, signals, terminals, peer credentials, clocks and entropy. Each wrapper turns an errno
//! into a typed answer and nothing more.
//!
//! ```text
//!   clock, entropy ---> Time, seeds      (the edge of the sans-IO world)
//!   udp::Socket ------> transport/udp    poll::Poller ---> the turn loop
//!   tcp::Listener,
//!   tcp::Stream ------> transport/tcp
//!   memory, doorbell -----> transport/shm
//!   raw, packet, icmp -> xtp-net: IP without UDP, Ethernet, why nobody answers
//!   unix -------------> local control    signal, term ---> the command line
//!   pty: programs at a terminal of their own, for tests of them
//!   faults: calls that fail on purpose, in debug builds only
//!   tun, netns, interface ------------------------------> the link emulator
//! ```
//!
//! Invariants
//! - Every `unsafe` block says why it is sound; no type here exposes a raw pointer.
//! - Every descriptor is owned, close-on-exec and, where it can block, non-blocking.
//! - Bytes and ancillary data from the kernel are parsed with checked access only.

pub mod clock;
pub mod doorbell;
mod entropy;
pub mod faults;
pub mod icmp;
pub mod interface;
pub mod load;
pub mod memory;
pub mod netns;
pub mod packet;
pub mod poll;
pub mod process;
pub mod pty;
pub mod raw;
mod recvmsg;
mod sendmmsg;
pub mod signal;
mod sockopt;
pub mod tcp;
pub mod term;
pub mod thread;
pub mod tun;
pub mod udp;
pub mod unix;

pub use entropy::{NoEntropy, entropy};
