//! Reliable groups: members that leave, sleep, vanish and hold up the others, and how it ends.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::group::{GroupWorld, open};
use common::hand::{Hand, WINDOW, host};
use common::uut::{Uut, bytes, packet};
use dacapo_base::Time;
use dacapo_link::{LinkConfig, Loss};
use dacapo_xtp::wire::{Body, Control, Format, Frame, Header, Key, Limits, Options};
use dacapo_xtp::{
    Config, End, Event, GroupPolicy, Leaving, Message, Mode, OpenError, Read, UserError,
};
use std::time::Duration;

const LEN: usize = 300_000;

fn world(count: usize, policy: &GroupPolicy) -> GroupWorld {
    let link = LinkConfig { delay: Duration::from_millis(5), ..LinkConfig::default() };
    let mut world = GroupWorld::new(1, Config::default(), &link, bytes(LEN));
    (0..count).for_each(|_| world.listen(Mode::default()));
    world.open(open().mode, policy);
    world
}

/// The same, at the moment at which all have joined.
fn gathered(count: usize) -> GroupWorld {
    let mut world = world(count, &GroupPolicy { members_first: count, ..GroupPolicy::default() });
    while world.joined().len() < count {
        assert!(world.turn(Time::NEVER), "{:?}", world.events);
    }
    world
}

fn has_all(world: &GroupWorld, number: usize) {
    assert_eq!(world.check_bytes(number, 0, ""), LEN);
    assert_eq!(world.hearers[number].end, Some(End::Complete));
    assert_eq!(world.left_as(number), Some(Leaving::Complete));
}

#[test]
fn a_member_that_does_not_read_is_dropped_as_slow_and_told_so() {
    let mut world = gathered(3);
    world.hearers[1].is_idle = true;
    world.run();
    assert_eq!(world.end(), Some(End::Complete));
    let (member, how) = world.parting(1).unwrap();
    assert_eq!((how, member.received()), (Leaving::Slow, 64 << 10));
    let is_told =
        |end: End| matches!(end, End::Refused(code, reason) if (code.0, reason.0) == (2, 9));
    assert!(world.hearers[1].end.is_some_and(is_told), "{:?}", world.hearers[1].end);
    let took = world.ended_at.unwrap().since(Time::ZERO);
    assert!(took > Duration::from_secs(10) && took < Duration::from_secs(12), "{took:?}");
    has_all(&world, 0);
    has_all(&world, 2);
    world.check_sums("");
}

#[test]
fn a_member_that_reads_slowly_and_steadily_is_kept() {
    // A buffer in 4 s: slower than all others, and never stuck for the 10 s of the policy.
    let mut world = gathered(2);
    world.hearers[0].is_idle = true;
    let (step, mut piece) = (Duration::from_millis(250), [0; 4_096]);
    for _ in 0..200 {
        world.pass(step);
        let hearer = &mut world.hearers[0];
        if let Ok(Read::Data { len, .. }) =
            hearer.engine.read(world.now, hearer.id.unwrap(), &mut piece)
        {
            hearer.got.extend_from_slice(&piece[..len]);
        }
    }
    assert_eq!(world.end(), Some(End::Complete), "{:?}", world.events);
    assert_eq!(world.left_as(0), Some(Leaving::Complete));
    assert!(world.ended_at.unwrap().since(Time::ZERO) > Duration::from_secs(12));
    has_all(&world, 1);
}

#[test]
fn messages_keep_their_ends_and_tags_and_delivery_is_that_of_all() {
    let mut world = gathered(2);
    // The stream of the world is not wanted here: two messages of another association.
    let id = world.engine.open_group(world.now, &open(), &GroupPolicy::all_of(2)).unwrap();
    let tagged = Message { tag: Some(*b"a tag ok"), ..Message::whole(&[1; 3_000]) };
    let asked = Message { asks_delivery: true, ..Message::whole(&[2; 500]) };
    world.engine.write(world.now, id, &tagged).unwrap();
    world.engine.write(world.now, id, &asked).unwrap();
    for hearer in &mut world.hearers {
        hearer.is_idle = true;
        hearer.events.clear();
    }
    world.pass(Duration::from_secs(3));
    let is_delivered = |world: &GroupWorld| world.events.contains(&Event::Delivered(id));
    for number in 0..2 {
        assert!(!is_delivered(&world), "before member {number} has read");
        let hearer = &mut world.hearers[number];
        let incoming = hearer.events.iter().find_map(|event| match event {
            Event::Incoming { id, .. } => Some(*id),
            _ => None,
        });
        let (mut buffer, mut read) = ([0; 9_000], Vec::new());
        while let Read::Data { len, is_end, tag } =
            hearer.engine.read(world.now, incoming.unwrap(), &mut buffer).unwrap()
        {
            read.push((len, is_end, tag));
        }
        assert_eq!(read, [(3_000, true, Some(*b"a tag ok")), (500, true, None)]);
        world.pass(Duration::from_secs(3));
    }
    assert!(is_delivered(&world), "{:?}", world.events);
}

