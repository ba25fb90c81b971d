//! Contact is lost for longer than three seconds and comes back: the flows wait meanwhile, the
//! application is told, and everything goes on where it stopped.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, code, config, ms, offer_back, offer_tcp, plain};
use dacapo_base::Time;
use dacapo_core::{Code, Command, CoreEvent, DialParams, Done, GIVE_UP_AFTER, SessionId};
use dacapo_netlab::NodeId;
use std::time::Duration;

const LINK: &str = "delay=20ms";
const RTT: Duration = ms(40);
const BOTH: [(NodeId, NodeId); 2] = [(NodeId(0), NodeId(1)), (NodeId(1), NodeId(0))];

/// Flow 0 to the participant, flow 1 back, flow 2 to the participant on a stream.
fn running(give_up_after: Duration) -> (Lab, Joined) {
    let mut lab = Lab::new(LINK);
    lab.give_up_after = give_up_after;
    lab.pattern = common::pattern(40_000);
    let mut flows = plain();
    flows.push(offer_back("back", &["sequence"]));
    flows.push(offer_tcp("stream", &["segment"]));
    let joined = lab.start(flows);
    lab.run(ms(1_000));
    (lab, joined)
}

fn cut(lab: &mut Lab, ways: &[(NodeId, NodeId)], cut: bool) {
    ways.iter().for_each(|(from, to)| lab.world.cut(*from, *to, cut));
}

fn told_lost(session: SessionId) -> impl FnMut(&CoreEvent) -> Option<()> {
    move |event| {
        matches!(event, CoreEvent::ContactLost { session: it } if *it == session).then_some(())
    }
}

fn told_back(session: SessionId) -> impl FnMut(&CoreEvent) -> Option<Duration> {
    move |event| match event {
        CoreEvent::ContactRestored { session: it, after } if *it == session => Some(*after),
        _ => None,
    }
}

fn ends(lab: &Lab, joined: &Joined) -> [(NodeId, SessionId); 2] {
    [(lab.creator, joined.there), (lab.participant, joined.here)]
}

/// Closes the session; both accounts of every flow close, agree, and know of every unit.
fn check_accounts(lab: &mut Lab, joined: &Joined) {
    lab.close(lab.participant, joined.here);
    for flow in 0..3 {
        let (here, there) = lab.ledgers(joined, flow, ms(9_000));
        assert!(here.closes() && there.closes(), "flow {flow}: {here:?} {there:?}");
        assert_eq!((here.unknown, there.unknown), (0, 0), "flow {flow}: {here:?}");
        assert_eq!((here.sent, here.delivered), (there.sent, there.delivered), "flow {flow}");
    }
    assert_eq!(code(&lab.end_of(lab.participant, joined.here, ms(3_000))), None);
    lab.check_empty();
}

/// Whether the first of a flow's units after `after` that were lost is none.
fn is_whole_after(numbers: &[u64], index: usize) -> bool {
    numbers[index..].windows(2).all(|pair| pair[0] + 1 == pair[1])
}

/// Cuts some ways for a time that is longer than three seconds.
fn comes_back(ways: &[(NodeId, NodeId)], time: Duration) {
    let (mut lab, joined) = running(GIVE_UP_AFTER);
    let since = lab.now();
    cut(&mut lab, ways, true);
    for (node, session) in ends(&lab, &joined) {
        let (when, ()) = lab.expect(node, ms(3_000), told_lost(session));
        assert!(when.since(since) >= ms(2_000), "{node:?}: {when:?}");
    }
    lab.run(ms(500));
    let before: Vec<usize> = [0, 2].map(|flow| joined.numbers(flow).len()).to_vec();
    lab.run(time.saturating_sub(lab.now().since(since)));
    for (flow, before) in [0, 2].iter().zip(&before) {
        assert_eq!(joined.numbers(*flow).len(), *before, "flow {flow} waits");
    }
    cut(&mut lab, ways, false);
    let healed = lab.now();
    for (node, session) in ends(&lab, &joined) {
        let (when, after) = lab.expect(node, ms(1_000), told_back(session));
        assert!(when.since(healed) <= RTT * 2 + ms(500), "{node:?}: {:?}", when.since(healed));
        assert!(after >= time.saturating_sub(ms(3_100)) && after <= time, "{after:?}");
    }
    // Units come again within 2 RTT + 500 ms, over the stream within 1 s + RTT.
    let at = lab.now().since(healed);
    lab.run((RTT * 2 + ms(500)).saturating_sub(at));
    assert!(joined.numbers(0).len() > before[0], "flow 0 goes on");
    lab.run((RTT + ms(1_000)).saturating_sub(lab.now().since(healed)));
    assert!(joined.numbers(2).len() > before[1], "flow 2 goes on");
    lab.run(ms(3_000));
    let numbers = joined.numbers(0);
    assert!(numbers.len() > before[0] + 2_500, "{} after {}", numbers.len(), before[0]);
    assert!(is_whole_after(&numbers, before[0]), "nothing is lost afterwards");
    assert!(is_whole_after(&joined.numbers(2), 0), "over a stream nothing is lost at all");
    for (node, session) in ends(&lab, &joined) {
        assert_eq!(lab.ended(node, session), None);
    }
    check_accounts(&mut lab, &joined);
}

