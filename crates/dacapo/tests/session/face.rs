//! What a session says and is told besides units: its events, commands to its media, a change of a
//! flow while units go.

use crate::media::{Folder, GRAPH, movie_session};
use crate::world::{TWO_WAY, active_pair, endpoint, pair, unit, uri, watched};
use dacapo::command::State;
use dacapo::{Change, Code, Event, Join, MediaCommand, Session};
use std::time::Duration;

const UNITS: usize = 3_000;

fn to(graph: &str) -> Change {
    Change::Graph(graph.to_owned())
}

#[test]
fn a_flow_is_changed_by_its_sender_while_units_go_and_none_is_lost() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let mut events = creator.events();
        let reader = std::thread::spawn(move || {
            for number in 0..UNITS {
                assert_eq!(
                    participant.receiver("there").unwrap().recv().unwrap(),
                    Some(unit(number)),
                    "unit {number}"
                );
            }
            assert_eq!(participant.receiver("there").unwrap().recv().unwrap(), None);
            participant
        });
        let graphs = ["segment ! sequence hold=60ms ! checksum", "segment ! sequence", "checksum"];
        let graphs =
            graphs.map(|graph| if graph == "checksum" { "segment ! checksum" } else { graph });
        let mut epochs = Vec::new();
        for number in 0..UNITS {
            if number % 500 == 250 {
                let graph = graphs[number / 500 % graphs.len()];
                epochs.push(creator.change("there", &to(graph)).unwrap());
            }
            creator.sender("there").unwrap().send(&unit(number)).unwrap();
        }
        assert_eq!(epochs, [1, 2, 3, 4, 5, 6]);
        creator.sender("there").unwrap().finish().unwrap();
        let _participant = reader.join().unwrap();
        let names: Vec<_> =
            creator.measured("there").unwrap().modules.iter().map(|it| it.name).collect();
        assert_eq!(names, ["segment", "checksum"]);
        // Nobody has read meanwhile: of six changes the last is told.
        let changed = std::iter::from_fn(|| events.poll());
        let changed: Vec<_> = changed.filter(|it| matches!(it, Event::Changed { .. })).collect();
        assert_eq!(changed, [Event::Changed { flow: "there".to_owned(), epoch: 6 }]);
        assert!(events.merged() >= 5, "{}", events.merged());
        let account = creator.close().unwrap();
        let there = account.flow("there").unwrap();
        assert!(there.is_complete() && there.same_bytes == Some(true), "{account}");
    });
}

#[test]
fn a_change_that_cannot_be_is_refused_with_the_reason_and_the_flow_goes_on() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let refused = |flow: &str, graph: &str| creator.change(flow, &to(graph)).unwrap_err();
        let wrong = refused("there", "segmant");
        assert_eq!(wrong.code, Code::IllegalGraph);
        assert!(wrong.text.contains("did you mean \"segment\"?"), "{wrong}");
        // The order of modules is the engine's to judge.
        assert_eq!(refused("there", "checksum ! segment").code, Code::IllegalGraph);
        assert!(refused("back", "segment").text.contains("received by this end"));
        assert!(refused("nowhere", "segment").text.contains("it has there, back"));
        creator.sender("there").unwrap().send(b"as before").unwrap();
        assert_eq!(participant.receiver("there").unwrap().recv().unwrap().unwrap(), b"as before");
        creator.close().unwrap();
        assert!(refused("there", "segment").text.contains("is closed"));
    });
}

#[test]
fn events_tell_the_life_of_a_session_and_end_with_it() {
    watched(|| {
        let (creator, participant) = pair(TWO_WAY);
        let (mut here, mut there) = (creator.events(), participant.events());
        assert_eq!(here.wait_timeout(Duration::ZERO).unwrap(), None);
        participant.activate().unwrap();
        assert_eq!(there.wait().unwrap(), Some(Event::Active));
        assert_eq!(here.wait().unwrap(), Some(Event::Active));
        participant.deactivate().unwrap();
        assert_eq!(there.wait().unwrap(), Some(Event::Inactive));
        assert_eq!(here.wait().unwrap(), Some(Event::Inactive));
        participant.activate().unwrap();
        creator.activate().unwrap();
        participant.sender("back").unwrap().send(b"one").unwrap();
        participant.sender("back").unwrap().finish().unwrap();
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap().unwrap(), b"one");
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap(), None);
        let mut told = Vec::new();
        participant.close().unwrap();
        while let Some(event) = here.wait().unwrap() {
            told.push(event);
        }
        let account = told.iter().find_map(|event| match event {
            Event::FlowEnded { account } if account.flow == "back" => Some(account),
            _ => None,
        });
        assert_eq!(account.unwrap().ledger.delivered, 1, "{told:?}");
        assert!(matches!(told.last(), Some(Event::Ended { .. })), "{told:?}");
        assert_eq!(here.wait().unwrap(), None, "nothing follows the end");
    });
}

