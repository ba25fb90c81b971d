//! However many associations are released at once, what waits to leave is bounded, and every peer
//! learns of the end.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::world::{World, address};
use dacapo_link::LinkConfig;
use dacapo_xtp::{Config, ContextId, End, Event, Listen, Message, Open};
use std::time::Duration;

const COUNT: usize = 1_000;
/// The most answers without a context that wait.
const ANSWERS_MAX: usize = 256;

#[test]
fn ends_of_what_is_released_at_once_are_bounded_and_told_later() {
    let link = LinkConfig { delay: Duration::from_millis(1), ..LinkConfig::default() };
    let mut world = World::new(1, Config::default(), &link);
    let listen = Listen { backlog_max: COUNT, ..Listen::on(7) };
    world.ends[1].listen(listen).unwrap();
    let open = Open::stream(address(1), ([192, 0, 2, 2], 7).into(), address(0));
    let near: Vec<ContextId> =
        (0..COUNT).map(|_| world.ends[0].open(world.now, &open).unwrap()).collect();
    let far_of = |event: &Event| match event {
        Event::Incoming { id, .. } => Some(*id),
        _ => None,
    };
    world.run_until(world.now + Duration::from_millis(100));
    let far: Vec<ContextId> = world.events[1].iter().filter_map(far_of).collect();
    assert_eq!(far.len(), COUNT);

    far.iter().for_each(|id| world.ends[1].release(world.now, *id).unwrap());
    let (mut packet, mut waiting) = (Vec::new(), Vec::new());
    while world.ends[1].poll_packet(world.now, &mut packet).is_some() {
        waiting.push(std::mem::take(&mut packet));
    }
    assert_eq!(waiting.len(), ANSWERS_MAX);
    for packet in waiting {
        world.ends[0].handle_packet(world.now, address(1), &packet);
    }

    // Who was not told is told when it says something.
    for id in &near {
        let _ = world.ends[0].write(world.now, *id, &Message::whole(b"hello"));
    }
    world.run_until(world.now + Duration::from_secs(20));
    let ends = near.iter().map(|id| world.ended(0, *id));
    assert_eq!(ends.filter(|end| *end == Some(End::Aborted)).count(), COUNT);
}
