//! [`Repaired`]: what a stream whose losses are repaired makes of a path.
//!
//! The congestion control is taken to be the classic one; BBR gets more out of a path that loses.
//!
//! ```text
//!   sent       1 2 x 4 5 6 7       x is lost and sent again a round trip later;
//!   delivered  1 2 . . . . . x4567  what follows waits for it, in order
//! ```
//!
//! Source: M. Mathis, J. Semke, J. Mahdavi, T. Ott: The Macroscopic Behavior of the TCP Congestion
//! Avoidance Algorithm, 1997 (rate); RFC 5681 (fast retransmit); RFC 6298 (time-out).

use dacapo_lift::shares::{Holes, ratio};
use dacapo_lift::{Cost, Figures, PPB, Path, Setting, TransportProfile};

/// So many segments under way in a round trip are needed for three duplicate ACKs to follow a loss.
const FAST_RETRANSMIT_MIN: u64 = 4;

/// From this share of packets on, in ppb, a delay belongs to what 99 of 100 packets meet.
const ONE_IN_HUNDRED: u64 = PPB / 100;

/// The share of units, in ppb, that may come later than a deadline.
const ONE_IN_TEN_THOUSAND: u64 = PPB / 10_000;

const SECOND: u64 = 1_000_000_000;

/// The longest segment that the pool lays out, in bytes; a record may be longer.
pub(crate) const RECORD_LEN: u32 = 65_000;

/// A stream whose losses are repaired.
#[derive(Debug)]
pub(crate) struct Repaired {
    /// The bytes of a full segment on Ethernet.
    pub(crate) segment_len: u64,
    /// What they are with all headers.
    pub(crate) segment_on_wire: u64,
    /// The shortest time in ns after which what nothing follows is sent again.
    pub(crate) timeout_min: u64,
    /// How much is under way at most of what does not yield where the flow is bounded; `None`: it
    /// is under classic congestion control.
    pub(crate) window: Option<Window>,
    /// What it costs.
    pub(crate) cost: Cost,
}

/// How many bytes are under way at most.
#[derive(Debug)]
pub(crate) struct Window {
    /// Where packets get lost.
    pub(crate) lossy: u64,
    /// Where none does, once it has grown.
    pub(crate) clean: u64,
}

impl TransportProfile for Repaired {
    /// - Nothing is lost.
    /// - A loss holds up what the flow sends in the round trip until it is repaired, at least one
    ///   packet: `loss * max(1, packets in a round trip)` of all. Below 1 % the delay is that of
    ///   the path; from there on a repair comes on top.
    /// - A datagram of several segments is there with the last, so the rest of it comes later by
    ///   the time that it takes at the rate.
    /// - Jitter is the delay less the path's shortest.
    /// - The rate is the path's less headers, and with losses at most what a window of classic
    ///   congestion control allows; of a flow that is bounded and does not yield, what
    ///   [`unyielding`] says.
    fn figures(&self, setting: &Setting) -> Figures {
        let path = setting.path;
        let bound = if setting.bound_bps == 0 { u64::MAX } else { setting.bound_bps };
        let allowed = match &self.window {
            Some(window) if setting.bound_bps > 0 => unyielding(&path, window),
            _ => rate_with_losses(&path, self.segment_len),
        };
        let rate =
            scale(path.rate_bps, self.segment_len, self.segment_on_wire).min(allowed).min(bound);
        let rest = record_len(setting).saturating_sub(self.segment_len);
        let delay = path
            .delay_ns
            .saturating_add(path.jitter_ns)
            .saturating_add(self.repair(setting))
            .saturating_add(scale(rest.saturating_mul(8), SECOND, rate));
        Figures {
            loss_ppb: 0,
            loss_runs_ppb: 0,
            delay_ns: delay,
            jitter_ns: delay - path.delay_ns,
            rate_bps: rate,
        }
    }

    /// Default, both ends together, kernel included, on AMD EPYC in November 2026: 0.45 to 0.55 s
    /// per GB in 64 KiB writes between two network namespaces over veth; a small message now and
    /// then costs 4 to 7 us more than over UDP (acknowledgements).
    fn cost(&self) -> Cost {
        self.cost
    }
}

impl Repaired {
    /// How many segments the flow sends in a round trip at the rate of its units. Nothing is
    /// gathered (Nagle's delay is off), so a small unit is a segment of its own.
    fn segments_per_round_trip(&self, setting: &Setting) -> u64 {
        let per_unit = u64::from(setting.units.len_mean).div_ceil(self.segment_len).max(1);
        let per_ks = u128::from(setting.units.per_ks) * u128::from(per_unit);
        let count = per_ks.saturating_mul(u128::from(round_trip(&setting.path)));
        u64::try_from(count / (1_000 * u128::from(SECOND))).unwrap_or(u64::MAX)
    }

