//! The stream of a running flow ends: both ends end the flow with a reason, and the books close.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, code, config, ms, offer, offer_tcp, pattern};
use dacapo_core::{Code, Command, CoreEvent, Ending, Ledger};
use dacapo_netlab::NodeId;
use dacapo_wire::session::{Direction, FlowOffer};

const LINK: &str = "delay=20ms,jitter=3ms";

/// Flow 0 to the participant and flow 1 back on streams, flow 2 on datagrams.
fn running(seed: u64) -> (Lab, Joined) {
    let mut lab = Lab::with(seed, LINK, config(), config());
    lab.pattern = pattern(20_000);
    let flows = vec![
        offer_tcp("down", &["segment"]),
        FlowOffer { direction: Direction::ToCreator, ..offer_tcp("up", &[]) },
        offer("datagrams", &["sequence", "checksum"]),
    ];
    let joined = lab.start(flows);
    lab.run(ms(300 + seed * 7));
    (lab, joined)
}

fn failures(lab: &Lab, node: NodeId, flow: usize) -> Vec<(Code, String)> {
    let of_flow = lab.log.iter().filter_map(|(at, _, event)| match event {
        CoreEvent::FlowFailed { flow: failed, error, .. } if (*at, *failed) == (node, flow) => {
            Some((error.code, error.text.clone()))
        }
        _ => None,
    });
    of_flow.collect()
}

fn check_books(here: &Ledger, there: &Ledger, what: &str) {
    assert!(here.closes() && there.closes(), "{what}: {here:?} {there:?}");
    assert_eq!((here.sent, here.delivered), (there.sent, there.delivered), "{what}");
    assert_eq!((here.lost, here.unknown), (there.lost, there.unknown), "{what}");
    assert!(here.delivered > 200, "{what}: {here:?}");
}

#[test]
fn a_broken_stream_ends_its_flow_at_both_ends_and_leaves_the_others() {
    let mut lost = 0;
    for seed in 0..20 {
        let (mut lab, joined) = running(seed);
        let (creator, participant) = (lab.creator, lab.participant);
        lab.world.break_streams(creator, participant);
        for flow in 0..2 {
            let what = format!("seed {seed}, flow {flow}");
            let (here, there) = lab.ledgers(&joined, flow, ms(2_000));
            check_books(&here, &there, &what);
            assert_eq!(here.unknown, 0, "{what}: END came over control");
            lost += here.lost;
            for node in [creator, participant] {
                let failed = failures(&lab, node, flow);
                assert_eq!(failed.len(), 1, "{what}, {node:?}: {failed:?}");
                assert_eq!(failed[0].0, Code::ContactLost, "{what}");
                assert!(failed[0].1.contains("the network broke it"), "{what}: {failed:?}");
            }
        }
        for seen in [joined.seen[0].clone().unwrap(), lab.sinks.lock().unwrap()[0].clone()] {
            let record = seen.record().clone();
            assert_eq!((record.altered, record.misnumbered), (0, 0));
            assert!(matches!(record.ending, Some(Ending::Abnormal(_))), "{:?}", record.ending);
        }
        let before = joined.numbers(2).len();
        lab.run(ms(500));
        assert!(joined.numbers(2).len() > before + 400, "the flow on datagrams goes on");
        lab.close(lab.participant, joined.here);
        assert_eq!(code(&lab.end_of(participant, joined.here, ms(5_000))), None, "seed {seed}");
        lab.end_of(creator, joined.there, ms(5_000));
        lab.check_empty();
    }
    assert!(lost > 0, "something was on the way when it broke");
}

#[test]
fn a_stream_that_breaks_while_the_session_closes_is_accounted_for() {
    for later in [0, 10, 25, 45, 70, 100, 200] {
        let (mut lab, joined) = running(later);
        lab.world.hold_streams(true);
        lab.close(lab.creator, joined.there);
        lab.run(ms(later));
        let (creator, participant) = (lab.creator, lab.participant);
        lab.world.break_streams(creator, participant);
        for (node, session) in [(participant, joined.here), (creator, joined.there)] {
            assert_eq!(code(&lab.end_of(node, session, ms(5_000))), None, "{later} ms, {node:?}");
        }
        for flow in 0..2 {
            let (here, there) = lab.ledgers(&joined, flow, ms(0));
            check_books(&here, &there, &format!("{later} ms, flow {flow}"));
        }
        lab.check_empty();
    }
}

#[test]
fn a_host_that_dies_leaves_nothing_of_its_streams() {
    let (mut lab, joined) = running(1);
    lab.command(lab.participant, Command::GiveUpAfter(joined.here, ms(0))).unwrap();
    lab.world.kill(lab.creator);
    let (_, error) = lab.end_of(lab.participant, joined.here, ms(5_000));
    assert_eq!(error.map(|error| error.code), Some(Code::ContactLost));
    for flow in 0..3 {
        let ledger = lab.ledger(lab.participant, joined.here, flow).unwrap();
        assert!(ledger.closes(), "flow {flow}: {ledger:?}");
    }
    lab.run(ms(35_000));
    assert_eq!(lab.world.stream_count(), 0);
    assert_eq!(lab.world.core(lab.participant).pool().live_views(), 0);
}

#[test]
fn a_link_that_is_cut_for_long_ends_streams_with_the_contact() {
    let (mut lab, joined) = running(2);
    let (creator, participant) = (lab.creator, lab.participant);
    lab.command(participant, Command::GiveUpAfter(joined.here, ms(0))).unwrap();
    lab.command(creator, Command::GiveUpAfter(joined.there, ms(0))).unwrap();
    lab.world.cut(creator, participant, true);
    lab.world.cut(participant, creator, true);
    for (node, session) in [(participant, joined.here), (creator, joined.there)] {
        let ended = lab.end_of(node, session, ms(5_000));
        assert_eq!(code(&ended), Some(Code::ContactLost), "{node:?}");
    }
    lab.run(ms(35_000));
    assert_eq!(lab.world.stream_count(), 0, "nobody is there to close them in order");
}

#[test]
fn a_stream_on_which_nothing_gets_through_for_long_ends_while_control_goes_on() {
    let (mut lab, joined) = running(3);
    lab.world.hold_streams(true);
    let held = lab.now();
    let (here, there) = lab.ledgers(&joined, 0, ms(32_000));
    check_books(&here, &there, "held for long");
    assert!(lab.now().since(held) >= ms(30_000));
    assert_eq!(lab.ended(lab.participant, joined.here), None, "the session goes on");
    assert_eq!(failures(&lab, lab.participant, 0).len(), 1);
}
