//! What is refused at set-up is refused at once, with its code, at both ends, and nothing is left.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, catalogue_without, code, config, ms, offer, plain};
use dacapo_core::{Code, Command, CoreEvent, DialParams, Done, Port, SessionSpec};
use dacapo_lift::Catalogue;
use dacapo_netlab::NodeId;
use dacapo_netlab::traffic::PatternSource;
use std::net::SocketAddr;
use std::time::Duration;

const LINK: &str = "delay=20ms";

/// Joins and waits for the end at the participant.
fn refused(lab: &mut Lab, name: &str) -> (Duration, Code, String) {
    let peer = lab.dial();
    let since = lab.now();
    let session = lab.join(peer, name);
    let (when, error) = lab.end_of(lab.participant, session, ms(1_000));
    let error = error.expect("it was refused");
    (when.since(since), error.code, error.text)
}

#[test]
fn a_name_that_is_not_served_is_refused_in_a_round_trip() {
    let mut lab = Lab::new(LINK);
    lab.publish("test", plain());
    let (took, code, text) = refused(&mut lab, "other");
    assert_eq!((code, text.as_str()), (Code::NotServed, "other"));
    assert!(took < ms(100), "{took:?}");
    lab.check_empty();
}

#[test]
fn a_participant_too_many_is_refused_and_has_room_when_another_leaves() {
    let mut lab = Lab::new(LINK);
    let spec = SessionSpec {
        name: "one".into(),
        title: String::new(),
        flows: plain(),
        participants_max: 1,
        give_up_after: dacapo_core::GIVE_UP_AFTER,
    };
    let pattern = lab.pattern;
    let open = move |_: &_| Ok(Port::Source(Box::new(PatternSource::new(pattern))));
    let served = lab.world.core(lab.creator).publish(spec, Box::new(common::Opens(open)));
    served.unwrap();
    let peer = lab.dial();
    let first = lab.set_up(peer, "one");
    assert_eq!(refused(&mut lab, "one").1, Code::TooMany);
    lab.close(lab.participant, first.here);
    lab.end_of(lab.participant, first.here, ms(2_000));
    let again = lab.set_up(peer, "one");
    lab.close(lab.participant, again.here);
    lab.end_of(lab.participant, again.here, ms(2_000));
    lab.check_empty();
}

#[test]
fn a_publisher_that_fails_refuses_with_its_reason() {
    let mut lab = Lab::new(LINK);
    lab.publish_with("test", plain(), |_| Err("no such file".into()));
    let (_, code, text) = refused(&mut lab, "test");
    assert_eq!((code, text.as_str()), (Code::AccessFailed, "flow: no such file"));
    lab.check_empty();
}

#[test]
fn a_graph_with_a_module_that_the_participant_lacks_is_refused_at_both_ends() {
    let mut poor = config();
    poor.catalogue = catalogue_without("checksum");
    let mut lab = Lab::with(1, LINK, config(), poor);
    lab.publish("test", plain());
    let (_, error, text) = refused(&mut lab, "test");
    assert_eq!(error, Code::UnknownModule);
    assert!(text.contains("0x0003"), "{text}");
    let ended = |event: &CoreEvent| match event {
        CoreEvent::SessionEnded { error, .. } => Some(error.clone()),
        _ => None,
    };
    let there = lab.expect(lab.creator, ms(500), ended);
    assert_eq!(code(&there), Some(Code::UnknownModule));
    assert_eq!(lab.count(lab.participant, |it| matches!(it, CoreEvent::Offered { .. })), 0);
    lab.check_empty();
}

