//! A peer that is gone is noticed within three seconds; a path that is cut for a moment is not
//! taken for that. What the flows of a session do meanwhile is in `contact_restored`.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, code, ms, offer_back, plain};
use dacapo_core::{Code, Command, CoreEvent, Ending, Error};
use dacapo_netlab::NodeId;
use dacapo_transport::TrafficClass;

const LINK: &str = "delay=20ms";

/// Running flows in both directions, in a session that does not wait for lost contact.
fn running() -> (Lab, Joined) {
    let mut lab = Lab::new(LINK);
    lab.give_up_after = ms(0);
    lab.pattern = common::pattern(20_000);
    let mut flows = plain();
    flows.push(offer_back("back", &["sequence"]));
    let joined = lab.start(flows);
    lab.run(ms(1_000));
    (lab, joined)
}

fn lost(event: &CoreEvent) -> Option<Error> {
    match event {
        CoreEvent::PeerLost { error, .. } => Some(error.clone()),
        _ => None,
    }
}

#[test]
fn whichever_end_is_killed_the_other_gives_up_within_three_seconds_and_keeps_nothing() {
    for killed in [0, 1] {
        let (mut lab, joined) = running();
        let ends = [(lab.creator, joined.there), (lab.participant, joined.here)];
        let (victim, (node, session)) = (ends[killed].0, ends[1 - killed]);
        lab.world.kill(victim);
        let since = lab.now();
        let (when, error) = lab.expect(node, ms(3_100), lost);
        assert_eq!(error.code, Code::ContactLost, "{error}");
        assert!((ms(2_000)..ms(3_000)).contains(&when.since(since)), "{when:?}");
        let ended = lab.ended(node, session).expect("its session ended before");
        assert_eq!(code(&ended), Some(Code::ContactLost));
        for flow in 0..2 {
            let ledger = lab.ledger(node, session, flow).expect("each flow is accounted for");
            assert!(ledger.closes(), "flow {flow}: {ledger:?}");
            assert!(ledger.sent > 900, "flow {flow}: {ledger:?}");
        }
        let received = lab.ledger(node, session, killed).expect("it is there");
        assert_eq!((received.unknown, received.delivered), (0, received.sent), "they came");
        let seen = [joined.seen[0].clone(), lab.sinks.lock().unwrap().first().cloned()];
        let record = seen[killed].as_ref().expect("a sink").record().clone();
        let abnormal = |ending: &Ending| matches!(ending, Ending::Abnormal(_));
        assert!(record.ending.as_ref().is_some_and(abnormal), "{:?}", record.ending);
        assert_eq!(record.ledger.map(|it| it.delivered), Some(record.numbers.len() as u64));
        lab.run(ms(5_000));
        assert_eq!(lab.world.core(node).pool().live_views(), 0);
        assert_eq!(lab.world.core(node).connection_count(), 0);
        assert_eq!(lab.ends(node, session), 1);
    }
}

#[test]
fn who_is_killed_while_its_path_is_not_open_yet_is_noticed_within_six_seconds() {
    // A JOIN has come, and of its data port nothing.
    for after in [1, 20, 30, 40] {
        let mut lab = Lab::new(LINK);
        lab.publish("test", plain());
        let peer = lab.dial();
        lab.world.block(lab.participant, Some(TrafficClass::Data));
        lab.join(peer, "test");
        lab.run(ms(after));
        lab.world.kill(lab.participant);
        let since = lab.now();
        let (when, error) = lab.expect(lab.creator, ms(31_000), lost);
        assert_eq!(error.code, Code::ContactLost, "{error}");
        assert!(when.since(since) < ms(6_000), "after {after} ms: {when:?} {error}");
    }
}

#[test]
fn what_a_sender_fed_is_unknown_when_its_receiver_is_killed() {
    for killed in [0, 1] {
        let (mut lab, joined) = running();
        let ends = [(lab.creator, joined.there), (lab.participant, joined.here)];
        lab.world.kill(ends[killed].0);
        let (node, session) = ends[1 - killed];
        lab.end_of(node, session, ms(3_000));
        // Flow 0 is sent by the creator, flow 1 by the participant.
        let sender = lab.ledger(node, session, 1 - killed).expect("it is there");
        assert_eq!((sender.delivered, sender.unknown), (0, sender.sent));
    }
}

