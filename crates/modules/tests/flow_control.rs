//! What `window` and `credit` are for: no more is sent than the application has room for, whatever
//! is lost of what the ends tell each other, and whatever a peer makes up.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, checked, dropped, end, ms, unit};
use dacapo_base::seeds::number as seeds;
use dacapo_base::{Random, Time};
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, Illegal, Property, Runner, Unread};
use dacapo_modules::flow_control::{credit, window};
use dacapo_wire::flow_control::{Header, Kind, LEN};
use std::time::Duration;

/// With room for so many units, or bytes.
const UNITS_8: &[Place<'_>] = &[("credit", &[(0, 8)])];
const BYTES_4000: &[Place<'_>] = &[("window", &[(0, 4_000)])];

fn said(place: u32, kind: Kind) -> [u8; LEN] {
    Header { place, kind }.emit()
}

fn heard(wire: &[Vec<u8>]) -> Vec<(u32, Kind)> {
    let read = |bytes: &Vec<u8>| Header::parse(bytes).map(|it| (it.place, it.kind)).unwrap();
    wire.iter().map(read).collect()
}

/// Feeds units of this length until there is no credit; how many.
fn fill(end: &mut End, len: usize) -> usize {
    (0..).take_while(|number| end.feed(&unit(*number, len))).count()
}

#[test]
fn who_sends_waits_for_room_by_units_and_by_bytes() {
    let mut a = end(UNITS_8, 1_000);
    assert_eq!((fill(&mut a, 500), a.runner.credit()), (8, 0));
    let places: Vec<u32> = heard(&a.wire()).into_iter().map(|it| it.0).collect();
    assert_eq!(places, (0..8).collect::<Vec<_>>());
    assert!(a.handle_bytes(&said(11, Kind::Granted)));
    assert_eq!((fill(&mut a, 20), a.runner.credit()), (3, 0));
    a.flush();
    let mut a = end(BYTES_4000, 1_000);
    // One that begins below the limit goes to its end.
    assert_eq!((fill(&mut a, 900), a.runner.credit()), (5, 0));
    let places: Vec<u32> = heard(&a.wire()).into_iter().map(|it| it.0).collect();
    assert_eq!(places, [0, 900, 1_800, 2_700, 3_600]);
    assert!(a.handle_bytes(&said(4_500, Kind::Granted)));
    assert_eq!(a.runner.credit(), 0, "as much as is used");
    assert!(a.handle_bytes(&said(8_500, Kind::Granted)));
    assert_eq!(fill(&mut a, 900), 5);
    a.flush();
}

#[test]
fn a_unit_that_is_longer_than_the_window_goes_alone_and_whole() {
    let places: &[Place<'_>] = &[("window", &[(0, 4_000)]), ("segment", &[])];
    let (mut a, mut b) = (end(places, 20_000), end(places, 20_000));
    b.unread = None;
    assert!(a.feed(&unit(7, 14_000)));
    assert!(!a.feed(&unit(8, 20)), "the window is used up");
    let wire = a.wire();
    assert_eq!(wire.len(), 10);
    wire.iter().for_each(|it| assert!(b.handle_bytes(it)));
    assert_eq!(b.units(), [unit(7, 14_000)]);
    b.tell_unread(Unread { units: 1, bytes: 14_000 });
    assert!(b.wire().is_empty(), "it has not been taken");
    b.tell_unread(Unread::default());
    let grant = b.wire();
    // Behind it stands the header of `segment`, with which a grant goes down too.
    assert_eq!(grant.len(), 1);
    assert!(a.handle_bytes(&grant[0]));
    assert!(a.feed(&unit(8, 20)));
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn room_is_told_by_quarters_and_only_what_is_not_unread() {
    let (mut a, mut b) = (end(UNITS_8, 1_000), end(UNITS_8, 1_000));
    b.unread = None;
    fill(&mut a, 20);
    let wire = a.wire();
    assert!(b.handle_bytes(&wire[0]) && !b.runner.wants_unread(), "less than a quarter");
    wire[1..].iter().for_each(|it| assert!(b.handle_bytes(it)));
    assert_eq!(b.units().len(), 8);
    let mut told = |units| {
        b.tell_unread(Unread { units, bytes: 20 * units });
        heard(&b.wire())
    };
    assert_eq!((told(8), told(7)), (vec![], vec![]));
    assert_eq!(told(6), [(10, Kind::Granted)]);
    assert_eq!((told(6), told(5)), (vec![], vec![]), "said once");
    assert_eq!(told(8), [], "it never becomes less");
    assert_eq!(told(0), [(16, Kind::Granted)]);
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn who_waits_asks_less_and_less_often_and_a_lost_grant_is_said_again() {
    let (mut a, mut b) = (end(UNITS_8, 1_000), end(UNITS_8, 1_000));
    fill(&mut a, 20);
    a.wire().iter().for_each(|it| assert!(b.handle_bytes(it)));
    assert_eq!(heard(&b.wire()).last(), Some(&(16, Kind::Granted)), "which is lost");
    let (begin, mut asked) = (a.now, Vec::new());
    while a.now < begin + Duration::from_secs(8) {
        a.now = a.runner.next_deadline().unwrap();
        a.fire();
        asked.extend(a.wire().into_iter().map(|it| (a.now.since(begin).as_millis(), it)));
    }
    let times: Vec<u128> = asked.iter().map(|it| it.0).collect();
    assert_eq!(times, [250, 750, 1_750, 3_750, 5_750, 7_750, 9_750]);
    assert_eq!(asked[0].1, said(8, Kind::Blocked));
    b.units();
    assert!(b.handle_bytes(&asked[0].1));
    assert_eq!(heard(&b.wire()), [(16, Kind::Granted)]);
    assert!(a.handle_bytes(&said(16, Kind::Granted)));
    a.now += Duration::from_secs(3);
    a.fire();
    assert_eq!((a.wire().len(), a.runner.next_deadline()), (0, None), "a timer for nothing");
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn what_no_receiver_grants_is_a_counted_drop_and_changes_nothing() {
    for _ in 0..3 {
        let mut a = end(UNITS_8, 1_000);
        assert!(a.feed(&unit(0, 20)));
        assert!(a.handle_bytes(&said(9, Kind::Granted)));
        let credit = a.runner.credit();
        let wrong = [
            (9, DropReason::Duplicate),
            (8, DropReason::Stale),
            (0, DropReason::Stale),
            (10, DropReason::Malformed),
            (u32::MAX / 3, DropReason::Malformed),
            (u32::MAX, DropReason::Malformed),
        ];
        for (place, reason) in wrong {
            let before = dropped(&a, reason);
            assert!(a.handle_bytes(&said(place, Kind::Granted)));
            assert_eq!(dropped(&a, reason), before + 1, "{place}");
        }
        // A storm of them.
        (0..10_000).for_each(|_| assert!(a.handle_bytes(&said(7, Kind::Granted))));
        let malformed = dropped(&a, DropReason::Malformed);
        for bytes in [&[0; 4][..], &[0, 0, 0, 1, 4], &[0, 0, 0, 1, 3, 9], &[0, 0, 0, 1, 2, 9]] {
            assert!(a.handle_bytes(bytes));
        }
        assert_eq!(dropped(&a, DropReason::Malformed), malformed + 4);
        assert_eq!((a.runner.credit(), fill(&mut a, 20)), (credit, 8));
        a.flush();
    }
}

#[test]
fn what_no_sender_may_send_is_a_counted_drop_and_is_granted_nothing() {
    let mut b = end(UNITS_8, 1_000);
    let packet = |place| [&said(place, Kind::Counted)[..], b"abc"].concat();
    for place in [9, 500, u32::MAX, u32::MAX / 2] {
        assert!(b.handle_bytes(&packet(place)));
        assert!(b.handle_bytes(&said(place.max(10), Kind::Blocked)));
    }
    assert!(b.units().is_empty() && b.wire().is_empty());
    let counted = dropped(&b, DropReason::Overflow) + dropped(&b, DropReason::Malformed);
    assert_eq!(counted, 8);
    // Who says that it waits, again and again, gets an answer for each, no longer than that.
    (0..1_000).for_each(|_| assert!(b.handle_bytes(&said(8, Kind::Blocked))));
    assert_eq!(heard(&b.wire()).len(), 1_000, "one each, and no more");
    b.flush();
}

#[test]
fn at_the_end_of_an_epoch_nothing_waits_and_marks_count_for_nothing() {
    let mut a = end(UNITS_8, 1_000);
    fill(&mut a, 20);
    a.wire();
    a.with(Runner::drain);
    let mut mark = a.pool.packet_from(10, b"end", 0).unwrap();
    mark.set_kind(dacapo_packet::Kind::Mark);
    a.with(|runner, around| {
        runner.feed(around, mark);
        runner.run(around);
    });
    let wire = a.wire();
    assert_eq!(heard(&wire), [(8, Kind::Beside)]);
    let mut b = end(UNITS_8, 1_000);
    (0..20).for_each(|_| assert!(b.handle_bytes(&wire[0])));
    assert_eq!(b.wire().len(), 0, "nothing that counts has come");
    b.runner.take_up().drain().for_each(|packet| b.pool.free(packet));
    assert_eq!(a.runner.next_deadline().map(|_| a.pass(ms(400))), Some(()));
    assert_eq!(a.wire().len(), 0, "nobody asks");
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

/// Two ends over a wire that loses both ways what each says, in order, and nothing that makes
/// losses good; and a reader with a pace of his own. How many units were sent, and the most that
/// were neither lost nor taken.
fn run(places: &[Place<'_>], seed: u64) -> (u64, u64) {
    let mut random = Random::from_number(seed);
    let (mut a, mut b) = (end(places, 1_000), end(places, 1_000));
    b.unread = None;
    let loss = random.unit() * 0.5;
    let mut under_way: Vec<(Time, bool, Vec<u8>)> = Vec::new();
    let (mut sent, mut unread, mut ahead_max) = (0, 0_u64, 0);
    let mut taken = 0;
    for _ in 0..20_000 {
        let reads = random.chance(0.3);
        while a.feed(&unit(sent, 100)) {
            sent += 1;
        }
        for (is_down, wire) in [(true, a.wire()), (false, b.wire())] {
            for bytes in wire {
                if random.chance(loss) {
                    // Nobody will read it.
                    let kind = Header::parse(&bytes).unwrap().kind;
                    taken += u64::from(is_down && kind == Kind::Counted);
                    continue;
                }
                under_way.push((a.now + ms(15), is_down, bytes));
            }
        }
        let now = a.now + ms(1);
        (a.now, b.now) = (now, now);
        for (_, is_down, bytes) in under_way.extract_if(.., |it| it.0 <= now).collect::<Vec<_>>() {
            assert!(if is_down { &mut b } else { &mut a }.handle_bytes(&bytes));
        }
        unread += b.units().len() as u64;
        let read = u64::from(reads).min(unread);
        (unread, taken) = (unread - read, taken + read);
        b.tell_unread(Unread { units: unread, bytes: 100 * unread });
        a.fire();
        b.fire();
        ahead_max = ahead_max.max(sent - taken);
    }
    [&mut a, &mut b].into_iter().for_each(End::flush);
    (sent, ahead_max)
}

/// Half of what both say to each other is lost at the most, and half of the units: 20,000 ms, in
/// which the reader takes 6,000 units at the most.
#[test]
fn no_lost_grant_stops_a_flow_for_good_and_no_more_is_sent_than_there_is_room_for() {
    let mut least = u64::MAX;
    for seed in 0..seeds("DACAPO_SEEDS", 200) {
        let (name, room) =
            if seed % 2 == 0 { ("credit", 8 + seed % 20) } else { ("window", 4_000) };
        let most = if seed % 2 == 0 { room } else { room / 100 };
        let (sent, ahead) = run(&[(name, &[(0, room)])], seed);
        let again = format!("DACAPO_SEED={seed}: {name} of {room}: {sent} sent, {ahead} ahead");
        assert!(ahead <= most, "more than there is room for: {again}");
        assert!(sent > 40, "it stands still: {again}");
        least = least.min(sent);
    }
    println!("at least {least} units in 20 s");
}

#[test]
fn it_needs_a_way_back_and_stands_alone() {
    let below = &[Property::Boundaries, Property::WayBack, Property::Answers];
    for name in ["window", "credit"] {
        assert_eq!(checked(&[(name, &[]), ("segment", &[]), ("arq-sr", &[])], below), Ok(()));
        assert_eq!(checked(&[(name, &[]), ("segment", &[])], below), Ok(()), "units may be lost");
        assert!(checked(&[(name, &[])], &below[..1]).is_err(), "nobody answers");
        assert!(checked(&[("segment", &[]), (name, &[]), ("arq-sr", &[])], below).is_err());
    }
    let both = checked(&[("window", &[]), ("credit", &[]), ("arq-sr", &[])], below);
    assert!(matches!(both, Err(Illegal::SameFunction { .. })), "{both:?}");
    assert_eq!([window::NOTE_WAITED, credit::NOTE_WAITED], [1, 1]);
}
