//! The options of XTP that follow from what is known of a flow, its [`StreamParams`].
//!
//! ```text
//!   of the flow                          of XTP
//!   may go at most so fast               RATE and BURST: so fast that XTP slows nothing down
//!   what is altered is found above       NOCHECK: headers alone are checked
//!   may lose                             NOERR, which is the mode of the transport
//!   priority 7 … 1, 0                    SORT 0 … 6, none: smaller goes first
//! ```
//!
//! Source: docs/xtp.md, "T-module".

use super::config::PATH_LEN;
use super::label::HEAD_LEN;
use crate::mode::Mode;
use crate::stream::StreamParams;
use dacapo_xtp::wire::{HEADER_LEN, Limits};
use std::time::Duration;

/// A burst lasts so long at the rate, or [`BURST_PACKETS`].
const BURST: Duration = Duration::from_millis(10);
const BURST_PACKETS: u64 = 4;

/// The bytes of a record before its datagram.
const LENGTH_LEN: u64 = 4;

/// Of longer datagrams the lengths of records are within the eighth that is allowed for them.
pub(super) const SHORT_LEN: usize = 32;

/// The priority that goes before all others.
const PRIORITY_MAX: u8 = 7;

/// The options of XTP for a flow; `packet_len` is that of the longest packet, in bytes.
pub(super) fn options(terms: &StreamParams, mode: Mode, packet_len: usize) -> dacapo_xtp::Mode {
    dacapo_xtp::Mode {
        without_check: terms.is_checked,
        without_repair: mode == Mode::Datagrams,
        // Whoever repairs is told of a gap at once: nothing in a flow may wait longer than it must.
        fast_report: mode == Mode::Streams,
        sort: (terms.priority > 0).then(|| u16::from(PRIORITY_MAX.saturating_sub(terms.priority))),
        limits: limits(terms.bound_bps, mode, packet_len, SHORT_LEN),
        ..dacapo_xtp::Mode::default()
    }
}

/// The bound is kept above, by who paces the flow; here it bounds bursts, and repairs with them. It
/// may never slow the flow down, so there is more in it: for the lengths of records, of which none
/// is shorter than `shortest` bytes; an eighth for what is sent again; and for the end of a burst,
/// which is lost to a packet that does not fit: of a stream every packet is as long as any while
/// bytes wait, so a burst is a number of them; of datagrams nearly a packet may be lost each time.
pub(super) fn limits(bound_bps: u64, mode: Mode, packet_len: usize, shortest: usize) -> Limits {
    if bound_bps < 8 {
        return Limits::default();
    }
    // What is longer goes as a debt of the bursts after it.
    let packet_len = packet_len.min(usize::from(PATH_LEN) - HEAD_LEN);
    let data_len = (packet_len.saturating_sub(HEADER_LEN) as u64).max(1);
    let rate = bound_bps / 8;
    let rate = rate.saturating_add(rate / 8);
    let burst = rate.saturating_mul(BURST.as_millis() as u64) / 1_000;
    let packets = burst.div_ceil(data_len).max(BURST_PACKETS);
    let burst = packets.saturating_mul(data_len);
    let rate = match mode {
        Mode::Streams if shortest >= SHORT_LEN => rate,
        Mode::Streams => {
            rate.saturating_add(rate.saturating_mul(LENGTH_LEN) / shortest.max(1) as u64)
        }
        Mode::Datagrams => rate.max((bound_bps / 8).saturating_mul(packets) / (packets - 1) + 1),
    };
    // What does not fit is no limit.
    let fit = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Limits { out_rate: fit(rate), out_burst: fit(burst), ..Limits::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_rate_and_burst() {
        let terms = StreamParams { bound_bps: 8_000_000, ..StreamParams::default() };
        let limits = options(&terms, Mode::Streams, 1_195).limits;
        assert_eq!((limits.out_rate, limits.out_burst), (1_125_000, 10 * 1_163));
        let slow = StreamParams { bound_bps: 64_000, ..StreamParams::default() };
        let limits = options(&slow, Mode::Streams, 1_195).limits;
        assert_eq!((limits.out_rate, limits.out_burst), (9_000, 4 * 1_163));
        let limits = options(&slow, Mode::Datagrams, 1_195).limits;
        assert_eq!((limits.out_rate, limits.out_burst), (8_000 * 4 / 3 + 1, 4 * 1_163));
    }

    #[test]
    fn short_datagrams_have_room_for_their_lengths() {
        let rate = |shortest| limits(64_000, Mode::Streams, 1_195, shortest).out_rate;
        assert_eq!([32, 16, 4, 1].map(rate), [9_000, 11_250, 18_000, 45_000]);
        assert_eq!(rate(0), 45_000);
    }

    #[test]
    fn a_priority_is_sort_and_the_highest_goes_first() {
        let sort = |priority| {
            let terms = StreamParams { priority, ..StreamParams::default() };
            options(&terms, Mode::Streams, 1_195).sort
        };
        assert_eq!([0, 1, 6, 7, 200].map(sort), [None, Some(6), Some(1), Some(0), Some(0)]);
    }

    #[test]
    fn a_flow_without_a_bound_or_with_one_that_no_field_holds_has_no_limit() {
        let of = |bound_bps| {
            let terms = StreamParams { bound_bps, ..StreamParams::default() };
            options(&terms, Mode::Datagrams, 1_195).limits
        };
        assert_eq!(of(0), Limits::default());
        assert_eq!(of(u64::MAX).out_rate, u32::MAX);
    }

    #[test]
    fn the_mode_is_the_error_control_and_a_check_above_saves_one_below() {
        let plain = options(&StreamParams::default(), Mode::Streams, 1_195);
        assert!(!plain.without_repair && plain.fast_report && !plain.without_check);
        let terms = StreamParams { is_checked: true, ..StreamParams::default() };
        let lossy = options(&terms, Mode::Datagrams, 1_195);
        assert!(lossy.without_repair && !lossy.fast_report && lossy.without_check);
        assert!(!lossy.without_window, "a reader that is slow is waited for");
    }
}
