//! What a stream carries comes late, after what control says of it: nothing is booked lost that
//! comes.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, code, ms, offer_tcp, pattern};
use dacapo_core::{Command, CoreEvent, Ending};
use dacapo_wire::session::FlowOffer;

const LINK: &str = "delay=20ms";

fn flow() -> FlowOffer {
    offer_tcp("late", &["segment"])
}

#[test]
fn end_waits_for_data_that_the_stream_brings_seconds_later() {
    for held in [300, 3_000, 9_000] {
        let mut lab = Lab::new(LINK);
        lab.pattern = pattern(200);
        let joined = lab.start(vec![flow()]);
        lab.run(ms(150));
        lab.world.hold_streams(true);
        lab.run(ms(held));
        let known = joined.numbers(0).len();
        assert!((100..190).contains(&known), "{known} came before");
        assert_eq!(lab.ledger(lab.participant, joined.here, 0), None, "{held} ms: END waits");
        lab.world.hold_streams(false);
        let (here, there) = lab.ledgers(&joined, 0, ms(1_000));
        assert_eq!((here.delivered, here.lost), (200, 0), "{held} ms");
        assert_eq!((there.delivered, there.lost), (200, 0), "{held} ms");
        let record = joined.seen[0].as_ref().unwrap().record().clone();
        assert_eq!(record.ending, Some(Ending::Complete), "{held} ms");
        assert!(record.lost.is_empty());
    }
}

#[test]
fn a_change_waits_for_the_old_epoch_that_the_stream_brings_seconds_later() {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(2_000);
    let joined = lab.start(vec![flow()]);
    lab.run(ms(300));
    for changes in 1..=3 {
        // The exchange goes over control; what is in the old epoch is held.
        lab.world.hold_streams(true);
        let (now, graph) = (lab.now(), common::graph(&["segment", "checksum"]));
        lab.world
            .core(lab.creator)
            .handle_command(now, Command::Change { session: joined.there, flow: 0, graph })
            .unwrap();
        lab.run(ms(400));
        let changed = |event: &CoreEvent| matches!(event, CoreEvent::Changed { .. });
        assert_eq!(lab.count(lab.participant, changed), changes - 1, "the old one is waited for");
        lab.world.hold_streams(false);
        lab.run(ms(200));
        assert_eq!(lab.count(lab.participant, changed), changes);
        assert_eq!(lab.count(lab.creator, changed), changes);
    }
    let (here, there) = lab.ledgers(&joined, 0, ms(5_000));
    assert_eq!((here.delivered, there.delivered, here.lost), (2_000, 2_000, 0));
    assert_eq!(joined.numbers(0), (0..2_000).collect::<Vec<_>>());
    lab.close(lab.participant, joined.here);
    assert_eq!(code(&lab.end_of(lab.participant, joined.here, ms(2_000))), None);
    lab.check_empty();
}

#[test]
fn closing_waits_for_what_was_fed_and_not_for_ever() {
    for (held, complete) in [(2_000, true), (60_000, false)] {
        let mut lab = Lab::new(LINK);
        lab.pattern = pattern(5_000);
        let joined = lab.start(vec![flow()]);
        lab.run(ms(500));
        lab.world.hold_streams(true);
        lab.run(ms(20));
        lab.close(lab.participant, joined.here);
        lab.run(ms(held.min(9_500)));
        if complete {
            lab.world.hold_streams(false);
        }
        let ended = lab.end_of(lab.participant, joined.here, ms(2_000));
        assert_eq!(code(&ended), None, "held {held} ms");
        let (here, there) = lab.ledgers(&joined, 0, ms(100));
        assert!(here.closes() && there.closes(), "{here:?} {there:?}");
        assert_eq!((here.unknown, here.lost == 0), (0, complete), "held {held} ms: {here:?}");
        lab.world.hold_streams(false);
        lab.check_empty();
    }
}

#[test]
fn a_stream_that_takes_nothing_holds_the_source_back() {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(100_000);
    (lab.pattern.every, lab.pattern.len_min) = (ms(0), 300);
    lab.world.stream_capacity(8 * 1_024);
    let joined = lab.start(vec![flow()]);
    lab.world.hold_streams(true);
    lab.run(ms(100));
    let (creator, there) = (lab.creator, joined.there);
    let fed = |lab: &mut Lab| lab.world.core(creator).status(there)[0].sent;
    let before = fed(&mut lab);
    let views = lab.world.core(creator).pool().live_views();
    lab.run(ms(5_000));
    assert_eq!(fed(&mut lab), before, "nothing more enters the graph");
    assert_eq!(lab.world.core(creator).pool().live_views(), views);
    // 8 KiB in the stream, 64 KiB below the graph, 64 units before it, of about 320 bytes each.
    let arrived = joined.numbers(0).len();
    assert!(before as usize - arrived < (8 + 64) * 1_024 / 300, "{before} fed, {arrived} arrived");
    assert!(views < 64 + 64 * 1_024 / 300 + 8, "{views} views");
    lab.world.hold_streams(false);
    lab.run(ms(1_000));
    assert!(fed(&mut lab) > before + 1_000, "and lets it go on");
    let numbers = joined.numbers(0);
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "in order, without a gap");
}

/// Whether all of large units came, that the stream brought with a pause in their middle.
fn large_units_with_a_pause(patience_ns: u64) -> (u64, u64) {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(4);
    (lab.pattern.every, lab.pattern.len_min, lab.pattern.len_max) = (ms(0), 900_000, 1_000_000);
    let mut flow = FlowOffer { unit_len_max: 1_000_016, ..flow() };
    flow.graph.nodes[0].params = vec![(0, patience_ns)];
    let joined = lab.start(vec![flow]);
    // A megabyte takes about 15 windows of 64 KiB, each half a round trip.
    lab.run(ms(150));
    assert_eq!(joined.numbers(0).len(), 0, "the first is on its way");
    lab.world.hold_streams(true);
    lab.run(ms(3_000));
    lab.world.hold_streams(false);
    let (here, there) = lab.ledgers(&joined, 0, ms(60_000));
    assert!(here.closes() && there.closes());
    (here.delivered, here.lost)
}

#[test]
fn a_unit_in_whose_middle_the_stream_pauses_arrives_when_segment_is_patient() {
    assert_eq!(large_units_with_a_pause(60_000_000_000), (4, 0));
}
