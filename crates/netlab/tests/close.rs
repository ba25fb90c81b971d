//! A session is closed by either end or both, in every state: it ends once at each, and nothing is
//! left.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, code, ms, offer, offer_back, pattern, plain};
use dacapo_core::{Code, Command, CoreEvent, Ending, SessionId};
use dacapo_netlab::NodeId;
use dacapo_netlab::traffic::Record;
use dacapo_wire::data::{self, TYPE_DATA};
use std::sync::{Arc, Mutex};

const LINK: &str = "delay=20ms,jitter=3ms";

fn running(link: &str) -> (Lab, Joined) {
    let mut lab = Lab::new(link);
    lab.pattern = pattern(20_000);
    let mut flows = plain();
    flows.push(offer_back("back", &["sequence", "checksum"]));
    let joined = lab.start(flows);
    lab.run(ms(500));
    (lab, joined)
}

/// Both ends end once without an error, and the books are closed.
fn check_closed(lab: &mut Lab, joined: &Joined, lossless: bool) {
    for (node, session) in [(lab.participant, joined.here), (lab.creator, joined.there)] {
        let ended = lab.end_of(node, session, ms(5_000));
        assert_eq!(code(&ended), None, "{node:?}: {:?}", ended.1);
    }
    lab.run(ms(500));
    for node in [lab.participant, lab.creator] {
        let ends = lab.count(node, |event| matches!(event, CoreEvent::SessionEnded { .. }));
        assert_eq!(ends, 1, "{node:?}: what crosses the end begins no other session");
    }
    for flow in 0..2 {
        let (here, there) = lab.ledgers(joined, flow, ms(0));
        assert!(here.closes() && there.closes(), "flow {flow}: {here:?} {there:?}");
        assert_eq!((here.unknown, there.unknown), (0, 0), "flow {flow}: both ends are alive");
        assert_eq!((here.sent, here.delivered), (there.sent, there.delivered), "flow {flow}");
        assert!(here.sent > 400, "flow {flow}: {here:?}");
        if lossless {
            assert_eq!(here.delivered, here.sent, "flow {flow}: what was sent has come");
        }
    }
    check_order(&joined.seen[0].as_ref().unwrap().record());
    check_order(&lab.sinks.lock().unwrap()[0].record());
    lab.check_empty();
}

fn check_order(record: &Record) {
    assert!(record.numbers.windows(2).all(|pair| pair[0] < pair[1]));
    let normal = matches!(record.ending, Some(Ending::Complete | Ending::Closed));
    assert!(normal, "{:?}", record.ending);
}

#[test]
fn either_end_or_both_at_one_instant_may_close_in_the_middle() {
    for (by_participant, by_creator) in [(true, false), (false, true), (true, true)] {
        let (mut lab, joined) = running(LINK);
        if by_participant {
            lab.close(lab.participant, joined.here);
        }
        if by_creator {
            lab.close(lab.creator, joined.there);
        }
        check_closed(&mut lab, &joined, true);
    }
}

#[test]
fn closes_that_cross_within_a_round_trip_end_once() {
    for apart in 1..60 {
        let (mut lab, joined) = running(LINK);
        lab.close(lab.participant, joined.here);
        lab.run(ms(apart));
        if lab.ended(lab.creator, joined.there).is_none() {
            lab.close(lab.creator, joined.there);
        }
        check_closed(&mut lab, &joined, true);
    }
}

#[test]
fn closing_over_a_bad_link_leaves_nothing_unknown() {
    for seed in 0..20 {
        let link = "loss=10%,delay=20ms,jitter=5ms,dup=5%,reorder=3%";
        let mut lab = Lab::with(seed, link, common::config(), common::config());
        lab.pattern = pattern(20_000);
        let mut flows = plain();
        flows.push(offer_back("back", &["sequence", "checksum"]));
        let joined = lab.start(flows);
        lab.run(ms(600));
        lab.close(lab.participant, joined.here);
        if seed % 2 == 0 {
            lab.close(lab.creator, joined.there);
        }
        check_closed(&mut lab, &joined, false);
    }
}

