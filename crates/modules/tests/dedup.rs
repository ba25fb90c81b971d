//! What `dedup` is for: over a wire that loses, repeats and reorders each unit that comes goes up
//! once, at once, in the order in which it comes.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Loss, MS, Place, World, checked, dropped, end, ms, number, numbers, once, unit};
use dacapo_base::{Random, Time};
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, Properties, Property};
use dacapo_modules::duplicates::dedup::SPEC;
use dacapo_modules::redundancy::repeat;
use dacapo_packet::{Layout, Packet};
use dacapo_wire::sequence::{Header, LEN};
use std::collections::BTreeSet;

const ALONE: &[Place<'_>] = &[("dedup", &[])];

/// The datagrams of so many small units, each by itself.
fn datagrams(sender: &mut End, count: u64) -> Vec<Vec<u8>> {
    let send = |number| {
        assert!(sender.feed(&unit(number, 20)), "room");
        sender.wire()
    };
    (0..count).flat_map(send).collect()
}

/// The numbers of what goes up of one datagram.
fn up(end: &mut End, datagram: &[u8]) -> Vec<u64> {
    assert!(end.handle_bytes(datagram), "room");
    end.units().iter().map(|unit| number(unit)).collect()
}

#[test]
fn each_unit_goes_up_once_and_at_once_over_a_wire_that_loses_repeats_and_reorders() {
    for seed in 0..200 {
        let mut random = Random::from_number(seed);
        let (mut a, mut b) = (end(ALONE, 1_000), end(ALONE, 1_000));
        let mut under_way: Vec<(u64, Vec<u8>)> = Vec::new();
        for (at, datagram) in (0..).zip(datagrams(&mut a, 3_000)) {
            let copies = [0, 1, 1, 1, 1, 2, 3][random.below(7) as usize];
            for _ in 0..copies {
                under_way.push((at + random.below(400), datagram.clone()));
            }
        }
        under_way.sort();
        let mut came = BTreeSet::new();
        for (_, datagram) in &under_way {
            let sent = number(&datagram[LEN..]);
            let is_new = came.insert(sent);
            let got = up(&mut b, datagram);
            assert_eq!(got, if is_new { vec![sent] } else { vec![] }, "seed {seed}");
        }
        let again = (under_way.len() - came.len()) as u64;
        assert_eq!(dropped(&b, DropReason::Duplicate), again, "seed {seed}");
        assert_eq!((b.pool.live_views(), b.runner.next_deadline()), (0, None));
        a.flush();
    }
}

#[test]
fn above_repeat_every_copy_that_is_not_needed_is_dropped_and_nothing_waits() {
    for seed in 0..3 {
        let copies = &[(0, 1 + seed % 3), (1, 20 * MS)];
        let places: &[Place<'_>] = &[("dedup", &[]), ("repeat", copies), ("checksum", &[])];
        let mut world = World::new(places, Loss::Single(0.05), ms(15), seed);
        let start = world.a.now;
        world.run((0..20_000).map(|number| unit(number, 100)), ms(5));
        let came = once(&world);
        assert!(came.len() > 19_900, "seed {seed}: {}", came.len());
        // 99 of 100 came with their first packet or the copy, and waited for no other.
        let late = world
            .came
            .iter()
            .filter(|(at, bytes)| at.since(start + ms(5 * number(bytes))) > ms(20 + 15 + 20));
        assert!(late.count() < 200, "seed {seed}");
        assert!(world.views_max <= 1, "seed {seed}: {} views", world.views_max);
    }
}

#[test]
fn below_segment_units_of_several_packets_come_once() {
    for seed in 0..6 {
        let places: &[Place<'_>] = &[("segment", &[]), ("dedup", &[]), ("repeat", &[(0, 2)])];
        let mut world = World::new(places, Loss::Single(0.05), ms(30), seed);
        let mut random = Random::from_number(seed);
        let units = (0..2_000).map(|number| unit(number, random.below(7_000) as usize));
        world.run(units, ms(2));
        let came = once(&world);
        assert!(came.len() > 1_950, "seed {seed}: {}", came.len());
    }
}

#[test]
fn it_stands_above_what_sends_again_and_gives_no_duplicates() {
    let below = &[Property::Boundaries];
    for places in [
        &[("dedup", &[][..]), ("repeat", &[])][..],
        &[("sequence", &[]), ("dedup", &[]), ("repeat", &[])],
        &[("dedup", &[]), ("repeat", &[]), ("fec-rs", &[])],
    ] {
        let bare = Err(dacapo_lift::Illegal::UnitsTooLarge { unit_len_max: 9_000, packet: 0 });
        let said = checked(places, below).map_err(|illegal| match illegal {
            dacapo_lift::Illegal::UnitsTooLarge { unit_len_max, .. } => {
                dacapo_lift::Illegal::UnitsTooLarge { unit_len_max, packet: 0 }
            }
            other => other,
        });
        assert_eq!(said, bare, "{places:?}: nothing else is wrong");
    }
    for lower in ["repeat", "fec-rs", "fec-rlc", "fec-xor"] {
        let illegal = checked(&[(lower, &[]), ("dedup", &[])], below).unwrap_err().to_string();
        assert_eq!(
            illegal,
            format!("\"{lower}\" must stand below \"dedup\", which does duplicates")
        );
    }
    let given = SPEC.above(&[], repeat::SPEC.above(&[], Properties::of(below)));
    assert_eq!(given, Properties::of(&[Property::Boundaries, Property::NoDuplicates]));
    let ordered = Properties::of(&[Property::Boundaries, Property::Order]);
    assert!(SPEC.above(&[], ordered).contains(Property::Order), "it takes nothing away");
}

#[test]
fn a_train_of_which_some_came_before_goes_up_without_those_and_a_new_one_whole() {
    for seed in 0..200 {
        let mut random = Random::from_number(seed);
        let mut b = end(ALONE, 1_000);
        let mut known = BTreeSet::new();
        for _ in 0..40 {
            let (first, count) = (random.below(150), 1 + random.below(45));
            let sent: Vec<u64> = match random.below(3) {
                0 => (0..count).map(|_| random.below(200)).collect(),
                _ => (first..first + count).collect(),
            };
            let is_new = sent.is_sorted_by(|a, b| a + 1 == *b)
                && sent.iter().all(|number| !known.contains(number));
            let packets = receive_train(&mut b, &sent);
            let parts = packets.len();
            let mut got = Vec::new();
            for packet in packets {
                got.extend(
                    (0..packet.segment_count()).map(|at| number(b.pool.segment(&packet, at))),
                );
                b.pool.free(packet);
            }
            let expected: Vec<u64> =
                sent.into_iter().filter(|number| known.insert(*number)).collect();
            assert_eq!(got, expected, "seed {seed}");
            assert!(!is_new || parts == 1, "seed {seed}: a new train went up in {parts} parts");
        }
        assert_eq!(b.pool.live_views(), 0);
    }
}

/// What goes up of packets with these numbers that came in one train.
fn receive_train(end: &mut End, numbers: &[u64]) -> Vec<Packet> {
    let segment = LEN + 16;
    let layout = Layout { head: 0, tail: 0, segment, segmented: true };
    let mut train = end.pool.alloc_train(&layout, segment * numbers.len()).unwrap();
    for (at, number) in numbers.iter().enumerate() {
        let bytes = [&Header { number: *number as u32 }.emit()[..], &unit(*number, 16)].concat();
        end.pool.write_payload(&train, at * segment, &bytes);
    }
    train.set_unit_ends(true, true);
    end.handle(train);
    end.runner.take_up().drain().collect()
}

#[test]
fn what_is_further_back_than_the_window_is_stale() {
    let (mut a, mut b) = (end(ALONE, 1_000), end(ALONE, 1_000));
    let sent = datagrams(&mut a, 9_000);
    assert_eq!(up(&mut b, &sent[1]), [1]);
    (3..9_000).for_each(|at| assert_eq!(up(&mut b, &sent[at]), [at as u64]));
    // 9,000 less 8,192 is the first that is remembered.
    [0, 1, 2, 807].into_iter().for_each(|at| assert_eq!(up(&mut b, &sent[at]), []));
    assert_eq!((dropped(&b, DropReason::Stale), dropped(&b, DropReason::Duplicate)), (4, 0));
    assert_eq!(up(&mut b, &sent[808]), []);
    assert_eq!(dropped(&b, DropReason::Duplicate), 1);
}

#[test]
fn one_altered_number_costs_one_packet_and_after_a_long_gap_one_is_lost_more() {
    for bit in 0..32 {
        let (mut a, mut b) = (end(ALONE, 1_000), end(ALONE, 1_000));
        let mut sent = datagrams(&mut a, 1_500);
        sent[500][3 - bit / 8] ^= 1 << (bit % 8);
        let mut altered = Vec::new();
        for (at, datagram) in sent[..1_000].iter().enumerate() {
            // Twice, as a network may: it does not confirm itself.
            let got = [up(&mut b, datagram), up(&mut b, datagram)].concat();
            if got != [at as u64] {
                altered.push(at as u64);
            }
        }
        // Where it took the number of another, that one is dropped in its place.
        assert!(altered.len() <= 1, "bit {bit}: {altered:?}");
        let came: Vec<u64> = sent[1_490..].iter().flat_map(|it| up(&mut b, it)).collect();
        assert_eq!(came, (1_491..1_500).collect::<Vec<u64>>(), "bit {bit}");
    }
}

#[test]
fn a_path_that_was_cut_goes_on_where_packets_and_copies_come_in_turn() {
    let places: &[Place<'_>] = &[("dedup", &[]), ("repeat", &[(0, 3), (1, 300 * MS)])];
    let (mut a, mut b) = (end(places, 1_000), end(places, 1_000));
    let mut came = BTreeSet::new();
    for at in 0..20_000 {
        assert!(a.feed(&unit(at, 20)));
        a.fire();
        let is_cut = (1_000..15_000).contains(&at);
        for datagram in a.wire().iter().filter(|_| !is_cut) {
            for unit in up(&mut b, datagram) {
                assert!(came.insert(unit), "{unit} twice");
            }
        }
        a.now += ms(1);
        b.now = a.now;
    }
    assert_eq!(came.range(15_010..19_000).count(), 3_990, "all that follow come");
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn whatever_comes_is_passed_on_or_counted() {
    let mut random = Random::from_number(7);
    let mut b = end(ALONE, 2_000);
    let (mut put, mut got) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = vec![0; 1 + random.below(40) as usize];
        random.fill(&mut bytes);
        b.now = Time::from_nanos(random.next_u64() >> random.below(64));
        assert!(b.handle_bytes(&bytes));
        put += 1;
        let packets: Vec<Packet> = b.runner.take_up().drain().collect();
        got += packets.len() as u64;
        packets.into_iter().for_each(|packet| b.pool.free(packet));
    }
    let reasons =
        [DropReason::Malformed, DropReason::Duplicate, DropReason::Stale, DropReason::Overflow];
    let lost: u64 = reasons.into_iter().map(|reason| dropped(&b, reason)).sum();
    assert_eq!(got + lost, put);
    assert_eq!(b.pool.live_views(), 0);
}

#[test]
fn without_it_copies_go_up() {
    let mut world = World::new(&[("repeat", &[])], Loss::Single(0.0), ms(0), 0);
    world.run((0..100).map(|number| unit(number, 100)), ms(5));
    assert_eq!((world.came.len(), numbers(&world).len()), (200, 100));
}
