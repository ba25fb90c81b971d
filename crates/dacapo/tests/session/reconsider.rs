//! What decides while a flow runs: it sees what was measured, once a second, and the flow is
//! changed as it says.

use crate::world::{TWO_WAY, active_pair, unit, watched};
use dacapo::{Change, Code, Event, Events, FlowInfo, Measured, RECONSIDER_EVERY};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

fn to(graph: &str) -> Option<Change> {
    Some(Change::Graph(graph.to_owned()))
}

/// The next event about a change.
fn next_change(events: &mut Events) -> Event {
    loop {
        let event = events.wait().unwrap().expect("the session lives");
        if matches!(event, Event::Changed { .. } | Event::ChangeFailed { .. }) {
            return event;
        }
    }
}

#[test]
fn a_flow_is_changed_by_what_watches_it_and_goes_on_whatever_that_does() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let mut events = creator.events();
        let (tell, told) = mpsc::channel();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let began = Instant::now();
        let how = move |flow: &FlowInfo, seen: &Measured| {
            let names: Vec<_> = seen.modules.iter().map(|it| it.name).collect();
            tell.send((flow.graph.clone(), names, seen.path.controller)).unwrap();
            match count.fetch_add(1, Ordering::Relaxed) {
                0 => to("segment ! checksum"),
                1 => to("checksum ! segment"),
                _ => panic!("it makes a mistake"),
            }
        };
        creator.sender("there").unwrap().reconsider(how).unwrap();
        let send = |numbers: std::ops::Range<usize>| {
            for number in numbers {
                creator.sender("there").unwrap().send(&unit(number)).unwrap();
                let come = participant.receiver("there").unwrap().recv().unwrap();
                assert_eq!(come, Some(unit(number)), "unit {number}");
            }
        };
        send(0..100);
        let flow = || "there".to_owned();
        assert_eq!(next_change(&mut events), Event::Changed { flow: flow(), epoch: 1 });
        send(100..200);
        let Event::ChangeFailed { error, .. } = next_change(&mut events) else { panic!("changed") };
        assert_eq!(error.code, Code::IllegalGraph, "{error}");
        send(200..300);
        let Event::ChangeFailed { error, .. } = next_change(&mut events) else { panic!("changed") };
        assert!(error.text.contains("panicked"), "{error}");
        assert!(began.elapsed() >= RECONSIDER_EVERY * 3, "at most once a second");
        send(300..400);
        let agreed = "segment ! sequence ! checksum".to_owned();
        let before = vec!["segment", "sequence", "checksum"];
        assert_eq!(told.recv().unwrap(), (agreed.clone(), before, "reserved"));
        let after = vec!["segment", "checksum"];
        assert_eq!(told.recv().unwrap(), (agreed.clone(), after.clone(), "reserved"));
        assert_eq!(told.recv().unwrap(), (agreed, after, "reserved"));
        assert!(told.recv().is_err(), "it is asked no more");
        assert_eq!(asked.load(Ordering::Relaxed), 3);
        let account = creator.close().unwrap();
        let there = account.flow("there").unwrap();
        assert!(there.is_complete() && there.same_bytes == Some(true), "{account}");
    });
}

#[test]
fn while_a_session_pauses_nobody_is_asked_and_whose_session_is_closed_is_told() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let never = |_: &FlowInfo, _: &Measured| None;
        participant.deactivate().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let counts = move |_: &FlowInfo, _: &Measured| {
            count.fetch_add(1, Ordering::Relaxed);
            None
        };
        let back = participant.sender("back").unwrap();
        back.reconsider(counts).unwrap();
        std::thread::sleep(RECONSIDER_EVERY * 3 / 2);
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        participant.activate().unwrap();
        while asked.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(RECONSIDER_EVERY / 10);
        }
        creator.close().unwrap();
        participant.close().unwrap();
        let error = back.reconsider(never).unwrap_err();
        assert!(error.text.contains("closed"), "{error}");
    });
}
