//! Reliable groups: members that join, leave, sleep and vanish, and what others can do to them.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::group::{GroupWorld, PORT, group, open};
use common::hand::{Hand, WINDOW, asks, host, xkey};
use common::uut::{Uut, bytes, packet};
use dacapo_base::Time;
use dacapo_link::{LinkConfig, Loss};
use dacapo_xtp::wire::{Body, Control, Format, Frame, Header, Key, Limits, Options, Service};
use dacapo_xtp::{
    Config, End, Event, GroupPolicy, Join, Leaving, Listen, Message, Mode, OpenError, Read, Timers,
    UserError,
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
fn who_asks_for_a_group_that_is_over_is_told() {
    let mut world = gathered(1);
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
            let random = dacapo_base::Random::from_number(seed);
            let mut engine = dacapo_xtp::Engine::new(config, random);
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

#[test]
fn a_listener_for_another_service_takes_no_invitation() {
    let mut world = world(0, &GroupPolicy::default());
    world.listen(Mode::default());
    let hearer = &mut world.hearers[0];
    hearer.engine.unlisten(PORT);
    let service = Some(Service::Multicast);
    hearer.engine.listen(Listen { service, ..Listen::on(PORT) }).unwrap();
    world.pass(Duration::from_secs(5));
    assert_eq!(world.hearers[0].engine.context_count(), 0);
    assert!(world.sent.iter().all(|(from, _)| *from == 0), "nothing is said to a group");
}
