//! What `arq-gbn` is for, over a wire that loses, repeats and reorders both ways: everything comes,
//! once and in order, at a receiver that keeps no packets; and what a peer makes up is counted.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Loss, Place, World, checked, dropped, end, ms, number, unit};
use dacapo_base::Random;
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, Property, Runner};
use dacapo_modules::retransmission::go_back::NOTE_REPAIRED;
use dacapo_wire::acknowledgement::{Header, Kind, LEN, Range, State, said};
use std::time::Duration;

const ALONE: &[Place<'_>] = &[("arq-gbn", &[])];

fn again(end: &End) -> i64 {
    let notes = end.runner.notes().iter();
    notes.filter(|note| note.code == NOTE_REPAIRED).map(|note| note.value).sum()
}

#[test]
fn everything_comes_in_order_and_nothing_waits_at_the_receiver() {
    // Packets that overtake each other are lost to it: what leaves at once comes one by one.
    for (loss, jitter, every) in
        [(0.0, 0, 4), (0.01, 0, 4), (0.1, 0, 20), (0.3, 0, 80), (0.05, 4, 80)]
    {
        for seed in 0..3 {
            let mut world = World::new(ALONE, Loss::Single(loss), ms(jitter), seed);
            let count = 2_000;
            world.run((0..count).map(|number| unit(number, 900)), ms(every));
            let what = format!("loss {loss}, seed {seed}");
            let order: Vec<u64> = world.came.iter().map(|(_, unit)| number(unit)).collect();
            assert!(order.iter().copied().eq(0..count), "{what}: missing, twice, or out of order");
            // An acknowledgement that leaves, and what has come and goes up.
            assert!(world.views_max <= 2, "{what}: {} views are kept", world.views_max);
            if loss == 0.0 {
                assert_eq!(again(&world.a), 0, "{what}: sent again for nothing");
            }
            for end in [&mut world.a, &mut world.b] {
                assert_eq!(end.runner.next_deadline(), None, "{what}: a timer waits for nothing");
                end.flush();
            }
        }
    }
}

#[test]
fn units_of_many_packets_come_whole_through_runs_of_losses() {
    for seed in 0..3 {
        let places: &[Place<'_>] = &[("segment", &[]), ("arq-gbn", &[]), ("checksum", &[])];
        let losses = common::Losses::new(0.05, 12.0, ms(1), seed);
        let mut world = World::new(places, Loss::Runs(Box::new(losses)), ms(0), seed);
        let mut random = Random::from_number(seed);
        let count = 1_000;
        world.run((0..count).map(|n| unit(n, random.below(15_000) as usize)), ms(60));
        let came: Vec<u64> = world.came.iter().map(|(_, unit)| number(unit)).collect();
        assert!(came.iter().copied().eq(0..count), "seed {seed}");
        [&mut world.a, &mut world.b].into_iter().for_each(End::flush);
    }
}

fn expected(next: u32, last: (u32, u8)) -> Vec<u8> {
    let head = Header { number: next, kind: Kind::Acknowledged }.emit();
    let state = State { number: last.0, attempt: last.1, held_us: 0, duplicates: 0 };
    [&head[..], &state.emit()].concat()
}

fn sent(wire: &[Vec<u8>]) -> Vec<(u32, u8)> {
    let read = |bytes: &Vec<u8>| match Header::parse(bytes).ok() {
        Some(Header { number, kind: Kind::Sent { attempt, .. } }) => (number, attempt),
        other => panic!("{other:?} is nothing that was sent"),
    };
    wire.iter().map(read).collect()
}

#[test]
fn the_sender_goes_back_once_for_what_was_under_way_and_again_when_that_is_lost() {
    let mut a = end(ALONE, 1_000);
    for number in 0..6 {
        assert!(a.feed(&unit(number, 20)));
        a.now += ms(1);
    }
    a.wire();
    a.now += ms(40);
    assert!(a.handle_bytes(&expected(2, (1, 0))));
    assert_eq!(a.wire().len(), 0, "an acknowledgement says nothing of what is behind it");
    assert!(a.handle_bytes(&expected(2, (3, 0))));
    assert_eq!(sent(&a.wire()), [(2, 1), (3, 1), (4, 1), (5, 1)], "at once, and all of it");
    a.now += ms(1);
    for last in [(3, 0), (4, 0), (5, 0), (5, 0), (900, 0), (2, 9)] {
        assert!(a.handle_bytes(&expected(2, last)));
    }
    assert_eq!(a.wire().len(), 0, "that was under way before");
    a.now += ms(40);
    assert!(a.handle_bytes(&expected(2, (4, 1))));
    assert_eq!(sent(&a.wire()), [(2, 2), (3, 2), (4, 2), (5, 2)], "2 was lost again");
    assert!(a.handle_bytes(&expected(6, (5, 2))));
    a.now += Duration::from_secs(20);
    a.fire();
    assert_eq!((a.wire().len(), a.pool.live_views(), again(&a)), (0, 0, 8));
    a.flush();
}

#[test]
fn the_receiver_says_at_once_what_is_missing_and_drops_what_is_behind_it() {
    let mut b = end(ALONE, 1_000);
    let packet = |number, attempt| {
        let kind = Kind::Sent { attempt, asks: false };
        [&Header { number, kind }.emit()[..], b"abc"].concat()
    };
    let read = |wire: Vec<Vec<u8>>| -> Vec<(u32, u32)> {
        let one = |bytes: &Vec<u8>| {
            let (state, ranges) = said(&bytes[LEN..]).expect("a state");
            assert_eq!(ranges.count(), 0, "it keeps nothing");
            (Header::parse(bytes).expect("a header").number, state.number)
        };
        wire.iter().map(one).collect()
    };
    [0, 2, 3, 4].into_iter().for_each(|number| assert!(b.handle_bytes(&packet(number, 0))));
    assert_eq!((b.units().len(), dropped(&b, DropReason::Overflow)), (1, 3));
    assert_eq!(read(b.wire()), [(1, 2)], "once, and then what follows a millisecond later");
    b.now += ms(1);
    b.fire();
    assert_eq!(read(b.wire()), [(1, 4)]);
    [1, 2, 3, 4].into_iter().for_each(|number| assert!(b.handle_bytes(&packet(number, 1))));
    assert_eq!(b.units().len(), 4);
    assert!(b.handle_bytes(&packet(3, 0)));
    assert_eq!(dropped(&b, DropReason::Duplicate), 1);
    b.now += ms(1);
    b.fire();
    assert_eq!(read(b.wire()), [(5, 3)]);
    for number in [5 + 8_192, 70_000, u32::MAX] {
        assert!(b.handle_bytes(&packet(number, 0)));
    }
    assert_eq!(dropped(&b, DropReason::Malformed), 3);
    b.flush();
}

#[test]
fn what_no_receiver_says_lets_nothing_go_and_has_no_more_sent_than_the_bound() {
    let mut a = end(ALONE, 1_000);
    let count = 600;
    (0..count).for_each(|number| assert!(a.feed(&unit(number, 20))));
    a.wire();
    a.now += ms(40);
    let wrong = [expected(601, (0, 0)), expected(u32::MAX, (0, 0)), vec![0, 0, 0, 1, 252]];
    wrong.iter().for_each(|bytes| assert!(a.handle_bytes(bytes)));
    assert_eq!(dropped(&a, DropReason::Malformed), 3);
    // Ranges, which nobody keeps, let nothing go.
    let ranges = [Range { first: 1, count: 599 }.emit()].concat();
    assert!(a.handle_bytes(&[&expected(0, (0, 0))[..], &ranges].concat()));
    assert_eq!(a.runner.credit(), 8_192 - 600);
    // A storm: each says that the newest that it was sent has come, and the first has not.
    let (mut again, mut newest) = (0, (599, 0));
    for _ in 0..200 {
        for _ in 0..20 {
            assert!(a.handle_bytes(&expected(0, newest)));
        }
        let wire = sent(&a.wire());
        again += wire.len();
        assert!(wire.len() <= 600, "{} at once", wire.len());
        newest = wire.last().copied().unwrap_or(newest);
        a.now += ms(1);
        a.fire();
    }
    // Sixteen times what was sent, and two at a time for each probe.
    assert!(again <= 16 * 600 + 2 * 200, "{again} sent again of {count}");
    assert!(a.handle_bytes(&expected(600, newest)));
    a.now += Duration::from_secs(60);
    a.fire();
    a.wire();
    assert_eq!(a.pool.live_views(), 0, "nothing is kept that has come");
    a.flush();
}

#[test]
fn it_gives_what_arq_sr_gives_and_no_second_one_stands_beside_it() {
    let both = &[Property::Boundaries, Property::WayBack];
    let graph: &[Place<'_>] = &[("segment", &[]), ("arq-gbn", &[]), ("checksum", &[])];
    assert_eq!(checked(graph, both), Ok(()));
    assert!(checked(graph, &[Property::Boundaries]).is_err());
    assert!(checked(&[("arq-gbn", &[]), ("arq-sr", &[])], both).is_err());
}

#[test]
fn numbers_go_on_after_flush() {
    let (mut a, mut b) = (end(ALONE, 1_000), end(ALONE, 1_000));
    assert!(a.feed(&unit(0, 20)));
    a.with(Runner::drain);
    a.wire().iter().for_each(|it| assert!(b.handle_bytes(it)));
    a.flush();
    assert!(a.feed(&unit(1, 20)));
    a.wire().iter().for_each(|it| assert!(b.handle_bytes(it)));
    assert_eq!(b.units(), [unit(0, 20), unit(1, 20)]);
    [&mut a, &mut b].into_iter().for_each(End::flush);
}
