//! Messages to groups: without repair whole or not at all, with repair to every member that is
//! left.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::world::{PORT, World, bytes, group, host};
use dacapo_base::Time;
use dacapo_link::{LinkConfig, Loss};
use dacapo_safenet::{Config, Event, JoinError, Mode, Outcome, Reach, Route, Traffic};
use dacapo_xtp::GroupPolicy;
use std::time::Duration;

const ASYNC: Mode = Mode::Asynchronous;

fn to_group() -> Route {
    Route::group(group(), PORT)
}

/// Members hold nothing up: who sends to them keeps a pace that they keep up with.
fn pace(world: &mut World, rate: u32, burst: u32) {
    let traffic = Traffic { rate, burst };
    world.nodes[0].service.set_traffic(world.now, to_group(), traffic).unwrap();
}

#[test]
fn every_member_gets_every_message() {
    let mut world = World::plain(3, |config| config);
    let sent: Vec<Vec<u8>> = (0..50).map(|number| bytes(number * 300, number as u64)).collect();
    for data in &sent {
        let ticket = world.send(0, to_group(), ASYNC, data.clone());
        world.run_for(Duration::from_millis(1));
        assert_eq!(world.outcome(0, ticket), Some(Outcome::Sent));
    }
    world.run_for(Duration::from_millis(10));
    for node in &world.nodes[1..] {
        assert!(node.messages() == sent);
        assert!(node.parts.iter().all(|part| part.reach != Reach::Host));
        let numbers: Vec<u64> = node.parts.iter().map(|part| part.number).collect();
        assert_eq!(numbers, (0..50).collect::<Vec<u64>>());
        assert_eq!(node.packets, 0, "members say nothing");
        assert_eq!(node.service.engine().context_count(), 0);
    }
    world.run_for(Duration::from_secs(61));
    assert_eq!(world.nodes[0].service.messages().route_count(), 0);
}

#[test]
fn a_message_that_is_longer_than_any_buffer_goes_to_a_group() {
    let mut world = World::plain(2, |config| Config { part_len_max: 100_000, ..config });
    let sent = bytes(700_000, 1);
    pace(&mut world, 10_000_000, 30_000);
    world.send(0, to_group(), ASYNC, sent.clone());
    world.run_for(Duration::from_secs(1));
    assert!(world.nodes[1].messages() == [sent]);
}

#[test]
fn what_a_group_loses_is_lost_whole_and_counted() {
    let loss = Loss::Random { p: 0.02 };
    let link = LinkConfig { delay: Duration::from_millis(1), loss, ..LinkConfig::default() };
    let bound = |config| Config { waiting_bytes_max: 4 << 20, ..config };
    let mut world = World::new(3, 3, &link, dacapo_xtp::Config::default(), bound);
    pace(&mut world, 10_000_000, 30_000);
    let sent: Vec<Vec<u8>> = (0..300).map(|number| bytes(10_000, number)).collect();
    for data in &sent {
        world.send(0, to_group(), ASYNC, data.clone());
    }
    world.run_for(Duration::from_secs(200));
    for node in &world.nodes[1..] {
        let (got, counters) = (node.messages(), node.service.messages().counters());
        assert!((200..290).contains(&got.len()), "{} of 300", got.len());
        let numbers: Vec<u64> = node.parts.iter().map(|part| part.number).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
        let right = |(data, number): (&Vec<u8>, &u64)| *data == sent[*number as usize];
        assert!(got.iter().zip(&numbers).all(right));
        assert!(counters.broken > 0 && counters.taken == got.len() as u64);
        assert_eq!(node.service.messages().incoming_count(), 0, "nothing is left");
    }
    assert_eq!(world.nodes[0].service.messages().sums().sent, 300);
}

#[test]
fn rate_and_burst_hold_over_the_messages_of_a_group() {
    let mut world = World::plain(2, |config| config);
    pace(&mut world, 1_000_000, 10_000);
    for number in 0..100 {
        world.send(0, to_group(), ASYNC, bytes(2_000, number));
    }
    world.run_until(Time::from_millis(101));
    let half = world.nodes[1].messages().len();
    assert!((45..=62).contains(&half), "{half}: 50 and two bursts at most");
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.nodes[1].messages().len(), 100);
}

