//! What `repeat` is for, over a wire that loses: fewer units are lost, and none comes twice where
//! something above tells them apart; and what is predicted of it, against what happens.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{
    Loss, Losses, MS, PATH_HEAD, Place, World, checked, dropped, end, hoard, lossy, ms, number,
    numbers, tell, unit,
};
use dacapo_base::{Random, Time};
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, PPB, Properties, Property, Runner};
use dacapo_modules::redundancy::repeat::{BEHIND_MAX, SPEC};
use dacapo_packet::Packet;
use std::collections::BTreeSet;

#[test]
fn of_five_percent_losses_fewer_than_half_a_percent_remain_and_nothing_comes_twice() {
    for seed in 0..3 {
        let places: &[Place<'_>] = &[
            ("segment", &[]),
            ("sequence", &[(0, 25 * MS)]),
            ("repeat", &[(0, 1), (1, 20 * MS)]),
            ("checksum", &[]),
        ];
        let mut world = World::new(places, Loss::Single(0.05), ms(5), seed);
        let mut random = Random::from_number(seed);
        let count = 20_000;
        let units = (0..count).map(|number| unit(number, random.below(1_400) as usize));
        world.run(units, ms(5));
        let order: Vec<u64> = world.came.iter().map(|(_, unit)| number(unit)).collect();
        assert!(order.is_sorted_by(|a, b| a < b), "seed {seed}: twice, or out of order");
        let lost = count - order.len() as u64;
        // One of 400 is what the profile predicts.
        assert!((20..count / 200).contains(&lost), "seed {seed}: {lost} of {count} lost");
        [&mut world.a, &mut world.b].into_iter().for_each(End::flush);
    }
}

