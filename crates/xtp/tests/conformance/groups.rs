//! Cases 61 to 65: reliable groups.

use crate::common::group::{GroupWorld, group, open};
use crate::common::hand::{Hand, WINDOW, asks, host};
use crate::common::uut::bytes;
use dacapo_base::Time;
use dacapo_link::{LinkConfig, Loss};
use dacapo_xtp::wire::{Body, Control, Format, Frame, Key, Limits, Options};
use dacapo_xtp::{Config, End, Event, GroupPolicy, Leaving, Mode};
use std::time::Duration;

fn world(count: usize, loss: f64, limits: Limits, policy: &GroupPolicy) -> GroupWorld {
    let delay = Duration::from_millis(5);
    let link = LinkConfig { delay, loss: Loss::Random { p: loss }, ..LinkConfig::default() };
    let mut world = GroupWorld::new(61, Config::default(), &link, bytes(300_000));
    (0..count).for_each(|_| world.listen(Mode::default()));
    world.open(Mode { limits, ..open().mode }, policy);
    world
}

#[test]
fn case_61_three_members_that_lose_one_in_twenty_get_the_same_bytes() {
    let mut world = world(3, 0.05, Limits::default(), &GroupPolicy::all_of(3));
    world.run();
    assert_eq!(world.end(), Some(End::Complete));
    for number in 0..3 {
        assert_eq!(world.check_bytes(number, 0, ""), 300_000);
        assert_eq!(world.hearers[number].end, Some(End::Complete));
    }
    let headers = world.headers();
    assert!(headers.iter().all(|header| header.options.has(Options::MULTI)));
    let data = headers.iter().filter(|header| header.format == Format::Data);
    assert!(data.clone().all(|header| !header.key.is_returned()), "data goes to the group");
    world.check_sums("");
}

#[test]
fn case_61_what_the_slowest_has_is_what_all_have() {
    let config = Config { buffer_len: 1_000, ..Config::default() };
    let mut hand = Hand::with(3, config);
    assert_eq!(hand.uut.write(&bytes(1_000)), 1_000);
    let sent = hand.uut.take();
    let echo = sent.last().unwrap().header().sync;
    for (number, rseq) in [(0, 1_000), (1, 300), (2, 700)] {
        assert_eq!(hand.uut.write(&bytes(1)), 0, "before member {number}");
        hand.says(number, Options::NONE, Control { rseq, alloc: WINDOW, echo });
    }
    assert_eq!(hand.uut.write(&bytes(1_000)), 300);
    let members = hand.uut.engine.members(hand.uut.id()).unwrap();
    assert_eq!(members.iter().map(|member| member.rseq).min(), Some(300));
}

#[test]
fn case_62_a_member_that_dies_is_dropped_and_the_others_finish() {
    let patience = Duration::from_secs(1_000);
    let policy = GroupPolicy { members_first: 3, patience, ..GroupPolicy::default() };
    let mut world = world(3, 0.0, Limits::default(), &policy);
    while world.joined().len() < 3 {
        assert!(world.turn(Time::NEVER));
    }
    world.pass(Duration::from_millis(20));
    world.hearers[1].is_cut = true;
    world.run();
    assert_eq!(world.end(), Some(End::Complete));
    assert_eq!(world.left_as(1), Some(Leaving::Silent));
    assert!(world.hearers[1].got.len() < 300_000);
    for number in [0, 2] {
        assert_eq!(world.check_bytes(number, 0, ""), 300_000);
        assert_eq!(world.left_as(number), Some(Leaving::Complete));
    }
    // What was asked again and again has one number, and went to the dead one only.
    let is_question = |bytes: &&(usize, Vec<u8>)| {
        let header = Frame::open(&bytes.1).unwrap().header;
        bytes.0 == 0 && header.format == Format::Cntl && header.options.has(Options::SREQ)
    };
    let questions: Vec<_> = world.sent.iter().filter(is_question).collect();
    let of = |bytes: &[u8]| Frame::open(bytes).unwrap().header;
    let last = of(&questions.last().unwrap().1);
    let count = questions.iter().filter(|(_, bytes)| of(bytes).key == last.key).count();
    assert_eq!(count, 10, "the retries of a handshake");
    world.check_sums("");
}