#[test]
fn messages_that_nobody_takes_are_bounded_and_the_newest_are_refused() {
    let mut world = World::plain(2, |config| Config { group_incoming_max: 5, ..config });
    world.nodes[1].takes = false;
    for number in 0..20 {
        world.send(0, to_group(), ASYNC, vec![number]);
    }
    world.run_for(Duration::from_millis(50));
    world.take(1);
    assert_eq!(world.nodes[1].messages(), [[0], [1], [2], [3], [4]]);
    assert_eq!(world.nodes[1].service.messages().counters().refused, 15);
    assert_eq!(world.nodes[1].service.engine().context_count(), 0);
}

fn to_reliable() -> Route {
    Route::reliable_group(group(), PORT)
}

/// So many members from the beginning.
fn all_of(count: usize) -> impl Fn(Config) -> Config {
    move |config| Config { group_policy: GroupPolicy::all_of(count), ..config }
}

#[test]
fn a_reliable_group_gets_everything_over_a_link_that_loses() {
    let loss = Loss::Random { p: 0.05 };
    let link = LinkConfig { delay: Duration::from_millis(1), loss, ..LinkConfig::default() };
    let mut world = World::new(3, 4, &link, dacapo_xtp::Config::default(), all_of(3));
    let sent: Vec<Vec<u8>> = (0..60).map(|number| bytes(number * 400, number as u64)).collect();
    let send = |data: &Vec<u8>| world.send(0, to_reliable(), ASYNC, data.clone());
    let tickets: Vec<_> = sent.iter().map(send).collect();
    world.run_for(Duration::from_secs(50));
    for node in &world.nodes[1..] {
        assert!(node.messages() == sent, "{} of 60 messages", node.messages().len());
        assert!(node.parts.iter().all(|part| part.reach != Reach::Host));
    }
    for ticket in tickets {
        let reached = Outcome::Reached { members: 3, lost: 0 };
        assert_eq!(world.outcome(0, ticket), Some(reached));
    }
    world.run_for(Duration::from_secs(200));
    assert!(world.nodes.iter().all(|node| node.service.messages().is_quiet()));
}

#[test]
fn a_member_that_vanishes_is_counted_and_the_others_get_everything() {
    let policy = GroupPolicy { members_min: 1, ..GroupPolicy::all_of(2) };
    let mut world = World::plain(3, |config| Config { group_policy: policy, ..config });
    pace(&mut world, 1_000_000, 30_000);
    let first = world.send(0, to_reliable(), ASYNC, bytes(100, 1));
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.outcome(0, first), Some(Outcome::Reached { members: 2, lost: 0 }));
    world.nodes[2].is_gone = true;
    let second = world.send(0, to_reliable(), ASYNC, bytes(100_000, 2));
    world.run_for(Duration::from_secs(40));
    assert_eq!(world.outcome(0, second), Some(Outcome::Reached { members: 1, lost: 1 }));
    let third = world.send(0, to_reliable(), ASYNC, bytes(100, 3));
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.outcome(0, third), Some(Outcome::Reached { members: 1, lost: 0 }));
    assert_eq!(world.nodes[1].messages().len(), 3);
}

#[test]
fn a_reliable_group_that_nobody_joins_fails_with_the_reason() {
    let mut world = World::plain(2, all_of(2));
    let ticket = world.send(0, to_reliable(), ASYNC, vec![1]);
    world.run_for(Duration::from_secs(200));
    let Some(Outcome::Failed(cause)) = world.outcome(0, ticket) else {
        panic!("{:?}", world.outcome(0, ticket));
    };
    assert!(cause.to_string().contains("members"), "{cause}");
    assert!(world.nodes[1].parts.is_empty());
}

#[test]
fn who_joins_in_the_middle_of_a_message_gets_those_that_begin_later() {
    let link = LinkConfig { delay: Duration::from_millis(1), ..LinkConfig::default() };
    let mut world = World::new(3, 3, &link, dacapo_xtp::Config::default(), |config| config);
    let traffic = Traffic { rate: 1_000_000, burst: 10_000 };
    world.nodes[0].service.set_traffic(world.now, to_reliable(), traffic).unwrap();
    for number in 0..10 {
        world.send(0, to_reliable(), ASYNC, bytes(30_000, number));
    }
    // The stream begins with the first that has joined.
    world.run_for(Duration::from_secs(30));
    let all: Vec<Vec<u8>> = (0..10).map(|number| bytes(30_000, number)).collect();
    let counts = [1, 2].map(|end: usize| world.nodes[end].messages().len());
    for end in [1, 2] {
        let got = world.nodes[end].messages();
        assert!(got == all[10 - got.len()..], "host {end}");
        assert_eq!(world.nodes[end].service.messages().counters().malformed, 0);
    }
    assert!(counts.contains(&10) && counts.iter().all(|count| *count >= 9), "{counts:?}");
    let outcomes: Vec<Outcome> = world.nodes[0].outcomes.values().copied().collect();
    assert_eq!(outcomes[9], Outcome::Reached { members: 2, lost: 0 });
}