/// Cuts some ways for a time; afterwards everything that was not on the way then arrives.
fn survives(cut: &[(NodeId, NodeId)], for_ms: u64) {
    let (mut lab, joined) = running();
    cut.iter().for_each(|(from, to)| lab.world.cut(*from, *to, true));
    lab.run(ms(for_ms));
    cut.iter().for_each(|(from, to)| lab.world.cut(*from, *to, false));
    let from = lab.now();
    lab.run(ms(3_000));
    assert_eq!(lab.find(lab.creator, lost), None);
    assert_eq!(lab.find(lab.participant, lost), None);
    assert_eq!(lab.ended(lab.participant, joined.here), None);
    let numbers = joined.numbers(0);
    let healed = from.as_nanos() / 1_000_000;
    let after: Vec<u64> = numbers.iter().copied().filter(|number| *number > healed).collect();
    assert!(after.len() > 2_500, "{} after the cut", after.len());
    assert!(after.windows(2).all(|pair| pair[0] + 1 == pair[1]), "nothing is lost afterwards");
    lab.close(lab.participant, joined.here);
    for flow in 0..2 {
        let (here, there) = lab.ledgers(&joined, flow, ms(5_000));
        assert!(here.closes() && there.closes(), "{here:?} {there:?}");
        assert_eq!((here.unknown, there.unknown), (0, 0));
        assert_eq!((here.sent, here.delivered), (there.sent, there.delivered));
    }
    assert_eq!(code(&lab.end_of(lab.participant, joined.here, ms(3_000))), None);
    lab.check_empty();
}

#[test]
fn a_cut_of_a_second_and_a_half_both_ways_ends_nothing() {
    survives(&[(NodeId(0), NodeId(1)), (NodeId(1), NodeId(0))], 1_500);
}

#[test]
fn a_cut_of_two_seconds_one_way_ends_nothing() {
    survives(&[(NodeId(0), NodeId(1))], 2_000);
    survives(&[(NodeId(1), NodeId(0))], 2_000);
}

#[test]
fn a_cut_one_way_that_stays_is_told_to_both_ends() {
    for (from, to) in [(0, 1), (1, 0)] {
        let (mut lab, joined) = running();
        lab.world.cut(NodeId(from), NodeId(to), true);
        let (_, error) = lab.expect(NodeId(to), ms(3_000), lost);
        assert_eq!(error.code, Code::ContactLost, "at the end that hears nothing: {error}");
        let (_, error) = lab.expect(NodeId(from), ms(3_000), lost);
        assert_eq!(error.code, Code::ContactLost, "at the end that is not heard: {error}");
        let ended = lab.ended(lab.participant, joined.here).expect("it ended");
        assert_eq!(code(&ended), Some(Code::ContactLost));
        lab.check_empty();
    }
}

#[test]
fn a_data_path_that_never_opens_is_no_loss_of_contact() {
    let mut lab = Lab::new(LINK);
    lab.publish("test", plain());
    lab.world.block(lab.participant, Some(TrafficClass::Data));
    let peer = lab.dial();
    let here = lab.join(peer, "test");
    let flows = lab.offered(here);
    let now = lab.now();
    lab.answer(here, &flows);
    let ended = lab.end_of(lab.participant, here, ms(11_000));
    assert_eq!(code(&ended), Some(Code::NoDataPath));
    assert!(ended.0.since(now) >= ms(9_900));
    let there = lab.expect(lab.creator, ms(1_000), |event| match event {
        CoreEvent::SessionEnded { error, .. } => Some(error.clone()),
        _ => None,
    });
    assert_eq!(code(&there), Some(Code::NoDataPath));
    lab.check_empty();
    // The connection is good for other things.
    let now = lab.now();
    lab.world.core(lab.participant).handle_command(now, Command::List(peer)).unwrap();
    lab.expect(lab.participant, ms(500), |event| match event {
        CoreEvent::Listing { sessions: Ok(sessions), .. } => Some(sessions.len()),
        _ => None,
    });
}

#[test]
fn a_dialer_that_dies_before_its_first_probe_is_forgotten() {
    let mut lab = Lab::new(LINK);
    lab.world.block(lab.participant, Some(TrafficClass::Data));
    lab.dial();
    lab.world.kill(lab.participant);
    let (when, error) = lab.expect(lab.creator, ms(35_000), lost);
    assert_eq!(error.code, Code::ContactLost, "{when:?}: {error}");
    lab.run(ms(5_000));
    assert_eq!(lab.world.core(lab.creator).connection_count(), 0);
}
