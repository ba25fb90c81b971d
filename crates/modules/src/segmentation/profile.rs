//! What `segment` does to what is predicted: units take the place of packets.
//!
//! ```text
//!   packets   |0|1|2|3|   |4|5|6|7|        a run of losses (x) that begins anywhere in a unit,
//!              . . x x     x . . .         or reaches into it, takes the whole unit
//! ```

use super::segment::SPEC;
use crate::arithmetic::{packets_per_unit, time_of, unit_bytes};
use dacapo_lift::{Cost, Figures, PPB, Params, Profile, Property, Service, Setting};

/// Default, measured by `dacapo bench cost` on AMD EPYC.
const COST: Cost = Cost { train_ps: 40_200, packet_ps: 4_690, byte_ps: 0, wire_milli: 0 };

/// The number of the parameter.
const PATIENCE: u16 = 0;

#[derive(Debug)]
pub(super) struct UnitsOfPackets;

impl Profile for UnitsOfPackets {
    /// Where nothing below is lost, what is missing of a unit is on its way, however late: it is
    /// waited for as long as can be.
    fn points(&self, _: &Setting, below: &Service) -> Vec<Params> {
        let mut params = Params::new();
        if below.properties.contains(Property::NoLoss) {
            params.set(PATIENCE, SPEC.params[usize::from(PATIENCE)].max);
        }
        vec![params]
    }

    /// With `n` packets of the room that is left for a mean unit:
    /// - A unit is lost when its first packet is, or when a run of losses begins at one of the
    ///   `n - 1` behind it: `loss + (n - 1) * runs`. One run takes one unit, however long.
    /// - A run of lost units begins where a run of losses does, at any of `n` packets, and there
    ///   are no more runs than losses: `min(loss, n * runs)`.
    /// - A unit is whole when its last packet is there, so what does not fit the first, headers
    ///   included, comes later by the time that it takes at the rate below.
    /// - Jitter is counted from the shortest delay: where units differ in length that is the delay
    ///   of a unit of one packet, so it grows by the same time; where they do not, it stays.
    /// - The rate falls by the header alone, which `ModuleSpec::serve` takes off.
    fn figures(&self, _: &Params, setting: &Setting, below: &Service) -> Figures {
        let room = below.payload_len_max.saturating_sub(u32::from(SPEC.head)).max(1);
        let more = packets_per_unit(&setting.units, room) - 1;
        let Figures { loss_ppb, loss_runs_ppb, delay_ns, jitter_ns, rate_bps } = below.figures;
        let loss = loss_ppb.saturating_add(more.saturating_mul(loss_runs_ppb)).min(PPB);
        let runs = more.saturating_add(1).saturating_mul(loss_runs_ppb).min(loss);
        let rest = unit_bytes(&setting.units).saturating_sub(u64::from(room));
        let heads = more.saturating_mul(u64::from(SPEC.head));
        let later = time_of(rest.saturating_add(heads), rate_bps);
        let uneven = setting.units.len_max > setting.units.len_mean;
        Figures {
            loss_ppb: loss,
            loss_runs_ppb: runs,
            delay_ns: delay_ns.saturating_add(later),
            jitter_ns: jitter_ns.saturating_add(if uneven { later } else { 0 }),
            rate_bps,
        }
    }

    fn cost(&self, _: &Params) -> Cost {
        COST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{internet, service};

    #[test]
    fn a_unit_of_one_packet_changes_nothing() {
        let (setting, below) = (internet(500, 500), service());
        let figures = UnitsOfPackets.figures(&Params::new(), &setting, &below);
        assert_eq!(figures, below.figures);
    }

    #[test]
    fn a_picture_is_lost_with_any_of_its_packets_and_comes_with_its_last() {
        // 14 packets of 1,429 bytes; runs of three.
        let (setting, below) = (internet(20_000, 60_000), service());
        let figures = UnitsOfPackets.figures(&Params::new(), &setting, &below);
        let runs = below.figures.loss_runs_ppb;
        assert_eq!(figures.loss_ppb, below.figures.loss_ppb + 13 * runs);
        assert_eq!(figures.loss_runs_ppb, 14 * runs);
        // 18,575 bytes behind the first packet and 13 headers of 4, at 50 Mbit/s.
        let later = (20_004 - 1_429 + 13 * 4) * 8 * 20;
        assert_eq!(figures.delay_ns, below.figures.delay_ns + later);
        assert_eq!(figures.jitter_ns, below.figures.jitter_ns + later);
        let even = UnitsOfPackets.figures(&Params::new(), &internet(20_000, 20_000), &below);
        assert_eq!(even.jitter_ns, below.figures.jitter_ns);
    }
}
