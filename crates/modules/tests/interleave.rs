//! What `interleave` is for, over a wire that loses in runs: what is lost above comes singly,
//! nothing is lost besides, nothing waits longer than is said; and what is predicted of it, against
//! what happens.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::alone::{Alone, near_in_nine_of_ten};
use common::{
    Loss, Losses, MS, PATH_HEAD, Place, World, checked, dropped, end, lossy, ms, number, once,
    tell, unit,
};
use dacapo_base::Random;
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, PPB, Params, Properties, Property, Runner};
use dacapo_modules::interleaving::interleave::{CONTROL_SET_DEPTH, CONTROL_SET_HOLD, SPEC};
use dacapo_packet::Kind;
use std::collections::BTreeSet;
use std::time::Duration;

fn params(depth: u64, hold: u64) -> Params {
    let mut params = Params::new();
    params.set(0, depth);
    params.set(1, hold);
    params
}

/// How many of so many units are lost, and in how many runs.
fn lost(came: &BTreeSet<u64>, count: u64) -> [u64; 2] {
    let is_lost = |it: u64| !came.contains(&it);
    let begins = |it: u64| is_lost(it) && (it == 0 || !is_lost(it - 1));
    [(0..count).filter(|it| is_lost(*it)).count(), (0..count).filter(|it| begins(*it)).count()]
        .map(|it| it as u64)
}

fn mean([lost, runs]: [u64; 2]) -> f64 {
    lost as f64 / runs as f64
}

