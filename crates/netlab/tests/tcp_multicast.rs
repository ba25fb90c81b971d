//! Flows with one sender and a stream to each participant: nothing is lost, and who falls behind is
//! cut off alone.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, code, ms, offer, pattern};
use dacapo_core::{Code, CoreEvent};
use dacapo_netlab::NodeId;
use dacapo_wire::session::FlowOffer;

const LINK: &str = "delay=20ms,jitter=2ms,loss=1%";
const UNITS: u64 = 3_000;

fn to_all(names: &[&str]) -> FlowOffer {
    FlowOffer { transport: 10, ..offer("cast", names) }
}

/// A session with a flow to the streams of all, and `count` participants.
fn set_up(count: usize, names: &[&str], len_max: usize) -> (Lab, Vec<(NodeId, Joined)>) {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(UNITS);
    (lab.pattern.len_min, lab.pattern.len_max) = (len_max, len_max);
    lab.give_up_after = ms(0);
    lab.publish("test", vec![FlowOffer { unit_len_max: 1_500, ..to_all(names) }]);
    let mut joined = Vec::new();
    for at in 0..count {
        if at > 0 {
            lab.participant = lab.add_participant();
        }
        let peer = lab.dial();
        let session = lab.set_up(peer, "test");
        joined.push((lab.participant, session));
    }
    (lab, joined)
}

fn activate(lab: &mut Lab, joined: &[(NodeId, Joined)]) {
    for (node, session) in joined {
        lab.participant = *node;
        lab.activate(session.here);
    }
}

fn check_whole(lab: &mut Lab, joined: &[(NodeId, Joined)]) {
    for (node, session) in joined {
        lab.participant = *node;
        let (here, there) = lab.ledgers(session, 0, ms(20_000));
        assert_eq!((here.delivered, there.delivered), (UNITS, UNITS), "{node:?}");
        assert_eq!(session.numbers(0), (0..UNITS).collect::<Vec<_>>(), "{node:?}");
    }
}

fn end(mut lab: Lab, joined: &[(NodeId, Joined)]) {
    for (node, session) in joined {
        lab.close(*node, session.here);
        assert_eq!(code(&lab.end_of(*node, session.here, ms(5_000))), None);
    }
    lab.check_empty();
}

#[test]
fn one_two_and_five_receivers_get_every_unit_over_streams() {
    for count in [1, 2, 5] {
        for names in [&[][..], &["checksum"], &["segment"]] {
            let (mut lab, joined) = set_up(count, names, 300);
            activate(&mut lab, &joined);
            check_whole(&mut lab, &joined);
            end(lab, &joined);
        }
    }
}

#[test]
fn who_comes_late_gets_the_rest_without_a_gap() {
    let (mut lab, mut joined) = set_up(2, &[], 300);
    activate(&mut lab, &joined);
    lab.run(ms(1_000));
    lab.participant = lab.add_participant();
    let peer = lab.dial();
    let late = lab.set_up(peer, "test");
    lab.activate(late.here);
    let node = lab.participant;
    check_whole(&mut lab, &joined);
    joined.push((node, late.clone()));
    lab.participant = joined[2].0;
    let (here, there) = lab.ledgers(&late, 0, ms(20_000));
    assert!((1_200..2_200).contains(&here.sent), "{here:?}");
    assert_eq!((here.delivered, there.delivered), (here.sent, here.sent), "nothing is lost");
    assert_eq!(late.numbers(0), (0..here.sent).collect::<Vec<_>>());
    end(lab, &joined);
}

#[test]
fn who_leaves_and_who_dies_is_nobody_elses_trouble() {
    let (mut lab, mut joined) = set_up(4, &[], 300);
    activate(&mut lab, &joined);
    lab.run(ms(500));
    let (node, left) = joined.remove(0);
    lab.close(node, left.here);
    assert_eq!(code(&lab.end_of(node, left.here, ms(5_000))), None);
    let (node, dead) = joined.remove(0);
    lab.world.kill(node);
    let creator = lab.creator;
    lab.end_of(creator, dead.there, ms(10_000));
    assert!(lab.ledger(creator, dead.there, 0).unwrap().closes());
    check_whole(&mut lab, &joined);
    for (node, session) in &joined {
        lab.close(*node, session.here);
        assert_eq!(code(&lab.end_of(*node, session.here, ms(5_000))), None);
    }
}

#[test]
fn one_whose_stream_breaks_is_told_and_the_others_go_on() {
    let (mut lab, mut joined) = set_up(3, &[], 300);
    activate(&mut lab, &joined);
    lab.run(ms(500));
    let creator = lab.creator;
    let (node, broken) = joined.remove(1);
    lab.world.break_streams(creator, node);
    lab.participant = node;
    let (here, there) = lab.ledgers(&broken, 0, ms(20_000));
    assert!(here.closes() && there.closes() && here.delivered < UNITS, "{here:?}");
    check_whole(&mut lab, &joined);
    joined.push((node, broken));
    end(lab, &joined);
}

#[test]
fn who_falls_behind_is_cut_off_alone() {
    // 3,000 units of 1,400 bytes, and a stream that takes nothing from half a second on.
    let (mut lab, joined) = set_up(3, &[], 1_400);
    lab.world.stream_capacity(64 * 1_024);
    activate(&mut lab, &joined);
    lab.run(ms(500));
    let (creator, slow) = (lab.creator, joined[1].0);
    lab.world.cut(creator, slow, true);
    let failed = |event: &CoreEvent| match event {
        CoreEvent::FlowFailed { error, .. } => Some(error.clone()),
        _ => None,
    };
    let (_, error) = lab.expect(creator, ms(20_000), failed);
    assert_eq!(error.code, Code::ContactLost);
    assert!(error.text.contains("1 MiB behind"), "{error}");
    lab.world.cut(creator, slow, false);
    lab.participant = slow;
    let (here, there) = lab.ledgers(&joined[1].1, 0, ms(20_000));
    assert!(here.closes() && there.closes() && here.sent < UNITS, "{here:?} {there:?}");
    let others = [joined[0].clone(), joined[2].clone()];
    check_whole(&mut lab, &others);
    end(lab, &joined);
}
