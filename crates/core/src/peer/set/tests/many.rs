//! Many peers, whose questions are due at the same time.

use super::*;
use std::collections::BTreeMap;

const PEERS: u8 = 6;

/// A dialer that has greeted so many, with room for two questions at a time.
fn dialer() -> (Time, End) {
    let mut world = World::new();
    for number in 0..PEERS {
        world.listener = End::new(&format!("192.0.2.{}:19980", 10 + number), 10 + number);
        world.greet();
    }
    world.dialer.shared.queues.probes_max = 4;
    (world.now, world.dialer)
}

/// One look at all, and to whom questions went.
fn look(now: Time, dialer: &mut End) -> Vec<Address> {
    dialer.with(now, |peers, cx, out| peers.handle_timeout(cx, out));
    std::iter::from_fn(|| dialer.peers.poll_probe()).map(|(_, _, remote, ..)| remote).collect()
}

#[test]
fn however_many_questions_are_due_each_is_asked() {
    let (now, mut dialer) = dialer();
    let mut asked = BTreeMap::new();
    for _ in 0..3 {
        let remotes = look(now, &mut dialer);
        assert_eq!(remotes.len(), 2, "half of the room is for answers");
        remotes.into_iter().for_each(|remote| *asked.entry(remote).or_insert(0) += 1);
    }
    assert_eq!(asked.into_values().collect::<Vec<_>>(), [1; PEERS as usize]);
    assert_eq!(look(now, &mut dialer), [], "nothing more is due");
}

#[test]
fn where_more_is_always_due_than_there_is_room_for_peers_are_asked_in_turn() {
    let (now, mut dialer) = dialer();
    let mut asked = BTreeMap::new();
    for turn in 0..30 {
        let remotes = look(now + ms(1_000) * turn, &mut dialer);
        remotes.into_iter().for_each(|remote| *asked.entry(remote).or_insert(0) += 1);
    }
    assert_eq!(asked.into_values().collect::<Vec<_>>(), [10; PEERS as usize]);
}