#[test]
fn a_cut_of_five_seconds_both_ways_suspends_and_everything_goes_on() {
    comes_back(&BOTH, ms(5_000));
}

#[test]
fn a_cut_of_a_minute_both_ways_suspends_and_everything_goes_on() {
    comes_back(&BOTH, ms(60_000));
}

#[test]
fn a_cut_of_four_minutes_both_ways_suspends_and_everything_goes_on() {
    comes_back(&BOTH, ms(240_000));
}

#[test]
fn a_cut_one_way_suspends_both_ends_and_everything_goes_on() {
    comes_back(&BOTH[..1], ms(20_000));
    comes_back(&BOTH[1..], ms(20_000));
}

#[test]
fn contact_that_comes_and_goes_loses_no_unit_silently() {
    let (mut lab, joined) = running(GIVE_UP_AFTER);
    for _ in 0..5 {
        cut(&mut lab, &BOTH, true);
        lab.run(ms(5_000));
        cut(&mut lab, &BOTH, false);
        lab.run(ms(2_000));
    }
    for (node, session) in ends(&lab, &joined) {
        let lost = lab.count(node, |event| told_lost(session)(event).is_some());
        let back = lab.count(node, |event| told_back(session)(event).is_some());
        assert_eq!((lost, back), (5, 5), "{node:?}");
    }
    assert!(is_whole_after(&joined.numbers(2), 0));
    check_accounts(&mut lab, &joined);
}

#[test]
fn a_session_is_given_up_at_the_limit_of_its_choice() {
    for limit in [ms(1_000), ms(20_000), GIVE_UP_AFTER] {
        let (mut lab, joined) = running(limit);
        cut(&mut lab, &BOTH, true);
        for (node, session) in ends(&lab, &joined) {
            let (lost, ()) = lab.expect(node, ms(3_000), told_lost(session));
            let ended = lab.end_of(node, session, limit + ms(3_000));
            assert_eq!(code(&ended), Some(Code::GivenUp));
            assert_eq!(ended.0, lost + limit);
            for flow in 0..3 {
                let ledger = lab.ledger(node, session, flow).expect("each flow is accounted for");
                assert!(ledger.closes(), "flow {flow}: {ledger:?}");
            }
        }
        // A connection to who does not answer is forgotten too.
        lab.run(ms(60_000));
        for node in [lab.creator, lab.participant] {
            assert_eq!(lab.world.core(node).connection_count(), 0, "{node:?}");
            assert_eq!(lab.world.core(node).pool().live_views(), 0, "{node:?}");
        }
    }
}

#[test]
fn an_end_may_wait_shorter_or_longer_than_was_offered() {
    let (mut lab, joined) = running(ms(10_000));
    lab.command(lab.participant, Command::GiveUpAfter(joined.here, ms(2_000))).unwrap();
    cut(&mut lab, &BOTH, true);
    let here = lab.end_of(lab.participant, joined.here, ms(6_000));
    assert_eq!(code(&here), Some(Code::GivenUp));
    assert_eq!(lab.ended(lab.creator, joined.there), None, "the creator waits still");
    assert_eq!(code(&lab.end_of(lab.creator, joined.there, ms(10_000))), Some(Code::GivenUp));
    let (mut lab, joined) = running(ms(2_000));
    lab.command(lab.creator, Command::GiveUpAfter(joined.there, ms(10_000))).unwrap();
    lab.command(lab.participant, Command::GiveUpAfter(joined.here, ms(10_000))).unwrap();
    cut(&mut lab, &BOTH, true);
    lab.run(ms(8_000));
    cut(&mut lab, &BOTH, false);
    lab.run(ms(2_000));
    assert_eq!(lab.ended(lab.participant, joined.here), None);
    check_accounts(&mut lab, &joined);
}

