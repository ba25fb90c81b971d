//! Associations: made on first use, kept, closed when they rest, made again, bounded; priorities.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::world::{PORT, World, bytes, to};
use dacapo_safenet::{Cause, Config, LetGo, Mode, Outcome, Route, SendError};
use dacapo_xtp::OpenError;
use std::time::Duration;

const ASYNC: Mode = Mode::Asynchronous;

#[test]
fn an_association_is_made_once_and_closed_when_it_rests() {
    let mut world = World::plain(2, |config| config);
    for number in 0..20 {
        world.send(0, to(1), Mode::Synchronous, vec![number]);
        world.run_for(Duration::from_secs(2));
    }
    assert_eq!(
        (
            world.nodes[0].service.messages().route_count(),
            world.nodes[1].service.messages().incoming_count()
        ),
        (1, 1)
    );
    world.run_for(Duration::from_secs(63));
    for node in &world.nodes {
        assert!(node.service.messages().is_quiet() && node.service.messages().route_count() == 0);
        assert_eq!(node.service.engine().context_count(), 0);
    }
    let ticket = world.send(0, to(1), Mode::Synchronous, vec![20]);
    world.run_for(Duration::from_millis(20));
    assert_eq!(world.outcome(0, ticket), Some(Outcome::Delivered));
    assert_eq!(world.nodes[1].messages().len(), 21);
}

#[test]
fn an_association_on_which_something_is_under_way_does_not_rest() {
    let mut world = World::plain(2, |config| config);
    world.nodes[1].takes = false;
    let ticket = world.send(0, to(1), Mode::Synchronous, vec![1]);
    world.run_for(Duration::from_secs(500));
    assert_eq!(world.outcome(0, ticket), None);
    world.take(1);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.outcome(0, ticket), Some(Outcome::Delivered));
}

#[test]
fn of_more_routes_than_there_may_be_the_one_that_rested_longest_goes() {
    let mut world = World::plain(2, |config| Config { routes_max: 3, ..config });
    let route = |priority: u16| to(1).with_priority(priority);
    for priority in 0..5 {
        world.send(0, route(priority), ASYNC, vec![1]);
        world.run_for(Duration::from_secs(1));
    }
    assert_eq!(
        (world.nodes[0].service.messages().route_count(), world.nodes[1].messages().len()),
        (3, 5)
    );
    world.nodes[1].takes = false;
    for priority in 2..5 {
        world.send(0, route(priority), ASYNC, vec![1]);
    }
    let refused = world.try_send(0, route(9), ASYNC, vec![1]);
    assert_eq!(refused, Err(SendError::Routes { count: 3 }));
    assert!(refused.unwrap_err().to_string().contains("3 routes"));
}

#[test]
fn who_lets_others_in_first_takes_the_room_of_those_who_rest() {
    let mut world = World::plain(4, |config| Config { incoming_max: 2, ..config });
    for end in [0, 1] {
        world.send(end, to(3), ASYNC, vec![end as u8]);
    }
    world.run_for(Duration::from_millis(100));
    // Nobody has rested for a second.
    let early = world.send(2, to(3), ASYNC, vec![2]);
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.outcome(2, early), Some(Outcome::Failed(Cause::LetGo(LetGo::Full))));
    world.run_for(Duration::from_secs(2));
    let later = world.send(2, to(3), ASYNC, vec![2]);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.outcome(2, later), Some(Outcome::Delivered));
    let counters = *world.nodes[3].service.messages().counters();
    assert_eq!((counters.refused, counters.rested, counters.taken), (1, 1, 3));
    // Who was sent away comes again with the next message.
    world.run_for(Duration::from_secs(2));
    let again = world.send(0, to(3), ASYNC, vec![0]);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.outcome(0, again), Some(Outcome::Delivered));
}

#[test]
fn without_a_context_of_xtp_messages_fail_at_once() {
    let mut world = World::plain(2, |config| config);
    let engine = dacapo_xtp::Config { contexts_max: 1, ..dacapo_xtp::Config::default() };
    world.engine_config = engine;
    world.restart(0);
    world.send(0, to(1), ASYNC, vec![1]);
    let ticket = world.send(0, to(1).with_priority(1), ASYNC, vec![1]);
    world.run_for(Duration::from_millis(1));
    let cause = Cause::NotOpened(OpenError::Full { count: 1 });
    assert_eq!(world.outcome(0, ticket), Some(Outcome::Failed(cause)));
    assert!(cause.to_string().contains("1 contexts"));
}

#[test]
fn the_urgent_are_sent_first_and_taken_first() {
    let mut world = World::plain(2, |config| config);
    world.nodes[1].takes = false;
    for priority in [9, 5, 1] {
        for number in 0..3 {
            let data = vec![priority as u8, number];
            world.send(0, to(1).with_priority(priority), ASYNC, data);
        }
    }
    world.run_for(Duration::from_millis(100));
    world.take(1);
    let order: Vec<Vec<u8>> = world.nodes[1].messages();
    let expected: Vec<Vec<u8>> = [1, 5, 9]
        .iter()
        .flat_map(|priority| (0..3).map(|number| vec![*priority, number]))
        .collect();
    assert_eq!(order, expected);
}

#[test]
fn long_messages_do_not_keep_the_urgent_waiting() {
    let traffic = dacapo_safenet::Traffic { rate: 1_000_000, burst: 10_000 };
    let mut world = World::plain(2, |config| config);
    world.nodes[0].service.set_traffic(world.now, to(1), traffic).unwrap();
    world.send(0, to(1), ASYNC, bytes(1_000_000, 1));
    world.run_for(Duration::from_millis(100));
    let urgent = world.send(0, to(1).with_priority(0), Mode::Synchronous, bytes(5_000, 2));
    world.run_for(Duration::from_millis(10));
    assert_eq!(world.outcome(0, urgent), Some(Outcome::Delivered));
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.nodes[0].service.messages().sums().delivered, 2);
}

#[test]
fn ports_are_mailboxes_of_their_own() {
    let mut world = World::plain(2, |config| config);
    world.nodes[1].takes = false;
    world.nodes[1].service.listen(8).unwrap();
    assert!(world.nodes[1].service.listen(8).is_err());
    world.send(0, Route { port: 8, ..to(1) }, ASYNC, b"eight".to_vec());
    world.send(0, to(1), ASYNC, b"seven".to_vec());
    world.run_for(Duration::from_millis(50));
    let now = world.now;
    let service = &mut world.nodes[1].service;
    for (port, data) in [(8, b"eight"), (PORT, b"seven")] {
        let part = service.get_message(now, port).unwrap();
        assert_eq!((&part.data[..], part.is_whole()), (&data[..], true));
        assert_eq!(service.get_message(now, port), None);
    }
}