#[test]
fn what_was_fed_into_a_slow_flow_goes_out_before_its_end() {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(3_000);
    lab.pattern.every = ms(0);
    (lab.pattern.len_min, lab.pattern.len_max) = (90_000, 100_000);
    let mut flow = offer("slow", &["segment", "sequence"]);
    (flow.bound_bps, flow.unit_len_max) = (1_000_000, 100_016);
    let joined = lab.start(vec![flow]);
    lab.run(ms(2_000));
    lab.close(lab.creator, joined.there);
    let (here, there) = lab.ledgers(&joined, 0, ms(6_000));
    assert!(here.closes() && there.closes(), "{here:?} {there:?}");
    assert_eq!((here.lost, here.unknown), (0, 0), "{here:?}");
    assert!(here.delivered >= 2, "{here:?}");
    assert_eq!(code(&lab.end_of(lab.participant, joined.here, ms(1_000))), None);
    lab.check_empty();
}

#[test]
fn a_flow_that_is_slower_than_its_close_may_wait_loses_the_rest_and_says_so() {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(10);
    lab.pattern.every = ms(0);
    (lab.pattern.len_min, lab.pattern.len_max) = (90_000, 100_000);
    let mut flow = offer("slow", &["segment", "sequence"]);
    (flow.bound_bps, flow.unit_len_max) = (10_000, 100_016);
    let joined = lab.start(vec![flow]);
    lab.run(ms(1_000));
    let since = lab.now();
    lab.close(lab.participant, joined.here);
    let ended = lab.end_of(lab.participant, joined.here, ms(9_000));
    assert_eq!(code(&ended), None);
    assert!(ended.0.since(since) < ms(7_000), "{:?}", ended.0);
    let (here, there) = lab.ledgers(&joined, 0, ms(0));
    assert_eq!((here.sent, here.lost, here.unknown), (1, 1, 0), "{there:?}");
    lab.check_empty();
}

/// The states of the set-up, by what has happened at the participant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reached {
    Joining,
    Offered,
    Answering,
    Ready,
    Activating,
    Active,
    Deactivating,
}

const STATES: [Reached; 7] = [
    Reached::Joining,
    Reached::Offered,
    Reached::Answering,
    Reached::Ready,
    Reached::Activating,
    Reached::Active,
    Reached::Deactivating,
];

/// Brings a session to a state, and `later` after it.
fn reach(lab: &mut Lab, state: Reached, later: u64) -> SessionId {
    lab.publish("test", vec![plain().remove(0), offer_back("back", &[])]);
    let peer = lab.dial();
    let here = lab.join(peer, "test");
    if state != Reached::Joining {
        let flows = lab.offered(here);
        // The data path opens, so that the answer goes out at once.
        lab.run(ms(100));
        if state != Reached::Offered {
            lab.answer(here, &flows);
            if state != Reached::Answering {
                lab.expect(lab.participant, ms(500), |event| {
                    matches!(event, CoreEvent::Ready { .. }).then_some(())
                });
            }
        }
    }
    let now = lab.now();
    if matches!(state, Reached::Activating) {
        lab.world.core(lab.participant).handle_command(now, Command::Activate(here)).unwrap();
    }
    if matches!(state, Reached::Active | Reached::Deactivating) {
        lab.activate(here);
    }
    if state == Reached::Deactivating {
        let now = lab.now();
        lab.world.core(lab.participant).handle_command(now, Command::Deactivate(here)).unwrap();
    }
    lab.run(ms(later));
    here
}

