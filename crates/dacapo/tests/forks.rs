//! A process that has sessions is forked: to the child they are gone, and nothing else changes.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]
#![allow(dead_code, reason = "what tests of sessions share is more than this one needs")]

#[path = "session/world.rs"]
mod world;

use dacapo::{
    Code, Command, Creator, Deadline, Endpoint, Error, FlowReceiver, FlowSender, Join, Received,
    Session,
};
use dacapo_sys::process::fork;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use world::{TWO_WAY, active_pair, endpoint, serve, uri, watched};

/// A child that has not ended by then hangs.
const MOST: Duration = Duration::from_secs(10);

/// Which of the answers are another one than that the process was forked.
fn others(answers: Vec<(&str, Result<(), Error>)>) -> Vec<String> {
    let is_other = |it: &(&str, Result<(), Error>)| {
        it.1.as_ref().err().is_none_or(|error| error.code != Code::Forked)
    };
    let others = answers.into_iter().filter(is_other);
    others.map(|(call, answer)| format!("{call}: {answer:?}")).collect()
}

fn of_session(session: &Session) -> Vec<(&'static str, Result<(), Error>)> {
    vec![
        ("sender", session.sender("there").map(drop)),
        ("receiver", session.receiver("there").map(drop)),
        ("message_sender", session.message_sender("there").map(drop)),
        ("message_receiver", session.message_receiver("there").map(drop)),
        ("activate", session.activate()),
        ("deactivate", session.deactivate()),
        ("set_give_up", session.set_give_up(Duration::ZERO)),
        ("close", session.close().map(drop)),
    ]
}

fn of_flow(
    sender: &mut FlowSender,
    receiver: &mut FlowReceiver,
) -> Vec<(&'static str, Result<(), Error>)> {
    vec![
        ("send", sender.send(b"child")),
        ("try_send", sender.try_send(b"child").map(drop)),
        ("finish", sender.finish()),
        ("recv", receiver.recv().map(drop)),
        ("recv_by", receiver.recv_by(Deadline::NEVER).map(drop)),
        ("try_recv", receiver.try_recv().map(drop)),
        ("recv_into", receiver.recv_into(&mut [0; 9]).map(drop)),
        ("recv_with", receiver.recv_with(|_| ()).map(drop)),
    ]
}

fn of_endpoint(
    endpoint: &mut Endpoint,
    session: &Session,
    sender: &FlowSender,
) -> Vec<(&'static str, Result<(), Error>)> {
    let turned = endpoint.turn(Deadline::NEVER);
    let turned = turned.map(drop).map_err(|error| error.downcast::<Error>().unwrap());
    vec![
        ("turn", turned),
        ("create", endpoint.create(TWO_WAY).map(drop)),
        ("listen", endpoint.listen(&["127.0.0.1:0".parse().unwrap()])),
        ("connect", endpoint.connect("dacapo://127.0.0.1:9/none").map(drop)),
        ("join", endpoint.join("dacapo://127.0.0.1:9/none", &Join::new()).map(drop)),
        ("answer", endpoint.answer(session.id(), Vec::new())),
        ("wake", endpoint.wake(sender.id())),
        ("command", endpoint.command(Command::Close(session.id())).map(drop)),
    ]
}

fn of_creator(creator: &Creator) -> Vec<(&'static str, Result<(), Error>)> {
    vec![
        ("listen", creator.listen("127.0.0.1:0")),
        ("accept", creator.accept().map(drop)),
        ("accept_timeout", creator.accept_timeout(Duration::MAX).map(drop)),
    ]
}

/// What tells nothing of the parent's, and does not wait.
fn look_around(endpoint: &mut Endpoint, session: &Session, receiver: &FlowReceiver) -> bool {
    _ = (session.title(), session.remote(), session.peer_fingerprint(), session.path_mtu());
    _ = (session.account(), session.measured("there"), session.media(), format!("{session:?}"));
    _ = (endpoint.listening(), endpoint.fingerprint(), endpoint.counters(), endpoint.missing());
    _ = (endpoint.transport_stats(), endpoint.next_deadline(), endpoint.open_tickets());
    session.flows().is_empty()
        && !session.is_active()
        && receiver.next_len().is_none()
        && endpoint.peer_count() == 0
        && endpoint.poll_event().is_none()
        && endpoint.poll_unit(receiver.id()).is_none()
        && session.events().poll().is_none()
}

