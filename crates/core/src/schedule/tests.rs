//! What flows get of a turn, by a world in which they have packets of known lengths.

use super::*;
use crate::ids::SessionId;
use dacapo_base::Random;
use dacapo_wire::attribute::{AttributeForm, key};
use dacapo_wire::session::FlowOffer;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

const SHARE: Rank = Rank { priority: 0, share: 1, deadline: None, answers: false };

fn flow(id: u64) -> Asked {
    Asked::Flow(SessionId(id), 0)
}

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// What one has: when its units were handed over and their lengths, the first first.
#[derive(Default)]
struct Had {
    units: VecDeque<(Time, usize)>,
    is_held: bool,
}

/// Flows by number, and how often they were asked.
#[derive(Default)]
struct World {
    had: BTreeMap<u64, Had>,
    asked: usize,
    looked_at: usize,
}

impl World {
    fn give(&mut self, id: u64, count: usize, len: usize) {
        self.give_at(id, Time::ZERO, count, len);
    }

    fn give_at(&mut self, id: u64, at: Time, count: usize, len: usize) {
        let had = self.had.entry(id).or_default();
        had.units.extend(std::iter::repeat_n((at, len), count));
    }

    fn of(&mut self, asked: Asked) -> Option<&mut Had> {
        let Asked::Flow(id, _) = asked else { return None };
        self.had.get_mut(&id.0)
    }

    /// When the first unit must be there of each that may send one.
    fn due(&self) -> BTreeMap<u64, Time> {
        let free = self.had.iter().filter(|(_, had)| !had.is_held);
        let first = free.filter_map(|(id, had)| Some((*id, had.units.front()?.0)));
        first.map(|(id, at)| (id, at + Duration::from_millis(deadline_ms(id)))).collect()
    }

    fn has_any(&self) -> bool {
        self.had.values().any(|had| !had.is_held && !had.units.is_empty())
    }
}

impl Asker for World {
    type Packet = (u64, usize);

    fn waits_since(&mut self, asked: Asked) -> Option<Time> {
        self.looked_at += 1;
        self.of(asked)?.units.front().map(|(at, _)| *at)
    }

    fn poll(&mut self, asked: Asked) -> Polled<(u64, usize)> {
        self.asked += 1;
        let Asked::Flow(id, _) = asked else { return Polled::Nothing };
        match self.of(asked) {
            Some(had) if had.is_held && !had.units.is_empty() => Polled::Held,
            Some(had) => match had.units.pop_front() {
                Some((_, len)) => Polled::Given((id.0, len), len),
                None => Polled::Nothing,
            },
            None => Polled::Nothing,
        }
    }
}

fn schedule(turns: &[(u64, Rank)]) -> Schedule {
    let mut schedule = Schedule::default();
    set(&mut schedule, turns);
    schedule
}

fn set(schedule: &mut Schedule, turns: &[(u64, Rank)]) {
    schedule.set(turns.iter().map(|(id, rank)| Turn { rank: *rank, asked: flow(*id) }));
}

/// Whose the next packets are.
fn next(schedule: &mut Schedule, world: &mut World, count: usize) -> Vec<u64> {
    let polled = (0..count).map_while(|_| schedule.poll(ms(0), world));
    polled.map(|(id, _)| id).collect()
}

/// How many bytes each has sent of the next so many packets.
fn bytes(schedule: &mut Schedule, world: &mut World, count: usize) -> BTreeMap<u64, usize> {
    let mut bytes = BTreeMap::new();
    for (id, len) in (0..count).map_while(|_| schedule.poll(ms(0), world)) {
        *bytes.entry(id).or_default() += len;
    }
    bytes
}

fn with(priority: u8) -> Rank {
    Rank { priority, ..SHARE }
}

fn due(ms: u64) -> Rank {
    Rank { deadline: Some(Duration::from_millis(ms)), ..SHARE }
}

#[test]
fn what_attributes_say_is_kept_within_its_range() {
    let asked = |key, min, max| AttributeForm { key, min, max, weight: None };
    let of = |attributes: &[AttributeForm]| {
        Rank::of(&FlowOffer { attributes: attributes.to_vec(), ..FlowOffer::default() })
    };
    assert_eq!(of(&[]), SHARE);
    let both = [asked(key::PRIORITY, Some(5), None), asked(key::SHARE, Some(40), None)];
    assert_eq!(of(&both), Rank { priority: 5, share: 40, ..SHARE });
    let beyond = [asked(key::PRIORITY, Some(99), None), asked(key::SHARE, Some(i64::MAX), None)];
    assert_eq!(of(&beyond), Rank { priority: 7, share: 100, ..SHARE });
    let below = [asked(key::PRIORITY, Some(-1), None), asked(key::SHARE, Some(i64::MIN), None)];
    assert_eq!(of(&below), Rank { priority: 0, share: 0, ..SHARE });
    let late = [asked(key::DELAY, None, Some(9_000)), asked(key::DEADLINE, None, Some(7_000))];
    assert_eq!(of(&late).deadline, Some(Duration::from_nanos(7_000)), "whichever is earlier");
    let impossible = [asked(key::DEADLINE, None, Some(-5))];
    assert_eq!(of(&impossible).deadline, Some(Duration::ZERO));
}

