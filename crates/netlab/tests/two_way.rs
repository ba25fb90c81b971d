//! Several flows in both directions in one session; pauses lose nothing.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, code, ms, offer, offer_back, pattern};
use dacapo_core::{Command, CoreEvent};
use dacapo_netlab::traffic::Record;

fn flows() -> Vec<dacapo_wire::session::FlowOffer> {
    vec![
        offer("a", &["segment", "sequence", "checksum"]),
        offer_back("b", &["sequence", "checksum"]),
        offer("c", &["checksum"]),
        offer_back("d", &[]),
    ]
}

/// The records of all sinks: flows 0 and 2 at the participant, 1 and 3 at the creator.
fn records(lab: &Lab, joined: &Joined) -> Vec<Record> {
    let theirs = joined.seen.iter().flatten().map(|seen| seen.record().clone());
    let ours = lab.sinks.lock().unwrap();
    theirs.chain(ours.iter().map(|seen| seen.record().clone())).collect()
}

#[test]
fn flows_in_both_directions_deliver_everything_and_every_ledger_closes() {
    let mut lab = Lab::new("delay=20ms");
    let joined = lab.start(flows());
    for flow in 0..4 {
        let (here, there) = lab.ledgers(&joined, flow, ms(5_000));
        assert!(here.closes() && there.closes(), "flow {flow}: {here:?} {there:?}");
        assert_eq!((here.sent, here.delivered, here.unknown), (1_000, 1_000, 0), "flow {flow}");
        assert_eq!((there.sent, there.delivered, there.unknown), (1_000, 1_000, 0), "flow {flow}");
        let hash = lab.find(lab.creator, |event| match event {
            CoreEvent::FlowEnded { flow: at, hash, .. } if *at == flow => Some(*hash),
            _ => None,
        });
        assert_eq!(hash.unwrap().1, Some(true), "flow {flow}: both ends saw the same bytes");
    }
    for record in records(&lab, &joined) {
        assert_eq!(record.numbers, (0..1_000).collect::<Vec<_>>());
        assert_eq!((record.altered, record.misnumbered), (0, 0));
    }
    lab.close(lab.creator, joined.there);
    assert_eq!(code(&lab.end_of(lab.participant, joined.here, ms(1_000))), None);
    assert_eq!(code(&lab.end_of(lab.creator, joined.there, ms(1_000))), None);
    lab.check_empty();
}

#[test]
fn ledgers_close_in_both_directions_whatever_the_link_takes() {
    for seed in 0..10 {
        let link = "loss=5%,delay=15ms,jitter=5ms,dup=3%,reorder=3%";
        let mut lab = Lab::with(seed, link, common::config(), common::config());
        let joined = lab.start(flows());
        for flow in 0..4 {
            let (here, there) = lab.ledgers(&joined, flow, ms(6_000));
            assert!(here.closes() && there.closes(), "seed {seed}, flow {flow}: {here:?}");
            assert_eq!((here.sent, here.unknown), (1_000, 0), "seed {seed}, flow {flow}");
            assert_eq!((here.delivered, here.lost), (there.delivered, there.lost), "seed {seed}");
            assert!(here.lost > 10, "seed {seed}: the link took something");
        }
    }
}

fn command(lab: &mut Lab, joined: &Joined, activate: bool) {
    let (now, here) = (lab.now(), joined.here);
    let core = lab.world.core(lab.participant);
    if activate {
        core.handle_command(now, Command::Activate(here))
    } else {
        core.handle_command(now, Command::Deactivate(here))
    }
    .unwrap();
    let known = lab.log.len();
    let done = lab.wait(ms(500), |lab| {
        lab.log[known..].iter().any(|(node, _, event)| {
            *node == lab.participant
                && match event {
                    CoreEvent::Active { session } => activate && *session == here,
                    CoreEvent::Inactive { session } => !activate && *session == here,
                    _ => false,
                }
        })
    });
    assert!(done, "activate {activate} is not confirmed");
}

#[test]
fn a_pause_lets_no_unit_through_and_loses_none() {
    let mut lab = Lab::new("delay=20ms");
    lab.pattern = pattern(6_000);
    let joined = lab.start(flows());
    for _ in 0..5 {
        lab.run(ms(100));
        command(&mut lab, &joined, false);
        // What was on its way arrives.
        lab.run(ms(45));
        let before: Vec<usize> = records(&lab, &joined).iter().map(|it| it.numbers.len()).collect();
        lab.run(ms(1_000));
        let after: Vec<usize> = records(&lab, &joined).iter().map(|it| it.numbers.len()).collect();
        assert_eq!(before, after, "no unit while inactive");
        assert!(before.iter().all(|count| *count < 6_000), "they did not end: {before:?}");
        command(&mut lab, &joined, true);
    }
    for flow in 0..4 {
        let (here, there) = lab.ledgers(&joined, flow, ms(10_000));
        assert_eq!((here.delivered, there.delivered), (6_000, 6_000), "flow {flow}");
    }
    for record in records(&lab, &joined) {
        assert_eq!(record.numbers, (0..6_000).collect::<Vec<_>>());
    }
}

#[test]
fn a_pause_holds_back_what_waits_for_the_pace() {
    // 64 units and more wait at any time: the bound is far below what the source has.
    let mut lab = Lab::new("delay=20ms");
    lab.pattern = pattern(3_000);
    lab.pattern.every = ms(0);
    lab.pattern.len_min = 300;
    let mut flow = offer("slow", &["sequence"]);
    flow.bound_bps = 1_000_000;
    let joined = lab.start(vec![flow]);
    lab.run(ms(1_000));
    command(&mut lab, &joined, false);
    // The graph is no place to wait: what is in it is gone in 20 ms.
    lab.run(ms(60));
    let before = joined.numbers(0).len();
    lab.run(ms(2_000));
    assert_eq!(joined.numbers(0).len(), before);
    command(&mut lab, &joined, true);
    lab.ledgers(&joined, 0, ms(20_000));
    assert_eq!(joined.numbers(0), (0..3_000).collect::<Vec<_>>());
}

#[test]
fn commands_in_the_wrong_state_are_refused() {
    let mut lab = Lab::new("delay=20ms");
    lab.publish("test", flows());
    let peer = lab.dial();
    let joined = lab.set_up(peer, "test");
    let now = lab.now();
    assert!(
        lab.world
            .core(lab.participant)
            .handle_command(now, Command::Deactivate(joined.here))
            .is_err(),
        "not active"
    );
    assert!(
        lab.world.core(lab.creator).handle_command(now, Command::Activate(joined.there)).is_err(),
        "the creator's is not"
    );
    lab.activate(joined.here);
    let now = lab.now();
    assert!(
        lab.world
            .core(lab.participant)
            .handle_command(now, Command::Activate(joined.here))
            .is_err(),
        "active already"
    );
}