#[test]
fn versions_that_do_not_meet_are_told_to_the_dialer_whichever_is_older() {
    for (theirs, ours) in [((2, 3), (1, 1)), ((1, 1), (2, 3))] {
        let (mut creator, mut participant) = (config(), config());
        (creator.versions, participant.versions) = (theirs, ours);
        let mut lab = Lab::with(1, LINK, creator, participant);
        let (now, address) = (lab.now(), lab.world.address(lab.creator));
        lab.world
            .core(lab.participant)
            .handle_command(
                now,
                Command::Connect { remote: address.into(), params: DialParams::default() },
            )
            .and_then(Done::peer)
            .unwrap();
        let lost = |event: &CoreEvent| match event {
            CoreEvent::PeerLost { error, .. } => Some(error.clone()),
            _ => None,
        };
        let (when, error) = lab.expect(lab.participant, ms(2_000), lost);
        assert_eq!(error.code, Code::NoCommonVersion, "{error}");
        assert!(when.since(now) < ms(500), "{when:?}");
        lab.run(ms(3_000));
        for node in [lab.creator, lab.participant] {
            assert_eq!(lab.world.core(node).connection_count(), 0, "{node:?}");
        }
        assert_eq!(lab.count(lab.creator, |it| matches!(it, CoreEvent::PeerOpen { .. })), 0);
    }
}

#[test]
fn the_highest_common_version_is_taken_from_overlapping_ranges() {
    let (mut creator, mut participant) = (config(), config());
    (creator.versions, participant.versions) = ((1, 2), (2, 5));
    let mut lab = Lab::with(1, LINK, creator, participant);
    lab.dial();
}

#[test]
fn nobody_at_the_address_is_reported_within_ten_seconds() {
    for dead in [false, true] {
        let mut lab = Lab::new(LINK);
        let mut address = SocketAddr::from(([203, 0, 113, 1], 19_980));
        if dead {
            address = lab.world.address(lab.creator);
            lab.world.kill(lab.creator);
        }
        let now = lab.now();
        let peer = lab
            .world
            .core(lab.participant)
            .handle_command(
                now,
                Command::Connect { remote: address.into(), params: DialParams::default() },
            )
            .and_then(Done::peer)
            .unwrap();
        let lost = |event: &CoreEvent| match event {
            CoreEvent::PeerLost { peer, error } => Some((*peer, error.clone())),
            _ => None,
        };
        let (when, (lost, error)) = lab.expect(lab.participant, ms(11_000), lost);
        assert_eq!((lost, error.code), (peer, Code::Unreachable));
        assert!(error.text.contains(&address.to_string()), "{error}");
        assert!((ms(9_000)..=ms(10_001)).contains(&when.since(now)), "{when:?}");
        lab.run(ms(10_000));
        assert_eq!(lab.world.core(lab.participant).connection_count(), 0);
        assert_eq!(lab.world.core(lab.participant).next_deadline(when), None, "nothing is left");
    }
}

#[test]
fn an_application_that_wants_no_flow_gets_a_session_without_flows_that_closes() {
    for closer in 0..2 {
        let mut lab = Lab::new(LINK);
        lab.publish("test", vec![offer("one", &["checksum"]), offer("two", &["checksum"])]);
        let peer = lab.dial();
        let here = lab.join(peer, "test");
        lab.offered(here);
        let now = lab.now();
        lab.world.core(lab.participant).answer(now, here, vec![None, None]).unwrap();
        let ready = |event: &CoreEvent| match event {
            CoreEvent::Ready { session } => Some(*session),
            _ => None,
        };
        let (_, there) = lab.expect(lab.creator, ms(1_000), ready);
        lab.expect(lab.participant, ms(1_000), ready);
        lab.activate(here);
        let ends: [(NodeId, _); 2] = [(lab.participant, here), (lab.creator, there)];
        lab.close(ends[closer].0, ends[closer].1);
        for (node, session) in ends {
            let (_, error) = lab.end_of(node, session, ms(1_000));
            assert_eq!(error, None, "closed by {closer}, at {node:?}");
        }
        lab.check_empty();
    }
}

#[test]
fn a_flow_that_is_not_wanted_leaves_the_others() {
    let mut lab = Lab::new(LINK);
    lab.publish("test", vec![offer("one", &["checksum"]), offer("two", &["checksum"])]);
    let peer = lab.dial();
    let here = lab.join(peer, "test");
    let flows = lab.offered(here);
    let (mut ports, seen) = lab.ports(&flows);
    ports[0] = None;
    let now = lab.now();
    lab.world.core(lab.participant).answer(now, here, ports).unwrap();
    lab.expect(lab.participant, ms(1_000), |event| {
        matches!(event, CoreEvent::Ready { .. }).then_some(())
    });
    lab.activate(here);
    assert!(lab.wait(ms(3_000), |lab| lab.ledger(lab.participant, here, 1).is_some()));
    assert_eq!(seen[1].as_ref().unwrap().record().numbers.len(), 1_000);
    assert_eq!(lab.ledger(lab.participant, here, 0), None);
    lab.close(lab.participant, here);
    assert_eq!(code(&lab.end_of(lab.participant, here, ms(1_000))), None);
    lab.check_empty();
}

