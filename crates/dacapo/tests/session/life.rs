//! The life cycle: ready, active, paused, closed.

use crate::world::{TWO_WAY, active_pair, endpoint, pair, serve, unit, uri, watched};
use dacapo::{Code, Direction};
use std::time::Duration;

#[test]
fn both_ends_see_the_flows_as_they_were_agreed() {
    watched(|| {
        let (creator, participant) = pair(TWO_WAY);
        let (here, there) = (creator.flows(), participant.flows());
        let shown: Vec<String> = there.iter().map(ToString::to_string).collect();
        let graph = "segment ! sequence ! checksum ! udp";
        assert!(
            shown[0].starts_with(&format!("there: received by this end, {graph}, units up to"))
        );
        assert!(shown[1].starts_with(&format!("back: sent by this end, {graph}, units up to")));
        assert!(shown[1].ends_with("at most 200 Mbit/s"), "{}", shown[1]);
        assert_eq!(here[0].direction, Direction::Outgoing);
        assert_eq!((&here[0].graph, here[1].bound_bps), (&there[0].graph, 200_000_000));
        assert_eq!((participant.name(), participant.title().as_str()), ("two-way", "Both ways"));
        assert_eq!(creator.peer_fingerprint(), Some(participant.endpoint().fingerprint()));
        assert_eq!(participant.peer_fingerprint(), Some(creator.endpoint().fingerprint()));
        assert_eq!(participant.remote(), creator.endpoint().listening()[0]);
    });
}

#[test]
fn what_is_handed_over_waits_for_the_participant_to_activate() {
    watched(|| {
        let (creator, participant) = pair(TWO_WAY);
        (0..10).for_each(|number| creator.sender("there").unwrap().send(&unit(number)).unwrap());
        assert!(!creator.is_active() && !participant.is_active());
        assert_eq!(creator.account().flow("there").unwrap().not_sent, 10);
        participant.activate().unwrap();
        creator.activate().unwrap();
        assert!(creator.is_active() && participant.is_active());
        for number in 0..10 {
            assert_eq!(participant.receiver("there").unwrap().recv().unwrap(), Some(unit(number)));
        }
    });
}

#[test]
fn a_pause_holds_units_and_loses_none() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        for pause in 0..20 {
            let (begin, end) = (pause * 20, (pause + 1) * 20);
            let half = begin + 10;
            (begin..half)
                .for_each(|number| creator.sender("there").unwrap().send(&unit(number)).unwrap());
            participant.deactivate().unwrap();
            assert!(!participant.is_active());
            (half..end)
                .for_each(|number| creator.sender("there").unwrap().send(&unit(number)).unwrap());
            // Of what was handed over in the pause nothing comes, whatever is on its way.
            let underway = participant.account().flow("there").unwrap().ledger.delivered;
            assert!(underway <= half as u64, "{underway} of {half}");
            participant.activate().unwrap();
            for number in begin..end {
                assert_eq!(
                    participant.receiver("there").unwrap().recv().unwrap(),
                    Some(unit(number))
                );
            }
        }
        creator.sender("there").unwrap().finish().unwrap();
        assert_eq!(participant.receiver("there").unwrap().recv().unwrap(), None);
        let account = creator.close().unwrap();
        assert_eq!(account.flow("there").unwrap().ledger.delivered, 400);
    });
}

#[test]
fn activating_twice_is_once() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        participant.activate().unwrap();
        creator.activate().unwrap();
        participant.deactivate().unwrap();
        participant.deactivate().unwrap();
    });
}

#[test]
fn threads_that_activate_and_deactivate_at_once_all_get_through() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let threads: Vec<_> = (0..4)
            .map(|index| {
                let session = participant.clone();
                std::thread::spawn(move || {
                    for _ in 0..50 {
                        match index % 2 {
                            0 => session.activate().unwrap(),
                            _ => session.deactivate().unwrap(),
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        participant.activate().unwrap();
        participant.sender("back").unwrap().send(b"runs").unwrap();
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap().unwrap(), b"runs");
    });
}

#[test]
fn close_sends_what_was_handed_over_and_waits_until_it_is_accounted_for() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        (0..200)
            .for_each(|number| participant.sender("back").unwrap().send(&unit(number)).unwrap());
        let account = participant.close().unwrap();
        assert_eq!(account.flow("back").unwrap().ledger.delivered, 200, "{account}");
        assert!(account.flows.iter().all(|flow| flow.is_final), "{account}");
        for number in 0..200 {
            assert_eq!(creator.receiver("back").unwrap().recv().unwrap(), Some(unit(number)));
        }
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap(), None);
        assert_eq!(creator.close().unwrap().flow("back").unwrap().ledger.delivered, 200);
    });
}

#[test]
fn a_session_that_is_dropped_closes_in_order() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        participant.sender("back").unwrap().send(b"last words").unwrap();
        drop(participant);
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap().unwrap(), b"last words");
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap(), None);
        // Its own flow had nothing to say, and ended with the session.
        assert_eq!(
            creator.sender("there").and_then(|mut it| it.send(b"?")).unwrap_err().code,
            Code::Closed
        );
        assert!(creator.close().unwrap().flow("back").unwrap().is_complete());
    });
}