    /// How much later than without losses units come: 99 of 100; where what is late is not handed
    /// over, all but one in 10,000, since it is as good as lost.
    fn repair(&self, setting: &Setting) -> u64 {
        let (path, recovery) = (setting.path, self.recovery(setting));
        if setting.deadline_ns == u64::MAX {
            let per_trip = self.segments_per_round_trip(setting).max(1);
            let held_up = path.loss_ppb.saturating_mul(per_trip);
            return if held_up < ONE_IN_HUNDRED { 0 } else { recovery };
        }
        let per_unit = u64::from(setting.units.len_mean).div_ceil(self.segment_len).max(1);
        let holes = Holes {
            loss_ppb: path.loss_ppb.min(PPB),
            burst_milli: path.burst_milli.max(1_000),
            apart_ns: ratio(1_000, SECOND, setting.units.per_ks.saturating_mul(per_unit)).max(1),
            // What is lost again is missed by a timer only (RFC 6298, section 5).
            again_ns: recovery.saturating_add(round_trip(&path).max(self.timeout_min)),
        };
        // What shows that something is missing comes behind the run.
        let first = |run_milli| recovery.saturating_add(ratio(holes.apart_ns, run_milli, 1_000));
        holes.later_than_all_but(ONE_IN_TEN_THOUSAND, first)
    }

    /// How much later a lost segment comes, in ns: a round trip when enough follow it to show that
    /// it is missing, else the retransmission timeout.
    fn recovery(&self, setting: &Setting) -> u64 {
        let path = setting.path;
        if self.segments_per_round_trip(setting) >= FAST_RETRANSMIT_MIN {
            return round_trip(&path).saturating_add(path.jitter_ns);
        }
        let timeout = round_trip(&path).saturating_add(path.jitter_ns.saturating_mul(4));
        timeout.max(self.timeout_min)
    }
}

/// `value` times `by` through `of`; 0 through 0 is the most there is.
pub(crate) fn scale(value: u64, by: u64, of: u64) -> u64 {
    let product = u128::from(value) * u128::from(by);
    if product == 0 {
        return 0;
    }
    product.checked_div(u128::from(of)).and_then(|it| u64::try_from(it).ok()).unwrap_or(u64::MAX)
}

/// There and back in ns, waiting once as long as 99 of 100 do.
fn round_trip(path: &Path) -> u64 {
    path.delay_ns.saturating_mul(2).saturating_add(path.jitter_ns)
}

/// The bits per second of Mathis et al.: 1.22 segments per round trip and root of the loss.
pub(crate) fn rate_with_losses(path: &Path, segment_len: u64) -> u64 {
    // The root in billionths, like the loss.
    let root = path.loss_ppb.min(PPB).saturating_mul(PPB).isqrt();
    let bits = segment_len * 8 * 122 / 100;
    let time = u128::from(round_trip(path)) * u128::from(root);
    let bits = u128::from(bits) * u128::from(SECOND) * u128::from(PPB);
    bits.checked_div(time).and_then(|it| u64::try_from(it).ok()).unwrap_or(u64::MAX)
}

/// The bits per second of what does not yield: what is left when the lost part is sent again, and
/// again where that is lost (XTP measures 1.00, 0.96 and 0.52 of the rest at 5, 10 and 30 %, and
/// this is less than each); and at most a window in the round trips until a byte of it is
/// acknowledged, which are one, one more where there are losses, and a third where there are many.
fn unyielding(path: &Path, window: &Window) -> u64 {
    let loss = path.loss_ppb.min(PPB);
    let again = PPB - loss.saturating_mul(8).div_ceil(5).min(PPB);
    let rest = scale(scale(path.rate_bps, PPB - loss, PPB), again, PPB);
    let round_trips = 1 + u64::from(loss > 0) + u64::from(loss >= ONE_IN_HUNDRED);
    let time = round_trip(path).saturating_mul(round_trips);
    let len = if loss > 0 { window.lossy } else { window.clean };
    let window = len.saturating_mul(8);
    rest.min(if time == 0 { u64::MAX } else { scale(window, SECOND, time) })
}

/// The bytes of a record that holds a mean unit, or as much of it as a record can.
fn record_len(setting: &Setting) -> u64 {
    u64::from(setting.units.len_mean.min(RECORD_LEN))
}
