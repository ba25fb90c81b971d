//! What is known to take more memory than the bytes that came justify, each with its place, its
//! figure and its remedy. An entry goes with the fix, and the oracle is strict again.
//!
//! Invariant: an allowance is no wider than what was measured, so that what is known cannot grow.

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

/// A segment of a unit that is not whole: the node of a `BTreeMap` that it may begin.
///
/// Remedy: none; it does not grow with what the segment says of its place.
pub const SEGMENT_BYTES: u64 = 1 << 10;