/// Whatever was reported, each session ended once, closed or without an error, and the books close.
fn check_over(lab: &mut Lab, what: &str) {
    lab.run(ms(1_500));
    for (node, when, event) in &lab.log {
        match event {
            CoreEvent::SessionEnded { error: Some(error), .. } => {
                assert_eq!(error.code, Code::Closed, "{what}: {node:?} at {when:?}: {error}");
            }
            CoreEvent::FlowEnded { ledger, .. } => {
                assert!(ledger.closes(), "{what}: {node:?}: {ledger:?}");
                assert_eq!(ledger.unknown, 0, "{what}: {node:?}: {ledger:?}");
            }
            _ => {}
        }
    }
    for node in [NodeId(0), NodeId(1)] {
        let ended = lab.count(node, |event| matches!(event, CoreEvent::SessionEnded { .. }));
        assert_eq!(ended, 1, "{what}: {node:?}: {:#?}", lab.log);
    }
    lab.check_empty();
}

#[test]
fn the_participant_may_close_in_every_state() {
    for state in STATES {
        for later in [0, 10, 30] {
            let mut lab = Lab::new(LINK);
            let here = reach(&mut lab, state, later);
            lab.close(lab.participant, here);
            check_over(&mut lab, &format!("{state:?} + {later} ms"));
        }
    }
}

#[test]
fn the_creator_may_close_in_every_state() {
    for state in STATES {
        for later in [0, 10, 30] {
            let mut lab = Lab::new(LINK);
            reach(&mut lab, state, later);
            let there = lab.world.core(lab.creator).sessions().map(|(id, ..)| id).next();
            // It has not heard of a session that is being joined just now.
            let Some(there) = there else { continue };
            lab.close(lab.creator, there);
            check_over(&mut lab, &format!("{state:?} + {later} ms"));
        }
    }
}

#[test]
fn a_second_close_changes_nothing() {
    let (mut lab, joined) = running(LINK);
    lab.close(lab.participant, joined.here);
    lab.close(lab.participant, joined.here);
    lab.run(ms(10));
    lab.close(lab.participant, joined.here);
    check_closed(&mut lab, &joined, true);
    let now = lab.now();
    let over = lab
        .world
        .core(lab.participant)
        .handle_command(now, Command::Close(joined.here))
        .unwrap_err();
    assert_eq!(over.code, Code::NoSuchThing);
}

#[test]
fn labels_of_a_closed_session_are_known_as_old_and_not_as_unknown() {
    let (mut lab, joined) = running(LINK);
    let last = Arc::new(Mutex::new(Vec::new()));
    let (kept, creator) = (last.clone(), lab.creator);
    lab.world.observe(move |crossing| {
        if crossing.node == creator && crossing.bytes.first() == Some(&TYPE_DATA) {
            *kept.lock().unwrap() = crossing.bytes.to_vec();
        }
    });
    lab.run(ms(100));
    let datagram = last.lock().unwrap().clone();
    assert!(data::Header::parse(&datagram).is_ok());
    lab.close(lab.participant, joined.here);
    check_closed(&mut lab, &joined, true);
    let before = lab.world.core(lab.participant).counters();
    let from = lab.world.address(lab.creator);
    lab.world.inject(lab.participant, from, &datagram);
    let after = lab.world.core(lab.participant).counters();
    assert_eq!(after.old_label, before.old_label + 1);
    assert_eq!(after.unknown_label, before.unknown_label);
    // After two minutes and another use of labels it is forgotten.
    lab.run(ms(121_000));
    let peer = lab.dial();
    lab.set_up(peer, "test");
    lab.world.inject(lab.participant, from, &datagram);
    assert_eq!(lab.world.core(lab.participant).counters().unknown_label, after.unknown_label + 1);
}

/// What a flow says with its last packet waits for nobody's timer; that of an acknowledgement would
/// be 25 ms.
#[test]
fn a_flow_that_has_ended_is_accounted_for_within_its_round_trip() {
    for count in [1, 2, 5, 20, 50, 101] {
        let mut lab = Lab::new("delay=1ms");
        lab.pattern = pattern(count);
        let joined = lab.start(plain());
        let seen = joined.seen[0].as_ref().unwrap();
        let have_come = lab.wait(ms(1_000), |_| seen.record().numbers.len() as u64 == count);
        assert!(have_come, "{count} units have not come");
        let (here, there) = lab.ledgers(&joined, 0, ms(4));
        assert_eq!((here.delivered, there.delivered), (count, count));
    }
}
