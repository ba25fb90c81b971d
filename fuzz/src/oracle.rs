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

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// How many inputs of this length come.
    const INPUTS: usize = 100;
    const LEN: usize = 1_000;

    /// An engine that takes a little again and again for one of its inputs, and keeps nothing.
    fn handle(number: usize, times: usize) {
        let times = if number == 60 { times } else { 1 };
        (0..times).for_each(|_| drop(std::hint::black_box(vec![7_u8; 4_000])));
    }

    fn is_caught(times: usize) -> bool {
        let handle_all = || {
            for number in 0..INPUTS {
                bounded("a stub", LEN, || handle(number, times));
            }
        };
        catch_unwind(AssertUnwindSafe(handle_all)).is_err()
    }

    #[test]
    fn one_input_of_many_that_takes_too_much_and_keeps_nothing_is_caught() {
        assert!(!is_caught(16) && is_caught(17), "64,000 of 67,536 bytes, and 68,000");
        // Neither what is in use at a time nor the sum of all inputs would have shown it.
        let ((), used) = measure(|| (0..INPUTS).for_each(|number| handle(number, 17)));
        assert!(used.peak_bytes < FREE_BYTES && used.live_bytes == 0, "{used:?}");
        assert!(used.allocated_bytes < limit(LEN) * INPUTS as u64, "{used:?}");
    }

    #[test]
    fn a_byte_above_the_limit_is_caught() {
        let most = usize::try_from(limit(LEN)).unwrap();
        let takes = |len: usize| {
            let body = || bounded("a stub", LEN, || drop(std::hint::black_box(vec![7_u8; len])));
            catch_unwind(body).is_ok()
        };
        assert!(takes(most) && !takes(most + 1));
    }
}