#[test]
fn an_answer_with_wrong_ports_is_refused_and_another_may_follow_once() {
    let mut lab = Lab::new(LINK);
    lab.publish("test", plain());
    let peer = lab.dial();
    let here = lab.join(peer, "test");
    let flows = lab.offered(here);
    let now = lab.now();
    let source = || Some(Port::Source(Box::new(PatternSource::new(common::pattern(1)))));
    let wrong = lab.world.core(lab.participant).answer(now, here, vec![source()]).unwrap_err();
    assert_eq!(wrong.code, Code::NoSuchThing);
    assert!(wrong.text.contains("this end receives"), "{wrong}");
    for count in [0, 2] {
        let ports = (0..count).map(|_| None).collect();
        let wrong = lab.world.core(lab.participant).answer(now, here, ports).unwrap_err();
        assert_eq!(wrong.code, Code::NoSuchThing, "{count} ports");
    }
    lab.answer(here, &flows);
    lab.run(ms(5));
    let (again, _) = lab.ports(&flows);
    let now = lab.now();
    let again = lab.world.core(lab.participant).answer(now, here, again);
    assert_eq!(again.map_err(|error| error.code), Err(Code::NoSuchThing), "answered already");
    lab.run(ms(500));
    assert_eq!(lab.ended(lab.participant, here), None);
    lab.close(lab.participant, here);
    lab.end_of(lab.participant, here, ms(1_000));
    lab.check_empty();
}

#[test]
fn a_creator_that_opens_the_wrong_kind_of_port_drops_the_flow_at_both_ends() {
    let mut lab = Lab::new(LINK);
    let pattern = lab.pattern;
    lab.publish_with("test", plain(), move |_| {
        Ok(Port::Sink(Box::new(dacapo_netlab::traffic::PatternSink::new(pattern).0)))
    });
    let peer = lab.dial();
    let joined = lab.set_up(peer, "test");
    let record = joined.seen[0].as_ref().unwrap().record().clone();
    assert!(record.ending.is_some(), "the sink is told that nothing will come");
    lab.close(lab.participant, joined.here);
    assert_eq!(code(&lab.end_of(lab.participant, joined.here, ms(1_000))), None);
    lab.check_empty();
}

#[test]
fn a_session_is_refused_at_publishing_when_its_graph_is_illegal() {
    let mut lab = Lab::new(LINK);
    let mut publish = |flows| {
        let spec = SessionSpec {
            name: "x".into(),
            title: String::new(),
            flows,
            participants_max: 1,
            give_up_after: dacapo_core::GIVE_UP_AFTER,
        };
        let open = common::Opens(|_: &_| Err(String::new()));
        lab.world.core(lab.creator).publish(spec, Box::new(open)).unwrap_err()
    };
    assert_eq!(publish(vec![offer("a", &["checksum", "sequence"])]).code, Code::IllegalGraph);
    let mut unknown = offer("a", &["checksum"]);
    unknown.graph.nodes[0].module = 0xF00D;
    assert_eq!(publish(vec![unknown]).code, Code::UnknownModule);
    let mut large = offer("a", &["checksum"]);
    large.unit_len_max = 100_000;
    assert_eq!(publish(vec![large]).code, Code::IllegalGraph);
    let mut elsewhere = offer("a", &["checksum"]);
    elsewhere.transport = 99;
    assert_eq!(publish(vec![elsewhere]).code, Code::Unsupported);
    assert_eq!(publish(Vec::new()).code, Code::TooMany);
    assert_eq!(publish(vec![offer("a", &["checksum"]); 65]).code, Code::TooMany);
    assert!(Catalogue::new(dacapo_modules::entries()).by_id(0xF00D).is_none());
}
