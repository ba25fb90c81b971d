//! The stream of a flow does not open: its flow ends with a reason, the others run.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, code, ms, offer, offer_tcp};
use dacapo_core::{Code, CoreEvent, Ending};
use dacapo_wire::session::{Direction, FlowOffer};

const LINK: &str = "delay=20ms";

fn flows() -> Vec<FlowOffer> {
    vec![
        offer_tcp("down", &[]),
        FlowOffer { direction: Direction::ToCreator, ..offer_tcp("up", &[]) },
        offer("datagrams", &["sequence"]),
    ]
}

#[test]
fn a_filtered_stream_ends_its_flow_after_ten_seconds_and_then_the_others_begin() {
    let mut lab = Lab::new(LINK);
    lab.world.hold_streams(true);
    lab.publish("test", flows());
    let peer = lab.dial();
    let joined = lab.set_up(peer, "test");
    let ready = |event: &CoreEvent| matches!(event, CoreEvent::Ready { .. }).then_some(());
    let accepted = lab.find(lab.creator, ready).unwrap().0;
    let waited = lab.find(lab.participant, ready).unwrap().0.since(accepted);
    assert!((ms(10_000)..ms(10_100)).contains(&waited), "{waited:?}");
    for flow in 0..2 {
        let (here, there) = lab.ledgers(&joined, flow, ms(1_000));
        assert_eq!((here.sent, there.sent), (0, 0), "flow {flow}");
        assert!(here.closes() && there.closes());
        for node in [lab.creator, lab.participant] {
            let failed = lab.log.iter().filter_map(|(at, _, event)| match event {
                CoreEvent::FlowFailed { flow: it, error, .. } if (*at, *it) == (node, flow) => {
                    Some(error.clone())
                }
                _ => None,
            });
            let failed: Vec<_> = failed.collect();
            assert_eq!(failed.len(), 1, "{node:?}, flow {flow}: one cause, one report");
            assert_eq!(failed[0].code, Code::NoDataPath, "{node:?}, flow {flow}");
            assert!(
                failed[0].text.contains("tcp stream of the flow did not open in 10 s"),
                "{}",
                failed[0]
            );
        }
    }
    let ending = joined.seen[0].as_ref().unwrap().record().ending.clone();
    assert!(matches!(ending, Some(Ending::Abnormal(_))), "{ending:?}");
    lab.activate(joined.here);
    let (here, _) = lab.ledgers(&joined, 2, ms(5_000));
    assert_eq!(here.delivered, 1_000);
    lab.close(lab.participant, joined.here);
    assert_eq!(code(&lab.end_of(lab.participant, joined.here, ms(2_000))), None);
    lab.check_empty();
}

#[test]
fn who_closes_while_streams_open_is_not_told_that_it_is_ready() {
    for later in [0, 50, 500] {
        let mut lab = Lab::new(LINK);
        lab.world.hold_streams(true);
        lab.publish("test", flows());
        let peer = lab.dial();
        let here = lab.join(peer, "test");
        let flows = lab.offered(here);
        lab.answer(here, &flows);
        lab.expect(lab.creator, ms(2_000), |event| {
            matches!(event, CoreEvent::Ready { .. }).then_some(())
        });
        lab.run(ms(later));
        lab.close(lab.participant, here);
        assert_eq!(code(&lab.end_of(lab.participant, here, ms(5_000))), None, "{later} ms");
        let ready = lab.count(lab.participant, |it| matches!(it, CoreEvent::Ready { .. }));
        assert_eq!(ready, 0, "{later} ms");
        lab.check_empty();
    }
}

#[test]
fn a_stream_that_opens_late_carries_its_flow() {
    let mut lab = Lab::new(LINK);
    lab.world.hold_streams(true);
    lab.publish("test", flows());
    let peer = lab.dial();
    let here = lab.join(peer, "test");
    let offered = lab.offered(here);
    let seen = lab.answer(here, &offered);
    lab.run(ms(5_000));
    let ready = |event: &CoreEvent| matches!(event, CoreEvent::Ready { .. });
    assert_eq!(lab.count(lab.participant, ready), 0);
    lab.world.hold_streams(false);
    lab.run(ms(2_000));
    assert_eq!(lab.count(lab.participant, ready), 1);
    lab.activate(here);
    lab.run(ms(3_000));
    let numbers = seen[0].as_ref().unwrap().record().numbers.clone();
    assert_eq!(numbers, (0..1_000).collect::<Vec<_>>());
}