/// A movie of this long that is served, and who has joined it so.
fn movie(folder: &Folder, seconds: u64, how: &Join) -> (Session, Session) {
    let plan = folder.plan_movie(Duration::from_secs(seconds), &movie_session("", GRAPH));
    let creator = endpoint().serve(&plan).unwrap();
    creator.listen("127.0.0.1:0").unwrap();
    let participant = endpoint().join(&uri(&creator), how).unwrap();
    (creator.accept().unwrap(), participant)
}

#[test]
fn media_are_saved_by_a_session_of_the_library() {
    watched(|| {
        let folder = Folder::new("face-save");
        let into = folder.path("in");
        std::fs::create_dir(&into).unwrap();
        let (creator, participant) = movie(&folder, 1, &Join::new().save(&into));
        participant.activate().unwrap();
        participant.wait_end().unwrap();
        assert!(participant.wait_end_timeout(Duration::ZERO).unwrap());
        let media = participant.media();
        let saved: Vec<_> = media.iter().filter_map(|flow| flow.saved.clone()).collect();
        assert_eq!(saved, [into.join("movie.avi"), into.join("movie.avi")]);
        assert_eq!((media[0].flow.as_str(), media[0].media_frames), ("video", 25));
        assert!(participant.media_notes().is_empty());
        let account = participant.close().unwrap();
        assert_eq!(account.flow("video").unwrap().same_bytes, Some(true), "{account}");
        assert!(into.join("movie.avi").metadata().unwrap().len() > 0);
        let account = creator.account();
        assert_eq!(account.flow("audio").unwrap().same_bytes, Some(true), "{account}");
    });
}

#[test]
fn media_are_told_what_to_do_and_answer() {
    watched(|| {
        let folder = Folder::new("face-command");
        let (_creator, participant) = movie(&folder, 600, &Join::new().count());
        let early = participant.command(MediaCommand::Stop).unwrap_err();
        assert!(early.text.contains("call activate() first"), "{early}");
        participant.activate().unwrap();
        let stands = participant.command(MediaCommand::Stop).unwrap();
        assert_eq!(stands.state, State::Stopped);
        assert_eq!(participant.command(MediaCommand::Fwd).unwrap().state, State::Stopped);
        let at_start = participant.command(MediaCommand::Rwd).unwrap();
        assert_eq!(at_start.position_ns, 0, "{at_start}");
        assert_eq!(participant.command(MediaCommand::Ff).unwrap().state, State::FastForward);
        assert_eq!(participant.command(MediaCommand::Fr).unwrap().state, State::FastReverse);
        assert_eq!(participant.command(MediaCommand::Play).unwrap().state, State::Playing);
        assert!(!participant.wait_end_timeout(Duration::from_millis(20)).unwrap());
        participant.close().unwrap();
    });
}

#[test]
fn a_session_without_media_answers_commands_and_does_nothing() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let stands = participant.command(MediaCommand::Stop).unwrap();
        assert_eq!((stands.position_ns, stands.fps), (0, 0), "{stands}");
        participant.sender("back").unwrap().send(b"on").unwrap();
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap().unwrap(), b"on");
        participant.close().unwrap();
    });
}

#[test]
fn media_that_nobody_asked_for_are_declined_with_what_to_do() {
    watched(|| {
        let folder = Folder::new("face-decline");
        let plan = folder.plan_movie(Duration::from_secs(1), &movie_session("", GRAPH));
        let creator = endpoint().serve(&plan).unwrap();
        creator.listen("127.0.0.1:0").unwrap();
        let error = endpoint().connect(&uri(&creator)).unwrap_err();
        assert_eq!(error.code, Code::Unsupported);
        assert!(error.text.contains("Join::save"), "{error}");
        let nowhere = Join::new().save(folder.path("missing"));
        let error = endpoint().join(&uri(&creator), &nowhere).unwrap_err();
        assert_eq!(error.code, Code::AccessFailed, "{error}");
        assert!(error.text.contains("missing"), "{error}");
    });
}
