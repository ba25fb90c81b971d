//! Reliable streams both ways over links with every fault: what was written is read, byte by byte.
//!
//! A seed that fails prints the command that repeats it. `XTP_SEEDS` says how many there are.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::world::{Side, World, address};
use dacapo_base::Random;
use dacapo_base::seeds::{each_seed, number};
use dacapo_link::{LinkConfig, Loss};
use dacapo_xtp::wire::Limits;
use dacapo_xtp::{Config, End, Listen, Mode, Open, Retransmission, Timers};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SEEDS: u64 = 100;

/// Each seed another link: up to 30 % loss each way, copies, late ones, flipped bits.
fn link(random: &mut Random) -> LinkConfig {
    let delay = Duration::from_micros(100 + random.below(40_000));
    LinkConfig {
        delay,
        jitter: delay.min(Duration::from_micros(random.below(5_000))),
        keep_order: random.chance(0.5),
        loss: Loss::Random { p: random.unit() * 0.3 },
        duplicate: random.unit() * 0.1,
        reorder: random.unit() * 0.1,
        reorder_by: Duration::from_millis(1 + random.below(15)),
        corrupt_undetected: random.unit() * 0.02,
        ..LinkConfig::default()
    }
}

fn mode(random: &mut Random) -> Mode {
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
fn config(random: &mut Random) -> Config {
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

/// Runs one seed; returns how many packets there were.
fn run(seed: u64) -> u64 {
    let hint = format!("seed {seed}: XTP_SEED={seed} cargo test -p dacapo-xtp --test seeds");
    let random = &mut Random::from_number(seed);
    let (config, mut link) = (config(random), link(random));
    let modes = [mode(random), mode(random)];
    // Who keeps nothing behind a gap gets two packets of a shuffled window, and asks for the rest.
    let goes_back = |mode: &Mode| mode.retransmission == Retransmission::GoBackN;
    link.keep_order |= modes.iter().any(goes_back);
    let mut world = World::new(seed, config, &link);
    world.ends[1].listen(Listen { mode: modes[1], ..Listen::on(7) }).unwrap();
    let ends = (([192, 0, 2, 2], 7).into(), ([192, 0, 2, 1], 9).into());
    let open = Open { mode: modes[0], ..Open::stream(address(1), ends.0, ends.1) };
    // Each message has a packet of its own at least.
    let message_max = 1 + random.below(9_000);
    let len_max = (message_max * 300).min(120_000);
    let (len, back) = (1 + random.below(len_max) as usize, random.below(len_max / 2) as usize);
    let mut sides = [Side::new(random, len, message_max), Side::new(random, back, message_max)];
    sides[0].id = Some(world.ends[0].open(world.now, &open).unwrap());
    world.run(|world| {
        sides.iter_mut().enumerate().for_each(|(end, side)| side.work(world, end));
    });
    let [here, there] = &sides;
    assert!(there.has_all_of(here), "{hint}: there: {}\n{link}", there.progress(here));
    assert!(here.has_all_of(there), "{hint}: here: {}\n{link}", here.progress(there));
    for (end, side) in sides.iter().enumerate() {
        let id = side.id.unwrap();
        assert_eq!(world.ended(end, id), Some(End::Complete), "{hint}: end {end}");
        world.ends[end].release(world.now, id).unwrap();
        assert_eq!(world.ends[end].context_count(), 0, "{hint}");
        assert_eq!(world.ends[end].inactive_count(), 0, "{hint}");
    }
    world.sent.len() as u64
}

#[test]
fn streams_over_bad_links_arrive_whole() {
    let one = number("XTP_SEED", u64::MAX);
    if one != u64::MAX {
        println!("{} packets", run(one));
        return;
    }
    let packets = AtomicU64::new(0);
    let count = number("XTP_SEEDS", SEEDS);
    each_seed(0..count, |seed| {
        packets.fetch_add(run(seed), Ordering::Relaxed);
    });
    println!("{count} seeds, {} packets", packets.into_inner());
}
