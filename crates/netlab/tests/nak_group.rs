//! Receivers of a group that say what they lack (`nak-group`): all of them get everything, for a
//! few packets more, and nobody else can ask.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::cast::{Cast, UNITS, set_up};
use common::{Lab, ms, offer, pattern};
use dacapo_link::LinkConfig;
use dacapo_transport::TrafficClass;
use dacapo_wire::data;
use dacapo_wire::group_repair::{Ask, Said};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const NAMES: [&str; 3] = ["segment", "nak-group", "checksum"];

/// Participants behind links that lose so much, and how many datagrams of data they send.
fn lossy(count: usize, loss: &str) -> (Cast, Arc<AtomicU64>) {
    let mut cast = set_up(count, &NAMES);
    let creator = cast.lab.creator;
    let link: LinkConfig = format!("delay=20ms,jitter=2ms,loss={loss}").parse().unwrap();
    for (node, _) in cast.joined.clone() {
        cast.lab.world.relink(creator, node, link.clone());
    }
    let asked = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&asked);
    cast.lab.world.observe(move |crossing| {
        let is_data = crossing.lane == TrafficClass::Data && crossing.bytes.first() == Some(&0x80);
        counter.fetch_add(u64::from(is_data && crossing.node != creator), Ordering::Relaxed);
    });
    (cast, asked)
}

#[test]
fn each_of_five_receivers_gets_what_it_has_lost() {
    let (mut cast, asked) = lossy(5, "2%");
    cast.activate_all();
    for at in 0..5 {
        let ledger = cast.account(at);
        assert_eq!((ledger.sent, ledger.delivered), (UNITS, UNITS), "{at}: {ledger:?}");
    }
    // 300 packets are lost at all of them; 150 blocks or so.
    let asked = asked.load(Ordering::Relaxed);
    assert!((50..600).contains(&asked), "{asked}");
    cast.end();
}

#[test]
fn a_flow_to_one_receiver_may_have_it_too() {
    let mut lab = Lab::new("delay=20ms,jitter=2ms,loss=2%");
    lab.pattern = pattern(UNITS);
    lab.publish("test", vec![offer("flow", &NAMES)]);
    let peer = lab.dial();
    let joined = lab.set_up(peer, "test");
    lab.activate(joined.here);
    let (here, there) = lab.ledgers(&joined, 0, ms(10_000));
    assert_eq!((here.sent, here.delivered, there.delivered), (UNITS, UNITS, UNITS), "{here:?}");
}

#[test]
fn who_takes_no_part_is_not_heard() {
    let mut cast = set_up(1, &NAMES);
    let sent = Arc::new(Mutex::new(Vec::new()));
    let (creator, seen) = (cast.lab.creator, Arc::clone(&sent));
    cast.lab.world.observe(move |crossing| {
        if crossing.lane == TrafficClass::Data && crossing.bytes.first() == Some(&0x80) {
            seen.lock().unwrap().push((crossing.node, crossing.bytes.to_vec()));
        }
    });
    cast.activate_all();
    cast.lab.run(ms(500));
    let head = sent.lock().unwrap()[0].1[..data::LEN].to_vec();
    let said = Said::Asked { answer_ms: 0, echo: 1, count: 1 }.emit();
    let ask = [&head[..], &said, &Ask { block: 3, have: 0, rows: 0 }.emit()].concat();
    // Below it stands the checksum, of which nobody checks that it is there.
    let before = cast.lab.world.core(creator).counters().unknown_label;
    for _ in 0..50 {
        cast.lab.world.inject(creator, "192.0.2.77:9".parse().unwrap(), &ask);
        cast.lab.run(ms(1));
    }
    assert_eq!(cast.lab.world.core(creator).counters().unknown_label, before + 50);
    assert_eq!(cast.account(0).delivered, UNITS);
    let sent = sent.lock().unwrap();
    assert!(sent.iter().all(|(node, _)| *node == creator), "who misses nothing asks for nothing");
    // Each unit, and how the last blocks have ended.
    assert!(sent.len() as u64 <= UNITS + 160, "{}", sent.len());
    drop(sent);
    cast.end();
}

#[test]
fn who_joins_late_asks_for_nothing_that_was_before() {
    let (mut cast, asked) = lossy(1, "0%");
    cast.activate_all();
    cast.lab.run(ms(700));
    cast.lab.participant = cast.lab.add_participant();
    cast.join();
    let (node, session) = cast.joined[1].clone();
    cast.lab.participant = node;
    cast.lab.activate(session.here);
    for at in 0..2 {
        let ledger = cast.account(at);
        assert!(ledger.closes() && ledger.delivered >= ledger.sent - 40, "{at}: {ledger:?}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    cast.end();
}
