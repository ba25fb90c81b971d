//! What `lz4` and `zstd` are for: units take fewer bytes, and come as they were or not at all.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Loss, PATH_HEAD, Place, World, checked, dropped, end, ms};
use dacapo_base::Random;
use dacapo_heap::{Counting, measure};
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, Illegal, ModuleSpec, Properties, Property};
use dacapo_modules::compression::{lz4, zstd};
use std::collections::BTreeSet;

#[global_allocator]
static HEAP: Counting = Counting;

const SPECS: [&ModuleSpec; 2] = [&lz4::SPEC, &zstd::SPEC];

/// The longest unit of the ends here, of four trains.
const UNIT_LEN_MAX: usize = 200_000;

/// Graphs with a module in it, which stands where modules of its stratum do.
fn graphs(name: &'static str) -> [Vec<Place<'static>>; 4] {
    let (own, plain) = ((name, &[][..]), |name| (name, &[][..]));
    [
        vec![own],
        vec![own, plain("segment")],
        vec![plain("use-by"), own, plain("segment"), plain("sequence"), plain("checksum")],
        vec![plain("latest"), own, plain("segment"), plain("checksum")],
    ]
}

/// Lines as a program writes them.
fn text(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::from_number(seed);
    let mut text = Vec::new();
    while text.len() < len {
        let (sensor, value) = (random.below(40), random.below(10_000));
        let line = format!("{{\"sensor\":{sensor},\"value\":{value},\"state\":\"running\"}}\n");
        text.extend_from_slice(line.as_bytes());
    }
    text.truncate(len);
    text
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::from_number(seed).fill(&mut bytes);
    bytes
}

/// What goes over a wire from `a` to `b`, and the units that come.
fn carry(a: &mut End, b: &mut End, unit: &[u8]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    common::feed_chain(a, unit);
    let wire = a.wire();
    for datagram in &wire {
        assert!(b.handle_bytes(datagram));
    }
    (wire, b.units())
}

fn bytes(datagrams: &[Vec<u8>]) -> usize {
    datagrams.iter().map(Vec::len).sum()
}

#[test]
fn units_of_any_kind_and_length_come_as_they_were_and_never_longer() {
    for (spec, graph) in SPECS.into_iter().flat_map(|spec| graphs(spec.name).map(|it| (spec, it))) {
        let (mut a, mut b) = (end(&graph, UNIT_LEN_MAX), end(&graph, UNIT_LEN_MAX));
        let without: Vec<Place<'_>> =
            graph.iter().copied().filter(|place| place.0 != spec.name).collect();
        let mut plain = end(&without, UNIT_LEN_MAX);
        let longest = if a.layout.segmented { UNIT_LEN_MAX } else { a.layout.segment };
        for len in [1, 15, 16, 17, 100, 1_400, 1_442, 3_000, 64_000, 65_001, UNIT_LEN_MAX] {
            let len = len.min(longest);
            let kinds = [text(len, 1), noise(len, 2), vec![0; len]];
            for (kind, unit) in kinds.into_iter().enumerate() {
                let (wire, came) = carry(&mut a, &mut b, &unit);
                assert!(came == [unit.clone()], "{graph:?}: {len} bytes of kind {kind}");
                common::feed_chain(&mut plain, &unit);
                let most = bytes(&plain.wire());
                let least = bytes(&wire);
                // A byte for each packet, of which there may be one more.
                let more = if graph.len() == 1 { 1 } else { len / 1_000 + 30 };
                assert!(least <= most + more, "{graph:?}: {least} of {most}, kind {kind}");
                if kind != 1 && len >= 1_400 {
                    assert!(least * 10 < most * 7, "{graph:?}: {least} of {most}, {kind}");
                }
            }
        }
        [&mut a, &mut b, &mut plain].into_iter().for_each(End::flush);
    }
}

#[test]
fn units_come_as_they_were_in_segments_as_short_as_the_path_takes() {
    for (spec, segment) in SPECS.into_iter().flat_map(|spec| [64, 65, 99, 700].map(|it| (spec, it)))
    {
        for graph in graphs(spec.name).iter().skip(1) {
            let (mut a, mut b) = (end(graph, 30_000), end(graph, 30_000));
            a.layout.segment = segment;
            for unit in [text(segment, 1), text(segment + 1, 2), text(30_000, 3), noise(30_000, 4)]
            {
                let (wire, came) = carry(&mut a, &mut b, &unit);
                let len = unit.len();
                assert!(came == [unit], "{graph:?}: {len} bytes in segments of {segment}");
                let longest = wire.iter().map(Vec::len).max().unwrap();
                let most = segment + a.layout.head + a.layout.tail - PATH_HEAD;
                assert!(longest <= most, "{graph:?}: {longest} in segments of {segment}");
            }
        }
    }
}

