//! Which flow sends first when several have something: the one of the higher priority, and equals
//! in turn. What those below get all the same is seen in `shares.rs`; here they ask for no share.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, ms, offer, pattern};
use dacapo_base::Time;
use dacapo_packet::TRAIN_SEGMENTS_MAX;
use dacapo_wire::attribute::{AttributeForm, key};
use dacapo_wire::data::{self, TYPE_DATA};
use dacapo_wire::session::FlowOffer;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A link that is narrower than what the flows have.
const LINK: &str = "delay=20ms,rate=4Mbit/s";

fn flow(name: &str, priority: Option<i64>) -> FlowOffer {
    let asked = |key, min| AttributeForm { key, min: Some(min), max: None, weight: None };
    let priority = priority.map(|min| asked(key::PRIORITY, min));
    FlowOffer {
        attributes: priority.into_iter().chain([asked(key::SHARE, 0)]).collect(),
        ..offer(name, &[])
    }
}

/// What went out at each instant: the flows by their places, in order.
fn order(flows: Vec<FlowOffer>) -> BTreeMap<Time, Vec<usize>> {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(300);
    // Several units of every flow are due at the same instants.
    lab.pattern.every = ms(0);
    lab.pattern.len_min = 300;
    let count = flows.len();
    lab.publish("test", flows);
    let peer = lab.dial();
    let joined = lab.set_up(peer, "test");
    let sent = Arc::new(Mutex::new(Vec::new()));
    let (kept, creator) = (sent.clone(), lab.creator);
    lab.world.observe(move |crossing| {
        if crossing.node == creator && crossing.bytes.first() == Some(&TYPE_DATA) {
            let label = data::Header::parse(crossing.bytes).unwrap().label;
            // A unit begins with its number, behind the label and the unit's header.
            let number = crossing.bytes[9..17].try_into().unwrap();
            kept.lock().unwrap().push((crossing.now, label, u64::from_be_bytes(number)));
        }
    });
    lab.activate(joined.here);
    lab.run(ms(3_000));
    let sent = sent.lock().unwrap();
    // Whose label it is shows in what each sink got: flows take turns in one order at the start.
    let mut labels: Vec<u32> = Vec::new();
    for (_, label, number) in sent.iter() {
        if *number == 0 && !labels.contains(label) {
            labels.push(*label);
        }
    }
    assert_eq!(labels.len(), count, "every flow has sent");
    let mut order: BTreeMap<Time, Vec<usize>> = BTreeMap::new();
    for (at, label, _) in sent.iter() {
        let place = labels.iter().position(|known| known == label).unwrap();
        order.entry(*at).or_default().push(place);
    }
    order
}

#[test]
fn the_higher_priority_goes_first_at_every_instant() {
    // In the session: 0 nothing asked, 1 priority 7, 2 priority 3. First to send: 7, 3, none.
    let order = order(vec![flow("none", None), flow("high", Some(7)), flow("middle", Some(3))]);
    let several = order.values().filter(|places| places.contains(&0) && places.contains(&2));
    assert!(several.count() > 5, "they met");
    for (at, places) in &order {
        assert!(places.is_sorted(), "{at:?}: {places:?}");
    }
}

#[test]
fn equals_take_turns_below_and_above_another() {
    let order = order(vec![
        flow("a", Some(2)),
        flow("top", Some(5)),
        flow("b", Some(2)),
        flow("beyond", Some(100)),
        flow("c", Some(2)),
    ]);
    // Beyond 7 is 7; then 5; then the three equals, in the order of the session.
    for (at, places) in &order {
        let of_equals: Vec<usize> = places.iter().copied().filter(|place| *place >= 2).collect();
        let above = places.len() - of_equals.len();
        assert!(places[..above].iter().all(|place| *place < 2), "{at:?}: {places:?}");
        assert!(places[..above].is_sorted(), "{at:?}: {places:?}");
        // What a flow has waiting may leave as one train, which is one turn, and before it what is
        // left of 1,500 bytes.
        let turns: Vec<&[usize]> = of_equals.chunk_by(|one, next| one == next).collect();
        assert!(
            turns.iter().all(|turn| turn.len() <= TRAIN_SEGMENTS_MAX + 1_500 / 300),
            "{at:?}: {places:?}"
        );
        for pair in turns.windows(2) {
            let next = if pair[0][0] == 4 { 2 } else { pair[0][0] + 1 };
            assert_eq!(pair[1][0], next, "{at:?}: {places:?}");
        }
    }
    let rounds = order.values().map(Vec::len).max();
    assert!(rounds.unwrap() > 10, "there was something to take turns for: {rounds:?}");
}
