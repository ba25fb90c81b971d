//! What `latest` sees to: the newest unit arrives, over whatever wire, and nothing waits for those
//! that it replaced.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::alone::{Alone, near_in_nine_of_ten};
use common::{Loss, Place, World, dropped, end, hoard, lost, ms, number, once, unit};
use dacapo_base::Random;
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, Params, Properties, Property};
use dacapo_modules::retransmission::latest::SPEC;
use dacapo_wire::retransmission::{ATTEMPTS_MAX, Header, Kind, LEN};

const ALONE: &[Place<'_>] = &[("latest", &[])];

fn packet(number: u32, kind: Kind) -> Vec<u8> {
    [&Header { number, kind }.emit()[..], &unit(number.into(), 20)].concat()
}

/// What the receiver says of a unit that came just now when it had been sent for this time.
fn said(number: u32, attempt: u8) -> Vec<u8> {
    [&Header { number, kind: Kind::Newest }.emit()[..], &[0, 0, 0, 0, attempt]].concat()
}

#[test]
fn it_gives_the_newest_unit_and_order_and_promises_no_other() {
    let below = Properties::of(&[Property::Boundaries]);
    let all = &[Property::Boundaries, Property::NoDuplicates, Property::Order, Property::Newest];
    assert_eq!(SPEC.above(&[], below), Properties::of(all));
}

#[test]
fn the_newest_arrives_in_order_and_each_other_comes_once_or_is_told_as_lost() {
    for seed in 0..200 {
        let mut random = Random::from_number(seed);
        let (loss, every) = (random.below(50) as f64 / 100.0, 1 + random.below(200));
        let mut world = World::new(ALONE, Loss::Single(loss), ms(random.below(30)), seed);
        let count = 200;
        world.run((0..count).map(|number| unit(number, 50)), ms(every));
        let came: Vec<u64> = world.came.iter().map(|(_, unit)| number(unit)).collect();
        assert!(came.is_sorted_by(|a, b| a < b), "seed {seed}: twice, or out of order");
        assert_eq!(came.last(), Some(&(count - 1)), "seed {seed}: the newest");
        assert_eq!(came.len() as u64 + lost(&world.b), count, "seed {seed}");
        for end in [&world.a, &world.b] {
            assert_eq!(end.pool.live_views(), 0, "seed {seed}: something is kept for nothing");
            assert_eq!(end.runner.next_deadline(), None, "seed {seed}");
        }
    }
}

/// Flows whose units are replaced before they could come again, and those with time for one try or
/// several.
#[test]
fn what_is_predicted_is_near_in_nine_of_ten() {
    near_in_nine_of_ten(|seed| {
        let mut random = Random::from_number(seed ^ 0x1A7E);
        let every = ms(2 + random.below(200));
        let loss_ppb = random.below(150) * 1_000_000;
        let burst_milli = 1_000 + random.below(4_000);
        let params = Params::new();
        Alone { spec: &SPEC, params, loss_ppb, burst_milli, every, seed }.near(None)
    });
}

#[test]
fn units_that_nothing_replaces_all_come_within_a_few_round_trips() {
    let mut world = World::new(ALONE, Loss::Single(0.2), ms(2), 7);
    let (start, every, count) = (world.a.now, ms(2_000), 500);
    world.run((0..count).map(|number| unit(number, 50)), every);
    assert_eq!((once(&world).len() as u64, lost(&world.b)), (count, 0));
    let took =
        |(at, it): &(dacapo_base::Time, Vec<u8>)| at.since(start + every * number(it) as u32);
    let mut took: Vec<_> = world.came.iter().map(took).collect();
    took.sort_unstable();
    // The way takes 20 ms. A round trip is 40; that of the first is not known.
    assert!(took[took.len() / 2] <= ms(22), "{took:?}");
    assert!(took[took.len() * 9 / 10] <= ms(80), "{took:?}");
    let again = world.sent[0] - count;
    assert!((100..350).contains(&again), "{again} sent again where 36 % of answers do not come");
}

#[test]
fn of_what_is_sent_fast_the_newest_is_kept_alone_and_what_came_is_said_now_and_then() {
    let mut a = end(ALONE, 1_000);
    for number in 0..50 {
        assert!(a.feed(&unit(number, 50)));
        assert_eq!((a.wire().len(), a.pool.live_views()), (1, 1), "unit {number}");
    }
    a.flush();
    let mut world = World::new(ALONE, Loss::Single(0.1), ms(0), 3);
    let count = 20_000;
    world.run((0..count).map(|number| unit(number, 50)), ms(1) / 10);
    // In 2 s once every 2 ms, and once more for the last.
    assert!(world.sent[1] <= 1_010, "{} said", world.sent[1]);
    assert!(world.sent[0] <= count + 3, "{} sent", world.sent[0]);
    assert!(once(&world).len() as u64 + lost(&world.b) == count);
}

#[test]
fn units_of_many_packets_come_whole() {
    let places: &[Place<'_>] = &[("latest", &[]), ("segment", &[]), ("checksum", &[])];
    for seed in 0..10 {
        let mut world = World::new(places, Loss::Single(0.03), ms(5), seed);
        let mut random = Random::from_number(seed);
        let count = 200;
        world.run((0..count).map(|n| unit(n, random.below(20_000) as usize)), ms(100));
        let came: Vec<u64> = world.came.iter().map(|(_, unit)| number(unit)).collect();
        assert!(came.is_sorted_by(|a, b| a < b), "seed {seed}");
        assert_eq!(came.last(), Some(&(count - 1)), "seed {seed}");
        // A third lack a packet at first, and some of these are replaced before they come again.
        assert!(came.len() > 160, "seed {seed}: {}", came.len());
        [&mut world.a, &mut world.b].into_iter().for_each(End::flush);
    }
}

#[test]
fn what_comes_twice_or_later_than_a_newer_one_does_not_go_up() {
    let mut b = end(ALONE, 1_000);
    for number in [0, 0, 2, 1, 2] {
        assert!(b.handle_bytes(&packet(number, Kind::First)));
    }
    assert_eq!(b.units().iter().map(|it| number(it)).collect::<Vec<_>>(), [0, 2]);
    assert_eq!([DropReason::Duplicate, DropReason::Stale].map(|it| dropped(&b, it)), [2, 1]);
    assert_eq!(lost(&b), 1);
    b.flush();
}

#[test]
fn a_number_far_ahead_is_believed_when_another_or_the_same_sent_again_confirms_it() {
    let mut b = end(ALONE, 1_000);
    let take = |b: &mut End, number, kind| assert!(b.handle_bytes(&packet(number, kind)));
    take(&mut b, 0, Kind::First);
    for _ in 0..3 {
        take(&mut b, 70_000, Kind::First);
    }
    take(&mut b, 1, Kind::First);
    assert_eq!((b.units().len(), dropped(&b, DropReason::Overflow), lost(&b)), (2, 3, 0));
    // After a silence the newest is sent again and again, and nothing else is.
    take(&mut b, 9_000, Kind::First);
    take(&mut b, 9_000, Kind::Again(1));
    assert_eq!((b.units().len(), lost(&b)), (1, 8_998));
    take(&mut b, 30_000, Kind::Again(ATTEMPTS_MAX));
    take(&mut b, 30_005, Kind::First);
    assert_eq!((b.units().len(), lost(&b)), (1, 8_998 + 21_004));
    b.flush();
}

#[test]
fn who_joins_takes_the_first_that_comes() {
    let mut b = end(ALONE, 1_000);
    b.with(|runner, _| runner.join());
    for number in [u32::MAX, 0, 2] {
        assert!(b.handle_bytes(&packet(number, Kind::First)));
    }
    assert_eq!((b.units().len(), lost(&b)), (3, 1));
    b.flush();
}

#[test]
fn what_no_peer_says_changes_nothing_and_is_counted() {
    let mut a = end(ALONE, 1_000);
    assert!(a.feed(&unit(0, 20)) && a.feed(&unit(1, 20)));
    a.wire();
    let due = a.runner.next_deadline().unwrap();
    let malformed: [&[u8]; 4] =
        [&[0; 4], &[0, 0, 0, 1, 77], &[0, 0, 0, 1, 254, 1], &[0, 0, 0, 0, 255]];
    malformed.iter().for_each(|bytes| assert!(a.handle_bytes(bytes)));
    assert_eq!(dropped(&a, DropReason::Malformed), 4);
    // One that was replaced, and some that were never sent.
    for number in [0, 2_000, u32::MAX] {
        assert!(a.handle_bytes(&said(number, 0)));
    }
    assert_eq!(a.runner.next_deadline(), Some(due));
    a.now = due;
    a.fire();
    let again = a.wire();
    let header = Header::parse(&again[0]).unwrap();
    assert_eq!((again.len(), header), (1, Header { number: 1, kind: Kind::Again(1) }));
    assert!(again[0].len() == LEN + 20 && a.handle_bytes(&said(1, 0)));
    assert_eq!((a.runner.next_deadline(), a.pool.live_views()), (None, 0));
    a.flush();
}

#[test]
fn what_says_that_the_epoch_ends_waits_until_the_newest_has_come() {
    let mut a = end(ALONE, 1_000);
    assert!(a.feed(&unit(0, 20)));
    a.wire();
    let mark = |a: &mut End| {
        let mut mark = a.pool.packet_from(LEN + common::PATH_HEAD, b"end", 0).unwrap();
        mark.set_kind(dacapo_packet::Kind::Mark);
        a.with(|runner, around| {
            runner.feed(around, mark);
            runner.run(around);
        });
    };
    (0..3).for_each(|_| mark(&mut a));
    assert_eq!(a.wire().len(), 0, "three, of which one waits");
    a.now = a.runner.next_deadline().unwrap();
    a.fire();
    assert_eq!(Header::parse(&a.wire()[0]).unwrap().number, 0, "the unit before it again");
    assert!(a.handle_bytes(&said(0, 0)));
    let sent = a.wire();
    assert_eq!((sent.len(), Header::parse(&sent[0]).unwrap().number), (1, 1));
    // Where there is none it goes at once.
    assert!(a.handle_bytes(&said(1, 0)));
    mark(&mut a);
    assert_eq!(a.wire().len(), 1);
    a.flush();
    assert_eq!(a.pool.live_views(), 0);
}

#[test]
fn where_the_peer_believes_an_altered_number_the_newest_is_sent_again_behind_it() {
    let (mut a, mut b) = (end(ALONE, 1_000), end(ALONE, 1_000));
    assert!(a.feed(&unit(0, 20)));
    let mut altered = a.wire().remove(0);
    altered[3] ^= 0x40;
    assert!(b.handle_bytes(&altered));
    assert_eq!(b.units().len(), 1);
    assert!(a.feed(&unit(1, 20)));
    assert!(b.handle_bytes(&a.wire()[0]));
    assert_eq!((b.units().len(), dropped(&b, DropReason::Stale)), (0, 1));
    b.now += ms(2);
    b.fire();
    let answers = b.wire();
    answers.iter().for_each(|answer| assert!(a.handle_bytes(answer)));
    a.now = a.runner.next_deadline().unwrap();
    a.fire();
    assert!(b.handle_bytes(&a.wire()[0]));
    assert_eq!(b.units().iter().map(|it| number(it)).collect::<Vec<_>>(), [1]);
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn how_long_answers_take_is_learned_also_where_that_is_longer_than_the_first_wait() {
    let (mut a, mut sent) = (end(ALONE, 1_000), Vec::new());
    for number in 0..8 {
        assert!(a.feed(&unit(number, 20)));
        let answered = a.now + ms(600);
        let mut count = a.wire().len();
        while let Some(due) = a.runner.next_deadline().filter(|due| *due < answered) {
            a.now = due;
            a.fire();
            count += a.wire().len();
        }
        a.now = answered;
        assert!(a.handle_bytes(&said(number as u32, 0)));
        a.now += ms(1_400);
        sent.push(count);
    }
    assert!(sent[0] > 1 && sent[4..].iter().all(|count| *count == 1), "{sent:?}");
    a.flush();
}

#[test]
fn the_wait_doubles_up_to_a_second_and_goes_on_until_it_is_acknowledged() {
    let mut a = end(ALONE, 1_000);
    assert!(a.feed(&unit(0, 20)));
    a.wire();
    let mut waits = Vec::new();
    for _ in 0..40 {
        let due = a.runner.next_deadline().unwrap();
        waits.push(due.since(a.now).as_millis());
        a.now = due;
        a.fire();
        assert_eq!(a.wire().len(), 1);
    }
    assert_eq!(waits[..4], [200, 400, 800, 1_000]);
    assert!(waits[4..].iter().all(|wait| *wait == 1_000));
    assert!(a.handle_bytes(&said(0, 0)));
    assert_eq!(a.runner.next_deadline(), None);
    a.flush();
}

#[test]
fn without_memory_it_is_sent_again_later_and_that_is_counted() {
    let mut a = end(ALONE, 1_000);
    assert!(a.feed(&unit(0, 20)));
    a.wire();
    let hoard = hoard(&mut a);
    a.now = a.runner.next_deadline().unwrap();
    a.fire();
    assert_eq!((a.wire().len(), dropped(&a, DropReason::NoMemory)), (0, 1));
    hoard.into_iter().for_each(|packet| a.pool.free(packet));
    a.now = a.runner.next_deadline().unwrap();
    a.fire();
    assert_eq!(a.wire().len(), 1);
    a.flush();
}
