//! What `arq-sr` is for, over a wire that loses, repeats and reorders both ways: everything comes,
//! once and in order, and hardly more is sent again than was lost; and what is predicted of it,
//! against what happens.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::alone::{Alone, Near, near_in_nine_of_ten};
use common::{Loss, MS, Place, World, checked, dropped, end, hoard, ms, number, once, unit};
use dacapo_base::Random;
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, Params, Properties, Property, Runner};
use dacapo_modules::retransmission::selective::{NOTE_REPAIRED, SPEC};
use dacapo_wire::acknowledgement::{Header, Kind, LEN, RANGES_MAX, Range, State, said};
use std::time::Duration;

const ALONE: &[Place<'_>] = &[("arq-sr", &[])];
const AS_THEY_COME: &[Place<'_>] = &[("arq-sr", &[(0, 0)])];

fn again(end: &End) -> i64 {
    let notes = end.runner.notes().iter();
    notes.filter(|note| note.code == NOTE_REPAIRED).map(|note| note.value).sum()
}

/// Everything came, in order; how many packets were sent again.
fn all_of(world: &mut World, count: u64, what: &str) -> u64 {
    let order: Vec<u64> = world.came.iter().map(|(_, unit)| number(unit)).collect();
    assert!(order.is_sorted_by(|a, b| a < b), "{what}: twice, or out of order");
    assert_eq!(order.len() as u64, count, "{what}: some are missing");
    let again = again(&world.a) as u64;
    for end in [&mut world.a, &mut world.b] {
        assert_eq!(end.runner.next_deadline(), None, "{what}: a timer waits for nothing");
        end.flush();
    }
    again
}

#[test]
fn everything_comes_in_order_and_little_is_sent_for_nothing() {
    for (loss, jitter) in [(0.0, 0), (0.01, 0), (0.1, 4), (0.3, 4)] {
        for seed in 0..3 {
            let mut world = World::new(ALONE, Loss::Single(loss), ms(jitter), seed);
            let count = 8_000;
            world.run((0..count).map(|number| unit(number, 900)), ms(1));
            let what = format!("loss {loss}, seed {seed}");
            let again = all_of(&mut world, count, &what) as f64;
            let lost = count as f64 * loss / (1.0 - loss);
            let most = lost * 1.2 + count as f64 * 0.005 + 10.0;
            assert!(again <= most, "{what}: {again} sent again for {lost} that were lost");
        }
    }
}

#[test]
fn as_they_come_all_come_once_and_none_waits_for_another() {
    for seed in 0..3 {
        let mut world = World::new(AS_THEY_COME, Loss::Single(0.1), ms(4), seed);
        let count = 8_000;
        world.run((0..count).map(|number| unit(number, 900)), ms(1));
        let late = world.came.iter().filter(|(at, unit)| {
            let sent = ms(1) * number(unit) as u32;
            at.since(dacapo_base::Time::ZERO) > sent + ms(30)
        });
        let late = late.count();
        assert!(late < 1_000, "seed {seed}: {late} late, of which 800 were lost");
        assert!(late > 600, "seed {seed}: {late}");
        world.came.sort_by_key(|(_, unit)| number(unit));
        all_of(&mut world, count, &format!("seed {seed}"));
    }
}

#[test]
fn packets_that_overtake_each_other_are_hardly_sent_again() {
    // Up to 12 ms on a round trip of 40 to 64: a quarter of it, at first.
    let mut world = World::new(ALONE, Loss::Single(0.0), ms(12), 5);
    let count = 20_000;
    world.run((0..count).map(|number| unit(number, 20)), ms(2));
    let again = all_of(&mut world, count, "reordered");
    assert!(again <= count / 200, "{again} of {count} were sent again for nothing");
}

#[test]
fn units_of_many_packets_come_whole_through_runs_of_losses() {
    for seed in 0..3 {
        let places: &[Place<'_>] = &[("segment", &[]), ("arq-sr", &[]), ("checksum", &[])];
        let losses = common::Losses::new(0.1, 12.0, ms(1), seed);
        let mut world = World::new(places, Loss::Runs(Box::new(losses)), ms(3), seed);
        let mut random = Random::from_number(seed);
        let count = 2_000;
        world.run((0..count).map(|n| unit(n, random.below(15_000) as usize)), ms(10));
        all_of(&mut world, count, &format!("seed {seed}"));
    }
}

#[test]
fn the_last_packets_of_a_burst_come_though_nothing_follows() {
    for seed in 0..10 {
        let mut world = World::new(ALONE, Loss::Single(0.3), ms(1), seed);
        // Bursts of six, a minute apart.
        for burst in 0..60 {
            world.run((burst * 6..burst * 6 + 6).map(|n| unit(n, 700)), Duration::ZERO);
        }
        all_of(&mut world, 360, &format!("seed {seed}"));
    }
}

#[test]
fn it_gives_all_that_a_flow_can_ask_of_order_and_loss_and_needs_a_way_back() {
    let both = &[Property::Boundaries, Property::WayBack];
    let graph: &[Place<'_>] = &[("segment", &[]), ("arq-sr", &[]), ("checksum", &[])];
    assert_eq!(checked(graph, both), Ok(()));
    assert!(checked(graph, &[Property::Boundaries]).is_err());
    let two = checked(&[("arq-nak", &[]), ("arq-sr", &[])], both).unwrap_err().to_string();
    assert!(two.contains("retransmission"), "{two}");
    let above = SPEC.above(&[], Properties::of(both));
    for property in [Property::Order, Property::NoDuplicates, Property::NoLoss] {
        assert!(above.contains(property), "{property:?}");
    }
    // As they come, more units may be in work than can be, where they are cut.
    let above = SPEC.above(&[(0, 0)], Properties::of(both));
    let gives = |property| above.contains(property);
    assert!(gives(Property::NoLoss) && !gives(Property::Order));
    let joined = dacapo_modules::segmentation::segment::SPEC.above(&[], above);
    assert!(!joined.contains(Property::NoLoss));
}

fn state(number: u32) -> [u8; 13] {
    State { number, attempt: 0, held_us: 0, duplicates: 0 }.emit()
}

fn acknowledged(next: u32, of: u32, ranges: &[(u32, u16)]) -> Vec<u8> {
    let head = Header { number: next, kind: Kind::Acknowledged }.emit();
    let ranges = ranges.iter().flat_map(|&(first, count)| Range { first, count }.emit());
    [&head[..], &state(of), &ranges.collect::<Vec<_>>()].concat()
}

#[test]
fn who_sends_waits_when_too_much_is_not_acknowledged() {
    let mut a = end(ALONE, 1_000);
    let mut taken: u32 = 0;
    while a.feed(&unit(taken.into(), 500)) {
        taken += 1;
        a.wire();
    }
    assert_eq!((taken, a.runner.credit()), (8_192, 0));
    assert!(a.handle_bytes(&acknowledged(92, 91, &[])));
    assert_eq!(a.runner.credit(), 92);
    // What came behind a hole makes no room: it would be held at the other end.
    assert!(a.handle_bytes(&acknowledged(92, 8_000, &[(93, 7_000)])));
    assert_eq!(a.runner.credit(), 92);
    a.flush();
    // As many bytes as are kept, in longer packets.
    let (mut a, mut taken) = (end(ALONE, 1_400), 0);
    while a.feed(&unit(0, 1_380)) {
        taken += unit(0, 1_380).len();
        a.wire();
    }
    assert!(((8 << 20) - 1_400..=8 << 20).contains(&taken), "{taken} bytes");
    a.flush();
}

#[test]
fn what_is_said_has_come_is_sent_no_more_and_what_is_overtaken_is() {
    let mut a = end(&[("segment", &[]), ("arq-sr", &[])], 20_000);
    assert!(a.feed(&unit(7, 14_000)));
    let sent = a.wire();
    a.now += ms(40);
    // 2 and 3 are missing; a quarter of the round trip later they are lost.
    assert!(a.handle_bytes(&acknowledged(2, 9, &[(4, 6)])));
    assert_eq!(a.wire().len(), 0);
    assert_eq!(a.runner.next_deadline(), Some(a.now + ms(10)));
    a.now += ms(10);
    a.fire();
    let trains: Vec<usize> =
        a.runner.take_down().drain().map(|it| (it.segment_count(), a.pool.free(it)).0).collect();
    assert_eq!(trains, [2], "the train that it was");
    assert_eq!(again(&a), 2);
    // The first and the last that are missing are probed for when nothing is heard.
    let last = sent.len() as u32 - 1;
    let probe = a.runner.next_deadline().unwrap();
    a.now = probe;
    a.fire();
    let numbers = |wire: Vec<Vec<u8>>| -> Vec<u32> {
        wire.iter().map(|it| Header::parse(it).unwrap().number).collect()
    };
    assert_eq!(numbers(a.wire()), [2, 3]);
    assert!(a.handle_bytes(&acknowledged(last + 1, last, &[])));
    assert_eq!(a.runner.next_deadline().map(|_| a.fire()), Some(()), "a timer that is too early");
    a.now += Duration::from_secs(20);
    a.fire();
    assert_eq!((a.wire().len(), a.runner.next_deadline()), (0, None));
    assert_eq!(a.pool.live_views(), 0, "nothing is kept that has come");
    a.flush();
}

#[test]
fn what_came_out_of_order_is_said_three_times_and_then_what_is_newest() {
    let mut b = end(ALONE, 1_000);
    let packet = |number| {
        [&Header { number, kind: Kind::Sent { attempt: 0, asks: false } }.emit()[..], b"abc"]
            .concat()
    };
    // Every second of 200 is missing: far more ranges than can be said.
    (0..200).step_by(2).for_each(|number| assert!(b.handle_bytes(&packet(number))));
    let told = b.wire();
    assert_eq!(told.len(), 1, "64 are acknowledged at once");
    let read = |bytes: &[u8]| {
        let next = Header::parse(bytes).unwrap().number;
        let (state, ranges) = said(&bytes[LEN..]).unwrap();
        (next, state.number, ranges.map(|it| it.first).collect::<Vec<_>>())
    };
    let (next, newest, ranges) = read(&told[0]);
    assert_eq!((next, newest, ranges.len()), (1, 126, RANGES_MAX));
    b.now += ms(1);
    b.fire();
    let (_, newest, ranges) = read(&b.wire()[0]);
    assert_eq!((newest, ranges.len()), (198, RANGES_MAX));
    // One that fills a hole low down is said, though higher ones have no place.
    assert!(b.handle_bytes(&packet(51)));
    b.now += ms(1);
    b.fire();
    assert!(b.wire().iter().any(|bytes| read(bytes).2.contains(&50)));
    b.flush();
    let lost: u64 = b.runner.modules().map(|(_, counters)| counters.lost).sum();
    assert_eq!(lost, 98, "what is missing at the end is told");
}

#[test]
fn what_no_peer_says_is_a_counted_drop_and_lets_nothing_go() {
    let mut a = end(ALONE, 1_000);
    (0..20).for_each(|number| assert!(a.feed(&unit(number, 20))));
    a.wire();
    a.now += ms(40);
    let wrong = [
        acknowledged(21, 0, &[]),
        acknowledged(u32::MAX, 0, &[]),
        Header { number: 0, kind: Kind::Acknowledged }.emit().to_vec(),
        [&acknowledged(0, 0, &[])[..], &[0; 7]].concat(),
        vec![0, 0, 0, 1, 252],
        vec![0; 4],
    ];
    wrong.iter().for_each(|bytes| assert!(a.handle_bytes(bytes)));
    assert_eq!(dropped(&a, DropReason::Malformed), wrong.len() as u64);
    // Ranges that never left count for nothing.
    assert!(a.handle_bytes(&acknowledged(0, 900, &[(500, 9), (u32::MAX, u16::MAX), (15, 60_000)])));
    assert!(a.handle_bytes(&acknowledged(20, 19, &[])));
    a.now += Duration::from_secs(60);
    a.fire();
    a.wire();
    assert_eq!(a.pool.live_views(), 0);
    a.flush();
    // A number beyond the window, and one that came.
    let mut b = end(ALONE, 1_000);
    let packet = |number| {
        [&Header { number, kind: Kind::Sent { attempt: 0, asks: false } }.emit()[..], b"abc"]
            .concat()
    };
    for number in [0, 0, 8_193, u32::MAX] {
        assert!(b.handle_bytes(&packet(number)));
    }
    assert_eq!(b.units().len(), 1);
    assert_eq!(dropped(&b, DropReason::Duplicate), 1);
    assert_eq!(dropped(&b, DropReason::Malformed), 2);
    b.flush();
}

#[test]
fn a_storm_of_acknowledgements_has_no_more_sent_than_is_lost() {
    let mut a = end(ALONE, 1_000);
    (0..600).for_each(|number| assert!(a.feed(&unit(number, 20))));
    a.wire();
    a.now += ms(40);
    // Only the last has come, says somebody again and again.
    let mut sent = 0;
    for _ in 0..50 {
        assert!(a.handle_bytes(&acknowledged(0, 599, &[(599, 1)])));
        sent += a.wire().len();
        a.now += Duration::from_micros(100);
        a.fire();
        sent += a.wire().len();
    }
    assert_eq!(sent, 0, "not overdue yet");
    a.now += ms(20);
    for _ in 0..10 {
        a.fire();
        assert!(a.handle_bytes(&acknowledged(0, 599, &[(599, 1)])));
        let wire = a.wire().len();
        assert!(wire <= 512, "{wire} at once");
        sent += wire;
        a.now += ms(1);
    }
    assert_eq!(sent, 599, "each once in a round trip");
    a.flush();
}

#[test]
fn what_came_twice_is_waited_for_longer_until_losses_are_true_again() {
    let mut a = end(ALONE, 1_000);
    let mut waits = Vec::new();
    for round in 0..20_u32 {
        let (lost, came) = (2 * round, 2 * round + 1);
        assert!(a.feed(&unit(lost.into(), 20)) && a.feed(&unit(came.into(), 20)));
        a.wire();
        let sent = a.now;
        a.now += ms(40);
        // One is said to have come twice, once.
        let head = Header { number: lost, kind: Kind::Acknowledged }.emit();
        let state = State { number: came, attempt: 0, held_us: 0, duplicates: 1 };
        let range = Range { first: came, count: 1 };
        assert!(a.handle_bytes(&[&head[..], &state.emit(), &range.emit()].concat()));
        // A timer that was armed earlier looks, and arms anew.
        let mut again = a.wire();
        while again.is_empty() {
            a.now = a.runner.next_deadline().unwrap();
            a.fire();
            again = a.wire();
        }
        assert_eq!(Header::parse(&again[0]).unwrap().number, lost, "round {round}");
        waits.push(a.now.since(sent).as_millis());
        a.now += ms(40);
        assert!(a.handle_bytes(&acknowledged(came + 1, lost, &[])));
    }
    // The round trip is 40 ms: a quarter more, or two.
    assert_eq!(waits, [vec![60; 16], vec![50; 4]].concat());
    a.flush();
}

#[test]
fn who_lies_about_times_has_no_more_sent_than_the_bound() {
    let mut a = end(ALONE, 1_000);
    let count: u32 = 2_000;
    (0..count).for_each(|number| assert!(a.feed(&unit(number.into(), 20))));
    a.wire();
    // Held for longer than it was under way: that is no round trip, so none is short.
    let head = Header { number: 0, kind: Kind::Acknowledged }.emit();
    let state = State { number: count - 1, attempt: 0, held_us: u32::MAX, duplicates: 0 };
    let last = Range { first: count - 1, count: 1 };
    assert!(a.handle_bytes(&[&head[..], &state.emit(), &last.emit()].concat()));
    a.fire();
    assert_eq!(a.wire().len(), 0);
    // At once, again and again: always one more has come, that left later than all others.
    let mut sent = 0;
    for number in (0..count - 1).rev() {
        let state = State { number, attempt: 0, held_us: 0, duplicates: 0 };
        let came = Range { first: number, count: 1 };
        assert!(a.handle_bytes(&[&head[..], &state.emit(), &came.emit()].concat()));
        a.fire();
        sent += a.wire().len();
        a.now += ms(3);
    }
    let most = 3 * (2 * count as usize) + 4 * 60;
    assert!((count as usize..most).contains(&sent), "{sent} sent again of {count}");
    a.flush();
}

#[test]
fn without_memory_nothing_is_sent_again_until_there_is_some() {
    let mut a = end(ALONE, 1_000);
    (0..3).for_each(|number| assert!(a.feed(&unit(number, 20))));
    a.wire();
    a.now += ms(40);
    let heard = a.pool.packet_from(0, &acknowledged(0, 2, &[(2, 1)]), 0).unwrap();
    a.handle(heard);
    let hoard = hoard(&mut a);
    a.now += ms(10);
    a.fire();
    assert_eq!((a.wire().len(), again(&a)), (0, 0));
    assert!(dropped(&a, DropReason::NoMemory) > 0);
    hoard.into_iter().for_each(|packet| a.pool.free(packet));
    a.now += ms(1);
    a.fire();
    assert_eq!(a.wire().len(), 2);
    a.flush();
}

#[test]
fn numbers_go_on_after_flush_and_drain_changes_nothing() {
    let (mut a, mut b) = (end(ALONE, 1_000), end(ALONE, 1_000));
    assert!(a.feed(&unit(0, 20)));
    a.with(Runner::drain);
    let sent = a.wire();
    assert_eq!(sent.len(), 1);
    assert!(b.handle_bytes(&sent[0]));
    a.flush();
    assert!(a.feed(&unit(1, 20)));
    assert!(b.handle_bytes(&a.wire()[0]));
    assert_eq!(b.units(), [unit(0, 20), unit(1, 20)]);
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn what_is_predicted_is_near_in_nine_of_ten() {
    near_in_nine_of_ten(|seed| near(seed, 1));
}

#[test]
fn what_is_predicted_of_packets_as_they_come_is_too() {
    near_in_nine_of_ten(|seed| near(seed, 0));
}

fn near(seed: u64, ordered: u64) -> Near {
    let mut random = Random::from_number(seed ^ 0xA55);
    let every = Duration::from_micros(500 + random.below(20_000));
    let loss_ppb = random.below(150) * 1_000_000;
    let burst_milli = 1_000 + random.below(4_000);
    let mut params = Params::new();
    params.set(0, ordered);
    Alone { spec: &SPEC, params, loss_ppb, burst_milli, every, seed }.near(None)
}

#[test]
fn nothing_is_lost_as_is_predicted() {
    let alone = Alone {
        spec: &SPEC,
        params: Params::new(),
        loss_ppb: 50_000_000,
        burst_milli: 3_000,
        every: ms(2),
        seed: 7,
    };
    alone.loses_as_much_as_is_predicted();
    assert!(once(&World::new(ALONE, Loss::Single(0.0), ms(0), 1)).is_empty());
    assert_eq!(MS, 1_000_000);
}