#[test]
fn levels_are_priorities_and_behind_them_those_without_a_share() {
    let level = |priority, share| Rank { priority, share, ..SHARE }.level();
    assert_eq!((level(7, 1), level(6, 100), level(0, 1)), (0, 1, 7));
    assert_eq!((level(7, 0), level(0, 0), level(255, 0)), (8, 15, 8));
}

#[test]
fn a_higher_priority_is_asked_first_and_equals_as_they_come() {
    let turns = [(1, with(0)), (2, with(7)), (3, with(0)), (4, with(7)), (5, with(3))];
    let (mut schedule, mut world) = (schedule(&turns), World::default());
    assert!(next(&mut schedule, &mut world, 1).is_empty());
    for id in 1..=5 {
        world.give(id, 1, 1_500);
    }
    assert_eq!(next(&mut schedule, &mut world, 9), [2, 4, 5, 1, 3]);
    world.give(1, 1, 1_500);
    set(&mut schedule, &[(3, with(0))]);
    assert!(next(&mut schedule, &mut world, 1).is_empty(), "the others are asked no more");
}

#[test]
fn who_has_sent_last_is_asked_after_all_its_equals() {
    let turns: Vec<(u64, Rank)> = (1..=3).map(|id| (id, with(2))).collect();
    let (mut schedule, mut world) = (schedule(&turns), World::default());
    (1..=3).for_each(|id| world.give(id, 4, 1_500));
    assert_eq!(next(&mut schedule, &mut world, 5), [1, 2, 3, 1, 2]);
    // Another begins, and the one whose turn it is rests.
    set(&mut schedule, &[(1, with(2)), (2, with(2)), (7, with(2))]);
    world.give(7, 1, 1_500);
    assert_eq!(next(&mut schedule, &mut world, 3), [7, 1, 2]);
}

#[test]
fn equals_share_by_bytes_however_long_their_packets_are() {
    let turns = [(1, SHARE), (2, SHARE), (3, SHARE)];
    let (mut schedule, mut world) = (schedule(&turns), World::default());
    world.give(1, 100_000, 64);
    world.give(2, 10_000, 1_400);
    world.give(3, 1_000, 64 << 10);
    let sent = bytes(&mut schedule, &mut world, 50_000);
    let (least, most) = (sent.values().min().unwrap(), sent.values().max().unwrap());
    assert!(*least > 1_000_000, "{sent:?}");
    assert!(most - least <= (64 << 10) + 2 * 1_500, "{sent:?}");
}

#[test]
fn shares_say_how_much_each_gets() {
    let share = |share| Rank { share, ..SHARE };
    let turns = [(1, share(1)), (2, share(4)), (3, share(100)), (4, share(0))];
    let (mut schedule, mut world) = (schedule(&turns), World::default());
    (1..=4).for_each(|id| world.give(id, 100_000, 1_200));
    let sent = bytes(&mut schedule, &mut world, 20_000);
    assert!(!sent.contains_key(&4), "it gets what others leave");
    let part = |id: u64| sent[&id] as f64 / sent.values().sum::<usize>() as f64;
    for (id, share) in [(1, 1.0), (2, 4.0), (3, 100.0)] {
        assert!((part(id) / (share / 105.0) - 1.0).abs() < 0.02, "{id}: {}", part(id));
    }
    (1..=3).for_each(|id| world.had.get_mut(&id).unwrap().units.clear());
    assert_eq!(next(&mut schedule, &mut world, 3), [4, 4, 4]);
}

