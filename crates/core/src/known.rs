//! [`PathKnown`]: what is known of the path to who joins, for who chooses a protocol for it.
//!
//! ```text
//!   control    the round trip of the handshake    always
//!   probes     round trips, counts of both ends   once flows ran: from the second session on
//!   modules    runs of losses, delivery           likewise
//! ```

use dacapo_path::Path;
use std::time::Duration;

/// So many round trips say by how much they differ.
const VARIATION_SAMPLES: u32 = 32;

/// What is known of a path; of what is not there nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathKnown {
    /// The shortest round trip: of probes, and before there were any of the control connection.
    pub rtt_min: Option<Duration>,
    /// Probes have measured that.
    pub is_probed: bool,
    /// The longest of the last round trips less the shortest of them.
    pub rtt_variation: Option<Duration>,
    /// The share of packets that is lost, in millionths: of the last thousand that left, at least.
    pub loss_ppm: Option<u32>,
    /// The mean length of a run of lost packets, in thousandths of a packet.
    pub burst_milli: Option<u64>,
    /// How fast it has been delivering what there was, in bit/s: it may carry more.
    pub delivery_rate_bps: Option<u64>,
    /// What flows that yield to nobody are held to together, in bit/s, because it carries no more.
    pub held_bps: Option<u64>,
}

impl PathKnown {
    /// Of a path; `control` is the shortest round trip of the control connection over it, if there
    /// is one.
    pub(crate) fn of(path: &Path, control: Option<Duration>) -> Self {
        let estimates = path.estimates();
        let rtt = path.prober().map(|prober| *prober.rtt()).unwrap_or_default();
        let is_varied = rtt.samples() >= VARIATION_SAMPLES;
        Self {
            rtt_min: rtt.min().or(control),
            is_probed: rtt.min().is_some(),
            rtt_variation: is_varied.then(|| rtt.variation()),
            loss_ppm: estimates.loss_ppm,
            burst_milli: estimates.burst_milli(),
            delivery_rate_bps: estimates.delivery_rate_bps,
            held_bps: path.held_bps(),
        }
    }
}
