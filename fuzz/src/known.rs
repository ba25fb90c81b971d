//! What is known to take more memory than the bytes that came justify, each with its place, its
//! figure and its remedy. An entry goes with the fix, and the oracle is strict again.
//!
//! Invariant: an allowance is no wider than what was measured, is given to its cause alone, and has
//! a test that fails when it is wider or its cause is gone.

/// A datagram with pieces of a stream, or of the handshake, beside others that do not join them:
/// `quinn-proto` puts those that it holds together anew when they are many and small, several times
/// for a datagram, before it gives the connection up. It is given back at once, so it counts for
/// what one datagram allocates and not for what is held.
///
/// Remedy: none here; it is the bound that the library has since RUSTSEC-2026-0185.
pub const CHURN_BYTES: u64 = 280_000;
