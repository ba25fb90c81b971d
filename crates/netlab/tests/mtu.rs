//! How long datagrams are: full size where the path carries it, and what every path carries where
//! not.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, ms, offer, offer_back, pattern};
use dacapo_path::{DATAGRAM_LEN_FULL, DATAGRAM_LEN_MIN};
use dacapo_wire::data::TYPE_DATA;
use std::sync::{Arc, Mutex};

/// Runs flows of large units both ways and returns the longest datagram of data.
fn longest(link: &str) -> usize {
    let mut lab = Lab::new(link);
    lab.pattern = pattern(300);
    (lab.pattern.len_min, lab.pattern.len_max) = (100, 9_000);
    let longest = Arc::new(Mutex::new(0));
    let seen = longest.clone();
    lab.world.observe(move |crossing| {
        if crossing.bytes.first() == Some(&TYPE_DATA) {
            let mut longest = seen.lock().unwrap();
            *longest = crossing.bytes.len().max(*longest);
        }
    });
    let modules = ["segment", "sequence", "checksum"];
    let mut flows = vec![offer("a", &modules), offer_back("b", &modules)];
    flows.iter_mut().for_each(|flow| flow.unit_len_max = 9_016);
    let joined = lab.start(flows);
    for flow in 0..2 {
        let (here, there) = lab.ledgers(&joined, flow, ms(5_000));
        assert_eq!((here.delivered, there.delivered), (300, 300), "over {link}, flow {flow}");
        assert_eq!((here.lost, here.duplicates), (0, 0));
    }
    lab.close(lab.participant, joined.here);
    lab.end_of(lab.participant, joined.here, ms(1_000));
    lab.check_empty();
    *longest.lock().unwrap()
}

#[test]
fn a_good_path_is_used_at_full_size() {
    assert_eq!(longest("delay=20ms"), DATAGRAM_LEN_FULL);
    assert_eq!(longest("delay=20ms,mtu=1452"), DATAGRAM_LEN_FULL);
}

#[test]
fn a_black_hole_for_long_datagrams_is_found_at_set_up() {
    for link in ["delay=20ms,mtu=1280", "delay=20ms,mtu=1451", "delay=300ms,mtu=1280"] {
        assert_eq!(longest(link), DATAGRAM_LEN_MIN, "over {link}");
    }
}

#[test]
fn a_black_hole_one_way_only_is_found_too() {
    for (from, to) in [(0, 1), (1, 0)] {
        let mut lab = Lab::new("delay=20ms");
        let nodes = [lab.creator, lab.participant];
        let narrow = "delay=20ms,mtu=1280".parse().unwrap();
        let now = lab.now();
        lab.world.link(nodes[from], nodes[to]).set_config(now, narrow).unwrap();
        lab.pattern = pattern(200);
        (lab.pattern.len_min, lab.pattern.len_max) = (1_000, 5_000);
        let mut flow = offer("a", &["segment", "sequence"]);
        flow.unit_len_max = 5_016;
        let joined = lab.start(vec![flow]);
        let (here, _) = lab.ledgers(&joined, 0, ms(5_000));
        assert_eq!(here.delivered, 200, "narrow from {from} to {to}");
    }
}

#[test]
fn a_graph_that_has_no_room_in_short_datagrams_is_refused_for_its_flow() {
    // 1,300 bytes fit a full datagram uncut, and not one of the least size.
    let mut lab = Lab::new("delay=20ms,mtu=1280");
    lab.pattern = pattern(10);
    let mut flow = offer("uncut", &["sequence"]);
    flow.unit_len_max = 1_300;
    lab.publish("test", vec![flow, offer("small", &["sequence"])]);
    let peer = lab.dial();
    let joined = lab.set_up(peer, "test");
    lab.activate(joined.here);
    assert!(lab.wait(ms(2_000), |lab| lab.ledger(lab.participant, joined.here, 1).is_some()));
    assert_eq!(joined.numbers(0).len(), 0);
    assert_eq!(joined.numbers(1).len(), 10);
}
