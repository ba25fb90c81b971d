//! The options of XTP that follow from what is known of a flow, its [`Terms`].
//!
//! ```text
//!   of the flow                          of XTP
//!   may go at most so fast               RATE and BURST: an eighth more, 10 ms of it at once
//!   what is altered is found above       NOCHECK: headers alone are checked
//!   may lose                             NOERR, which is the mode of the transport
//! ```
//!
//! What it is not: agreed with the other end; each end says how it sends.
//!
//! Source: docs/xtp.md, "T-module".

use super::Mode;
use crate::stream::Terms;
use dacapo_xtp::wire::{HEADER_LEN, Limits};
use std::time::Duration;

/// A burst lasts so long at the rate, or two packets.
const BURST: Duration = Duration::from_millis(10);

/// The options of XTP for a flow; `packet_len` is that of the longest packet, in bytes.
pub(super) fn options(terms: &Terms, mode: Mode, packet_len: usize) -> dacapo_xtp::Mode {
    dacapo_xtp::Mode {
        without_check: terms.is_checked,
        without_repair: mode == Mode::Datagrams,
        // Whoever repairs is told of a gap at once: nothing in a flow may wait longer than it must.
        fast_report: mode == Mode::Streams,
        limits: limits(terms.bound_bps, packet_len),
        ..dacapo_xtp::Mode::default()
    }
}

/// The bound is kept above, by who paces the flow; here it bounds bursts, and repairs with them. So
/// there is an eighth more: for the lengths of records, and for what is sent again.
fn limits(bound_bps: u64, packet_len: usize) -> Limits {
    let rate = bound_bps / 8 + bound_bps / 64;
    if rate == 0 {
        return Limits::default();
    }
    let burst = rate.saturating_mul(BURST.as_millis() as u64) / 1_000;
    let burst = burst.max(2 * packet_len.saturating_sub(HEADER_LEN) as u64);
    // What does not fit is no limit.
    let fit = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Limits { out_rate: fit(rate), out_burst: fit(burst), ..Limits::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_rate_and_burst() {
        let terms = Terms { bound_bps: 8_000_000, ..Terms::default() };
        let limits = options(&terms, Mode::Streams, 1_195).limits;
        assert_eq!((limits.out_rate, limits.out_burst), (1_125_000, 11_250));
        let slow = Terms { bound_bps: 64_000, ..Terms::default() };
        let limits = options(&slow, Mode::Streams, 1_195).limits;
        assert_eq!((limits.out_rate, limits.out_burst), (9_000, 2 * 1_163));
    }

    #[test]
    fn a_flow_without_a_bound_or_with_one_that_no_field_holds_has_no_limit() {
        let of = |bound_bps| {
            let terms = Terms { bound_bps, ..Terms::default() };
            options(&terms, Mode::Datagrams, 1_195).limits
        };
        assert_eq!(of(0), Limits::default());
        assert_eq!(of(u64::MAX).out_rate, u32::MAX);
    }

    #[test]
    fn the_mode_is_the_error_control_and_a_check_above_saves_one_below() {
        let plain = options(&Terms::default(), Mode::Streams, 1_195);
        assert!(!plain.without_repair && plain.fast_report && !plain.without_check);
        let terms = Terms { is_checked: true, ..Terms::default() };
        let lossy = options(&terms, Mode::Datagrams, 1_195);
        assert!(lossy.without_repair && !lossy.fast_report && lossy.without_check);
        assert!(!lossy.without_window, "a reader that is slow is waited for");
    }
}
