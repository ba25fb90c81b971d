//! What `fec-rlc` is for, over a wire that loses: of what is lost most is computed, nothing comes
//! twice; and what is predicted of it, against what happens.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::alone::{Alone, near_in_nine_of_ten};
use common::{
    Loss, Losses, MS, PATH_HEAD, Place, World, checked, dropped, end, hoard, lossy, ms, number,
    once, tell, unit,
};
use dacapo_base::Random;
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, PPB, Params, Properties, Property, Runner};
use dacapo_modules::parity::rlc::{
    CONTROL_SET_PERCENT, CONTROL_SET_WINDOW, NOTE_COMPUTED, NOTE_REPAIRS, SPEC,
};
use dacapo_wire::sliding::{Header, LEN};
use std::collections::BTreeSet;
use std::time::Duration;

#[test]
fn of_five_percent_losses_hardly_any_remain_and_order_is_kept_by_what_stands_above() {
    for seed in 0..3 {
        let places: &[Place<'_>] = &[
            ("segment", &[]),
            ("sequence", &[(0, 100 * MS)]),
            ("fec-rlc", &[(0, 25), (1, 60), (2, 80 * MS)]),
            ("checksum", &[]),
        ];
        let mut world = World::new(places, Loss::Single(0.05), ms(5), seed);
        let mut random = Random::from_number(seed);
        let count = 20_000;
        let units = (0..count).map(|number| unit(number, random.below(3_000) as usize));
        world.run(units, ms(3));
        let order: Vec<u64> = world.came.iter().map(|(_, unit)| number(unit)).collect();
        assert!(order.is_sorted_by(|a, b| a < b), "seed {seed}: twice, or out of order");
        let lost = count - order.len() as u64;
        assert!(lost < count / 5_000, "seed {seed}: {lost} of {count} lost");
        [&mut world.a, &mut world.b].into_iter().for_each(End::flush);
    }
}

