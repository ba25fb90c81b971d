//! Options and engines of seeds, and how many seeds there are.

use dacapo_base::Random;
use dacapo_base::seeds::{each_seed, number};
use dacapo_xtp::wire::Limits;
use dacapo_xtp::{Config, Mode, Retransmission, Timers};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SEEDS: u64 = 100;

pub fn mode(random: &mut Random) -> Mode {
    let is_selective = random.chance(0.7);
    let has_rate = random.chance(0.2);
    Mode {
        fast_report: random.chance(0.7),
        edge: random.chance(0.2),
        sort: random.chance(0.3).then(|| random.next_u32() as u16),
        retransmission: if is_selective {
            Retransmission::Selective
        } else {
            Retransmission::GoBackN
        },
        limits: Limits {
            out_rate: if has_rate { 1_000_000 } else { 0 },
            out_burst: 8_000,
            ..Limits::default()
        },
        ..Mode::default()
    }
}

/// A link that loses half of all round trips needs patience: ten retries in a row fail once in a
/// thousand handshakes, and as long as one end asks the other has to remember that it was over.
pub fn config(random: &mut Random) -> Config {
    let timers = Timers {
        retries_max: 60,
        wait_max: Duration::from_secs(2),
        give_up: Duration::from_secs(600),
        inactive_min: Duration::from_secs(600),
        ..Timers::default()
    };
    Config {
        packet_len_max: 300 + random.below(1_200) as usize,
        buffer_len: 8_192 << random.below(4),
        first_window: 2_000 + random.below(64_000),
        timers,
        ..Config::default()
    }
}

/// Runs every seed, or the one that `XTP_SEED` names.
pub fn each(what: &str, run: impl Fn(u64) -> u64 + Sync) {
    each_of(SEEDS, what, run);
}

/// The same, of so many seeds where `XTP_SEEDS` does not say how many.
pub fn each_of(seeds: u64, what: &str, run: impl Fn(u64) -> u64 + Sync) {
    let one = number("XTP_SEED", u64::MAX);
    if one != u64::MAX {
        println!("{what}: {} packets", run(one));
        return;
    }
    let packets = AtomicU64::new(0);
    let count = number("XTP_SEEDS", seeds);
    each_seed(0..count, |seed| {
        packets.fetch_add(run(seed), Ordering::Relaxed);
    });
    println!("{what}: {count} seeds, {} packets", packets.into_inner());
}
