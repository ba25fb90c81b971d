//! [`specs`]: the transports that flows choose among.

use crate::{quic, shm, tcp, udp, xtp};
use dacapo_lift::TransportSpec;

/// Every transport that carries flows between hosts, for a catalogue.
#[must_use]
pub fn specs() -> Vec<&'static TransportSpec> {
    let groups = [&udp::GROUP_SPEC, &tcp::GROUP_SPEC];
    let quic = [&quic::SPEC, &quic::SPEC_DATAGRAM];
    let xtp = [&xtp::SPEC, &xtp::SPEC_DATAGRAM];
    [&[&udp::SPEC, &tcp::SPEC, &shm::SPEC], &groups[..], &quic, &xtp].concat()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use dacapo_base::Random;
    use dacapo_lift::{PPB, Path, Setting, Units};

    /// Half a percent of loss in runs of three, 30 to 40 ms, 50 Mbit/s; 50 units per second.
    pub(crate) fn internet() -> Setting {
        let path = Path {
            datagram_len: 1_452,
            rate_bps: 50_000_000,
            delay_ns: 30_000_000,
            jitter_ns: 10_000_000,
            loss_ppb: 5_000_000,
            burst_milli: 3_000,
        };
        let units = Units { len_mean: 500, len_max: 500, per_ks: 50_000, divisible: false };
        Setting { path, units, bound_bps: 0 }
    }

    #[test]
    fn numbers_and_names_are_those_of_the_wire() {
        let known: Vec<_> = specs().iter().map(|spec| (spec.id, spec.name)).collect();
        let multicast = [(6, "udp-multicast"), (10, "tcp-multicast")];
        assert_eq!(known[..3], [(1, "udp"), (3, "tcp"), (9, "shm")]);
        assert_eq!(known[3..5], multicast);
        assert_eq!(known[5..7], [(7, "quic"), (8, "quic-datagram")]);
        assert_eq!(known[7..], [(11, "xtp"), (12, "xtp-datagram")]);
    }

    /// A number of any magnitude, to the end of the numbers.
    fn wide(random: &mut Random) -> u64 {
        random.next_u64() >> random.below(64)
    }

    fn setting(random: &mut Random) -> Setting {
        let path = Path {
            datagram_len: wide(random) as u32,
            rate_bps: wide(random),
            delay_ns: wide(random),
            jitter_ns: wide(random),
            loss_ppb: random.below(PPB + 1) >> random.below(31),
            burst_milli: wide(random),
        };
        let len_mean = (wide(random) as u32).max(1);
        let units =
            Units { len_mean, len_max: len_mean, per_ks: wide(random).max(1), divisible: false };
        Setting { path, units, bound_bps: if random.chance(0.5) { 0 } else { wide(random) } }
    }

    #[test]
    fn figures_are_sound_whatever_the_setting() {
        for seed in 0..20_000 {
            let setting = setting(&mut Random::from_number(seed));
            for spec in specs() {
                let figures = spec.profile.figures(&setting);
                let is_sound = figures.loss_runs_ppb <= figures.loss_ppb
                    && figures.loss_ppb <= PPB
                    && figures.jitter_ns <= figures.delay_ns
                    && figures.rate_bps <= setting.path.rate_bps
                    && (setting.bound_bps == 0 || figures.rate_bps <= setting.bound_bps);
                assert!(is_sound, "seed {seed}: {}: {setting:?} {figures:?}", spec.name);
                assert_eq!(figures, spec.profile.figures(&setting), "seed {seed}");
            }
        }
    }
}
