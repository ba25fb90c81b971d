//! Handles in several threads, and what an endpoint does while nobody calls.

use crate::world::{TWO_WAY, WINDOW, active_pair, endpoint, serve, unit, uri, watched};
use dacapo::{Account, Creator, Endpoint, Error, Received, Session};
use std::sync::mpsc;
use std::time::{Duration, Instant};

#[test]
fn handles_go_to_other_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Endpoint>();
    is_shared::<Creator>();
    is_shared::<Session>();
    is_shared::<Account>();
    is_shared::<Error>();
}

#[test]
fn one_thread_sends_and_another_receives_on_one_session() {
    const UNITS: usize = 5_000;
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let echo = std::thread::spawn(move || {
            while let Some(unit) = creator.receiver("back").unwrap().recv().unwrap() {
                creator.sender("there").unwrap().send(&unit).unwrap();
            }
            creator.sender("there").unwrap().finish().unwrap();
        });
        // A unit that came back lets another one go.
        let (free, take) = mpsc::sync_channel(WINDOW);
        (0..WINDOW).for_each(|_| free.send(()).unwrap());
        let sender = participant.clone();
        let sender = std::thread::spawn(move || {
            for number in 0..UNITS {
                take.recv().unwrap();
                sender.sender("back").unwrap().send(&unit(number)).unwrap();
            }
            sender.sender("back").unwrap().finish().unwrap();
        });
        for number in 0..UNITS {
            assert_eq!(participant.receiver("there").unwrap().recv().unwrap(), Some(unit(number)));
            let _ = free.send(());
        }
        assert_eq!(participant.receiver("there").unwrap().recv().unwrap(), None);
        sender.join().unwrap();
        echo.join().unwrap();
    });
}

#[test]
fn several_threads_that_receive_share_the_units_of_a_flow() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let receive = |session: Session| {
            let mut count = 0;
            while session.receiver("there").unwrap().recv().unwrap().is_some() {
                session.sender("back").unwrap().send(b"got it").unwrap();
                count += 1;
            }
            count
        };
        let receivers: Vec<_> = (0..4)
            .map(|_| {
                let session = participant.clone();
                std::thread::spawn(move || receive(session))
            })
            .collect();
        for number in 0..1_000 {
            creator.sender("there").unwrap().send(&unit(number)).unwrap();
            assert_eq!(creator.receiver("back").unwrap().recv().unwrap().unwrap(), b"got it");
        }
        creator.sender("there").unwrap().finish().unwrap();
        let counts: Vec<usize> = receivers.into_iter().map(|it| it.join().unwrap()).collect();
        assert_eq!(counts.iter().sum::<usize>(), 1_000, "{counts:?}");
    });
}

#[test]
fn a_close_ends_the_calls_that_wait_in_other_threads() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let session = participant.clone();
                std::thread::spawn(move || {
                    session.receiver("there").and_then(|mut it| it.recv()).unwrap_err()
                })
            })
            .collect();
        participant.sender("back").unwrap().send(b"").unwrap();
        creator.receiver("back").unwrap().recv().unwrap();
        participant.close().unwrap();
        for thread in waiting {
            let error = thread.join().unwrap();
            assert_eq!(error.text, "the session \"two-way\" is closed; connect or accept anew");
        }
    });
}

#[test]
fn a_call_that_waits_for_a_participant_and_one_for_units_do_not_hold_each_other_up() {
    watched(|| {
        let creator = serve(TWO_WAY);
        let uri = uri(&creator);
        let first = endpoint().connect(&uri).unwrap();
        first.activate().unwrap();
        let end = creator.accept().unwrap();
        // Both wait at the creator's endpoint: one of them leads, the other follows.
        let accepts = std::thread::spawn(move || creator.accept().unwrap());
        let receives =
            std::thread::spawn(move || (end.receiver("back").unwrap().recv().unwrap(), end));
        first.sender("back").unwrap().send(b"unit").unwrap();
        let (unit, _end) = receives.join().unwrap();
        assert_eq!(unit.unwrap(), b"unit");
        let second = endpoint().connect(&uri).unwrap();
        assert_eq!(accepts.join().unwrap().name(), second.name());
    });
}

#[test]
fn an_endpoint_that_nobody_calls_keeps_its_sessions_and_turns_only_when_there_is_something() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let endpoints = [creator.endpoint().clone(), participant.endpoint().clone()];
        let turns = || endpoints.each_ref().map(|it| it.counters().background_turns);
        // Looking at counters turns nothing. What turns after the last call are life signs.
        let wait_for_turns = |more: u64| {
            let end = turns().map(|turns| turns + more);
            while turns().iter().zip(end).any(|(turns, end)| *turns < end) {
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        wait_for_turns(3);
        let before = endpoints.each_ref().map(Endpoint::counters);
        wait_for_turns(6);
        for (before, endpoint) in before.iter().zip(&endpoints) {
            let after = endpoint.counters();
            assert_eq!(after.empty_turns, before.empty_turns, "{after:?}");
            assert_eq!(after.background_looks, before.background_looks, "{after:?}");
            let (all, background) = (after.turns, after.background_turns);
            let of_calls = before.turns - before.background_turns;
            assert!(all - background <= of_calls + 1, "nobody else turns: {after:?}");
        }
        participant.sender("back").unwrap().send(b"alive").unwrap();
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap().unwrap(), b"alive");
        assert_eq!(creator.receiver("back").unwrap().try_recv().unwrap(), Received::Nothing);
    });
}

#[test]
fn an_endpoint_without_peers_does_not_turn_at_all() {
    watched(|| {
        let creator = serve(TWO_WAY);
        // The background has the lead once it has stopped looking; then nothing is due.
        let quiet = Duration::from_millis(20);
        let mut before = creator.endpoint().counters();
        loop {
            std::thread::sleep(quiet);
            let after = creator.endpoint().counters();
            if after == before {
                break;
            }
            before = after;
        }
        assert_eq!((before.background_turns, before.empty_turns), (0, 0), "{before:?}");
    });
}

#[test]
fn while_calls_turn_the_background_never_takes_their_lock() {
    /// The background may step in when no call has turned for so long.
    const QUIET: Duration = Duration::from_millis(5);
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let endpoint = participant.endpoint().clone();
        // Calls for 50 ms; whether none was so late that the background may have stepped in.
        let call = || {
            let (begin, mut last, mut in_time) = (Instant::now(), Instant::now(), true);
            while begin.elapsed() < 10 * QUIET {
                let before = Instant::now();
                assert_eq!(
                    participant.receiver("there").unwrap().try_recv().unwrap(),
                    Received::Nothing
                );
                in_time &= last.elapsed() < QUIET;
                last = before;
                std::thread::sleep(Duration::from_micros(100));
            }
            in_time && last.elapsed() < QUIET
        };
        // A machine that is busy has stretches that say nothing.
        let mut stretches = 0;
        while stretches < 5 {
            // Whatever the background was about, it learns that calls turn.
            if !call() {
                continue;
            }
            let before = endpoint.counters();
            let in_time = call();
            let after = endpoint.counters();
            if in_time {
                assert!(after.turns > before.turns && after.background_looks > 0, "{after:?}");
                assert_eq!(after.background_locks, before.background_locks, "{after:?}");
                stretches += 1;
            }
        }
        drop(creator);
    });
}