#[test]
fn who_had_nothing_has_no_claim_and_who_owes_pays_though_others_come_and_go() {
    let (mut schedule, mut world) = (schedule(&[(1, SHARE), (2, SHARE)]), World::default());
    world.give(2, 1_000, 1_000);
    assert_eq!(bytes(&mut schedule, &mut world, 500)[&2], 500_000, "nobody else has anything");
    world.give(1, 1_000, 1_000);
    let sent = bytes(&mut schedule, &mut world, 100);
    assert!(sent[&1].abs_diff(sent[&2]) <= 3_000, "{sent:?}");
    world.give(1, 1, 60_000);
    world.had.get_mut(&1).unwrap().units.rotate_right(1);
    let mut sent = BTreeMap::<u64, usize>::new();
    for round in 0..80 {
        let three = [(1, SHARE), (2, SHARE), (9, SHARE)];
        set(&mut schedule, &three[..2 + round % 2]);
        for (id, bytes) in bytes(&mut schedule, &mut world, 1) {
            *sent.entry(id).or_default() += bytes;
        }
    }
    assert!(sent[&1].abs_diff(sent[&2]) <= 4_000, "{sent:?}");
}

#[test]
fn whose_turn_it_is_and_who_owes_stays_beside_one_with_a_deadline() {
    let turns = [(1, SHARE), (2, SHARE), (3, SHARE), (4, due(50))];
    let (mut schedule, mut world) = (schedule(&turns), World::default());
    world.give(1, 1, 60_000);
    (1..=3).for_each(|id| world.give(id, 200, 1_500));
    assert_eq!(next(&mut schedule, &mut world, 1), [1]);
    for _ in 0..60 {
        set(&mut schedule, &turns);
        let two = next(&mut schedule, &mut world, 1);
        assert!(two == [2] || two == [3], "it has not paid: {two:?}");
    }
    let asked = |world: &World, id: u64| 200 - world.had[&id].units.len();
    assert_eq!((asked(&world, 2), asked(&world, 3)), (30, 30), "in turn");
}

#[test]
fn who_owes_and_has_nothing_owes_it_still_when_nobody_could_send() {
    let turns = [(1, SHARE), (2, SHARE)];
    let (mut schedule, mut world) = (schedule(&turns), World::default());
    world.give(1, 1, 60_000);
    world.give(2, 100, 1_500);
    assert_eq!(next(&mut schedule, &mut world, 1), [1]);
    world.had.get_mut(&2).unwrap().is_held = true;
    for _ in 0..50 {
        assert!(next(&mut schedule, &mut world, 1).is_empty(), "one has nothing, one is held up");
    }
    world.had.get_mut(&2).unwrap().is_held = false;
    world.give(1, 100, 1_500);
    let sent = next(&mut schedule, &mut world, 40);
    assert!(sent.iter().filter(|id| **id == 2).count() >= 38, "{sent:?}");
}

#[test]
fn answers_go_before_what_is_sent_and_are_never_what_others_leave() {
    let rest = Rank { share: 0, ..SHARE };
    assert_eq!(rest.of_answers(), Rank { answers: true, ..SHARE });
    let turns = [(1, due(5)), (2, SHARE), (3, rest.of_answers())];
    let (mut schedule, mut world) = (schedule(&turns), World::default());
    world.give_at(1, ms(9), 100, 1_000);
    world.give_at(2, ms(9), 100, 1_000);
    let id = |polled: Option<(u64, usize)>| polled.map(|(id, _)| id);
    assert_eq!(id(schedule.poll(ms(9), &mut world)), Some(1));
    world.give_at(3, ms(10), 1, 60);
    assert_eq!(id(schedule.poll(ms(10), &mut world)), Some(3));
    assert_eq!(id(schedule.poll(ms(10), &mut world)), Some(1));
}

#[test]
fn those_that_answer_take_turns_though_others_come_and_go() {
    let answers = SHARE.of_answers();
    let turns: Vec<(u64, Rank)> = (1..=4).map(|id| (id, answers)).collect();
    let (mut schedule, mut world) = (schedule(&turns), World::default());
    (1..=4).for_each(|id| world.give(id, 10, if id == 1 { 1_000 } else { 60 }));
    assert_eq!(next(&mut schedule, &mut world, 6), [1, 2, 3, 4, 1, 2]);
    set(&mut schedule, &[(1, answers), (2, answers), (4, answers)]);
    assert_eq!(next(&mut schedule, &mut world, 3), [4, 1, 2], "the one whose turn it was is gone");
    set(&mut schedule, &turns[..2]);
    assert_eq!(next(&mut schedule, &mut world, 3), [1, 2, 1]);
}

#[test]
fn the_unit_that_must_be_there_first_goes_first() {
    for seed in 0..200 {
        let mut random = Random::from_number(seed);
        let turns: Vec<(u64, Rank)> = (1..=6).map(|id| (id, due(deadline_ms(id)))).collect();
        let (mut schedule, mut world) = (schedule(&turns), World::default());
        let mut now = 0;
        for step in 0..300 {
            now += 1 + random.below(3);
            let id = 1 + random.below(6);
            world.give_at(id, ms(now), random.below(4) as usize, 1_000);
            world.had.entry(1 + random.below(6)).or_default().is_held = random.chance(0.5);
            for _ in 0..random.below(4) {
                let due = world.due();
                let polled = schedule.poll(ms(now), &mut world).map(|(id, _)| due[&id]);
                assert_eq!(polled, due.values().min().copied(), "seed {seed}, step {step}");
            }
        }
    }
}

