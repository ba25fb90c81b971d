//! Reliable groups: how one joins, where one begins, and what strangers can do to a group.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::group::{GroupWorld, PORT, group, open};
use common::hand::{Hand, WINDOW, asks, host, xkey};
use common::uut::{Uut, bytes, packet};
use dacapo_base::{Random, Time};
use dacapo_link::LinkConfig;
use dacapo_xtp::wire::{Body, Control, Format, Frame, Header, Key, Options, Service};
use dacapo_xtp::{
    Config, End, Engine, Event, GroupPolicy, Join, Listen, Message, Mode, Open, Read, Timers,
};
use std::net::SocketAddr;
use std::time::Duration;

#[test]
fn who_joins_within_a_message_begins_with_the_next_one() {
    let mut hand = Hand::with(1, Config::default());
    assert_eq!(hand.join(1).header().seq, 0, "nothing was sent");
    let says = |hand: &mut Hand, members: std::ops::Range<usize>, rseq: u64, echo: u32| {
        members.for_each(|number| {
            hand.says(number, Options::NONE, Control { rseq, alloc: WINDOW, echo });
        });
    };
    let whole = |hand: &mut Hand, len: usize| {
        let (now, id, data) = (hand.uut.now, hand.uut.id(), bytes(len));
        assert_eq!(hand.uut.engine.write(now, id, &Message::whole(&data)), Ok(len));
        hand.uut.take()
    };
    whole(&mut hand, 60_000);
    assert_eq!(hand.join(2).header().seq, 60_000, "at the end of a message");
    says(&mut hand, 0..3, 60_000, 0);
    let sent = whole(&mut hand, 60_000);
    let last = sent.last().unwrap();
    assert_eq!(last.header().seq + last.data().len() as u64, WINDOW, "within the second");
    let late = hand.join(3);
    assert_eq!(late.header().seq, 120_000);
    // It is one of them although the stream has not come so far: a handshake waits for its word.
    says(&mut hand, 0..3, WINDOW, last.header().sync);
    hand.uut.pass(Duration::from_secs(2));
    let asked = hand.uut.take();
    assert_eq!(asked.iter().filter(|sent| sent.has(Options::SREQ)).count(), 4, "{asked:?}");
    let echo = asked[0].header().sync;
    for (number, rseq) in [(0, WINDOW), (1, WINDOW), (2, WINDOW), (3, 120_000)] {
        hand.says(number, Options::NONE, Control { rseq, alloc: 2 * WINDOW, echo });
    }
    let rest: usize = hand.uut.take().iter().map(|sent| sent.data().len()).sum();
    assert_eq!(rest, 20_000);
}

#[test]
fn nobody_joins_between_the_end_and_its_word() {
    let mut hand = Hand::with(1, Config::default());
    let key = hand.ask(1);
    hand.says(0, Options::END, Control::default());
    // The association is over, and has not said so.
    hand.uut.give_from(host(1), &asks(Key::returned(key), Hand::own(1), 2, host(1)));
    let sent = hand.uut.take();
    assert!(sent.iter().any(|sent| sent.to == group() && sent.has(Options::END)), "{sent:?}");
    let count = |wanted: fn(&Event) -> bool| hand.uut.events.iter().filter(|it| wanted(it)).count();
    assert_eq!(count(|event| matches!(event, Event::Joined(..))), 1);
    assert_eq!(count(|event| matches!(event, Event::Left(..))), 1);
    assert_eq!(hand.uut.events.last(), Some(&Event::Ended(hand.uut.id(), End::TooFewMembers)));
}

#[test]
fn who_asks_for_a_group_that_is_over_is_told() {
    let mut world = GroupWorld::new(1, Config::default(), &LinkConfig::default(), bytes(1_000));
    world.listen(Mode::default());
    world.open(open().mode, &GroupPolicy::default());
    world.exchange();
    let key = world.headers()[0].key.value();
    while world.end().is_none() {
        assert!(world.turn(Time::NEVER));
    }
    world.exchange();
    let late = asks(Key::returned(key), 5, 1, host(9));
    world.engine.handle_packet(world.now, host(9), &late);
    let mut answer = Vec::new();
    assert_eq!(world.engine.poll_packet(world.now, &mut answer), Some(host(9)));
    let header = Frame::open(&answer).unwrap().header;
    assert!(header.options.has(Options::END | Options::MULTI));
}