#[test]
fn a_session_that_was_never_active_is_closed_and_dropped_all_the_same() {
    watched(|| {
        let (creator, participant) = pair(TWO_WAY);
        creator.sender("there").unwrap().send(b"never").unwrap();
        let account = creator.close().unwrap();
        assert_eq!(account.flow("there").unwrap().not_sent, 1);
        assert!(!account.is_complete());
        assert_eq!(participant.activate().unwrap_err().code, Code::Closed);
        let (creator, participant) = pair(TWO_WAY);
        drop(participant);
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap(), None);
    });
}

#[test]
fn a_session_that_ended_before_it_was_accepted_can_be_read() {
    watched(|| {
        let creator = serve(TWO_WAY);
        let participant = endpoint().connect(&uri(&creator)).unwrap();
        participant.activate().unwrap();
        participant.sender("back").unwrap().send(b"early").unwrap();
        participant.close().unwrap();
        let session = creator.accept().unwrap();
        assert_eq!(session.receiver("back").unwrap().recv().unwrap().unwrap(), b"early");
        assert_eq!(session.receiver("back").unwrap().recv().unwrap(), None);
        session.close().unwrap();
    });
}

#[test]
fn a_creator_that_activates_a_session_which_is_over_by_then_finds_that_it_was_active() {
    watched(|| {
        let creator = serve(TWO_WAY);
        let participant = endpoint().connect(&uri(&creator)).unwrap();
        participant.activate().unwrap();
        participant.sender("back").unwrap().send(b"short").unwrap();
        participant.close().unwrap();
        let session = creator.accept().unwrap();
        session.activate().unwrap();
        assert!(!session.is_active());
        assert_eq!(session.receiver("back").unwrap().recv().unwrap().unwrap(), b"short");
        assert_eq!(session.receiver("back").unwrap().recv().unwrap(), None);
        session.activate().unwrap();
        session.close().unwrap();
    });
}

#[test]
fn who_activates_a_session_that_never_will_be_active_learns_that_it_is_over() {
    watched(|| {
        let (creator, participant) = pair(TWO_WAY);
        participant.close().unwrap();
        let error = creator.activate().unwrap_err();
        assert_eq!(error.code, Code::Closed);
        assert_eq!(error.text, "the peer has closed the session \"two-way\"");
        // A participant that paused asks for more than what was.
        let (creator, participant) = active_pair(TWO_WAY);
        participant.deactivate().unwrap();
        creator.close().unwrap();
        assert_eq!(participant.activate().unwrap_err().code, Code::Closed);
    });
}

#[test]
fn a_second_session_goes_over_the_same_connection_and_lives_on_its_own() {
    watched(|| {
        let creator = serve(TWO_WAY);
        let endpoint = endpoint();
        let sessions = [(); 2].map(|()| endpoint.connect(&uri(&creator)).unwrap());
        assert_eq!((endpoint.peer_count(), creator.endpoint().peer_count()), (1, 1));
        let ends = [(); 2].map(|()| creator.accept().unwrap());
        for (number, session) in sessions.iter().enumerate() {
            session.activate().unwrap();
            session.sender("back").unwrap().send(&unit(number)).unwrap();
        }
        for (number, end) in ends.iter().enumerate() {
            assert_eq!(end.receiver("back").unwrap().recv().unwrap(), Some(unit(number)));
        }
        let [first, second] = sessions;
        first.close().unwrap();
        assert_eq!(ends[0].receiver("back").unwrap().recv().unwrap(), None);
        second.sender("back").unwrap().send(b"still here").unwrap();
        assert_eq!(ends[1].receiver("back").unwrap().recv().unwrap().unwrap(), b"still here");
        // The connection outlives both, and a third session finds it.
        second.close().unwrap();
        let third = endpoint.connect(&uri(&creator)).unwrap();
        assert_eq!((endpoint.peer_count(), creator.endpoint().peer_count()), (1, 1));
        third.close().unwrap();
    });
}

#[test]
fn two_sessions_of_one_endpoint_have_their_own_names() {
    watched(|| {
        let creator = serve(TWO_WAY);
        let other = creator.endpoint().create(TWO_WAY.replace("two-way", "other")).unwrap();
        let uris = [uri(&creator), uri(&other)];
        assert!(uris[1].ends_with("/other"), "{}", uris[1]);
        let endpoint = endpoint();
        let session = endpoint.connect(&uris[1]).unwrap();
        assert_eq!((session.name(), other.accept().unwrap().name()), ("other", "other"));
        assert!(creator.accept_timeout(Duration::ZERO).unwrap().is_none());
    });
}

#[test]
fn nobody_can_join_when_the_creator_is_gone_and_who_was_accepted_stays() {
    watched(|| {
        let creator = serve(TWO_WAY);
        let (endpoint, uri) = (endpoint(), uri(&creator));
        let accepted = endpoint.connect(&uri).unwrap();
        let end = creator.accept().unwrap();
        let waiting = endpoint.connect(&uri).unwrap();
        drop(creator);
        // Who was not accepted is let go …
        waiting.activate().map_or_else(|error| assert_eq!(error.code, Code::Closed), drop);
        while waiting.receiver("there").and_then(|mut it| it.recv()).is_ok_and(|it| it.is_some()) {}
        // … nobody else comes in, and who was accepted is not touched.
        assert_eq!(endpoint.connect(&uri).unwrap_err().code, Code::NotServed);
        accepted.activate().unwrap();
        accepted.sender("back").unwrap().send(b"here").unwrap();
        assert_eq!(end.receiver("back").unwrap().recv().unwrap().unwrap(), b"here");
    });
}
