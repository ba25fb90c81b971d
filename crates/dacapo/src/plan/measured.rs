//! [`path_to`]: the path to who joins, as far as it was measured, and as it is assumed besides.
//!
//! ```text
//!   nobody describes the path:  measured where that is known, the rest assumed
//!   [path], or a command says:  what is said
//! ```
//!
//! A choice is made for what may be: what was delivered is no bound of what a path carries, and
//! that a thousand packets came says nothing of one in a thousand.

use dacapo_core::PathKnown;
use dacapo_lift::Path;
use std::time::Duration;

/// No path is taken to lose less than this: of a thousand packets that all come as much may have
/// been lost (95 of 100 times at most three thousandths).
const LOSS_PPM_MIN: u32 = 3_000;

/// What is measured is not believed beyond these, and so is within what session files may say.
const DELAY_MAX: Duration = Duration::from_secs(60);
const RATE_BPS_MAX: u64 = 1_000_000_000_000;
const BURST_MILLI_MAX: u64 = 1_000_000;

/// What is known of a path instead of what is assumed of it.
pub(super) fn path_to(assumed: Path, known: &PathKnown) -> Path {
    let ns = |trip: Duration| (trip / 2).min(DELAY_MAX).as_nanos() as u64;
    let loss_ppb = |ppm: u32| u64::from(ppm.clamp(LOSS_PPM_MIN, 1_000_000)) * 1_000;
    let delivered = known.delivery_rate_bps.unwrap_or(0).min(RATE_BPS_MAX);
    let most = known.held_bps.unwrap_or(u64::MAX);
    Path {
        delay_ns: known.rtt_min.map_or(assumed.delay_ns, ns),
        jitter_ns: known.rtt_variation.map_or(assumed.jitter_ns, ns),
        loss_ppb: known.loss_ppm.map_or(assumed.loss_ppb, loss_ppb),
        burst_milli: known
            .burst_milli
            .map_or(assumed.burst_milli, |milli| milli.clamp(1_000, BURST_MILLI_MAX)),
        rate_bps: assumed.rate_bps.max(delivered).min(most).max(1),
        ..assumed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_qos::PathPreset;

    #[test]
    fn what_is_measured_stands_for_what_is_assumed_and_the_rest_stays() {
        let assumed = PathPreset::Internet.path();
        assert_eq!(path_to(assumed, &PathKnown::default()), assumed);
        let ms = Duration::from_millis;
        let handshake = PathKnown { rtt_min: Some(ms(600)), ..PathKnown::default() };
        let path = path_to(assumed, &handshake);
        assert_eq!(path, Path { delay_ns: 300_000_000, ..assumed });
        let known = PathKnown {
            rtt_min: Some(ms(4)),
            is_probed: true,
            rtt_variation: Some(ms(3)),
            loss_ppm: Some(20_000),
            burst_milli: Some(2_500),
            delivery_rate_bps: Some(80_000_000),
            held_bps: None,
        };
        let path = path_to(assumed, &known);
        assert_eq!((path.delay_ns, path.jitter_ns), (2_000_000, 1_500_000));
        assert_eq!((path.loss_ppb, path.burst_milli), (20_000_000, 2_500));
        assert_eq!((path.rate_bps, path.datagram_len), (80_000_000, assumed.datagram_len));
    }

    #[test]
    fn that_little_was_delivered_or_lost_says_nothing_and_what_is_held_does() {
        let assumed = PathPreset::Internet.path();
        let known =
            PathKnown { loss_ppm: Some(0), delivery_rate_bps: Some(1_000), ..PathKnown::default() };
        let path = path_to(assumed, &known);
        assert_eq!((path.loss_ppb, path.rate_bps), (3_000_000, assumed.rate_bps));
        let held = PathKnown { held_bps: Some(2_000_000), ..known };
        assert_eq!(path_to(assumed, &held).rate_bps, 2_000_000);
    }

    #[test]
    fn no_measurement_leaves_what_a_session_file_may_say() {
        let known = PathKnown {
            rtt_min: Some(Duration::MAX),
            is_probed: true,
            rtt_variation: Some(Duration::MAX),
            loss_ppm: Some(u32::MAX),
            burst_milli: Some(0),
            delivery_rate_bps: Some(u64::MAX),
            held_bps: Some(0),
        };
        let path = path_to(PathPreset::Internet.path(), &known);
        assert_eq!((path.delay_ns, path.jitter_ns), (60_000_000_000, 60_000_000_000));
        assert_eq!((path.loss_ppb, path.burst_milli, path.rate_bps), (1_000_000_000, 1_000, 1));
    }
}
