//! What transports say of paths is sound, whatever the path.

use dacapo_base::Random;
use dacapo_lift::{PPB, Path, Setting, TransportSpec, Units};
use dacapo_transport::{quic, shm, tcp, udp, xtp};

/// Every transport that carries flows between hosts.
fn specs() -> Vec<&'static TransportSpec> {
    let all = [udp::entries(), tcp::entries(), shm::entries(), quic::entries(), xtp::entries()];
    all.iter().flatten().map(|entry| entry.spec).collect()
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
    let units = Units {
        len_mean,
        len_max: len_mean,
        per_ks: wide(random).max(1),
        divisible: false,
        is_paced: true,
    };
    let bound_bps = if random.chance(0.5) { 0 } else { wide(random) };
    Setting { bound_bps, useful_ns: wide(random), ..Setting::new(path, units) }
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