#[test]
fn who_gave_up_first_is_told_of_by_the_first_sign_after_the_path_is_back() {
    let (mut lab, joined) = running(GIVE_UP_AFTER);
    lab.command(lab.participant, Command::GiveUpAfter(joined.here, ms(1_000))).unwrap();
    cut(&mut lab, &BOTH, true);
    lab.end_of(lab.participant, joined.here, ms(5_000));
    lab.run(ms(10_000));
    cut(&mut lab, &BOTH, false);
    // The creator's QUIC asks at its own pace; the answer is that there is no such connection.
    let there = lab.end_of(lab.creator, joined.there, ms(60_000));
    assert_ne!(code(&there), Some(Code::GivenUp), "{there:?}");
    lab.check_empty();
}

#[test]
fn a_command_that_crosses_the_cut_is_answered_after_it() {
    let (mut lab, joined) = running(GIVE_UP_AFTER);
    cut(&mut lab, &BOTH, true);
    lab.run(ms(100));
    let now = lab.now();
    let request = lab
        .world
        .core(lab.participant)
        .handle_command(
            now,
            Command::Control {
                session: joined.here,
                flow: 0,
                module: 0xFFFF,
                payload: b"xy".to_vec(),
            },
        )
        .and_then(Done::request);
    let request = request.unwrap();
    lab.run(ms(30_000));
    cut(&mut lab, &BOTH, false);
    let answered = |event: &CoreEvent| match event {
        CoreEvent::ControlAnswered { request: it, answer, .. } if *it == request => {
            Some(answer.clone())
        }
        _ => None,
    };
    let (when, answer) = lab.expect(lab.participant, ms(5_000), answered);
    assert_eq!(answer.expect("the creator has answered"), b"yx", "{when:?}");
    check_accounts(&mut lab, &joined);
}

#[test]
fn without_contact_nothing_new_begins_and_closing_does_not_wait() {
    let (mut lab, joined) = running(GIVE_UP_AFTER);
    cut(&mut lab, &BOTH, true);
    lab.run(ms(4_000));
    let (now, address) = (lab.now(), lab.world.address(lab.creator));
    let core = lab.world.core(lab.participant);
    let peer = core
        .handle_command(
            now,
            Command::Connect { remote: address.into(), params: DialParams::default() },
        )
        .and_then(Done::peer)
        .unwrap();
    assert_eq!(core.handle_command(now, Command::List(peer)).unwrap_err().code, Code::ContactLost);
    let join = core
        .handle_command(
            now,
            Command::Join { peer, name: "test".into(), params: dacapo_core::JoinParams::default() },
        )
        .and_then(Done::session);
    assert_eq!(join.unwrap_err().code, Code::ContactLost);
    lab.close(lab.participant, joined.here);
    let (when, error) = lab.end_of(lab.participant, joined.here, ms(10));
    assert_eq!(error.map(|it| it.code), Some(Code::ContactLost));
    assert_eq!(when, now);
    lab.run(ms(5_000));
    assert_eq!(lab.world.core(lab.participant).connection_count(), 0);
}

#[test]
fn who_asks_for_a_peer_without_contact_is_told_when_it_is_back() {
    let (mut lab, joined) = running(GIVE_UP_AFTER);
    let opened =
        |lab: &Lab| lab.count(lab.participant, |event| matches!(event, CoreEvent::PeerOpen { .. }));
    cut(&mut lab, &BOTH, true);
    lab.run(ms(4_000));
    let (now, address) = (lab.now(), lab.world.address(lab.creator));
    lab.world
        .core(lab.participant)
        .handle_command(
            now,
            Command::Connect { remote: address.into(), params: DialParams::default() },
        )
        .and_then(Done::peer)
        .unwrap();
    lab.run(ms(1_000));
    assert_eq!(opened(&lab), 1, "when it was opened first");
    cut(&mut lab, &BOTH, false);
    lab.run(ms(1_000));
    assert_eq!(opened(&lab), 2);
    check_accounts(&mut lab, &joined);
}