/// A deadline for each of six.
fn deadline_ms(id: u64) -> u64 {
    id * 7 % 30
}

#[test]
fn of_sixteen_bytes_one_goes_by_turns_to_those_behind() {
    let ranks = [(1, with(7)), (2, Rank { priority: 5, ..due(50) }), (3, with(5))];
    let none = [(4, with(0)), (5, Rank { share: 0, ..with(7) })];
    let turns = [ranks.as_slice(), none.as_slice()].concat();
    let (mut schedule, mut world) = (schedule(&turns), World::default());
    (1..=5).for_each(|id| world.give(id, 100_000, 1_500));
    let sent = bytes(&mut schedule, &mut world, 16 * 3_000);
    assert!(!sent.contains_key(&5), "the file lets it wait for good: {sent:?}");
    let part = |id: u64| sent[&id] as f64 / (16.0 * 3_000.0 * 1_500.0);
    assert!((part(1) - 15.0 / 16.0).abs() < 0.002, "{sent:?}");
    for id in 2..=4 {
        assert!((part(id) - 1.0 / 48.0).abs() < 0.002, "{id}: {sent:?}");
    }
    // Who is above and has nothing is not who goes first.
    set(&mut schedule, &turns[..4]);
    world.had.get_mut(&1).unwrap().units.clear();
    let sent = bytes(&mut schedule, &mut world, 16 * 3_000);
    let part = |id: u64| sent[&id] as f64 / (16.0 * 3_000.0 * 1_500.0);
    assert!((part(2) - 15.0 / 16.0).abs() < 0.002, "{sent:?}");
    assert!([3, 4].iter().all(|id| (part(*id) - 1.0 / 32.0).abs() < 0.002), "{sent:?}");
    // Trains of who is first do not let the others in more often.
    world.had.get_mut(&1).unwrap().units.clear();
    world.give(1, 10_000, 64_000);
    let sent = bytes(&mut schedule, &mut world, 4_000);
    let behind: usize = (2..=4).map(|id| sent[&id]).sum();
    assert!(behind * 15 <= sent[&1] && behind > 0, "{sent:?}");
}

#[test]
fn whoever_has_something_gets_it_out_however_the_others_stand() {
    for seed in 0..200 {
        let mut random = Random::from_number(seed);
        let turns: Vec<(u64, Rank)> = (1..=12).map(|id| (id, any(&mut random))).collect();
        let (mut schedule, mut world) = (schedule(&turns), World::default());
        for step in 0..400 {
            if random.chance(0.3) {
                world.give(1 + random.below(12), 3, 1 + random.below(70_000) as usize);
            }
            let had = world.had.entry(1 + random.below(12)).or_default();
            had.is_held = random.chance(0.2);
            if random.chance(0.1) {
                set(&mut schedule, &turns);
            }
            let now = ms(step / 5);
            let (has_any, asked) = (world.has_any(), world.asked);
            assert_eq!(schedule.poll(now, &mut world).is_some(), has_any, "seed {seed}, {step}");
            assert!(world.asked - asked <= 3 * turns.len(), "seed {seed}, {step}");
        }
    }
}

fn any(random: &mut Random) -> Rank {
    let deadline = random.chance(0.4).then(|| Duration::from_millis(random.below(100)));
    let share = if random.chance(0.2) { 0 } else { 1 + random.below(100) as u8 };
    Rank { priority: random.below(8) as u8, share, deadline, answers: random.chance(0.2) }
}

#[test]
fn ten_thousand_that_are_silent_are_not_asked_for_each_packet_of_many() {
    for rank in [SHARE, due(100)] {
        let turns: Vec<(u64, Rank)> = (0..10_000).map(|id| (id, rank)).collect();
        let (mut schedule, mut world) = (schedule(&turns), World::default());
        (0..10_000).step_by(2).for_each(|id| world.give(id, 20, 64_000));
        next(&mut schedule, &mut world, 10_000);
        let (asked, looked_at) = (world.asked, world.looked_at);
        assert_eq!(next(&mut schedule, &mut world, 50_000).len(), 50_000);
        let asks = (world.asked - asked + world.looked_at - looked_at) as f64 / 50_000.0;
        assert!(asks < 8.0, "{rank:?}: {asks} asks for a packet");
    }
}
