//! The allocation oracle: bytes that came in justify only so much memory.
//!
//! ```text
//!   bytes allocated while handling  <=  2 * bytes received + 64 KiB
//! ```
//!
//! An advisory of another QUIC stack (GHSA-9q54-f358-3fqf) had one datagram cause 7,800 times its
//! size; proofs and fuzzing for panics alone had not seen it.

use dacapo_heap::{Use, measure};

/// What handling may allocate whatever came in, in bytes.
pub const FREE_BYTES: u64 = 64 << 10;

/// What it may allocate for each byte that came in, in bytes.
pub const RATIO: u64 = 2;

/// The most that handling `received` bytes may allocate.
#[must_use]
pub const fn limit(received: usize) -> u64 {
    RATIO.saturating_mul(received as u64).saturating_add(FREE_BYTES)
}

/// Runs what handles `received` bytes, and gives its result.
///
/// # Panics
/// It allocated more than [`limit`].
pub fn bounded<R>(what: &str, received: usize, body: impl FnOnce() -> R) -> R {
    let (result, used) = measure(body);
    check(what, received, used);
    result
}

/// The same for what the host's own people write: counted is what is in use at a time, because the
/// search for the word that was meant asks for little again and again.
///
/// # Panics
/// More than [`limit`] was in use at a time.
pub fn bounded_at_a_time<R>(what: &str, received: usize, body: impl FnOnce() -> R) -> R {
    let (result, used) = measure(body);
    check_at_a_time(what, received, used);
    result
}

/// Checks what was in use at a time while `received` bytes were handled, where only who handles
/// them knows how many they were.
///
/// # Panics
/// More than [`limit`] was in use at a time.
pub fn check_at_a_time(what: &str, received: usize, used: Use) {
    check(what, received, Use { allocated_bytes: used.peak_bytes, ..used });
}

/// Checks what was measured while `received` bytes were handled.
///
/// # Panics
/// More than [`limit`] was allocated.
pub fn check(what: &str, received: usize, used: Use) {
    let most = limit(received);
    assert!(
        used.allocated_bytes <= most,
        "{what}: {} bytes were allocated for {received} that came in, at most {most} may be \
         (peak {}, left {})",
        used.allocated_bytes,
        used.peak_bytes,
        used.live_bytes
    );
}
