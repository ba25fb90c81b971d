//! Cases whose outcome was wrong in the core when they were written: each has a test of its own, so
//! that its name says what must not come back.

use crate::Case;
use crate::Outcome::{GoesOn, Open, Seen, Session};
use crate::arena::{Arena, As, At, extend};
use crate::common::raw::{RawPeer, question, tagged};
use crate::common::{Opens, graph, ms, offer, plain};
use crate::{dialer, listener, run_all};
use dacapo_core::{Code, Command, CoreEvent, SessionSpec};
use dacapo_wire::change::{Abort, Prepare};
use dacapo_wire::hub::List;
use dacapo_wire::message::Message;
use dacapo_wire::session::{
    Accept, Activate, Activated, Close, Closed, Control, Deactivate, End, Report,
};
use std::net::SocketAddr;

/// Runs one case.
fn check(case: Case) {
    run_all("known", &[case]);
}

#[test]
fn an_accept_before_the_answer_ends_the_session() {
    let name = "ACCEPT before ANSWER, with the transcript of the OFFER";
    check(listener(name, At::Offered, Session(Code::Violation), |arena| {
        let transcript = extend([0; 32], &arena.offer.clone().into());
        arena.say(Accept { transcript, flows: crate::arena::answer(3).flows });
        arena.run(40);
        let ready = arena.count(|event| matches!(event, CoreEvent::Ready { .. }));
        assert_eq!(ready, 0, "nobody has answered");
    }));
}

/// The raw peer sends units, says that there were fewer, and the account must close.
fn end_below(arena: &mut Arena) {
    (0..10).for_each(|at| arena.unit(0, at, at));
    arena.run(10);
    arena.say(End { flow: 0, units: 3, ..End::default() });
    arena.run(500);
    let ledger = arena.ledger(0).expect("the flow is accounted for");
    assert!(ledger.closes(), "{ledger:?}");
}

#[test]
fn an_end_with_fewer_units_than_came_leaves_an_account_that_closes() {
    check(dialer("END with fewer units than came", At::Active, GoesOn, end_below));
}

#[test]
fn data_beyond_what_end_says_leave_an_account_that_closes() {
    let name = "data beyond END while the rest is waited for";
    check(dialer(name, At::Active, GoesOn, |arena| {
        arena.say(End { flow: 0, units: 5, ..End::default() });
        arena.run(20);
        arena.unit(0, 0, 40);
        arena.run(500);
        let ledger = arena.ledger(0).expect("the flow is accounted for");
        assert!(ledger.closes(), "{ledger:?}");
    }));
}

/// The core ends its flow to the raw peer; how many units it says.
fn let_core_end(arena: &mut Arena) -> u64 {
    arena.open_path();
    arena.run(100);
    let (now, session) = (arena.lab.now(), arena.session.unwrap());
    arena.lab.world.core(arena.core).handle_command(now, Command::Close(session)).unwrap();
    arena.run(60);
    let end = arena.take_all().into_iter().find_map(|it| match it {
        Message::End(end) => Some(end.units),
        _ => None,
    });
    end.expect("END")
}

#[test]
fn a_report_of_more_than_was_sent_ends_the_session() {
    let name = "REPORT of more units than were sent";
    check(dialer(name, At::Active, Session(Code::Violation), |arena| {
        let units = let_core_end(arena);
        let delivered = units + 1;
        arena.say(Report { flow: 1, delivered, ..Report::default() });
    }));
}

#[test]
fn a_report_that_does_not_add_up_ends_the_session() {
    let name = "REPORT whose numbers do not add up";
    check(dialer(name, At::Active, Session(Code::Violation), |arena| {
        let units = let_core_end(arena);
        arena.say(Report { flow: 1, delivered: units - 1, ..Report::default() });
    }));
}

#[test]
fn a_closed_without_reports_is_no_usual_end() {
    let name = "CLOSE and CLOSED without REPORT";
    check(dialer(name, At::Active, Open, |arena| {
        arena.open_path();
        arena.run(100);
        arena.say(Close { code: Code::Closed as u16, text: String::new() });
        arena.say(Closed);
        arena.run(60);
        let ledger = arena.ledger(1).expect("an account");
        assert!(ledger.closes() && ledger.unknown > 0, "{ledger:?}");
        assert_eq!(arena.ended(), Some(Some(Code::Violation)), "{} units unknown", ledger.unknown);
    }));
}

#[test]
fn a_closed_for_our_close_without_reports_is_no_usual_end() {
    let name = "CLOSED without REPORT for a CLOSE of the core";
    check(dialer(name, At::Active, Open, |arena| {
        let units = let_core_end(arena);
        arena.say(Closed);
        arena.run(60);
        assert_eq!(arena.ended(), Some(Some(Code::Violation)), "{units} units unknown");
    }));
}