#[test]
fn an_empty_unit_is_one() {
    for spec in SPECS {
        let graph: &[Place<'_>] = &[(spec.name, &[]), ("segment", &[])];
        let (mut a, mut b) = (end(graph, 1_000), end(graph, 1_000));
        let (wire, came) = carry(&mut a, &mut b, &[]);
        assert_eq!((wire.len(), came), (1, vec![Vec::new()]));
    }
}

#[test]
fn the_loss_of_one_unit_harms_no_other_whatever_the_wire_does() {
    for (spec, seed) in SPECS.into_iter().flat_map(|spec| (0..3).map(move |seed| (spec, seed))) {
        let graph: &[Place<'_>] = &[(spec.name, &[]), ("segment", &[])];
        let mut world = World::new(graph, Loss::Single(0.05), ms(30), seed);
        let mut random = Random::from_number(seed);
        let unit = |number: u64, len: usize| {
            let bytes =
                if number.is_multiple_of(3) { noise(len, number) } else { text(len, number) };
            [&number.to_be_bytes()[..], &bytes].concat()
        };
        let sent: Vec<Vec<u8>> =
            (0..1_500).map(|number| unit(number, random.below(9_000) as usize)).collect();
        world.run(sent.iter().cloned(), ms(2));
        let known: BTreeSet<&Vec<u8>> = sent.iter().collect();
        assert!(world.came.iter().all(|(_, unit)| known.contains(unit)), "seed {seed}");
        // Of up to seven packets a unit has, one in twenty is lost.
        assert!(world.came.len() > 1_150, "seed {seed}: {}", world.came.len());
        [&mut world.a, &mut world.b].into_iter().for_each(End::flush);
    }
}

#[test]
fn packets_twice_and_out_of_order_are_units_twice_and_out_of_order() {
    for spec in SPECS {
        let graph: &[Place<'_>] = &[(spec.name, &[])];
        let (mut a, mut b) = (end(graph, 1_400), end(graph, 1_400));
        let units: Vec<Vec<u8>> = (0..20).map(|number| text(700, number)).collect();
        let mut wire: Vec<Vec<u8>> = Vec::new();
        for unit in &units {
            common::feed_chain(&mut a, unit);
            wire.extend(a.wire());
        }
        for datagram in wire.iter().rev().flat_map(|datagram| [datagram; 2]) {
            assert!(b.handle_bytes(datagram));
        }
        let twice: Vec<&Vec<u8>> = units.iter().rev().flat_map(|unit| [unit; 2]).collect();
        assert_eq!(b.units().iter().collect::<Vec<_>>(), twice, "{}", spec.name);
    }
}

/// How many packets all modules of an end have given up, for any reason.
fn given_up(end: &End) -> u64 {
    let of_one = |counters: &dacapo_lift::ModuleCounters| counters.up.dropped_count();
    end.runner.modules().map(|(_, counters)| of_one(counters)).sum()
}

/// What may be allocated for packets of an end beside the bodies of its pool.
const BUFFERS: u64 = 8 * UNIT_LEN_MAX as u64;

/// Hands a datagram over, and checks that nothing grows beyond a unit; the units that come.
fn hostile(b: &mut End, datagram: &[u8]) -> Vec<Vec<u8>> {
    let before = b.pool.stats().bytes;
    let ((), used) = measure(|| assert!(b.handle_bytes(datagram)));
    let bodies = b.pool.stats().bytes.saturating_sub(before) as u64;
    let own = used.peak_bytes.saturating_sub(bodies);
    assert!(own <= BUFFERS, "{own} bytes for a packet of {}", datagram.len());
    let units = b.units();
    assert!(units.iter().all(|unit| unit.len() <= UNIT_LEN_MAX * 11 / 10));
    units
}

#[test]
fn hostile_bytes_are_counted_drops_or_units_that_are_no_longer_than_they_may_be() {
    for (spec, graph) in SPECS.into_iter().flat_map(|spec| graphs(spec.name).map(|it| (spec, it))) {
        let mut random = Random::from_number(7);
        let (mut a, mut b) = (end(&graph, UNIT_LEN_MAX), end(&graph, UNIT_LEN_MAX));
        let mut units = 0;
        for number in 0..400 {
            let unit = text(
                1 + random.below(if b.layout.segmented { 9_000 } else { 1_400 }) as usize,
                number,
            );
            common::feed_chain(&mut a, &unit);
            for mut datagram in a.wire() {
                match random.below(4) {
                    0 => datagram.truncate(random.below(datagram.len() as u64 + 1) as usize),
                    1 => random.fill(&mut datagram),
                    2 => {
                        let at = random.below(datagram.len() as u64) as usize;
                        datagram[at] ^= 1 << random.below(8);
                    }
                    _ => {}
                }
                units += hostile(&mut b, &datagram).len();
            }
            b.now += ms(5);
            b.fire();
        }
        b.flush();
        assert!(given_up(&b) > 100, "{graph:?}: {} given up", given_up(&b));
        assert!(units > 0, "{} lets nothing through", spec.name);
    }
}

/// A packet of `lz4` alone: it says `form`, and then this.
fn packet(form: u8, packed: &[u8]) -> Vec<u8> {
    [&[form], packed].concat()
}

#[test]
fn a_bomb_of_lz4_is_one_counted_drop() {
    // A literal and a match of 255 bytes for each byte that follows.
    let bomb = [&[0x1F, b'a', 1, 0][..], &[255; 1_300], &[0, 0x10, b'b']].concat();
    let mut b = end(&[("lz4", &[])], UNIT_LEN_MAX);
    assert!(hostile(&mut b, &packet(1, &bomb)).is_empty());
    assert_eq!(dropped(&b, DropReason::TooLarge), 1);
    // As a unit of several packets it may have more.
    let mut b = end(&[("lz4", &[]), ("segment", &[])], 300_000);
    let segment = [0, 0, 0x80, 0, 2, 5, 0];
    assert!(hostile_of(&mut b, &[&segment[..], &bomb].concat(), 300_000).is_empty());
    assert_eq!(dropped(&b, DropReason::TooLarge), 1, "331,779 bytes of 300,000");
}

fn hostile_of(b: &mut End, datagram: &[u8], most: usize) -> Vec<Vec<u8>> {
    let ((), used) = measure(|| assert!(b.handle_bytes(datagram)));
    assert!(used.peak_bytes <= 2 * most as u64, "{}", used.peak_bytes);
    b.units()
}

#[test]
fn a_bomb_of_zstd_is_one_counted_drop_however_long_it_says_it_is() {
    let zeros = vec![0; 10 << 20];
    let frame = ::zstd::bulk::compress(&zeros, 1).unwrap();
    let mut b = end(&[("zstd", &[])], UNIT_LEN_MAX);
    assert!(frame.len() < 1_400, "{}", frame.len());
    assert!(hostile(&mut b, &packet(1, &frame[4..])).is_empty());
    assert_eq!(dropped(&b, DropReason::TooLarge), 1);
    // One that says less than it is, one that says nothing, one that says 2^64 - 1.
    let mut lies = ::zstd::bulk::compress(&zeros[..300], 1).unwrap();
    lies[5] = 10;
    assert!(hostile(&mut b, &packet(1, &lies[4..])).is_empty());
    let unsaid = [0x00, 0x58, 0x03, 0, 0, 9, 9];
    assert!(hostile(&mut b, &packet(1, &unsaid)).is_empty());
    let most = [&[0xE0][..], &[255; 8], &[0x03, 0, 0]].concat();
    assert!(hostile(&mut b, &packet(1, &most)).is_empty());
    let reasons = [DropReason::TooLarge, DropReason::Malformed].map(|it| dropped(&b, it));
    assert_eq!(reasons.iter().sum::<u64>(), 4, "{reasons:?}");
}

#[test]
fn what_no_peer_says_is_a_counted_drop() {
    for spec in SPECS {
        let mut b = end(&[(spec.name, &[])], UNIT_LEN_MAX);
        let strange = [vec![], vec![1], vec![2, 5, 0, 1], vec![3, 0], vec![255; 90], vec![1, 0]];
        for (count, datagram) in (1..).zip(strange) {
            assert!(hostile(&mut b, &datagram).is_empty(), "{}: {datagram:?}", spec.name);
            assert_eq!(given_up(&b), count, "{}: {datagram:?}", spec.name);
        }
    }
}

#[test]
fn packets_of_a_unit_that_do_not_say_the_same_make_none() {
    for spec in SPECS {
        let graph: &[Place<'_>] = &[(spec.name, &[]), ("segment", &[])];
        let (mut a, mut b) = (end(graph, 50_000), end(graph, 50_000));
        for (unit, others) in [(noise(4_000, 1), [1, 2]), (text(40_000, 1), [0, 1])] {
            for (form, place) in others.into_iter().flat_map(|it| [(it, 0), (it, 1)]) {
                common::feed_chain(&mut a, &unit);
                let mut wire = a.wire();
                assert!(wire.len() > 1);
                wire[place][4] = form;
                let before = given_up(&b);
                wire.iter().for_each(|datagram| assert!(b.handle_bytes(datagram)));
                // What is plain has gone up, without its end.
                b.units();
                assert!(given_up(&b) > before, "{}: {form} at {place}", spec.name);
                let (_, came) = carry(&mut a, &mut b, &unit);
                assert!(came == [unit.clone()], "{}: the next one", spec.name);
            }
        }
        b.flush();
    }
}

#[test]
fn without_memory_what_others_see_leaves_as_it_is_and_what_comes_is_dropped() {
    for spec in SPECS {
        let graph: &[Place<'_>] = &[(spec.name, &[])];
        let (mut a, mut b) = (end(graph, 1_400), end(graph, 1_400));
        let unit = text(1_000, 1);
        common::feed_chain(&mut a, &unit);
        let wire = a.wire();
        let came = b.pool.packet_from(0, &wire[0], 0).unwrap();
        let mut make = || a.pool.packet_from(PATH_HEAD + 1, &unit, 0).unwrap();
        let [alone, mut shared] = [make(), make()];
        let seen_by_others = a.pool.share(&mut shared);
        let hoards = [common::hoard(&mut a), common::hoard(&mut b)];
        b.handle(came);
        assert_eq!(dropped(&b, DropReason::NoMemory), 1, "{}", spec.name);
        // What nobody else sees is packed where it lies.
        for (left, len) in [(shared, 1 + unit.len()), (alone, bytes(&wire))] {
            a.with(|runner, around| {
                runner.feed(around, left);
                runner.run(around);
            });
            assert_eq!(bytes(&a.wire()), len, "{}", spec.name);
        }
        assert_eq!(a.pool.segment(&seen_by_others, 0), unit, "{}", spec.name);
        a.pool.free(seen_by_others);
        for (end, hoard) in [&mut a, &mut b].into_iter().zip(hoards) {
            hoard.into_iter().for_each(|packet| end.pool.free(packet));
            end.flush();
        }
    }
}

#[test]
fn what_every_level_packs_is_read_without_knowing_which() {
    let unit = text(60_000, 3);
    for level in 1..=9 {
        let values = &[(0, level)];
        let mut a = end(&[("zstd", values), ("segment", &[])], 80_000);
        let mut b = end(&[("zstd", &[]), ("segment", &[])], 80_000);
        let (wire, came) = carry(&mut a, &mut b, &unit);
        assert!(came == [unit.clone()], "level {level}");
        assert!(bytes(&wire) < 8_000, "level {level}: {}", bytes(&wire));
    }
}

#[test]
fn it_takes_confidentiality_away_where_nobody_says_that_its_units_are_trusted() {
    let below = Properties::of(&[Property::Boundaries, Property::Confidentiality]);
    let plain = Properties::of(&[Property::Boundaries]);
    for (spec, trusted) in SPECS.into_iter().zip([0, 1]) {
        assert_eq!(spec.above(&[], below), plain);
        assert_eq!(spec.above(&[(trusted, 0)], below), plain);
        assert_eq!(spec.above(&[(trusted, 1)], below), below);
        assert_eq!(spec.above(&[(trusted, 1)], plain), plain, "it gives none");
    }
}

#[test]
fn one_stands_above_segment_and_is_taken_by_name_only() {
    let (setting, _) = common::lossy(0, 1_000, ms(5));
    assert!(SPECS.iter().all(|spec| !spec.profile.suits(&setting)));
    let ground = &[Property::Boundaries];
    assert_eq!(checked(&[("lz4", &[]), ("segment", &[])], ground), Ok(()));
    let below = checked(&[("segment", &[]), ("zstd", &[])], ground);
    assert!(matches!(below, Err(Illegal::WrongOrder { node: 1, .. })), "{below:?}");
    let both = checked(&[("lz4", &[]), ("zstd", &[]), ("segment", &[])], ground);
    assert!(matches!(both, Err(Illegal::SameFunction { node: 1, .. })), "{both:?}");
}