#[test]
fn case_63_who_joins_late_begins_where_it_is_admitted_and_asks_for_nothing_older() {
    let limits = Limits { out_rate: 100_000, out_burst: 10_000, ..Limits::default() };
    let mut world = world(1, 0.05, limits, &GroupPolicy::default());
    while world.joined().is_empty() {
        assert!(world.turn(Time::NEVER));
    }
    world.pass(Duration::from_millis(30));
    world.join(Mode::default());
    world.run();
    assert_eq!(world.end(), Some(End::Complete));
    let joined = world.joined();
    assert_eq!(joined.len(), 2);
    let start = joined[1].start;
    assert!(start > 0 && start < 300_000, "{start}");
    assert_eq!(world.check_bytes(1, start as usize, ""), 300_000 - start as usize);
    assert_eq!(world.hearers[1].end, Some(End::Complete));
    for (_, bytes) in world.sent.iter().filter(|(from, _)| *from == 2) {
        match Frame::open(bytes).unwrap().body().unwrap() {
            Body::Cntl(control) | Body::Ecntl(control, _) => assert!(control.rseq >= start),
            Body::Jcntl(..) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(world.left_as(0), Some(Leaving::Complete));
    assert_eq!(world.check_bytes(0, 0, ""), 300_000);
}

#[test]
fn case_63_the_stream_of_a_member_begins_at_the_number_of_its_admission() {
    let mut hand = Hand::with(1, Config::default());
    hand.uut.write(&bytes(5_000));
    let sent = hand.uut.take();
    let late = hand.join(1);
    assert_eq!(late.header().seq, 5_000);
    assert!(late.has(Options::SREQ | Options::MULTI));
    // What the first one lacks is no business of the second.
    let echo = sent.last().unwrap().header().sync;
    hand.lacks(0, Control { rseq: 1_000, alloc: WINDOW, echo }, &[(2_000, 5_000)]);
    let again = hand.uut.take();
    let resent: usize = again.iter().map(|sent| sent.data().len()).sum();
    assert_eq!((again[0].to, again[0].header().seq, resent), (group(), 1_000, 1_000));
}

#[test]
fn case_64_who_asks_when_the_group_is_full_is_refused_and_the_group_unharmed() {
    let policy = GroupPolicy { members_max: 2, members_first: 2, ..GroupPolicy::default() };
    let mut hand = Hand::opened(Config::default(), &policy);
    hand.join(0);
    hand.join(1);
    hand.uut.take();
    hand.uut.give_from(host(2), &asks(Key::returned(hand.key), 77, 1, host(2)));
    let refused = hand.uut.take_one();
    assert_eq!((refused.to, refused.diagnostic()), (host(2), (5, 13)));
    assert_eq!(hand.uut.engine.members(hand.uut.id()).unwrap().len(), 2);
    hand.uut.write(b"goes on");
    assert_eq!(hand.uut.take_one().data(), b"goes on");
}

#[test]
fn case_64_who_is_refused_is_told() {
    let policy = GroupPolicy { members_max: 1, ..GroupPolicy::default() };
    let mut world = world(2, 0.0, Limits::default(), &policy);
    world.run();
    assert_eq!(world.end(), Some(End::Complete));
    let ends: Vec<Option<End>> = world.hearers.iter().map(|hearer| hearer.end).collect();
    let is_refused = |end: &Option<End>| matches!(end, Some(End::Refused(code, _)) if code.0 == 5);
    assert_eq!(ends.iter().filter(|end| is_refused(end)).count(), 1, "{ends:?}");
    assert_eq!(ends.iter().filter(|end| **end == Some(End::Complete)).count(), 1, "{ends:?}");
}

#[test]
fn case_65_end_from_one_member_removes_that_member_only() {
    let mut hand = Hand::with(3, Config::default());
    hand.uut.write(&bytes(100));
    hand.uut.take();
    hand.uut.events.clear();
    hand.says(1, Options::END, Control { rseq: 50, alloc: WINDOW, echo: 0 });
    let [Event::Left(id, member, how)] = hand.uut.events[..] else {
        panic!("{:?}", hand.uut.events)
    };
    assert_eq!((id, member.address, how), (hand.uut.id(), host(1), Leaving::Left));
    assert_eq!(member.received(), 50);
    hand.uut.silent();
    let members = hand.uut.engine.members(hand.uut.id()).unwrap();
    let left: Vec<_> = members.iter().map(|member| member.address).collect();
    assert!(left.contains(&host(0)) && left.contains(&host(2)) && left.len() == 2);
    hand.uut.write(b"goes on");
    assert_eq!(hand.uut.take_one().data(), b"goes on");
}
