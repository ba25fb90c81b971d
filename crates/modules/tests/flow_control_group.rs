//! What `window` and `credit` are for in a group: each receiver has room for what it gets, and
//! `slow` says what becomes of one who is slower than the others.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, checked, dropped, end, ms, number, unit};
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, Illegal, Property, Unread};
use dacapo_wire::flow_control::{Header, Kind};

const LEN: usize = 100;

/// With room for so many units.
const ROOM: u64 = 8;
const WAITS: &[Place<'_>] = &[("credit", &[(0, ROOM), (1, 1)])];
const LOSES: &[Place<'_>] = &[("credit", &[(0, ROOM), (1, 2)])];
const IS_CUT: &[Place<'_>] = &[("credit", &[(0, ROOM), (1, 3)])];
const BYTES: &[Place<'_>] = &[("window", &[(0, 4_000), (1, 1)])];

/// At most so many units are sent in a millisecond.
const EACH_MS: u64 = 4;

struct Receiver {
    end: End,
    /// It takes a unit so often, in ms; none: never.
    every: Option<u64>,
    is_there: bool,
    unread: u64,
    got: Vec<u64>,
}

impl Receiver {
    fn tell(&mut self) {
        let unread = Unread { units: self.unread, bytes: self.unread * LEN as u64 };
        self.end.tell_unread(unread);
    }
}

struct Group {
    sender: End,
    receivers: Vec<Receiver>,
    sent: u64,
    ms: u64,
}

impl Group {
    fn new(places: &[Place<'_>], every: &[Option<u64>]) -> Self {
        let mut group = Self { sender: end(places, 1_000), receivers: vec![], sent: 0, ms: 0 };
        every.iter().for_each(|every| group.join(places, *every));
        group
    }

    /// One more takes part.
    fn join(&mut self, places: &[Place<'_>], every: Option<u64>) {
        let mut end = end(places, 1_000);
        end.now = self.sender.now;
        end.unread = None;
        end.runner.join();
        let (unread, got) = (0, Vec::new());
        self.receivers.push(Receiver { end, every, is_there: true, unread, got });
    }

    fn run(&mut self, for_ms: u64) {
        for _ in 0..for_ms {
            self.ms += 1;
            let most = self.sent + EACH_MS;
            while self.sent < most && self.sender.feed(&unit(self.sent, LEN)) {
                self.sent += 1;
            }
            self.sender.now += ms(1);
            self.sender.fire();
            let wire = self.sender.wire();
            for (number, receiver) in (1..).zip(&mut self.receivers) {
                if receiver.is_there {
                    take(receiver, &wire, self.ms);
                }
                for said in receiver.end.wire() {
                    self.sender.with(|runner, _| runner.handle_receiver(number));
                    assert!(self.sender.handle_bytes(&said));
                }
            }
        }
    }

    fn got(&self, at: usize) -> u64 {
        self.receivers[at].got.len() as u64
    }

    fn dropped(&self, at: usize) -> u64 {
        dropped(&self.receivers[at].end, DropReason::Overflow)
    }

    fn end(mut self) {
        self.sender.flush();
        self.receivers.iter_mut().for_each(|it| it.end.flush());
    }
}

fn take(receiver: &mut Receiver, wire: &[Vec<u8>], now_ms: u64) {
    let now = receiver.end.now + ms(1);
    receiver.end.now = now;
    wire.iter().for_each(|it| assert!(receiver.end.handle_bytes(it)));
    let got = receiver.end.units();
    receiver.unread += got.len() as u64;
    receiver.got.extend(got.iter().map(|unit| number(unit)));
    assert!(receiver.unread <= 2 * ROOM.max(40), "no more waits than there is room for");
    match receiver.every {
        Some(0) => receiver.unread = 0,
        Some(every) if now_ms.is_multiple_of(every) => {
            receiver.unread = receiver.unread.saturating_sub(1);
        }
        _ => {}
    }
    receiver.tell();
    receiver.end.fire();
}

#[test]
fn all_wait_for_who_is_slow_and_nobody_loses_anything() {
    for places in [WAITS, BYTES] {
        let mut group = Group::new(places, &[Some(0), Some(50), Some(3)]);
        group.run(5_000);
        let (sent, name) = (group.sent, places[0].0);
        // A unit each 50 ms, and what waits.
        assert!((100..=145).contains(&sent), "{name}: {sent}");
        for at in 0..3 {
            assert_eq!((group.got(at), group.dropped(at)), (sent, 0), "{name}: {at}");
        }
        group.end();
    }
}

#[test]
fn who_is_slow_loses_what_it_has_no_room_for_and_goes_on_where_it_has() {
    let mut group = Group::new(LOSES, &[Some(0), Some(50)]);
    group.run(5_000);
    assert!(group.sent > 5_000, "nobody waits: {}", group.sent);
    assert_eq!((group.got(0), group.dropped(0)), (group.sent, 0));
    assert_eq!(group.got(1) + group.dropped(1), group.sent, "the sum closes");
    assert!((90..=120).contains(&group.got(1)), "{}", group.got(1));
    assert!(group.receivers[1].got.last().unwrap() + 1_000 > group.sent, "it got something new");
    group.end();
}

#[test]
fn who_holds_the_others_up_for_long_is_waited_for_no_longer_until_it_reads() {
    let mut group = Group::new(IS_CUT, &[Some(0), Some(1)]);
    group.run(1_000);
    assert_eq!(group.dropped(1), 0, "all wait for each other");
    group.receivers[1].every = None;
    let before = group.sent;
    group.run(1_500);
    assert!(group.sent <= before + 2 * ROOM, "it is waited for");
    group.run(1_500);
    assert!(group.sent > before + 1_000, "and then it is not: {}", group.sent - before);
    assert_eq!(group.got(0), group.sent);
    (group.receivers[1].every, group.receivers[1].unread) = (Some(1), 0);
    group.run(500);
    let (lost, before) = (group.dropped(1), group.sent);
    assert!(lost > 0);
    group.run(1_000);
    assert_eq!(group.dropped(1), lost, "it is waited for again");
    assert!((900..=1_100).contains(&(group.sent - before)), "{}", group.sent - before);
    group.end();
}

#[test]
fn who_is_gone_holds_nobody_up_for_good() {
    let mut group = Group::new(WAITS, &[Some(0), Some(0)]);
    group.run(200);
    group.receivers[1].is_there = false;
    group.run(1_000);
    let before = group.sent;
    group.run(2_000);
    assert_eq!(group.sent, before, "it may come back");
    group.run(4_000);
    assert!(group.sent > before + 1_000);
    assert_eq!(group.got(0), group.sent);
    // Nobody is left.
    group.receivers[0].is_there = false;
    group.run(5_000);
    let before = group.sent;
    group.run(20_000);
    assert!(group.sent > before, "somebody new may listen");
    group.end();
}

#[test]
fn who_comes_later_begins_with_what_comes_and_is_waited_for() {
    let mut group = Group::new(WAITS, &[Some(0)]);
    group.run(1_000);
    let begins = group.sent;
    assert!(begins > 1_000);
    group.join(WAITS, Some(50));
    group.run(5_000);
    let late = &group.receivers[1];
    assert_eq!(late.got, (begins..group.sent).collect::<Vec<_>>());
    assert!((100..=130).contains(&late.got.len()), "{}", late.got.len());
    assert_eq!(group.dropped(1), 0);
    group.end();
}

#[test]
fn what_one_makes_up_harms_nobody_but_itself() {
    let mut group = Group::new(LOSES, &[Some(0)]);
    group.run(100);
    let said = |place: u64| Header { place: place as u32, kind: Kind::Granted }.emit();
    let mut lies = |receiver: u32, place: u64| {
        group.sender.with(|runner, _| runner.handle_receiver(receiver));
        assert!(group.sender.handle_bytes(&said(place)));
        let of = |reason| dropped(&group.sender, reason);
        (of(DropReason::Malformed), of(DropReason::Stale))
    };
    let sent = group.sent;
    assert_eq!(lies(7, sent + ROOM + 1), (1, 0), "beyond all room");
    assert_eq!(lies(7, u64::from(u32::MAX / 2) + sent), (2, 0));
    assert_eq!(lies(7, sent + 3), (2, 0), "as any");
    assert_eq!(lies(7, sent + 2), (2, 1), "it shrinks");
    (0..20_000).for_each(|receiver| assert_eq!(lies(receiver + 100, sent), (2, 1)));
    let before = group.sent;
    group.run(1_000);
    assert!(group.sent > before + 1_000, "who is slow loses");
    group.end();
}

#[test]
fn a_group_is_enough_and_so_is_one_receiver_and_a_way_that_loses() {
    for name in ["window", "credit"] {
        let places: &[Place<'_>] = &[(name, &[]), ("segment", &[]), ("nak-group", &[])];
        assert_eq!(checked(places, &[Property::Boundaries, Property::Answers]), Ok(()));
        assert!(checked(&places[..2], &[Property::Boundaries]).is_err(), "nobody answers");
        assert_eq!(checked(places, &[Property::Boundaries, Property::WayBack]), Ok(()), "of one");
    }
}

/// What one end numbers of what it sends is not told apart from what others number.
#[test]
fn who_goes_by_numbers_of_one_other_end_cannot_stand_below_in_a_group() {
    let cannot = ["sequence", "dedup", "repeat", "fec-rs", "fec-xor", "fec-rlc", "interleave"];
    let taken_by = |places: &[Place<'_>], way: Property| {
        match checked(places, &[Property::Boundaries, way]) {
            Err(Illegal::Taken { by, .. }) => Some(by.name),
            // Units of 9,000 bytes need `segment`, which is not asked for here.
            Ok(()) | Err(Illegal::UnitsTooLarge { .. }) => None,
            Err(other) => panic!("{other}"),
        }
    };
    for below in cannot {
        let places: &[Place<'_>] = &[("credit", &[]), (below, &[])];
        assert_eq!(taken_by(places, Property::Answers), Some(below));
        assert_eq!(taken_by(places, Property::WayBack), None, "{below}");
    }
    for below in ["checksum", "sum16", "xxh3", "segment", "nak-group"] {
        let places: &[Place<'_>] = &[("credit", &[]), (below, &[])];
        assert_eq!(taken_by(places, Property::Answers), None, "{below}");
    }
}