#[test]
fn a_peer_that_was_started_anew_is_recognised_and_can_be_joined_at_once() {
    for down in [0, 1_000, 30_000] {
        let (mut lab, joined) = running(GIVE_UP_AFTER);
        let creator = lab.creator;
        lab.world.kill(creator);
        lab.run(ms(down));
        lab.world.restart(creator, config());
        let since = lab.now();
        lab.publish("test", plain());
        let ended = lab.end_of(lab.participant, joined.here, ms(6_000));
        assert_eq!(code(&ended), Some(Code::PeerRestarted), "after {down} ms");
        // Noticed a second after contact is known to be lost, at the latest.
        assert!(ended.0.since(since) <= ms(4_500), "{:?}", ended.0.since(since));
        lab.log.clear();
        let peer = lab.dial();
        let again = lab.set_up(peer, "test");
        lab.activate(again.here);
        lab.run(ms(200));
        assert!(!again.numbers(0).is_empty());
    }
}

#[test]
fn a_participant_that_was_stopped_for_a_while_goes_on() {
    let (mut lab, joined) = running(GIVE_UP_AFTER);
    lab.world.freeze(lab.participant, true);
    lab.expect(lab.creator, ms(3_000), told_lost(joined.there));
    lab.run(ms(60_000));
    lab.world.freeze(lab.participant, false);
    lab.expect(lab.creator, RTT * 2 + ms(500), told_back(joined.there));
    lab.run(ms(2_000));
    let lost = lab.find(lab.participant, told_lost(joined.here));
    assert_eq!(lost, None, "who slept has lost nobody");
    check_accounts(&mut lab, &joined);
}

#[test]
fn a_participant_without_contact_makes_room_for_another_one() {
    let mut lab = Lab::new(LINK);
    lab.pattern = common::pattern(40_000);
    lab.participants_max = 1;
    let joined = lab.start(plain());
    let first = lab.participant;
    lab.world.kill(first);
    lab.expect(lab.creator, ms(3_500), told_lost(joined.there));
    lab.participant = lab.add_participant();
    let peer = lab.dial();
    let second = lab.set_up(peer, "test");
    assert_eq!(code(&lab.ended(lab.creator, joined.there).unwrap()), Some(Code::GivenUp));
    lab.activate(second.here);
    lab.run(ms(500));
    assert!(second.numbers(0).len() > 300);
}

#[test]
fn without_a_flow_that_could_go_on_nothing_is_waited_for() {
    for break_first in [true, false] {
        let mut lab = Lab::new(LINK);
        lab.pattern = common::pattern(40_000);
        let joined = lab.start(vec![offer_tcp("stream", &["segment"])]);
        lab.run(ms(500));
        let (creator, participant) = (lab.creator, lab.participant);
        if break_first {
            lab.world.break_streams(creator, participant);
        }
        cut(&mut lab, &BOTH, true);
        if !break_first {
            lab.expect(participant, ms(3_000), told_lost(joined.here));
            lab.world.break_streams(creator, participant);
        }
        for (node, session) in ends(&lab, &joined) {
            let ended = lab.end_of(node, session, ms(3_500));
            assert_eq!(code(&ended), Some(Code::ContactLost), "{node:?}, {break_first}");
            assert!(lab.ledger(node, session, 0).expect("an account").closes());
        }
    }
}

/// Probes are no load: without contact a core sends little, however long it lasts.
#[test]
fn waiting_for_contact_costs_little() {
    let (mut lab, joined) = running(GIVE_UP_AFTER);
    cut(&mut lab, &BOTH, true);
    lab.run(ms(4_000));
    let sent =
        |lab: &mut Lab| -> [u64; 2] { BOTH.map(|(from, to)| lab.world.link_stats(from, to).sent) };
    let (before, from) = (sent(&mut lab), lab.now());
    lab.run(ms(120_000));
    let secs = lab.now().since(from).as_secs();
    for (before, after) in before.iter().zip(sent(&mut lab)) {
        let per_s = (after - before) as f64 / secs as f64;
        assert!((4.0..20.0).contains(&per_s), "{per_s} datagrams/s");
    }
    assert_eq!(lab.ended(lab.participant, joined.here), None);
    assert!(lab.now() > Time::ZERO);
}
