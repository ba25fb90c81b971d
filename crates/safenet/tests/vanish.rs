//! A peer that vanishes, or starts anew, in every state: each ticket ends once, with what is known.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::world::{World, bytes, to};
use dacapo_safenet::{Cause, Config, Ending, Mode, Outcome};
use dacapo_xtp::End;
use std::time::Duration;

const ASYNC: Mode = Mode::Asynchronous;
const TIMED_OUT: Cause = Cause::Ended(End::TimedOut);

/// Everything has an end, and nothing is left of the peer.
fn all_over(world: &mut World, end: usize) {
    world.run_for(Duration::from_secs(200));
    let service = &world.nodes[end].service;
    assert_eq!(service.messages().sums().open, 0, "{:?}", service.messages().sums());
    assert!(service.messages().is_quiet() && service.engine().context_count() == 0);
}

#[test]
fn a_peer_that_never_answers_leaves_what_was_sent_unknown_and_what_was_not_failed() {
    let mut world = World::plain(2, |config| config);
    world.nodes[1].is_gone = true;
    let sent = world.send(0, to(1), ASYNC, bytes(10, 1));
    let long = world.send(0, to(1), ASYNC, bytes(1 << 19, 2));
    let waits = world.send(0, to(1), ASYNC, bytes(10, 3));
    all_over(&mut world, 0);
    assert_eq!(world.outcome(0, sent), Some(Outcome::Unknown(TIMED_OUT)));
    assert_eq!(world.outcome(0, long), Some(Outcome::Failed(TIMED_OUT)), "not all of it was sent");
    assert_eq!(world.outcome(0, waits), Some(Outcome::Failed(TIMED_OUT)));
}

#[test]
fn a_peer_that_vanishes_while_a_message_is_on_its_way_leaves_it_unknown() {
    let mut world = World::plain(2, |config| config);
    let first = world.send(0, to(1), Mode::Synchronous, vec![1]);
    world.run_for(Duration::from_millis(50));
    world.nodes[1].is_gone = true;
    let second = world.send(0, to(1), Mode::Synchronous, vec![2]);
    all_over(&mut world, 0);
    assert_eq!(world.outcome(0, first), Some(Outcome::Delivered));
    assert_eq!(world.outcome(0, second), Some(Outcome::Unknown(TIMED_OUT)));
}

#[test]
fn a_peer_that_vanishes_with_messages_it_has_not_taken_leaves_them_unknown() {
    let mut world = World::plain(2, |config| config);
    world.nodes[1].takes = false;
    let ticket = world.send(0, to(1), ASYNC, vec![1]);
    world.run_for(Duration::from_secs(1));
    world.nodes[1].is_gone = true;
    all_over(&mut world, 0);
    assert_eq!(world.outcome(0, ticket), Some(Outcome::Unknown(TIMED_OUT)));
}

#[test]
fn a_resting_peer_that_vanishes_is_forgotten_and_asked_again() {
    let mut world = World::plain(2, |config| config);
    world.send(0, to(1), ASYNC, vec![1]);
    world.run_for(Duration::from_secs(1));
    world.nodes[1].is_gone = true;
    all_over(&mut world, 0);
    world.restart(1);
    world.nodes[1].is_gone = false;
    let ticket = world.send(0, to(1), ASYNC, vec![2]);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.outcome(0, ticket), Some(Outcome::Delivered));
}

#[test]
fn a_peer_that_vanishes_while_it_closes_is_let_go() {
    let mut world = World::plain(2, |config| config);
    world.send(0, to(1), ASYNC, vec![1]);
    world.run_for(Duration::from_millis(60_020));
    world.nodes[1].is_gone = true;
    all_over(&mut world, 0);
    assert_eq!(world.nodes[0].service.messages().sums().delivered, 1);
}

#[test]
fn a_peer_that_starts_anew_gets_what_was_not_written_yet() {
    let mut world = World::plain(2, |config| config);
    world.nodes[1].takes = false;
    let data = |number: u64| bytes(50_000, number);
    let tickets: Vec<_> = (0..6).map(|number| world.send(0, to(1), ASYNC, data(number))).collect();
    world.run_for(Duration::from_secs(1));
    world.restart(1);
    world.nodes[1].takes = true;
    all_over(&mut world, 0);
    let outcomes: Vec<Outcome> =
        tickets.iter().map(|ticket| world.outcome(0, *ticket).unwrap()).collect();
    let kinds: Vec<u8> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Outcome::Unknown(_) => 0,
            Outcome::Failed(_) => 1,
            Outcome::Delivered => 2,
            Outcome::Sent | Outcome::Reached { .. } => 3,
        })
        .collect();
    assert!(kinds.is_sorted() && kinds.contains(&0) && kinds.contains(&2), "{outcomes:?}");
    let failed = kinds.iter().filter(|kind| **kind == 1).count();
    assert!(failed <= 1, "only the one that was written in part: {outcomes:?}");
    let delivered = kinds.iter().filter(|kind| **kind == 2).count();
    let expected: Vec<Vec<u8>> = (6 - delivered as u64..6).map(data).collect();
    assert!(world.nodes[1].messages() == expected);
}

#[test]
fn a_sender_that_vanishes_in_the_middle_of_a_message_breaks_it_off() {
    let mut world = World::plain(2, |config| Config { part_len_max: 10_000, ..config });
    world.nodes[1].takes = false;
    world.send(0, to(1), ASYNC, bytes(1 << 20, 1));
    world.run_for(Duration::from_millis(100));
    let now = world.now;
    let part = world.nodes[1].service.get_message(now, common::world::PORT).unwrap();
    assert_eq!(part.ending, Ending::More);
    world.nodes[1].parts.push(part);
    world.nodes[0].is_gone = true;
    world.nodes[1].takes = true;
    all_over(&mut world, 1);
    let last = world.nodes[1].parts.last().unwrap();
    assert_eq!((last.ending, last.data.len()), (Ending::Broken, 0));
    assert!(world.nodes[1].messages().is_empty());
    assert_eq!(world.nodes[1].service.messages().counters().broken, 1);
    assert_eq!(world.nodes[1].service.messages().incoming_count(), 0);
}

#[test]
fn a_sender_that_vanishes_before_anything_was_taken_is_forgotten() {
    let mut world = World::plain(2, |config| config);
    world.send(0, to(1), ASYNC, bytes(100, 1));
    world.run_for(Duration::from_millis(100));
    world.nodes[0].is_gone = true;
    all_over(&mut world, 1);
    assert_eq!(world.nodes[1].service.messages().incoming_count(), 0);
}

#[test]
fn messages_of_a_sender_that_vanished_can_still_be_taken() {
    let mut world = World::plain(2, |config| config);
    world.nodes[1].takes = false;
    for number in 0..5 {
        world.send(0, to(1), ASYNC, bytes(1_000, number));
    }
    world.run_for(Duration::from_millis(100));
    world.nodes[0].is_gone = true;
    world.run_for(Duration::from_secs(100));
    world.take(1);
    assert_eq!(world.nodes[1].messages().len(), 5);
    all_over(&mut world, 1);
    let messages = world.nodes[1].service.messages();
    assert_eq!((messages.counters().taken, messages.counters().broken), (5, 0));
    assert_eq!(messages.incoming_count(), 0);
}