#[test]
fn a_stream_without_a_byte_ends_too() {
    let link = LinkConfig::default();
    let mut world = GroupWorld::new(1, Config::default(), &link, Vec::new());
    world.listen(Mode::default());
    world.open(open().mode, &GroupPolicy::default());
    world.run();
    assert_eq!(world.end(), Some(End::Complete));
    assert_eq!(world.hearers[0].end, Some(End::Complete));
}

#[test]
fn an_abort_dismisses_every_member_and_all_are_told() {
    let mut world = gathered(3);
    world.pass(Duration::from_millis(30));
    let id = world.id();
    // Who does not hear it is told when it asks.
    world.hearers[2].is_cut = true;
    world.engine.abort(world.now, id).unwrap();
    world.exchange();
    world.pass(Duration::from_millis(50));
    world.hearers[2].is_cut = false;
    world.run();
    assert_eq!(world.end(), Some(End::Abandoned));
    for number in 0..2 {
        assert_eq!(world.left_as(number), Some(Leaving::Dismissed));
        assert_eq!(world.hearers[number].end, Some(End::Aborted));
    }
    assert!(matches!(world.hearers[2].end, Some(End::Aborted | End::TimedOut)));
    world.check_sums("");
}

#[test]
fn members_of_a_transmitter_that_vanishes_end_by_themselves() {
    let mut world = gathered(2);
    world.pass(Duration::from_millis(30));
    world.hearers.iter_mut().for_each(|hearer| hearer.is_cut = true);
    world.run();
    for number in 0..2 {
        assert_eq!(world.hearers[number].end, Some(End::TimedOut));
        assert_eq!(world.left_as(number).map(|how| how != Leaving::Complete), Some(true));
    }
    assert_eq!(world.end(), Some(End::TooFewMembers));
    world.check_sums("");
}

#[test]
fn a_group_that_nobody_joins_fails_and_one_that_loses_too_many_does() {
    let mut world = world(0, &GroupPolicy::default());
    world.run();
    assert_eq!(world.end(), Some(End::TooFewMembers));
    assert!(world.ended_at.unwrap().since(Time::ZERO) <= Duration::from_secs(122));
    let mut world = self::world(2, &GroupPolicy::all_of(2));
    while world.joined().len() < 2 {
        assert!(world.turn(Time::NEVER));
    }
    let (now, hearer) = (world.now, &mut world.hearers[0]);
    hearer.engine.release(now, hearer.id.take().unwrap()).unwrap();
    world.run();
    assert_eq!(world.end(), Some(End::TooFewMembers));
    assert_eq!(world.left_as(0), Some(Leaving::Left));
    assert_eq!(world.left_as(1), Some(Leaving::Dismissed));
    assert_eq!(world.hearers[1].end, Some(End::Aborted));
}

#[test]
fn a_member_that_stops_reading_leaves() {
    let mut world = gathered(2);
    let (now, hearer) = (world.now, &mut world.hearers[0]);
    hearer.engine.stop_reading(now, hearer.id.unwrap()).unwrap();
    world.run();
    assert_eq!(world.left_as(0), Some(Leaving::Left));
    assert!(world.hearers[0].end.is_some());
    has_all(&world, 1);
}

#[test]
fn a_trickle_does_not_keep_a_member_that_holds_up_the_others() {
    for opens in [true, false] {
        let mut hand = Hand::with(2, Config { buffer_len: 4_000, ..Config::default() });
        let (mut next, mut echo) = (0, 0);
        for turn in 0..60 {
            let all = Control { rseq: next, alloc: next + WINDOW, echo };
            // From the end of its first window on one more byte in each second: of the window, or
            // of what has arrived.
            let trickle = match turn {
                0..26 => Control { alloc: WINDOW, ..all },
                _ if opens => Control { alloc: WINDOW + turn, ..all },
                _ => Control { rseq: next.min(WINDOW + turn), ..all },
            };
            hand.says(0, Options::NONE, all);
            hand.says(1, Options::NONE, trickle);
            hand.uut.write(&bytes(4_000));
            for sent in hand.uut.take() {
                let header = sent.header();
                echo = if sent.has(Options::SREQ) { header.sync } else { echo };
                if sent.format() == Format::Data {
                    next = next.max(header.seq + sent.data().len() as u64);
                }
            }
            if turn >= 26 {
                hand.uut.pass(Duration::from_secs(1));
            }
        }
        let left = hand.uut.events.iter().filter_map(|event| match event {
            Event::Left(_, member, how) => Some((member.address, *how)),
            _ => None,
        });
        assert_eq!(left.collect::<Vec<_>>(), [(host(1), Leaving::Slow)], "{opens}");
    }
}

