//! Several participants of one session at once: each has a session of its own, and who leaves
//! leaves the others.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, code, ms, offer, offer_tcp, pattern};
use dacapo_core::Code;
use dacapo_netlab::NodeId;

const LINK: &str = "delay=20ms,jitter=2ms";
const UNITS: u64 = 3_000;

/// `count` participants of one session, each activated when it has joined.
fn running(count: usize) -> (Lab, Vec<(NodeId, Joined)>) {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(UNITS);
    lab.give_up_after = ms(0);
    let flows = vec![offer("datagrams", &["sequence", "checksum"]), offer_tcp("stream", &[])];
    lab.publish("test", flows);
    let mut joined = Vec::new();
    for at in 0..count {
        if at > 0 {
            lab.participant = lab.add_participant();
        }
        let peer = lab.dial();
        let session = lab.set_up(peer, "test");
        lab.activate(session.here);
        joined.push((lab.participant, session));
    }
    (lab, joined)
}

fn check_whole(lab: &mut Lab, node: NodeId, joined: &Joined) {
    lab.participant = node;
    for flow in 0..2 {
        let (here, there) = lab.ledgers(joined, flow, ms(10_000));
        assert_eq!((here.delivered, there.delivered), (UNITS, UNITS), "{node:?}, flow {flow}");
        assert_eq!(joined.numbers(flow), (0..UNITS).collect::<Vec<_>>(), "{node:?}");
    }
}

#[test]
fn one_leaves_in_order_and_the_others_get_everything() {
    let (mut lab, mut joined) = running(4);
    lab.run(ms(300));
    let (node, gone) = joined.remove(1);
    lab.close(node, gone.here);
    assert_eq!(code(&lab.end_of(node, gone.here, ms(2_000))), None);
    assert!(gone.numbers(1).len() > 200);
    for (node, session) in &joined {
        check_whole(&mut lab, *node, session);
        assert_eq!(lab.ended(*node, session.here), None);
        lab.close(*node, session.here);
        lab.end_of(*node, session.here, ms(2_000));
    }
    lab.check_empty();
}

#[test]
fn one_dies_and_the_others_get_everything() {
    let (mut lab, mut joined) = running(3);
    lab.run(ms(300));
    let (node, gone) = joined.remove(0);
    lab.world.kill(node);
    let ended = lab.end_of(lab.creator, gone.there, ms(5_000));
    assert_eq!(code(&ended), Some(Code::ContactLost));
    for (node, session) in &joined {
        check_whole(&mut lab, *node, session);
        lab.close(*node, session.here);
        assert_eq!(code(&lab.end_of(*node, session.here, ms(2_000))), None);
    }
}

#[test]
fn one_whose_stream_breaks_loses_its_flow_and_the_others_nothing() {
    let (mut lab, joined) = running(3);
    lab.run(ms(300));
    let (creator, broken) = (lab.creator, joined[2].0);
    lab.world.break_streams(creator, broken);
    for (node, session) in &joined[..2] {
        check_whole(&mut lab, *node, session);
    }
    lab.participant = broken;
    let (here, there) = lab.ledgers(&joined[2].1, 1, ms(1_000));
    assert!(here.closes() && there.closes() && here.delivered < UNITS, "{here:?}");
    let (here, _) = lab.ledgers(&joined[2].1, 0, ms(5_000));
    assert_eq!(here.delivered, UNITS, "its flow on datagrams goes on");
}