/// What is lost of so many packets, `every` so often, over a wire that loses in runs.
fn lost_of(
    places: &[Place<'_>],
    (loss, burst): (f64, f64),
    every: Duration,
    seed: u64,
) -> [u64; 2] {
    let count = 2_000;
    let losses = Losses::new(loss, burst, every, seed);
    let mut world = World::new(places, Loss::Runs(Box::new(losses)), ms(0), seed);
    world.run((0..count).map(|number| unit(number, 20 + number as usize % 900)), every);
    assert_eq!(world.sent[0], count, "seed {seed}: each leaves once");
    for end in [&world.a, &world.b] {
        assert_eq!(end.pool.live_views(), 0, "seed {seed}: something is kept for nothing");
        assert_eq!(end.runner.next_deadline(), None, "seed {seed}");
    }
    lost(&once(&world), count)
}

#[test]
fn over_two_hundred_seeds_what_was_lost_in_runs_is_lost_singly() {
    let (mut with, mut without, mut says) = ([0, 0], [0, 0], 0.0);
    for seed in 0..200 {
        let mut random = Random::from_number(seed);
        let (loss, burst) = (0.01 + 0.04 * random.unit(), 2.0 + 4.0 * random.unit());
        let every = Duration::from_micros(1_000 + random.below(4_000));
        let params = params(40 + random.below(25), 500 * MS);
        let places: &[Place<'_>] = &[("interleave", params.values())];
        for (sum, places) in [(&mut with, places), (&mut without, &[])] {
            let lost = lost_of(places, (loss, burst), every, seed);
            *sum = [sum[0] + lost[0], sum[1] + lost[1]];
        }
        let (setting, below) = lossy((loss * PPB as f64) as u64, (burst * 1e3) as u64, every);
        let figures = SPEC.profile.figures(&params, &setting, &below);
        says += figures.loss_ppb as f64 / figures.loss_runs_ppb as f64 / 200.0;
    }
    let [mean_with, mean_without] = [with, without].map(mean);
    println!(
        "{without:?} lost and runs without, of {mean_without:.2}; {with:?} with, of \
         {mean_with:.3}; {says:.3} predicted"
    );
    assert!(mean_without > 3.0 && mean_with < 1.1);
    assert!((mean_with / says - 1.0).abs() < 0.06, "{says}");
    // The wire takes as much of either.
    assert!((with[0] as f64 / without[0] as f64 - 1.0).abs() < 0.05);
}

#[test]
fn runs_are_as_long_as_is_predicted_of_blocks_of_any_size() {
    for (loss, burst, depth, hold) in [
        (0.05, 4.0, 2, 500 * MS),
        (0.05, 4.0, 8, 500 * MS),
        (0.02, 8.0, 16, 500 * MS),
        (0.02, 8.0, 64, 500 * MS),
        (0.05, 3.0, 64, 20 * MS),
        (0.05, 1.0, 16, 100 * MS),
    ] {
        let (params, every) = (params(depth, hold), ms(2));
        let places: &[Place<'_>] = &[("interleave", params.values())];
        let of = |seed| lost_of(places, (loss, burst), every, seed);
        let sum = (0..60).map(of).fold([0, 0], |sum, it| [sum[0] + it[0], sum[1] + it[1]]);
        let (setting, below) = lossy((loss * PPB as f64) as u64, (burst * 1e3) as u64, every);
        let figures = SPEC.profile.figures(&params, &setting, &below);
        let says = figures.loss_ppb as f64 / figures.loss_runs_ppb as f64;
        let is = mean(sum);
        println!("{loss} in runs of {burst}, {depth} in {hold} ns: {is:.3}, {says:.3} predicted");
        assert!((is / says - 1.0).abs() < 0.1, "{is}, {says} predicted");
    }
}

#[test]
fn where_nothing_is_lost_everything_comes_and_no_later_than_is_predicted() {
    for seed in 0..200 {
        let mut random = Random::from_number(seed);
        let every = Duration::from_micros(500 + random.below(20_000));
        let (depth, hold) = (2 + random.below(63), (1 + random.below(500)) * MS);
        let (params, count) = (params(depth, hold), 400);
        let places: &[Place<'_>] = &[("interleave", params.values())];
        let mut world = World::new(places, Loss::Single(0.0), ms(0), seed);
        let start = world.a.now;
        world.run((0..count).map(|number| unit(number, 20)), every);
        assert_eq!(once(&world).len() as u64, count, "seed {seed}");
        let (setting, below) = lossy(0, 1_000, every);
        let says = SPEC.profile.figures(&params, &setting, &below).delay_ns;
        let bound = 20 * MS + 2 * hold;
        assert!(says <= bound, "seed {seed}");
        for (at, bytes) in &world.came {
            let number = number(bytes);
            let took = at.since(start + every * number as u32).as_nanos() as u64;
            assert!(took <= bound, "seed {seed}: {number} took {took}");
            // How often packets come is rounded to a millionth of it; and the last blocks wait for
            // packets that do not come.
            let is_within = took <= says + says / 100_000 || number + 2 * depth >= count;
            assert!(is_within, "seed {seed}: {number} took {took}, {says} predicted");
        }
    }
}

/// Bursts and pauses, units of several packets, and parameters that change.
#[test]
fn whatever_comes_when_it_leaves_once_within_twice_hold_and_few_wait() {
    for seed in 0..200 {
        let mut random = Random::from_number(seed);
        let hold = (1 + random.below(100)) * MS;
        let place = ("interleave", &[(0, 2 + random.below(63)), (1, hold)][..]);
        let (mut a, mut b) =
            (end(&[("segment", &[]), place], 9_000), end(&[("segment", &[])], 9_000));
        let (mut came, mut sent) = (BTreeSet::new(), 0);
        for step in 0..300 {
            for _ in 0..random.below(4) {
                assert!(a.feed(&unit(sent, 8 + random.below(8_000) as usize)));
                sent += 1;
            }
            if step % 20 == 7 {
                let depth = 2 + random.below(63);
                let message = [&[CONTROL_SET_DEPTH][..], &depth.to_be_bytes()].concat();
                a.with(|runner, around| runner.control(around, 1, &message)).unwrap();
            }
            let at_once = a.wire();
            assert!(a.pool.live_views() <= 128, "seed {seed}: {} wait", a.pool.live_views());
            let pause = Duration::from_nanos(random.below(3) * random.below(hold));
            a.pass(pause);
            b.pass(pause);
            for datagram in at_once.into_iter().chain(a.wire()) {
                assert!(b.handle_bytes(&datagram));
            }
            came.extend(b.units().iter().map(|unit| number(unit)));
        }
        a.pass(Duration::from_nanos(2 * hold));
        assert_eq!(
            (a.pool.live_views() - a.runner.take_down().len(), a.runner.next_deadline()),
            (0, None)
        );
        a.wire().iter().for_each(|it| assert!(b.handle_bytes(it)));
        came.extend(b.units().iter().map(|unit| number(unit)));
        assert_eq!(came, (0..sent).collect(), "seed {seed}");
        [&mut a, &mut b].into_iter().for_each(End::flush);
    }
}

/// What is on the wire now, by its numbers.
fn wire(end: &mut End) -> Vec<u64> {
    end.wire().iter().map(|it| number(it)).collect()
}

#[test]
fn one_leaves_for_each_that_comes_and_neighbours_far_apart() {
    let mut end = end(&[("interleave", &[(0, 8)])], 1_000);
    let mut left = Vec::new();
    for number in 0..24 {
        assert!(end.feed(&unit(number, 20)));
        let now = wire(&mut end);
        assert_eq!(now.len(), usize::from(number >= 7), "{number}");
        left.extend(now);
    }
    let block = [4, 1, 6, 3, 0, 5, 2, 7];
    let expected = block.iter().copied().chain(block.iter().map(|it| it + 8)).chain([20]);
    assert_eq!(left, expected.collect::<Vec<_>>());
    end.flush();
    assert_eq!(dropped(&end, DropReason::Shutdown), 7);
}

#[test]
fn a_block_that_does_not_fill_leaves_evenly_a_hold_after_its_first() {
    let mut end = end(&[("interleave", &[(0, 8), (1, 40 * MS)])], 1_000);
    let start = end.now;
    for number in 0..4 {
        assert!(end.feed(&unit(number, 20)));
        end.now += ms(1);
    }
    let mut left = Vec::new();
    while let Some(due) = end.runner.next_deadline() {
        end.now = due;
        end.fire();
        left.extend(wire(&mut end).into_iter().map(|it| (due.since(start).as_millis(), it)));
    }
    assert_eq!(left, [(40, 1), (50, 3), (60, 0), (70, 2)]);
    end.flush();
}

#[test]
fn a_train_leaves_as_its_packets() {
    let mut end = end(&[("segment", &[]), ("interleave", &[(0, 5)])], 20_000);
    // Ten packets; the index of a segment is in the last two bytes of its header.
    assert!(end.feed(&unit(7, 14_000)));
    let index = |it: &Vec<u8>| it[3];
    let packets: Vec<_> = end.runner.take_down().drain().collect();
    assert!(packets.iter().all(|it| !it.is_train()));
    let left: Vec<_> = packets.iter().map(|it| index(&end.pool.segment(it, 0).to_vec())).collect();
    assert_eq!(left, [4, 1, 3, 0, 2, 9]);
    packets.into_iter().for_each(|packet| end.pool.free(packet));
    end.with(Runner::drain);
    assert_eq!(end.wire().iter().map(index).collect::<Vec<_>>(), [6, 8, 5, 7]);
    end.flush();
}

fn feed(end: &mut End, number: u64, kind: Kind) {
    let mut packet = end.pool.packet_from(PATH_HEAD, &unit(number, 20), 0).unwrap();
    packet.set_kind(kind);
    end.with(|runner, around| {
        runner.feed(around, packet);
        runner.run(around);
    });
}

#[test]
fn what_modules_above_say_passes_at_once_and_their_parities_in_a_flow_do_not() {
    let mut end = end(&[("interleave", &[(0, 4)])], 1_000);
    feed(&mut end, 7, Kind::Parity);
    assert_eq!((wire(&mut end), end.runner.next_deadline()), (vec![7], None));
    feed(&mut end, 0, Kind::Data);
    (1..4).for_each(|number| feed(&mut end, number, Kind::Parity));
    assert_eq!(wire(&mut end), [1]);
    end.with(Runner::drain);
    assert_eq!(wire(&mut end), [3, 0, 2]);
    end.flush();
}

#[test]
fn a_mark_and_a_drain_send_all_that_waits_before_them() {
    let mut end = end(&[("interleave", &[(0, 8)])], 1_000);
    (0..11).for_each(|number| assert!(end.feed(&unit(number, 20))));
    assert_eq!(wire(&mut end), [4, 1, 6, 3]);
    feed(&mut end, 99, Kind::Mark);
    assert_eq!(wire(&mut end), [0, 5, 2, 7, 9, 8, 10, 99]);
    assert_eq!(end.runner.next_deadline(), None);
    (0..3).for_each(|number| assert!(end.feed(&unit(number, 20))));
    assert!(end.wire().is_empty() && end.runner.next_deadline().is_some());
    end.with(Runner::drain);
    assert_eq!((wire(&mut end).len(), end.runner.next_deadline()), (3, None));
    end.flush();
}

#[test]
fn depth_and_hold_change_also_for_what_waits() {
    let mut end = end(&[("interleave", &[(0, 8), (1, 100 * MS)])], 1_000);
    let start = end.now;
    (0..5).for_each(|number| assert!(end.feed(&unit(number, 20))));
    tell(&mut end, CONTROL_SET_HOLD, 30 * MS);
    assert_eq!(end.runner.next_deadline(), Some(start + ms(30)));
    tell(&mut end, CONTROL_SET_DEPTH, 5);
    assert_eq!(end.runner.next_deadline(), Some(start));
    end.fire();
    assert_eq!(wire(&mut end), [4]);
    assert_eq!(end.runner.next_deadline(), Some(start + ms(6)));
    tell(&mut end, CONTROL_SET_HOLD, 10 * MS);
    assert_eq!(end.runner.next_deadline(), Some(start + ms(2)));
    end.flush();
}

#[test]
fn it_stands_below_all_that_needs_order_or_makes_good_and_is_taken_by_name_only() {
    let properties =
        &[Property::Boundaries, Property::Order, Property::NoDuplicates, Property::WayBack];
    let own = ("interleave", &[][..]);
    let checked = |places: &[Place<'_>]| checked(places, properties);
    assert_eq!(checked(&[("segment", &[]), ("sequence", &[]), ("fec-rs", &[]), own]), Ok(()));
    for upper in ["sequence", "dedup", "arq-nak", "arq-sr", "repeat", "fec-rlc", "fec-xor"] {
        let illegal = checked(&[("segment", &[]), own, (upper, &[])]).unwrap_err().to_string();
        let text = format!("\"interleave\" must stand below \"{upper}\", which does ");
        assert!(illegal.starts_with(&text), "{illegal}");
    }
    let above = SPEC.above(&[], Properties::of(&properties[..3]));
    assert_eq!(above, Properties::of(&[Property::Boundaries, Property::NoDuplicates]));
    assert!(!SPEC.profile.suits(&lossy(0, 1_000, ms(5)).0));
}

/// Paths, flows and blocks that are drawn; the delay within two packets where that is more.
#[test]
fn what_is_predicted_is_near_in_nine_of_ten() {
    near_in_nine_of_ten(|seed| {
        let mut random = Random::from_number(seed);
        let every = Duration::from_micros(1_000 + random.below(9_000));
        let loss_ppb = 1_000_000 + random.below(PPB / 10);
        let burst_milli = 1_000 + random.below(2) * random.below(7_000);
        let params = params(2 + random.below(63), (1 + random.below(500)) * MS);
        let alone = Alone { spec: &SPEC, params, loss_ppb, burst_milli, every, seed };
        alone.near_of_use(u64::MAX, 2, None)
    });
}

/// The share that stays lost, or comes more than so long after it left first, of packets every two
/// milliseconds; and how many packets leave for each.
fn missing(places: &[Place<'_>], (loss, burst): (f64, f64), useful: Duration) -> [f64; 2] {
    let (count, seeds, every) = (4_000, 20, ms(2));
    let (mut missing, mut sent) = (0, 0);
    for seed in 0..seeds {
        let losses = Losses::new(loss, burst, every, seed);
        let mut world = World::new(places, Loss::Runs(Box::new(losses)), ms(0), seed);
        let start = world.a.now;
        world.run((0..count).map(|number| unit(number, 20)), every);
        let is_of_use = |(at, bytes): &&(dacapo_base::Time, Vec<u8>)| {
            at.since(start + every * number(bytes) as u32) <= ms(20) + useful
        };
        missing += count - world.came.iter().filter(is_of_use).count() as u64;
        sent += world.sent[0];
    }
    let all = (count * seeds) as f64;
    [missing as f64 / all, sent as f64 / all]
}

/// With the same time and as many packets: parity of blocks that leave interleaved, and of longer
/// blocks, columns or windows without it.
#[test]
fn within_the_same_time_longer_blocks_leave_less_than_short_ones_that_are_interleaved() {
    let deep = [(0, 60), (1, 95 * MS)];
    let (short, long) = ([(0, 10), (1, 3), (2, 50 * MS)], [(0, 75), (1, 22), (2, 200 * MS)]);
    let (row, columns) =
        ([(0, 1), (1, 4), (2, 1), (3, 100 * MS)], [(0, 2), (1, 20), (2, 4), (3, 180 * MS)]);
    let windows = [(0, 30), (1, 90), (2, 180 * MS)];
    let graphs: [(&str, &[Place<'_>]); 7] = [
        ("nothing", &[]),
        ("rs 10+3", &[("fec-rs", &short)]),
        ("rs 10+3, interleaved", &[("fec-rs", &short), ("interleave", &deep)]),
        ("rs 75+22", &[("fec-rs", &long)]),
        ("xor rows of 4, interleaved", &[("fec-xor", &row), ("interleave", &deep)]),
        ("xor columns of 4, 20", &[("fec-xor", &columns)]),
        ("rlc 30 %, 90", &[("fec-rlc", &windows)]),
    ];
    for path in [(0.02, 4.0), (0.05, 4.0), (0.02, 8.0)] {
        let left = graphs.map(|(name, places)| {
            let [missing, sent] = missing(places, path, ms(200));
            println!("{path:?}: {name}: {:.3} %, {sent:.2} packets", 100.0 * missing);
            missing
        });
        assert!(left[2] < left[1] && left[3] < left[2] && left[5] <= left[4] && left[6] < left[2]);
    }
}

#[test]
fn of_units_of_several_packets_more_are_broken_by_single_losses_than_by_runs() {
    let broken = |place: &[Place<'_>]| {
        let places = [&[("segment", &[][..])][..], place].concat();
        let losses = Losses::new(0.02, 4.0, ms(5), 3);
        let mut world = World::new(&places, Loss::Runs(Box::new(losses)), ms(0), 3);
        world.run((0..4_000).map(|number| unit(number, 7_000)), ms(25));
        4_000 - once(&world).len()
    };
    let (without, with) = (broken(&[]), broken(&[("interleave", &[(0, 40), (1, 500 * MS)])]));
    println!("{without} of 4,000 without, {with} with");
    assert!(with > without);
}
