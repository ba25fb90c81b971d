//! Receivers of a group that grant for themselves (`credit`, `window`): who is slow holds up all,
//! loses, or holds them up for two seconds, as the flow says.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use common::cast::{Cast, UNITS, set_up_with, to_group};
use common::ms;
use common::places::with_places;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const NAMES: &[&str] = &["credit", "segment", "nak-group", "checksum"];

/// Room for so many units at each receiver.
const ROOM: u64 = 128;

/// A group of whom the last has places when it is given some.
struct Rig {
    cast: Cast,
    places: Arc<AtomicU64>,
}

impl Rig {
    fn new(slow: u64, names: &[&str]) -> Self {
        let mut flow = to_group(names);
        flow.graph.nodes[0].params = vec![(0, ROOM), (1, slow)];
        let mut cast = set_up_with(2, flow);
        cast.lab.participant = cast.lab.add_participant();
        let mut places = None;
        cast.join_as(|ports| places = Some(with_places(ports)));
        let mut rig = Self { cast, places: places.unwrap() };
        rig.cast.activate_all();
        rig
    }

    /// The last has so many places more, and says so.
    fn give(&mut self, places: u64) {
        self.places.fetch_add(places, Ordering::Relaxed);
        let (node, session) = self.cast.joined[2].clone();
        let now = self.cast.lab.now();
        self.cast.lab.world.core(node).wake(now, session.here, 0);
    }

    /// For so many times 100 ms it is given so many.
    fn give_for(&mut self, times: u64, places: u64) {
        for _ in 0..times {
            self.give(places);
            self.cast.lab.run(ms(100));
        }
    }

    fn came(&self, at: usize) -> u64 {
        self.cast.numbers(at).len() as u64
    }

    /// What both ends say of a member's flow, once the slow one has all the room there is.
    fn end(mut self, expected: [std::ops::RangeInclusive<u64>; 3]) {
        self.give(1 << 40);
        for (at, expected) in expected.into_iter().enumerate() {
            let ledger = self.cast.account(at);
            assert!(expected.contains(&ledger.delivered), "{at}: {ledger:?}");
        }
        self.cast.end();
    }
}

#[test]
fn all_wait_for_who_is_slow() {
    for names in [NAMES, &["credit", "segment", "checksum"]] {
        let mut rig = Rig::new(1, names);
        // 100 each second, of 1,000 that there are.
        rig.give_for(50, 10);
        let most = 500 + ROOM;
        assert!((450..=500).contains(&rig.came(2)), "{}", rig.came(2));
        for at in 0..2 {
            assert!((450..=most).contains(&rig.came(at)), "{at}: {}", rig.came(at));
        }
        rig.end([UNITS..=UNITS, UNITS..=UNITS, UNITS..=UNITS]);
    }
}

#[test]
fn who_is_slow_loses_and_nobody_waits() {
    let mut rig = Rig::new(2, NAMES);
    rig.give_for(35, 10);
    assert_eq!((rig.came(0), rig.came(1)), (UNITS, UNITS), "after three seconds and a half");
    assert!((250..=350).contains(&rig.came(2)), "{}", rig.came(2));
    rig.end([UNITS..=UNITS, UNITS..=UNITS, 250..=350 + ROOM]);
}

#[test]
fn who_is_slow_for_two_seconds_holds_nobody_up_any_more() {
    let mut rig = Rig::new(3, NAMES);
    rig.give_for(1, 100);
    rig.cast.lab.run(ms(1_400));
    assert!((100..=100 + ROOM).contains(&rig.came(0)), "it is waited for: {}", rig.came(0));
    rig.cast.lab.run(ms(4_000));
    assert_eq!((rig.came(0), rig.came(1)), (UNITS, UNITS), "and then no longer");
    assert_eq!(rig.came(2), 100);
    // And the first for which there was room again.
    rig.end([UNITS..=UNITS, UNITS..=UNITS, 100..=101 + ROOM]);
}
