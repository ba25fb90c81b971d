//! Cores with a single place in each of their queues: slow, but nothing stands still, nothing is
//! lost that the link has not taken, and control gets through.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, code, config, graph, ms, offer_back, offer_tcp, pattern, plain};
use dacapo_core::{Command, CoreConfig, CoreEvent, Done, Queues};
use dacapo_wire::session::MODULE_ACCESS;

const UNITS: u64 = 2_000;

fn narrow() -> CoreConfig {
    CoreConfig { queues: Queues::ONE, ..config() }
}

/// Flow 0 to the participant, flow 1 back, flow 2 to the participant on a stream.
fn running(seed: u64, link: &str) -> (Lab, Joined) {
    let mut lab = Lab::with(seed, link, narrow(), narrow());
    lab.pattern = pattern(UNITS);
    lab.pattern.len_max = 4_000;
    let mut flows = plain();
    flows.push(offer_back("back", &["segment", "sequence", "checksum"]));
    flows.push(offer_tcp("stream", &["segment"]));
    flows.iter_mut().for_each(|flow| flow.unit_len_max = 4_016);
    let joined = lab.start(flows);
    (lab, joined)
}

#[test]
fn over_a_good_link_everything_arrives() {
    let (mut lab, joined) = running(1, "delay=5ms");
    for flow in 0..3 {
        let (here, there) = lab.ledgers(&joined, flow, ms(60_000));
        assert_eq!((here.delivered, there.delivered), (UNITS, UNITS), "flow {flow}");
    }
    lab.close(lab.participant, joined.here);
    assert_eq!(code(&lab.end_of(lab.participant, joined.here, ms(5_000))), None);
    lab.check_empty();
}

#[test]
fn over_bad_links_everything_is_accounted_for_and_commands_are_answered() {
    for seed in 0..10 {
        let (mut lab, joined) = running(seed, "delay=20ms,jitter=10ms,loss=10%,dup=10%,reorder=5%");
        lab.run(ms(300));
        let now = lab.now();
        let core = lab.world.core(lab.participant);
        let asked = core
            .handle_command(
                now,
                Command::Control {
                    session: joined.here,
                    flow: 0,
                    module: MODULE_ACCESS,
                    payload: b"xy".to_vec(),
                },
            )
            .and_then(Done::request)
            .unwrap();
        let answered = |event: &CoreEvent| match event {
            CoreEvent::ControlAnswered { request, answer, .. } if *request == asked => {
                Some(answer.clone())
            }
            _ => None,
        };
        let (_, answer) = lab.expect(lab.participant, ms(5_000), answered);
        assert_eq!(answer.unwrap(), b"yx", "seed {seed}");
        for flow in 0..3 {
            let (here, there) = lab.ledgers(&joined, flow, ms(120_000));
            assert!(here.closes() && there.closes(), "seed {seed}, flow {flow}: {here:?}");
            assert_eq!((here.sent, here.unknown), (UNITS, 0), "seed {seed}, flow {flow}");
            assert_eq!(here.delivered, there.delivered, "seed {seed}, flow {flow}");
        }
        let numbers = joined.numbers(2);
        assert_eq!(numbers, (0..UNITS).collect::<Vec<_>>(), "seed {seed}: a stream loses nothing");
    }
}

#[test]
fn a_change_goes_through_and_loses_nothing() {
    let (mut lab, joined) = running(3, "delay=20ms");
    lab.run(ms(300));
    let now = lab.now();
    let names = ["segment", "sequence", "checksum"];
    lab.world
        .core(lab.creator)
        .handle_command(
            now,
            Command::Change { session: joined.there, flow: 0, graph: graph(&names) },
        )
        .unwrap();
    let changed = |event: &CoreEvent| match event {
        CoreEvent::Changed { flow: 0, epoch, .. } => Some(*epoch),
        _ => None,
    };
    assert_eq!(lab.expect(lab.creator, ms(5_000), changed).1, 1);
    let (here, there) = lab.ledgers(&joined, 0, ms(60_000));
    assert!(here.closes() && here.delivered == there.delivered, "{here:?}");
    // Of the units of the new epoch all but one are lost that come before the old one is settled.
    assert!(here.delivered + here.lost == UNITS && here.lost < 100, "{here:?}");
}