#[test]
fn status_counts_under_the_key_and_from_the_address_of_its_member_only() {
    let mut hand = Hand::with(2, Config::default());
    hand.uut.write(&bytes(1_000));
    hand.uut.take();
    let control = Control { rseq: 1_000, alloc: WINDOW, echo: 0 };
    let forged = |key: u64, options: Options| {
        let header = Header { options, ..Header::new(Key::returned(key), Format::Cntl) };
        packet(&header, &Body::Cntl(control))
    };
    for options in [Options::MULTI, Options::MULTI | Options::END] {
        // The key of another member; the key that all know; one that nobody has.
        hand.uut.give_from(host(0), &forged(hand.offered[1], options));
        hand.uut.give_from(host(0), &forged(hand.key, options));
        hand.uut.give_from(host(0), &forged(12_345, options));
    }
    hand.uut.silent();
    let members = hand.uut.engine.members(hand.uut.id()).unwrap();
    assert_eq!(members.iter().map(|member| member.rseq).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(hand.uut.engine.counters().misdirected, 2);
    // What cannot be is not believed of a member either.
    hand.says(0, Options::NONE, Control { rseq: 1_001, alloc: WINDOW, echo: 0 });
    let members = hand.uut.engine.members(hand.uut.id()).unwrap();
    assert_eq!(members[0].rseq.max(members[1].rseq), 0);
}

#[test]
fn a_flood_of_requests_holds_up_nobody_and_keeps_no_one_out() {
    let mut hand = Hand::with(1, Config::default());
    let (mut came, mut went) = (0, 0);
    for number in 0..20_000_u32 {
        let from = ([203, 0, (number >> 8) as u8, number as u8], 4_040).into();
        let key = if number % 2 == 0 { Key::returned(hand.key) } else { Key::own(0) };
        let request = asks(key, u64::from(number) + 7, 1, from);
        came += request.len();
        hand.uut.give_from(from, &request);
        went += hand.uut.take().iter().map(|sent| sent.bytes.len()).sum::<usize>();
    }
    assert!(went <= came * 3 / 2, "{went} bytes for {came}");
    let members = hand.uut.engine.members(hand.uut.id()).unwrap();
    assert_eq!((members.len(), hand.uut.engine.context_count()), (1, 1));
    hand.join(1);
    hand.uut.events.clear();
    hand.uut.write(b"goes on");
    assert!(hand.uut.take().iter().any(|sent| sent.data() == b"goes on"));
}

#[test]
fn a_request_without_a_key_gets_the_invitation_and_leaves_nothing() {
    let mut hand = Hand::with(1, Config::default());
    hand.uut.write(&bytes(100));
    hand.uut.take();
    hand.uut.give_from(host(5), &asks(Key::own(0), 77, 1, host(5)));
    let first = hand.uut.take_one();
    assert_eq!((first.to, first.format()), (host(5), Format::First));
    assert_eq!(first.header().key, Key::own(hand.key));
    assert!(first.data().is_empty() && first.has(Options::MULTI | Options::SREQ));
    // Ten in a second to one host, as of diagnostics.
    for _ in 0..100 {
        hand.uut.give_from(host(5), &asks(Key::own(0), 77, 1, host(5)));
    }
    assert_eq!(hand.uut.take().len(), 9);
    assert_eq!(hand.uut.engine.members(hand.uut.id()).unwrap().len(), 1);
}

#[test]
fn copies_of_what_leads_to_membership_change_nothing() {
    let mut hand = Hand::opened(Config::default(), &GroupPolicy::default());
    let key = hand.ask(0);
    assert_eq!(hand.ask(0), key, "the offer is the same");
    let admission = hand.confirm(0, key);
    hand.uut.write(&bytes(1_000));
    hand.uut.take();
    let again = hand.confirm(0, key);
    assert_eq!((again.header().seq, xkey(&again)), (admission.header().seq, xkey(&admission)));
    assert_eq!(hand.uut.engine.members(hand.uut.id()).unwrap().len(), 1);
    // Who has forgotten the offer is told again.
    hand.uut.give_from(host(0), &asks(Key::returned(hand.key), Hand::own(0), 3, host(0)));
    assert_eq!(xkey(&hand.uut.take_one()), key);
}

#[test]
fn answers_of_many_to_one_question_are_spread_over_the_slot() {
    let slot = Duration::from_millis(100);
    let timers = Timers { slot, ..Timers::default() };
    let config = Config { timers, ..Config::default() };
    let mut hand = Hand::opened(config, &GroupPolicy::default());
    let mut first = Vec::new();
    hand.uut.pass(Duration::from_secs(1));
    while hand.uut.engine.poll_packet(hand.uut.now, &mut first).is_none() {
        hand.uut.pass_to_deadline();
    }
    let mut times: Vec<Time> = (0..50)
        .map(|seed| {
            let mut engine = Engine::new(config, Random::from_number(seed));
            engine.listen(Listen::on(PORT)).unwrap();
            engine.handle_packet(Time::ZERO, host(0), &first);
            assert_eq!(engine.poll_packet(Time::ZERO, &mut Vec::new()), None);
            engine.deadline()
        })
        .collect();
    times.sort();
    assert!(times[49] <= Time::ZERO + slot);
    let in_each = |quarter: u32| {
        let (from, to) = (Time::ZERO + slot * quarter / 4, Time::ZERO + slot * (quarter + 1) / 4);
        times.iter().filter(|at| **at >= from && **at < to).count()
    };
    assert!((0..4).all(|quarter| (5..25).contains(&in_each(quarter))), "{times:?}");
}

#[test]
fn who_waits_to_join_asks_until_it_gives_up_and_leaves_nothing() {
    let mut uut = Uut::new(Config::default());
    let join = Join::group(group(), PORT, host(1));
    let id = uut.engine.join(uut.now, &join).unwrap();
    let mut asked = 0;
    for _ in 0..40 {
        for sent in uut.take() {
            assert_eq!((sent.to, sent.format()), (group(), Format::Jcntl));
            assert_eq!(sent.header().key, Key::own(0));
            asked += 1;
        }
        uut.pass_to_deadline();
    }
    assert!((5..=11).contains(&asked), "{asked}");
    assert_eq!(uut.events, [Event::Ended(id, End::TimedOut)]);
    uut.engine.release(uut.now, id).unwrap();
    uut.pass(Duration::from_secs(200));
    let left = (uut.engine.context_count(), uut.engine.inactive_count());
    assert_eq!((left, uut.engine.deadline()), ((0, 0), Time::NEVER));
}

/// Carries packets between a transmitter and one member until both are silent.
fn carry(now: Time, near: (&mut Engine, SocketAddr), far: (&mut Engine, SocketAddr)) -> usize {
    let mut count = 0;
    for _ in 0..20 {
        let mut bytes = Vec::new();
        while near.0.poll_packet(now, &mut bytes).is_some() {
            far.0.handle_packet(now, near.1, &std::mem::take(&mut bytes));
            count += 1;
        }
        far.0.handle_time(now);
        while far.0.poll_packet(now, &mut bytes).is_some() {
            near.0.handle_packet(now, far.1, &std::mem::take(&mut bytes));
            count += 1;
        }
    }
    count
}

fn engine(seed: u64) -> Engine {
    let timers = Timers { slot: Duration::ZERO, ..Timers::default() };
    Engine::new(Config { timers, ..Config::default() }, Random::from_number(seed))
}

#[test]
fn groups_work_over_ipv6_and_without_addresses() {
    let v6: SocketAddr = "[ff15::77]:4040".parse().unwrap();
    let source: SocketAddr = "[2001:db8::1]:4000".parse().unwrap();
    let whole = Open::reliable_multicast(v6, PORT, source);
    for (open, port) in [(whole, PORT), (Open { ends: None, ..whole }, 0)] {
        let (mut near, mut far, now) = (engine(1), engine(2), Time::from_millis(1));
        far.listen(Listen::on(port)).unwrap();
        let id = near.open_group(now, &open, &GroupPolicy::default()).unwrap();
        near.write(now, id, &Message::whole(b"to all")).unwrap();
        near.finish(now, id).unwrap();
        let member = "[2001:db8::2]:4040".parse().unwrap();
        carry(now, (&mut near, source), (&mut far, member));
        let Some(Event::Incoming { id: there, .. }) = far.poll_event() else { panic!("{port}") };
        let mut buffer = [0; 100];
        let read = far.read(now, there, &mut buffer);
        assert_eq!(read, Ok(Read::Data { len: 6, is_end: true, tag: None }), "{port}");
        let last = std::iter::from_fn(|| near.poll_event()).last();
        assert_eq!(last, Some(Event::Ended(id, End::Complete)), "{port}");
    }
}

#[test]
fn who_asks_a_transmitter_that_it_knows_follows_no_other() {
    let (mut near, mut far, now) = (engine(1), engine(2), Time::from_millis(1));
    near.open_group(now, &open(), &GroupPolicy::default()).unwrap();
    let source = SocketAddr::new(host(1).ip(), PORT);
    let join = Join { peer: host(0), ..Join::group(group(), PORT, source) };
    let id = far.join(now, &join).unwrap();
    // The same packets from another host lead nowhere.
    let mut asked = Vec::new();
    assert_eq!(far.poll_packet(now, &mut asked), Some(host(0)));
    near.handle_packet(now, host(1), &asked);
    let mut first = Vec::new();
    while near.poll_packet(now, &mut first).is_some() {
        far.handle_packet(now, host(7), &std::mem::take(&mut first));
    }
    assert_eq!(far.poll_packet(now, &mut Vec::new()), None);
    near.handle_packet(now, host(1), &asked);
    carry(now, (&mut near, host(0)), (&mut far, host(1)));
    assert_eq!(far.poll_event(), Some(Event::Opened(id)));
    assert_eq!(far.status(id).map(|status| status.peer), Ok(host(0)));
}

#[test]
fn a_listener_for_another_service_takes_no_invitation() {
    let mut world = GroupWorld::new(1, Config::default(), &LinkConfig::default(), bytes(1_000));
    world.listen(Mode::default());
    let hearer = &mut world.hearers[0];
    hearer.engine.unlisten(PORT);
    let service = Some(Service::Multicast);
    hearer.engine.listen(Listen { service, ..Listen::on(PORT) }).unwrap();
    world.open(open().mode, &GroupPolicy::default());
    world.pass(Duration::from_secs(5));
    assert_eq!(world.hearers[0].engine.context_count(), 0);
    assert!(world.sent.iter().all(|(from, _)| *from == 0), "nothing is said to a group");
}