#[test]
fn a_repair_goes_once_for_all_who_lack_it() {
    let loss = 0.05;
    let delay = Duration::from_millis(5);
    let link = LinkConfig { delay, loss: Loss::Random { p: loss }, ..LinkConfig::default() };
    let mut world = GroupWorld::new(1, Config::default(), &link, bytes(LEN));
    (0..4).for_each(|_| world.listen(Mode::default()));
    world.open(open().mode, &GroupPolicy::all_of(4));
    world.run();
    assert_eq!(world.end(), Some(End::Complete));
    let of_data = |(from, bytes): &&(usize, Vec<u8>)| {
        *from == 0 && Frame::open(bytes).unwrap().header.format == Format::Data
    };
    let sent: usize = world.sent.iter().filter(of_data).map(|(_, bytes)| bytes.len() - 32).sum();
    // One of four lacks 18.5 % of all packets, and of what is repeated as much once more.
    let repeated = sent as f64 / LEN as f64 - 1.0;
    assert!((0.1..0.3).contains(&repeated), "{repeated}");
}

#[test]
fn a_member_says_nothing_of_its_own() {
    let mut world = gathered(1);
    let (now, hearer) = (world.now, &mut world.hearers[0]);
    let written = hearer.engine.write(now, hearer.id.unwrap(), &Message::part(b"x"));
    assert_eq!(written, Err(UserError::Closed));
}

#[test]
fn numbers_that_contradict_each_other_are_refused_with_a_reason() {
    let mut uut = Uut::new(Config::default());
    let policy = GroupPolicy { members_first: 3, members_max: 2, ..GroupPolicy::default() };
    let refused = uut.engine.open_group(uut.now, &open(), &policy).unwrap_err();
    assert_eq!(refused, OpenError::Policy(policy));
    assert!(refused.to_string().contains("not 1, 3, 2"), "{refused}");
    assert!(!GroupPolicy::all_of(0).is_sound() && GroupPolicy::all_of(1).is_sound());
}

#[test]
fn a_window_and_a_pace_are_those_of_the_narrowest_member() {
    let mut hand = Hand::opened(Config::default(), &GroupPolicy::default());
    hand.join(0);
    hand.uut.write(&bytes(60_000));
    let sent: usize = hand.uut.take().iter().map(|sent| sent.data().len()).sum();
    assert_eq!(sent, 60_000, "all at once");
    hand.says(0, Options::NONE, Control { rseq: 60_000, alloc: 60_000 + WINDOW, echo: 0 });
    // The second takes 100 bytes at once, and 1,000 in a second.
    let key = hand.ask(1);
    let limits = Limits { in_rate: 1_000, in_burst: 100, data_len_max: 100, ..Limits::default() };
    let traffic = dacapo_xtp::wire::Traffic { service: 6, limits: Some(limits) };
    let control = Control { rseq: 0, alloc: 250, echo: 0 };
    let control = dacapo_xtp::wire::TrafficControl { control, xkey: Hand::own(1) };
    let options = Options::MULTI | Options::SREQ;
    let header = Header { options, sync: 2, ..Header::new(Key::returned(key), Format::Jcntl) };
    let body = Body::Jcntl(control, common::hand::segment(host(1)), traffic);
    hand.uut.give_from(host(1), &packet(&header, &body));
    hand.uut.take();
    hand.offered.push(key);
    hand.uut.write(&bytes(1_000));
    let mut lens = Vec::new();
    for _ in 0..20 {
        lens.extend(hand.uut.take().iter().map(|sent| sent.data().len()));
        hand.uut.pass(Duration::from_millis(50));
    }
    let data: Vec<usize> = lens.into_iter().filter(|len| *len > 0).collect();
    assert_eq!(data, [100, 100, 50], "what the window lets through, at its pace");
}
