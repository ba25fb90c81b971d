//! What controllers begin with: packets of which nothing is known, and the window of the first.

use crate::controller::Prior;

/// A packet has so many bytes until longer ones leave.
pub(super) const MSS_MIN: u64 = 1_200;

/// The first window, in packets (RFC 6928).
pub(super) const PACKETS_FIRST: u64 = 10;

/// The bytes that were under way on the path before it moved, if that is known: no more is sent
/// until more is measured, but `least`.
pub(super) fn known_before(prior: &Prior, least: u64) -> Option<u64> {
    let bytes = u128::from(prior.rate_bps_max?) * prior.rtt?.as_micros() / 8_000_000;
    Some(u64::try_from(bytes).unwrap_or(u64::MAX).max(least))
}
