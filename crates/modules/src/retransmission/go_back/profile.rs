//! What `arq-gbn` does to what is predicted: what `arq-sr` does, and for each loss all that was
//! under way leaves once more.
//!
//! ```text
//!   sent     1 x 3 4 5 2' 3' 4' 5'        loss · (1 + packets in a round trip) more packets
//!                |<-round->|
//! ```

use super::super::selective;
use crate::arithmetic::{ratio, unit_bytes};
use dacapo_lift::{Cost, Figures, PPB, Params, Profile, Service, Setting};

/// How often a packet leaves, at the most that costs are reckoned with.
const COPIES_MAX: u64 = 16;

#[derive(Debug)]
pub(super) struct GoneBack;

impl Profile for GoneBack {
    /// Who keeps nothing makes others send more, and no flow says how little it keeps: only by
    /// name.
    fn suits(&self, _: &Setting) -> bool {
        false
    }

    /// As with `arq-sr`, but of the rate that it leaves: a packet takes its own time, and for each
    /// loss a round trip.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let figures = selective::SPEC.profile.figures(params, setting, below);
        let bits = packet_bytes(setting).saturating_mul(8);
        // Which is what is left of a path that is as fast as one likes.
        let lost_ns = ratio(round_ns(setting, below), below.figures.loss_ppb.min(PPB), PPB);
        if lost_ns == 0 {
            return figures;
        }
        let most = ratio(bits, 1_000_000_000, lost_ns);
        Figures { rate_bps: beside(figures.rate_bps, most), ..figures }
    }

    fn cost(&self, params: &Params) -> Cost {
        selective::SPEC.profile.cost(params)
    }

    fn copies(&self, _: &Params) -> u64 {
        COPIES_MAX
    }

    /// What `arq-sr` sends, and behind each loss what leaves in a round trip.
    fn packets_milli(&self, params: &Params, setting: &Setting) -> u64 {
        let behind = setting.path.delay_ns.saturating_mul(2) / crate::arithmetic::apart_ns(setting);
        let again = ratio(setting.path.loss_ppb.min(PPB), behind.saturating_mul(1_000), PPB);
        let own = selective::SPEC.profile.packets_milli(params, setting);
        own.saturating_add(again).min(COPIES_MAX * 1_000)
    }
}

/// A round trip, with what packets may be late.
fn round_ns(setting: &Setting, below: &Service) -> u64 {
    let Figures { delay_ns, jitter_ns, .. } = below.figures;
    delay_ns.saturating_add(setting.path.delay_ns).saturating_add(jitter_ns)
}

/// The length of a packet of these units.
fn packet_bytes(setting: &Setting) -> u64 {
    unit_bytes(&setting.units).min(u64::from(setting.path.datagram_len)).max(1)
}

/// The rate of packets that take the time of both, one after the other.
fn beside(one_bps: u64, other_bps: u64) -> u64 {
    let (one, other) = (u128::from(one_bps), u128::from(other_bps));
    u64::try_from(one * other / (one + other).max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{internet, service};

    #[test]
    fn each_loss_costs_a_round_trip_of_the_rate() {
        let (setting, mut below) = (internet(20_000, 60_000), service());
        let rate = |below: &Service| {
            let of = |profile: &dyn Profile| profile.figures(&Params::new(), &setting, below);
            (of(&GoneBack).rate_bps, of(selective::SPEC.profile).rate_bps)
        };
        below.figures.loss_ppb = 0;
        let (back, selected) = rate(&below);
        assert_eq!(back, selected);
        (below.figures.loss_ppb, below.figures.jitter_ns) = (PPB / 100, 0);
        let trip_ns = below.figures.delay_ns + setting.path.delay_ns;
        let packet_bits = 8.0 * packet_bytes(&setting) as f64;
        let (back, selected) = rate(&below);
        let under_way = selected as f64 * trip_ns as f64 / 1e9 / packet_bits;
        let expected = selected as f64 / (1.0 + 0.01 * under_way);
        assert!((back as f64 / expected - 1.0).abs() < 0.001, "{back}, not {expected}");
    }
}
