//! What is known to take more memory than the bytes that came justify, each with its place, its
//! figure and its remedy. An entry goes with the fix, and the oracle is strict again.
//!
//! What it is not: a place for the next finding; that is to be mended.
//!
//! Invariant: an allowance is no wider than what was measured, so that what is known cannot grow.

/// A connection that comes in: `crates/core/src/control/config.rs` admits 1,024 streams from the
/// first packet on, for which `quinn-proto` makes a table at once (175 KB, 88 KB of it kept; with
/// 16 streams 6 KB), and `crates/core/src/control/mod.rs` keeps connections by value in a
/// `BTreeMap`, whose nodes have room for eleven of them (68 KB each, two at a time). All of it
/// before the address is proved.
///
/// Remedy: 16 streams until `Event::Connected`, then `set_max_concurrent_streams`; and
/// `BTreeMap<ConnId, Box<Connection>>`.
pub const BEGINNING_BYTES: u64 = 256 << 10;

/// A stream with a high number opens all below it (RFC 9000, section 3.2), and
/// `crates/core/src/control/connection.rs` keeps state for each at once, 350 bytes: a packet of 41
/// bytes of somebody who was let in takes 341 KB, once for a connection.
///
/// Remedy: none; it is what one peer that was let in may take. Fewer streams at a time would lower
/// it.
pub const OPENING_BYTES: u64 = 384 << 10;

/// Pieces of a stream that come out of order: `quinn-proto` puts those that it holds together anew,
/// again and again, when they are many and small, before it gives the connection up. It is given
/// back at once, so it counts for what one datagram allocates and not for what it holds.
///
/// Remedy: none here; it is the bound that the library has since RUSTSEC-2026-0185.
pub const CHURN_BYTES: u64 = 1 << 20;

/// The segments of a unit that is not whole: `crates/modules/src/segmentation/reassembly.rs` keeps
/// them in a vector by index, so one packet of a few bytes takes 32 bytes for every segment before
/// its own, up to the unit's length of them, in each of 256 units.
///
/// Remedy: keep them by index in a `BTreeMap<u16, Packet>`.
pub const SLOT_BYTES: u64 = 32;