#[test]
fn in_a_fork_every_call_says_so_and_to_drop_a_handle_does_nothing() {
    watched(|| {
        let creator = serve(TWO_WAY);
        let participant = endpoint().connect(&uri(&creator)).unwrap();
        let accepted = creator.accept().unwrap();
        participant.activate().unwrap();
        accepted.activate().unwrap();
        let (mut there, mut back) =
            (accepted.sender("there").unwrap(), participant.sender("back").unwrap());
        let (mut at, mut from) =
            (participant.receiver("there").unwrap(), accepted.receiver("back").unwrap());
        there.send(b"before").unwrap();
        let unread = at.recv().unwrap().unwrap();
        let mut own = participant.endpoint().clone();
        let child = fork(|| {
            let mut wrong = others(of_session(&participant));
            wrong.extend(others(of_session(&accepted)));
            wrong.extend(others(of_flow(&mut there, &mut at)));
            wrong.extend(others(of_endpoint(&mut own, &participant, &back)));
            wrong.extend(others(of_creator(&creator)));
            if !look_around(&mut own, &participant, &at) {
                wrong.push("something was found".into());
            }
            at.give_back(unread.clone());
            wrong.iter().for_each(|it| eprintln!("in the fork: {it}"));
            let handles = (
                (there.clone(), at.clone(), back.clone(), from.clone()),
                (participant.clone(), accepted.clone(), creator.clone(), own.clone()),
            );
            drop(handles);
            u8::from(!wrong.is_empty())
        });
        assert_eq!(child.unwrap().wait(MOST).unwrap(), Some(0));
        assert_eq!(at.try_recv().unwrap(), Received::Nothing, "nothing came of the fork");
        back.send(b"after").unwrap();
        assert_eq!(from.recv().unwrap().unwrap(), b"after");
        there.send(b"after").unwrap();
        assert_eq!(at.recv().unwrap().unwrap(), b"after");
        let account = participant.close().unwrap();
        assert!(account.flows.iter().all(|flow| flow.ledger.closes()), "{account}");
        let sent: Vec<u64> = account.flows.iter().map(|flow| flow.ledger.sent).collect();
        let whole: Vec<u64> = account.flows.iter().map(|flow| flow.ledger.delivered).collect();
        assert_eq!((sent, whole), (vec![2, 1], vec![2, 1]));
    });
}

/// Everything that a process has of an endpoint and a session.
struct Everything {
    flows: (FlowSender, FlowReceiver),
    sessions: (Session, Session),
}

#[test]
fn the_last_handles_that_are_dropped_in_a_fork_end_nothing() {
    watched(|| {
        let sessions = active_pair(TWO_WAY);
        let flows = (sessions.0.sender("there").unwrap(), sessions.1.receiver("there").unwrap());
        let mut all = Some(Everything { flows, sessions });
        let child = fork(|| {
            drop(all.take());
            // Its own is one like any other.
            let mine = endpoint();
            u8::from(mine.listen(&["127.0.0.1:0".parse().unwrap()]).is_err())
        });
        assert_eq!(child.unwrap().wait(MOST).unwrap(), Some(0));
        let Everything { flows: (mut sends, mut takes), sessions } = all.take().unwrap();
        for number in 0..100_u8 {
            sends.send(&[number]).unwrap();
            assert_eq!(takes.recv().unwrap().unwrap(), [number]);
        }
        let account = sessions.0.close().unwrap();
        assert_eq!(account.flows[0].ledger.delivered, 100, "{account}");
    });
}

#[test]
fn no_fork_hangs_on_what_a_thread_of_the_parent_had_locked() {
    watched(|| {
        let (accepted, participant) = active_pair(TWO_WAY);
        let is_over = Arc::new(AtomicBool::new(false));
        let mut sends = accepted.sender("there").unwrap();
        let mut takes = participant.receiver("there").unwrap();
        let (over, looks) = (Arc::clone(&is_over), participant.clone());
        let busy = [
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    drop((looks.account(), looks.endpoint().counters()));
                }
            }),
            thread::spawn({
                let (over, mut sends) = (Arc::clone(&is_over), sends.clone());
                move || {
                    while !over.load(Ordering::Relaxed) {
                        sends.send(&[7; 100]).unwrap();
                    }
                }
            }),
        ];
        for _ in 0..30 {
            let child = fork(|| {
                let send = sends.send(b"child").err().map(|error| error.code);
                let recv = takes.recv().err().map(|error| error.code);
                takes.give_back(vec![1]);
                drop((sends.clone(), participant.clone(), accepted.endpoint().clone()));
                u8::from(send != Some(Code::Forked) || recv != Some(Code::Forked))
            });
            assert_eq!(child.unwrap().wait(MOST).unwrap(), Some(0));
            while let Received::Unit(unit) = takes.try_recv().unwrap() {
                assert_eq!(unit, [7; 100]);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        busy.into_iter().for_each(|thread| thread.join().unwrap());
        accepted.close().unwrap();
    });
}