#[test]
fn a_list_of_more_than_a_record_holds_is_answered() {
    check(dialer("LIST of 250 long sessions", At::Greeted, Open, |arena| {
        for at in 0..250 {
            let (name, title) = (format!("{at:0>64}"), "t".repeat(256));
            let spec = SessionSpec {
                name,
                title,
                flows: plain(),
                participants_max: 1,
                give_up_after: dacapo_core::GIVE_UP_AFTER,
            };
            let none = Box::new(Opens(|_: &_| Err("not served".to_owned())));
            arena.lab.world.core(arena.core).publish(spec, none).unwrap();
        }
        arena.raw.say(arena.hub, List { request: 1 });
        arena.run(200);
        assert!(arena.raw.lost.is_none(), "the connection is lost: {:?}", arena.raw.lost);
        assert!(matches!(arena.raw.next(arena.hub), Some(Message::Listing(_))));
        arena.extra_answers = 200;
    }));
}

#[test]
fn proposals_that_are_taken_back_use_up_nobodys_labels() {
    let name = "70,000 times PREPARE and ABORT";
    check(dialer(name, At::Active, GoesOn, |arena| {
        for epoch in 1..=70_000 {
            let prepare = Prepare { epoch, graph: graph(&[]), ..Prepare::default() };
            arena.transcript = extend(arena.transcript, &prepare.clone().into());
            arena.say(Prepare { transcript: arena.transcript, ..prepare });
            arena.say(Abort { flow: 0, epoch });
        }
        while arena.raw.unsent_len(arena.stream) > 0 && arena.ended().is_none() {
            arena.run(100);
            arena.take_all();
        }
        // What follows is the check: others can join.
    }));
}

#[test]
fn a_stream_on_which_a_join_does_not_get_ready_is_reset() {
    let name = "half a JOIN for two minutes";
    check(dialer(name, At::Opened, Seen, |arena| {
        arena.push(&crate::wire::bytes_of(crate::arena::join("down"))[..9]);
        arena.run(120_000);
        let read = arena.raw.streams.get(&arena.stream).expect("the stream");
        assert!(read.ended.is_some(), "it is kept for ever");
    }));
}

#[test]
fn activated_with_another_number_is_no_answer() {
    let name = "ACTIVATED with another number";
    check(listener(name, At::Activating, Session(Code::Violation), |arena| {
        arena.say(Activated { request: 77 });
    }));
}

#[test]
fn a_control_for_another_epoch_is_refused() {
    check(dialer("CONTROL for an epoch that never was", At::Active, GoesOn, |arena| {
        let payload = [&[1][..], &5_000_000_u64.to_be_bytes()].concat();
        arena.say(Control { request: 1, flow: 0, epoch: 900, module: 0, payload });
        arena.run(30);
        let Some(Message::ControlAnswer(answer)) = arena.take() else { panic!("no answer") };
        assert_ne!(answer.code, 0, "it was done in another epoch");
    }));
}

#[test]
fn a_question_from_elsewhere_moves_no_flow_to_an_address_that_has_not_answered() {
    let name = "one question in the name of a victim";
    check(dialer(name, At::Active, GoesOn, |arena| {
        let victim = SocketAddr::from(([198, 51, 100, 7], 40_000));
        let probe = question(arena.lab.now(), 5);
        let bytes = tagged(arena.token, probe, 52);
        arena.lab.world.keep_strays();
        arena.raw.inject(&mut arena.lab.world, arena.core, victim, &bytes);
        let mut sent = 0;
        for _ in 0..2_000 {
            arena.lab.run(ms(1));
            for stray in arena.lab.world.take_strays() {
                if stray.to == victim {
                    sent += stray.bytes.len();
                } else {
                    let now = arena.lab.now();
                    arena.raw.handle(now, stray.from, stray.to, &stray.bytes);
                }
            }
        }
        assert!(sent <= 3 * bytes.len(), "{sent} bytes to a victim for {} from it", bytes.len());
    }));
}

#[test]
fn no_peer_pushes_out_what_is_told_of_others() {
    let name = "40,000 times on and off while nobody reads events";
    check(dialer(name, At::Active, Seen, |arena| {
        arena.lab.publish("short", vec![offer("short", &["sequence"])]);
        for request in 0..40_000 {
            arena.say(Deactivate { request });
            arena.say(Activate { request });
        }
        let core = arena.core;
        while arena.raw.unsent_len(arena.stream) > 0 {
            RawPeer::run(&mut [&mut arena.raw], &mut arena.lab.world, core, ms(100));
        }
        RawPeer::run(&mut [&mut arena.raw], &mut arena.lab.world, core, ms(100));
        arena.take_all();
        let dropped = arena.lab.world.core(core).counters().events_dropped;
        assert_eq!(dropped, 0, "events of others may be among them");
        arena.extra_answers = 10_000;
    }));
}

/// The cases here are about a raw peer in both roles too.
#[test]
fn both_roles_are_among_the_cases() {
    let all = crate::themes();
    let count =
        |role: As| all.iter().flat_map(|(_, cases)| cases).filter(|it| it.role == role).count();
    assert!(count(As::Dialer) >= 100 && count(As::Listener) >= 40);
}
