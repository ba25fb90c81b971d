//! Reliable groups: members that join, leave, lose, sleep and die.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::group::{GroupWorld, open};
use dacapo_base::Random;
use dacapo_link::{LinkConfig, Loss};
use dacapo_xtp::{Config, End, GroupPolicy, Leaving, Mode};
use std::time::Duration;

fn data(len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    Random::from_number(7).fill(&mut data);
    data
}

fn link(loss: f64) -> LinkConfig {
    LinkConfig {
        delay: Duration::from_millis(5),
        loss: Loss::Random { p: loss },
        ..LinkConfig::default()
    }
}

fn world(count: usize, loss: f64, len: usize) -> GroupWorld {
    let mut world = GroupWorld::new(1, Config::default(), &link(loss), data(len));
    (0..count).for_each(|_| world.listen(Mode::default()));
    world
}

#[test]
fn every_member_gets_every_byte() {
    let mut world = world(3, 0.0, 300_000);
    world.open(open().mode, &GroupPolicy::all_of(3));
    world.run();
    assert_eq!(world.end(), Some(End::Complete));
    for number in 0..3 {
        assert_eq!(world.check_bytes(number, 0, ""), 300_000);
        assert_eq!(world.hearers[number].end, Some(End::Complete));
        assert_eq!(world.left_as(number), Some(Leaving::Complete));
    }
    world.check_sums("");
}

#[test]
fn losses_are_made_good_for_all() {
    let mut world = world(3, 0.1, 300_000);
    world.open(open().mode, &GroupPolicy::all_of(3));
    world.run();
    assert_eq!(world.end(), Some(End::Complete), "{:?}", world.events);
    for number in 0..3 {
        assert_eq!(world.check_bytes(number, 0, ""), 300_000);
    }
    println!("{} packets, {:?}", world.sent.len(), world.now);
    world.check_sums("");
}