#[test]
fn what_is_computed_is_what_was_sent_whatever_the_lengths() {
    for seed in 0..6 {
        let places: &[Place<'_>] = &[("fec-rlc", &[(0, 80), (1, 100), (2, 200 * MS)])];
        let mut world = World::new(places, Loss::Single(0.3), ms(40), seed);
        let mut random = Random::from_number(seed);
        let count = 4_000;
        world.run((0..count).map(|n| unit(n, random.below(1_400) as usize)), ms(2));
        // `number` looks at every byte.
        let came = once(&world).len() as u64;
        assert!(came > count * 999 / 1_000, "seed {seed}: {came} of {count}");
        assert_eq!(world.b.pool.live_views(), 0, "seed {seed}: nothing is kept for nothing");
        assert_eq!(world.b.runner.next_deadline(), None, "seed {seed}");
        assert_eq!((world.a.pool.live_views(), world.a.runner.next_deadline()), (0, None));
    }
}

#[test]
fn it_stands_below_sequence_and_takes_order_away_and_nothing_else() {
    let properties = &[Property::Boundaries, Property::Order, Property::NoDuplicates];
    let checked = |places: &[Place<'_>]| checked(places, properties);
    assert_eq!(checked(&[("segment", &[]), ("sequence", &[]), ("fec-rlc", &[])]), Ok(()));
    let illegal = checked(&[("segment", &[]), ("fec-rlc", &[]), ("sequence", &[])]).unwrap_err();
    let text = "\"fec-rlc\" must stand below \"sequence\", which does ordering";
    assert_eq!(illegal.to_string(), text);
    assert!(checked(&[("fec-rlc", &[]), ("fec-rs", &[])]).is_err(), "two of one function");
    let above = SPEC.above(&Params::new(), Properties::of(properties));
    assert_eq!(above, Properties::of(&[Property::Boundaries, Property::NoDuplicates]));
}

fn params(percent: u64, window: u64, span: u64) -> Params {
    let mut params = Params::new();
    [percent, window, span].into_iter().zip(0..).for_each(|(value, at)| params.set(at, value));
    params
}

/// A path with a deadline that leaves so much.
fn loses(loss_ppb: u64, burst_milli: u64) {
    let every = ms(2);
    let (mut setting, below) = lossy(loss_ppb, burst_milli, every);
    setting.useful_ns = 200 * MS;
    let mut tried = SPEC.profile.points(&setting, &below);
    tried.extend([params(10, 200, 500 * MS), params(25, 90, 180 * MS), params(50, 200, 500 * MS)]);
    for params in tried {
        let alone = Alone { spec: &SPEC, params, loss_ppb, burst_milli, every, seed: 7 };
        // What comes later than by the last repair that it is in may come by those of others.
        alone.loses_as_much_of_use(200 * MS);
    }
}

#[test]
fn as_much_is_lost_in_runs_as_is_predicted() {
    for (loss_ppb, burst_milli) in
        [(50_000_000, 1_000), (20_000_000, 5_000), (100_000_000, 3_000), (5_000_000, 10_000)]
    {
        loses(loss_ppb, burst_milli);
    }
}

/// Paths, flows and windows off the points that are proposed; the delay within two packets where
/// that is more than 15 %.
#[test]
fn what_is_predicted_is_near_in_nine_of_ten() {
    near_in_nine_of_ten(|seed| {
        let mut random = Random::from_number(seed);
        let every = Duration::from_micros(1_000 + random.below(9_000));
        let loss_ppb = 1_000_000 + random.below(PPB / 10);
        let burst_milli = 1_000 + random.below(2) * random.below(7_000);
        let window = 1 + random.below(120);
        let span = (5 + random.below(200)) * MS;
        let params = params(10 + random.below(91), window, span);
        let alone = Alone { spec: &SPEC, params, loss_ppb, burst_milli, every, seed };
        alone.near_of_use(20 * MS + span, 2, None)
    });
}

/// 380 packets a second, 180 ms to spare, runs of three, a quarter more bytes.
#[test]
fn within_a_deadline_less_stays_lost_than_of_blocks_and_half_as_much_of_few_losses() {
    let every = Duration::from_micros(2_632);
    let window: &[Place<'_>] = &[("fec-rlc", &[(0, 25), (1, 68), (2, 180 * MS)])];
    // A block and its parities take a span each.
    let block: &[Place<'_>] = &[("fec-rs", &[(0, 32), (1, 8), (2, 90 * MS)])];
    for (loss, most) in [(0.02, 0.5), (0.05, 0.5), (0.1, 0.75)] {
        let [of_windows, of_blocks] = [window, block].map(|places| {
            let losses = Loss::Runs(Box::new(Losses::new(loss, 3.0, every, 7)));
            let mut world = World::new(places, losses, ms(0), 7);
            let (start, count) = (world.a.now, 40_000);
            world.run((0..count).map(|number| unit(number, 20)), every);
            once(&world);
            assert!(world.sent[0] <= count * 5 / 4 + 20, "{} sent", world.sent[0]);
            let taken = |(at, it): &(dacapo_base::Time, Vec<u8>)| {
                at.since(start + every * number(it) as u32)
            };
            count - world.came.iter().filter(|it| taken(it) <= ms(200)).count() as u64
        });
        println!("{loss}: {of_windows} lost or late of 40,000 by windows, {of_blocks} by blocks");
        let share = of_windows as f64 / of_blocks as f64;
        assert!(share < most, "{loss}: {of_windows} and {of_blocks}");
    }
}

/// What leaves an end by its timers, and when, in milliseconds.
fn left(end: &mut End) -> Vec<(u64, Header)> {
    let mut left = Vec::new();
    loop {
        for datagram in end.wire() {
            left.push((end.now.as_nanos() / MS - 1, Header::parse(&datagram).unwrap()));
        }
        let Some(due) = end.runner.next_deadline() else { return left };
        end.now = end.now.max(due);
        end.fire();
    }
}

#[test]
fn a_repair_follows_every_fourth_source_and_is_of_those_before_it() {
    let mut end = end(&[("fec-rlc", &[(0, 25), (1, 6), (2, 100 * MS)])], 1_000);
    let mut seen = Vec::new();
    for number in 0..12 {
        assert!(end.feed(&unit(number, 20)));
        end.fire();
        seen.extend(end.wire().iter().map(|it| Header::parse(it).unwrap()));
        end.now += ms(5);
    }
    let repairs = seen.iter().enumerate().filter(|(_, it)| it.is_repair());
    let places: Vec<_> = repairs.map(|(at, it)| (at, it.number, it.sources)).collect();
    assert_eq!(places, [(4, 3, 4), (9, 7, 6), (14, 11, 6)]);
    end.flush();
}

#[test]
fn behind_the_last_sources_before_a_pause_repairs_leave_by_themselves() {
    let mut end = end(&[("fec-rlc", &[(0, 25), (1, 60), (2, 80 * MS)])], 1_000);
    for number in 0..10 {
        assert!(end.feed(&unit(number, 20)));
        end.fire();
        end.now += ms(1);
    }
    assert_eq!(end.wire().len(), 12);
    // 40 ms behind the last, which left after 9; three for ten, 20 ms for all.
    let tail: Vec<_> = left(&mut end).iter().map(|(at, it)| (*at, it.sources)).collect();
    assert_eq!(tail, [(49, 10), (55, 10), (62, 10)]);
    assert_eq!(end.pool.live_views(), 0, "of no use any more");
    // One packet alone is sent twice.
    assert!(end.feed(&unit(10, 20)));
    assert_eq!(left(&mut end).iter().map(|(_, it)| it.sources).collect::<Vec<_>>(), [0, 1]);
    end.flush();
}

#[test]
fn a_train_is_numbered_as_one_and_its_repairs_leave_as_a_train() {
    let mut end = end(&[("segment", &[]), ("fec-rlc", &[(0, 30), (1, 6)])], 20_000);
    assert!(end.feed(&unit(7, 14_000)));
    let sources: Vec<_> = end.wire().iter().map(|it| Header::parse(it).unwrap().number).collect();
    assert_eq!(sources, (0..10).collect::<Vec<_>>());
    end.fire();
    let trains: Vec<_> = end.runner.take_down().drain().collect();
    let header = Header::parse(end.pool.segment(&trains[0], 2)).unwrap();
    assert_eq!((trains.len(), trains[0].segment_count()), (1, 3));
    assert_eq!((header.number, header.sources, header.key), (9, 6, 2));
    trains.into_iter().for_each(|it| end.pool.free(it));
    end.flush();
}

#[test]
fn at_the_bound_repairs_are_given_up_and_never_the_packets_themselves() {
    let mut end = end(&[("fec-rlc", &[(0, 100), (1, 1)])], 1_000);
    for number in 0..1_500 {
        assert!(end.feed(&unit(number, 20)));
    }
    assert_eq!(end.wire().len(), 1_500);
    assert_eq!(dropped(&end, DropReason::Overflow), 1_500 - 1_024);
    end.fire();
    assert_eq!(end.wire().len(), 1_024);
    end.flush();
}

#[test]
fn drain_sends_the_repairs_of_the_last_at_once() {
    let mut a = end(&[("fec-rlc", &[(0, 30)])], 1_000);
    let mut b = end(&[("fec-rlc", &[])], 1_000);
    for number in 0..6 {
        assert!(a.feed(&unit(number, 20 + number as usize)));
        a.now += ms(3);
    }
    let sources = a.wire();
    a.with(Runner::drain);
    let repairs = a.wire();
    assert_eq!((sources.len(), repairs.len(), a.runner.next_deadline()), (6, 3, None));
    // Without the first and the last.
    sources[1..5].iter().chain(&repairs).for_each(|it| assert!(b.handle_bytes(it)));
    let mut came: Vec<u64> = b.units().iter().map(|unit| number(unit)).collect();
    came.sort_unstable();
    assert_eq!(came, [0, 1, 2, 3, 4, 5]);
    let has = |end: &End, code, value| {
        end.runner.notes().iter().any(|note| (note.code, note.value) == (code, value))
    };
    assert!(has(&b, NOTE_COMPUTED, 2) && has(&a, NOTE_REPAIRS, 3));
    let names = [NOTE_COMPUTED, NOTE_REPAIRS].map(|code| SPEC.note_name(code));
    assert_eq!(names, ["packets_computed", "repairs"]);
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn windows_change_while_the_flow_runs_and_the_peer_need_not_be_told() {
    let mut a = end(&[("fec-rlc", &[(0, 50), (1, 20)])], 1_000);
    let mut b = end(&[("fec-rlc", &[])], 1_000);
    let mut came = BTreeSet::new();
    for sent in 0..400 {
        assert!(a.feed(&unit(sent, 20)));
        a.fire();
        for datagram in a.wire() {
            let header = Header::parse(&datagram).unwrap();
            if header.is_repair() || !header.number.is_multiple_of(5) {
                assert!(b.handle_bytes(&datagram));
            }
        }
        came.extend(b.units().iter().map(|unit| number(unit)));
        if sent % 7 == 0 {
            tell(&mut a, CONTROL_SET_WINDOW, 10 + sent % 9);
            tell(&mut a, CONTROL_SET_PERCENT, 40 + sent % 30);
        }
    }
    a.with(Runner::drain);
    a.wire().iter().for_each(|it| assert!(b.handle_bytes(it)));
    came.extend(b.units().iter().map(|unit| number(unit)));
    assert_eq!(came, (0..400).collect());
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

fn source(number: u64) -> Vec<u8> {
    [&Header::source(number, 3).emit()[..], b"abc"].concat()
}

fn repair(last: u32, sources: u8, key: u8, len: usize) -> Vec<u8> {
    let header = Header { number: last, sources, key, length: 0xFFFF };
    [&header.emit()[..], &vec![0xFF; len]].concat()
}

#[test]
fn repairs_that_no_peer_makes_give_nothing_and_keep_nothing() {
    let mut b = end(&[("fec-rlc", &[])], 1_000);
    // A length beyond the packet, in what is computed.
    [source(0), repair(1, 2, 0, 3)].iter().for_each(|it| assert!(b.handle_bytes(it)));
    assert_eq!((b.units().len(), dropped(&b, DropReason::Malformed)), (1, 1));
    // Of more sources than there are numbers, of none that is missing, and of very many.
    for bytes in [repair(3, 200, 0, 3), repair(0, 1, 0, 3), repair(900, 255, 0, 3)] {
        assert!(b.handle_bytes(&bytes));
    }
    (0..255).for_each(|key| assert!(b.handle_bytes(&repair(1_000, 120, key, 9))));
    // Far ahead: nobody is believed alone. The repair up to 900 was not, and confirmed the others.
    b.units();
    assert_eq!(dropped(&b, DropReason::Overflow), 1);
    assert!(b.handle_bytes(&source(1_000_000)));
    assert_eq!((b.units().len(), dropped(&b, DropReason::Overflow)), (0, 2));
    assert!(b.handle_bytes(&source(1_000_001)));
    assert_eq!(b.units().len(), 1);
    assert!(b.handle_bytes(&source(3)));
    assert_eq!((b.units().len(), dropped(&b, DropReason::Stale)), (0, 1));
    b.now += ms(3_000);
    b.fire();
    b.now += ms(3_000);
    b.fire();
    assert_eq!((b.pool.live_views(), b.runner.next_deadline()), (0, None));
    b.flush();
}

#[test]
fn whatever_comes_in_whatever_order_what_is_kept_is_bounded() {
    for seed in 0..20 {
        let mut random = Random::from_number(seed);
        let mut b = end(&[("fec-rlc", &[])], 1_000);
        let mut at = 0;
        for _ in 0..3_000 {
            at += random.below(4);
            let number = (at + random.below(300)).saturating_sub(random.below(300));
            let bytes = match random.below(3) {
                0 => source(number),
                _ => {
                    let (sources, key) = (1 + random.below(255) as u8, random.below(4) as u8);
                    repair(number as u32, sources, key, random.below(1_400) as usize)
                }
            };
            assert!(b.handle_bytes(&bytes));
            b.units();
            assert!(b.pool.live_views() <= 1_100, "{} views", b.pool.live_views());
            b.now += Duration::from_micros(random.below(300));
            b.fire();
        }
        b.flush();
    }
}

#[test]
fn without_memory_repairs_are_given_up_and_counted() {
    let mut end = end(&[("fec-rlc", &[(0, 100)])], 1_000);
    let first = end.pool.packet_from(LEN + PATH_HEAD, &unit(0, 20), 0).unwrap();
    let hoard = hoard(&mut end);
    end.with(|runner, around| {
        runner.feed(around, first);
        runner.run(around);
    });
    assert_eq!(end.wire().len(), 1);
    end.fire();
    assert_eq!((end.wire().len(), dropped(&end, DropReason::NoMemory)), (0, 1));
    hoard.into_iter().for_each(|packet| end.pool.free(packet));
    end.flush();
}
