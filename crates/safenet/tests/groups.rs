//! Messages to groups, without repair: whole or not at all.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::world::{PORT, World, bytes, group};
use dacapo_base::Time;
use dacapo_link::{LinkConfig, Loss};
use dacapo_safenet::{Config, Mode, Outcome, Reach, Route, SendError, Traffic};
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
        assert!(node.parts.iter().all(|part| part.is_group));
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

#[test]
fn reliable_groups_are_refused_with_a_reason() {
    let mut world = World::plain(1, |config| config);
    let route = Route { reach: Reach::ReliableGroup, ..to_group() };
    let refused = world.try_send(0, route, ASYNC, vec![1]);
    assert_eq!(refused, Err(SendError::ReliableGroup));
    assert!(refused.unwrap_err().to_string().contains("not supported"));
    assert_eq!(world.nodes[0].service.messages().sums().accepted, 0);
}
