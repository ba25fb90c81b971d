//! CoDel as RFC 8289 says it, with flows of every kind.

use super::*;
use crate::flows::{Control, Flow, LEN, World};
use dacapo_base::Ecn;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// 12 Mbit/s: a packet in 1 ms. A fifth more than that comes.
fn too_much(ecn: Ecn) -> Flow {
    Flow::new(Control::None { apart: ms(1) * 5 / 6 }, ecn, ms(1))
}

#[test]
fn a_standing_queue_is_dropped_from_as_often_as_the_law_says() {
    let mut world = World::new("rate=12Mbit/s,aqm=codel", vec![too_much(Ecn::NotEct)]);
    world.run(ms(3_000));
    let first = *world.drops.first().expect("it drops");
    // The wait grows by a sixth of the time: to 5 ms in 30 ms; and then an interval.
    assert!((Time::from_millis(129)..=Time::from_millis(133)).contains(&first), "{first:?}");
    let mut law = first;
    for (number, &drop) in (1_u32..).zip(&world.drops) {
        // Something leaves every millisecond, and only what leaves can be dropped; whole
        // nanoseconds make a difference of one each time.
        let late = law.nanos_until(drop);
        assert!((-300..=1_000_300).contains(&late), "drop {number}: {late} ns after the law");
        law += Duration::from_secs_f64(0.1 / f64::from(number).sqrt());
    }
    // 2.87 s are 28.7 intervals: 2 sqrt(n) - 1.46 of them are n drops.
    assert!((220..=232).contains(&world.drops.len()), "{} drops", world.drops.len());
    assert_eq!((world.link.stats().marked, world.link.stats().dropped_queue), (0, 0));
}

#[test]
fn target_and_interval_move_the_law() {
    let text = "rate=12Mbit/s,aqm=codel,aqm-target=20ms,aqm-interval=50ms";
    let mut world = World::new(text, vec![too_much(Ecn::NotEct)]);
    world.run(ms(1_000));
    let first = *world.drops.first().expect("it drops");
    assert!((Time::from_millis(169)..=Time::from_millis(173)).contains(&first), "{first:?}");
    let apart = world.drops.windows(2).map(|it| it[1].since(it[0])).next().unwrap();
    assert!((ms(49)..=ms(51)).contains(&apart), "{apart:?}");
}

#[test]
fn what_can_be_marked_is_marked_by_the_same_law_and_not_dropped() {
    let mut dropped = World::new("rate=12Mbit/s,aqm=codel", vec![too_much(Ecn::NotEct)]);
    let mut marked = World::new("rate=12Mbit/s,aqm=codel", vec![too_much(Ecn::Ect0)]);
    for world in [&mut dropped, &mut marked] {
        world.run(ms(2_000));
    }
    let (drops, marks) = (dropped.link.stats().dropped_aqm, marked.link.stats().marked);
    assert!(drops > 80 && marks.abs_diff(drops) <= 1, "{drops} drops, {marks} marks");
    assert_eq!(marked.link.stats().dropped(), 0);
    // What comes with the mark is let through, and not counted again.
    let mut already = World::new("rate=12Mbit/s,aqm=codel", vec![too_much(Ecn::Ce)]);
    already.run(ms(2_000));
    let stats = already.link.stats();
    assert_eq!((stats.marked, stats.dropped()), (0, 0));
    assert_eq!(already.flows[0].marked, already.flows[0].delivered);
}

#[test]
fn nothing_that_waits_for_less_than_the_target_is_dropped_or_marked() {
    for ecn in [Ecn::NotEct, Ecn::Ect0] {
        // Four wait at most, so less than 5 ms.
        let mut world = World::new("rate=12Mbit/s,aqm=codel,queue=4", vec![too_much(ecn)]);
        world.run(ms(5_000));
        let stats = world.link.stats();
        assert_eq!((stats.dropped_aqm, stats.marked), (0, 0), "{ecn:?}");
        assert!(stats.dropped_queue > 900, "{ecn:?}: {} do not fit", stats.dropped_queue);
    }
}

/// The limits: 95 % of the packets wait for at most twice the target, half of them for at
/// most the target and a millisecond; the link is used to four fifths at least, since one flow
/// that halves its window leaves a link idle whose queue holds less than that.
#[test]
fn a_flow_that_answers_keeps_its_wait_near_the_target() {
    for ecn in [Ecn::NotEct, Ecn::Ect0] {
        let flow = Flow::new(Control::Reno, ecn, ms(20));
        let mut world = World::new("rate=12Mbit/s,delay=20ms,aqm=codel", vec![flow]);
        world.warm_up(ms(10_000));
        world.run(ms(60_000));
        let flow = &world.flows[0];
        // The way and its own millisecond.
        let wait = |share| flow.delay(share) - ms(21);
        assert!(wait(0.95) <= ms(10), "{ecn:?}: p95 {:?}", wait(0.95));
        assert!(wait(0.5) <= ms(6), "{ecn:?}: p50 {:?}", wait(0.5));
        let used = flow.delivered as f64 / 60_000.0;
        assert!(used > 0.8, "{ecn:?}: {used} of the link");
        let stats = world.link.stats();
        let is_marked = ecn == Ecn::Ect0;
        assert_eq!((stats.marked > 0, stats.dropped_aqm > 0), (is_marked, !is_marked), "{ecn:?}");
    }
}

#[test]
fn the_last_one_that_waits_is_never_dropped() {
    let text = "rate=1kbit/s,aqm=codel,aqm-target=1us,aqm-interval=1us";
    let apart = Duration::from_secs(12);
    let flow = Flow::new(Control::None { apart }, Ecn::NotEct, ms(1));
    let mut world = World::new(text, vec![flow]);
    // The second of two that come together waits for 12 s, with nothing behind it.
    let extra = crate::flows::Packet { flow: 0, number: 0, len: LEN, ecn: Ecn::NotEct };
    let _ = world.link.handle_send(Time::ZERO, extra);
    world.run(Duration::from_secs(100));
    assert_eq!(world.link.stats().dropped(), 0);
    assert!(world.flows[0].delivered >= 8, "{}", world.flows[0].delivered);
}

#[test]
fn it_remembers_for_sixteen_intervals_how_often_it_had_to_drop() {
    let resumed = |apart_ms: u64| {
        let mut codel = CoDel::new(ms(5), ms(100));
        (codel.count, codel.count_begun, codel.next_drop) = (25, 9, Time::from_millis(1_000));
        codel.begin(Time::from_millis(1_000 + apart_ms));
        (codel.count, codel.count_begun)
    };
    assert_eq!(resumed(1_599), (16, 16));
    assert_eq!(resumed(1_600), (1, 1));
    let mut codel = CoDel::new(ms(5), ms(100));
    (codel.count, codel.count_begun) = (10, 9);
    codel.begin(Time::ZERO);
    assert_eq!((codel.count, codel.next_drop), (1, Time::from_millis(100)));
}