#[test]
fn who_listens_late_joins_and_gets_what_begins_then() {
    let mut world = World::plain(3, |config| config);
    world.nodes[2].service.unlisten(PORT);
    let sent: Vec<Vec<u8>> = (0..20).map(|number| bytes(5_000, number)).collect();
    let send = |world: &mut World, range: std::ops::Range<usize>| {
        for data in &sent[range] {
            world.send(0, to_reliable(), ASYNC, data.clone());
            world.run_for(Duration::from_millis(50));
        }
    };
    send(&mut world, 0..10);
    let now = world.now;
    let late = &mut world.nodes[2].service;
    let refused = late.join_group(now, group(), PORT).unwrap_err();
    assert_eq!(refused, JoinError::NotListening { port: PORT });
    late.listen(PORT).unwrap();
    late.join_group(now, group(), PORT).unwrap();
    let again = late.join_group(now, group(), PORT).unwrap_err();
    assert!(again.to_string().contains("already"), "{again}");
    world.run_for(Duration::from_millis(500));
    let joined = Event::Joined { group: group(), port: PORT };
    assert!(world.nodes[2].events.contains(&joined), "{:?}", world.nodes[2].events);
    send(&mut world, 10..20);
    assert!(world.nodes[1].messages() == sent);
    assert!(world.nodes[2].messages() == sent[10..], "{}", world.nodes[2].messages().len());
    let first = &world.nodes[2].parts[0];
    assert_eq!((first.sender.peer, first.number), (host(0), 10));
    let reached: Vec<Outcome> = world.nodes[0].outcomes.values().copied().collect();
    assert_eq!(reached[9], Outcome::Reached { members: 1, lost: 0 });
    assert_eq!(reached[19], Outcome::Reached { members: 2, lost: 0 });
    // When the group is over it can be joined anew.
    world.run_for(Duration::from_secs(200));
    assert!(world.nodes.iter().all(|node| node.service.messages().is_quiet()));
    let now = world.now;
    world.nodes[2].service.join_group(now, group(), PORT).unwrap();
}

#[test]
fn a_group_to_which_nobody_sends_is_not_joined_and_that_is_told() {
    let mut world = World::plain(2, |config| config);
    let now = world.now;
    world.nodes[1].service.join_group(now, group(), PORT).unwrap();
    world.run_for(Duration::from_secs(300));
    let told = &world.nodes[1].events;
    let wanted = (group(), PORT);
    let is_it = |event: &&Event| match event {
        Event::NotJoined { group, port, .. } => (*group, *port) == wanted,
        _ => false,
    };
    assert_eq!(told.iter().filter(is_it).count(), 1, "{told:?}");
    assert!(world.nodes[1].service.messages().is_quiet());
}

#[test]
fn who_is_invited_and_joins_too_hears_everything_once() {
    for asks_before in [true, false] {
        let mut world = World::plain(2, |config| config);
        let now = world.now;
        if asks_before {
            world.nodes[1].service.join_group(now, group(), PORT).unwrap();
        }
        world.send(0, to_reliable(), ASYNC, bytes(100, 1));
        world.run_for(Duration::from_millis(500));
        let now = world.now;
        let asked = world.nodes[1].service.join_group(now, group(), PORT);
        assert_eq!(asked.is_err(), asks_before, "{asked:?}");
        world.run_for(Duration::from_secs(1));
        world.send(0, to_reliable(), ASYNC, bytes(200, 2));
        world.run_for(Duration::from_secs(50));
        assert!(world.nodes[1].messages() == [bytes(100, 1), bytes(200, 2)]);
        let reached: Vec<Outcome> = world.nodes[0].outcomes.values().copied().collect();
        assert_eq!(reached, [Outcome::Reached { members: 1, lost: 0 }; 2]);
    }
}