#[test]
fn without_it_the_same_wire_takes_one_of_twenty() {
    let places: &[Place<'_>] =
        &[("segment", &[]), ("sequence", &[(0, 25 * MS)]), ("checksum", &[])];
    let mut world = World::new(places, Loss::Single(0.05), ms(5), 0);
    world.run((0..20_000).map(|number| unit(number, 700)), ms(5));
    let lost = 20_000 - world.came.len();
    assert!((900..1_100).contains(&lost), "{lost}");
}

#[test]
fn segment_takes_repeated_segments_and_units_once_and_keeps_no_ghosts() {
    for seed in 0..6 {
        // Late copies meet units that are whole, given up, half there, and long gone.
        let gap = [1, 20, 300][seed as usize % 3] * MS;
        let places: &[Place<'_>] = &[("segment", &[(0, 30 * MS)]), ("repeat", &[(0, 3), (1, gap)])];
        let mut world = World::new(places, Loss::Single(0.1), ms(40), seed);
        let mut random = Random::from_number(seed);
        let count = 3_000;
        let units = (0..count).map(|number| unit(number, random.below(7_000) as usize));
        world.run(units, ms(2));
        let once = numbers(&world);
        assert_eq!(once.len(), world.came.len(), "seed {seed}: a unit came twice");
        // Copies that come after `patience` are of no use to units of several packets.
        let least = if gap > 30 * MS { count * 6 / 10 } else { count * 9 / 10 };
        assert!(once.len() as u64 > least, "seed {seed}: {} came", once.len());
        // At most 256 units of 5 segments wait, and 5 are in hand.
        assert!(world.views_max <= 256 * 5 + 5, "seed {seed}: {} views", world.views_max);
        assert_eq!(world.b.pool.live_views(), 0, "seed {seed}: segments wait for nothing");
        assert_eq!(world.b.runner.next_deadline(), None, "seed {seed}");
    }
}

#[test]
fn it_stands_below_sequence_and_takes_the_order_of_what_is_below_away() {
    let properties = &[Property::Boundaries, Property::Order, Property::NoDuplicates];
    let checked = |places: &[Place<'_>]| checked(places, properties);
    assert_eq!(checked(&[("segment", &[]), ("sequence", &[]), ("repeat", &[])]), Ok(()));
    let illegal = checked(&[("segment", &[]), ("repeat", &[]), ("sequence", &[])]).unwrap_err();
    assert_eq!(
        illegal.to_string(),
        "\"repeat\" must stand below \"sequence\", which does ordering"
    );
    let above = SPEC.above(&[], Properties::of(properties));
    assert_eq!(above, Properties::of(&[Property::Boundaries]));
}

#[test]
fn alone_it_passes_up_whatever_comes() {
    let places: &[Place<'_>] = &[("repeat", &[(0, 2), (1, 10 * MS)])];
    let mut world = World::new(places, Loss::Single(0.0), ms(0), 0);
    world.run((0..100).map(|number| unit(number, 100)), ms(5));
    assert_eq!(world.came.len(), 300);
    assert_eq!(numbers(&world).len(), 100);
}

#[test]
fn as_much_is_lost_in_runs_as_is_predicted() {
    for (loss_ppb, burst_milli) in
        [(50_000_000, 1_000), (20_000_000, 5_000), (100_000_000, 3_000), (5_000_000, 10_000)]
    {
        let (setting, below) = lossy(loss_ppb, burst_milli, ms(5));
        for params in SPEC.profile.points(&setting, &below) {
            let predicted = SPEC.profile.figures(&params, &setting, &below);
            let (share, burst) = (loss_ppb as f64 / PPB as f64, burst_milli as f64 / 1e3);
            let losses = Losses::new(share, burst, ms(5), 7);
            let places: &[Place<'_>] = &[("repeat", params.values())];
            let mut world = World::new(places, Loss::Runs(Box::new(losses)), ms(0), 7);
            let count = 40_000;
            world.run((0..count).map(|number| unit(number, 20)), ms(5));
            let came = numbers(&world);
            let lost: Vec<u64> = (0..count).filter(|number| !came.contains(number)).collect();
            let runs =
                lost.iter().filter(|it| it.checked_sub(1).is_none_or(|it| came.contains(&it)));
            let what = format!("{share} in runs of {burst}, {params:?}");
            // Losses come in runs, so their number scatters more than that of runs.
            check_near(lost.len(), predicted.loss_ppb, count, 2.0 * burst, &what);
            check_near(runs.count(), predicted.loss_runs_ppb, count, 1.0, &what);
        }
    }
}

/// Whether so many of `count` are the share `predicted`, give or take chance (four times its
/// standard deviation, when they come `together` at a time) and a quarter.
fn check_near(is: usize, predicted_ppb: u64, count: u64, together: f64, what: &str) {
    let expected = predicted_ppb as f64 * count as f64 / PPB as f64;
    let scatter = 4.0 * (expected * together).sqrt() + 3.0;
    let is_near = (is as f64 - expected).abs() < scatter + expected * 0.25;
    assert!(is_near, "{what}: {is} of {count}, {expected:.1} predicted");
}

#[test]
fn a_copy_of_a_train_is_the_train_again_ready_to_be_sent() {
    let mut end = end(&[("segment", &[]), ("repeat", &[]), ("checksum", &[])], 20_000);
    assert!(end.feed(&unit(7, 9_000)));
    let first: Vec<Packet> = end.runner.take_down().drain().collect();
    end.now += ms(20);
    end.fire();
    let again: Vec<Packet> = end.runner.take_down().drain().collect();
    assert_eq!(first.len(), again.len());
    for (mut first, mut again) in first.into_iter().zip(again) {
        assert!(first.is_train() && again.segment_count() == first.segment_count());
        for packet in [&mut first, &mut again] {
            end.pool.push_head(packet, PATH_HEAD).unwrap();
            for at in 0..packet.segment_count() {
                end.pool.head_mut(packet, at, PATH_HEAD).fill(9);
            }
        }
        let bytes = end.pool.contiguous(&first).map(|(bytes, len)| (bytes.to_vec(), len));
        assert!(bytes.is_some());
        assert_eq!(bytes, end.pool.contiguous(&again).map(|(bytes, len)| (bytes.to_vec(), len)));
        assert_eq!(again.time, first.time, "a copy is as old as what it copies");
        end.pool.free(first);
        end.pool.free(again);
    }
    end.flush();
}

#[test]
fn at_the_bound_copies_are_given_up_and_never_the_packets_themselves() {
    let mut end = end(&[("repeat", &[])], 1_000);
    for number in 0..1_500 {
        assert!(end.feed(&unit(number, 20)));
    }
    assert_eq!(end.wire().len(), 1_500);
    assert_eq!(dropped(&end, DropReason::Overflow), 1_500 - 1_024);
    end.now += ms(20);
    // Each call sends a batch, and asks for the next one at once.
    let mut copies = Vec::new();
    while end.runner.next_deadline().is_some_and(|at| at <= end.now) {
        end.fire();
        let batch = end.wire();
        assert!((1..=32).contains(&batch.len()), "{}", batch.len());
        copies.extend(batch);
    }
    let first: Vec<_> = (0..1_024).map(|number| unit(number, 20)).collect();
    assert!(copies == first, "{} copies", copies.len());
    end.flush();
}

#[test]
fn drain_sends_all_that_waits_once_and_at_once() {
    let mut end = end(&[("repeat", &[(0, 3)])], 1_000);
    for number in 0..1_024 {
        assert!(end.feed(&unit(number, 20)));
    }
    end.wire();
    end.with(Runner::drain);
    assert_eq!(end.wire().len(), 1_024);
    assert_eq!(end.runner.next_deadline(), None);
    assert!(end.feed(&unit(7, 20)));
    assert_eq!(end.runner.next_deadline(), Some(end.now + ms(20)), "it goes on after a drain");
    end.flush();
}

#[test]
fn a_copy_that_is_too_many_packets_late_is_not_sent() {
    let mut end = end(&[("repeat", &[])], 1_000);
    assert!(end.feed(&unit(0, 20)));
    end.now += ms(10);
    for number in 1..=BEHIND_MAX + 1 {
        assert!(end.feed(&unit(number, 20)));
        end.wire();
    }
    end.now += ms(10);
    end.fire();
    assert_eq!(end.wire().len(), 0);
    assert_eq!(dropped(&end, DropReason::Stale), 1);
    end.flush();
}

#[test]
fn without_memory_the_copy_is_given_up_and_counted() {
    let mut end = end(&[("repeat", &[])], 1_000);
    assert!(end.feed(&unit(0, 20)));
    assert_eq!(end.wire().len(), 1);
    let hoard = hoard(&mut end);
    end.now += ms(20);
    end.fire();
    assert_eq!(end.wire().len(), 0);
    assert_eq!(dropped(&end, DropReason::NoMemory), 1);
    hoard.into_iter().for_each(|packet| end.pool.free(packet));
    end.flush();
}

#[test]
fn gap_changes_also_for_what_waits_and_copies_for_what_follows() {
    let mut end = end(&[("repeat", &[])], 1_000);
    let start = end.now;
    assert!(end.feed(&unit(0, 20)));
    tell(&mut end, 2, 5 * MS);
    tell(&mut end, 1, 2);
    assert_eq!(end.runner.next_deadline(), Some(start + ms(5)));
    assert_eq!(end.runner.patience(), ms(10));
    end.wire();
    end.now = start + ms(5);
    end.fire();
    assert_eq!((end.wire().len(), end.runner.next_deadline()), (1, None));
    assert!(end.feed(&unit(1, 20)));
    assert_eq!(end.wire().len(), 1);
    let times: Vec<Time> = std::iter::from_fn(|| {
        end.now = end.runner.next_deadline()?;
        end.fire();
        assert_eq!(end.wire(), [unit(1, 20)]);
        Some(end.now)
    })
    .collect();
    assert_eq!(times, [start + ms(10), start + ms(15)]);
    end.flush();
}

/// Packets a millisecond apart, and copies of others, over a way that is cut for some time: how
/// many of the last 3,000 come.
fn come_after_a_cut(places: &[Place<'_>], cut: std::ops::Range<u64>) -> usize {
    let (mut a, mut b) = (end(places, 1_000), end(places, 1_000));
    let (mut came, count) = (BTreeSet::new(), cut.end + 4_000);
    for at in 0..count {
        assert!(a.feed(&unit(at, 20)));
        a.pass(ms(1));
        b.pass(ms(1));
        for datagram in a.wire() {
            if !cut.contains(&at) {
                assert!(b.handle_bytes(&datagram));
            }
        }
        came.extend(b.units().iter().map(|unit| number(unit)));
        b.wire().iter().for_each(|datagram| assert!(a.handle_bytes(datagram)));
    }
    [a, b].iter_mut().for_each(End::flush);
    came.range(count - 3_000..).count()
}

#[test]
fn after_a_long_cut_packets_are_believed_though_copies_of_others_come_between_them() {
    for gap in [60, 300] {
        let repeat = ("repeat", &[(0, 1), (1, gap * MS)][..]);
        let above = ("sequence", &[(0, 100 * MS)][..]);
        let came = come_after_a_cut(&[above, repeat], 1_000..12_000);
        assert!(came > 2_800, "{came} of 3,000 below `sequence`, {gap} ms apart");
        let above = ("arq-nak", &[(0, 50 * MS)][..]);
        let came = come_after_a_cut(&[above, repeat], 1_000..2_000);
        assert!(came > 2_800, "{came} of 3,000 below `arq-nak`, {gap} ms apart");
    }
}
