//! Cases of END and REPORT: counts that cannot be, of flows that are not, more than once.
//!
//! Flow `up` or `bare` comes from the raw peer (as dialer), `down` goes to it; as listener the
//! other way round.

use crate::Case;
use crate::Outcome::{GoesOn, Seen, Session};
use crate::arena::{Arena, At};
use crate::{dialer, listener};
use dacapo_core::{Code, Command, CoreEvent};
use dacapo_wire::message::Message;
use dacapo_wire::session::{Close, End, Report};

pub fn cases() -> Vec<Case> {
    [ends(), more_ends(), reports(), more_reports()].into_iter().flatten().collect()
}

fn end(flow: usize, units: u64) -> End {
    End { flow: flow as u16, units, ..End::default() }
}

/// The REPORTs that have come.
fn reports_of(arena: &mut Arena) -> Vec<Report> {
    let all = arena.take_all().into_iter();
    all.filter_map(|it| if let Message::Report(report) = it { Some(report) } else { None })
        .collect()
}

/// Sends units 0 to `count` of a flow that comes from the raw peer.
fn send_units(arena: &mut Arena, flow: usize, count: u32) {
    (0..count).for_each(|at| arena.unit(flow, at, at));
    arena.run(10);
}

/// The flow's account at the core closes and says so much.
fn expect_account(arena: &Arena, flow: usize, sent: u64, delivered: u64) {
    let ledger = arena.ledger(flow).expect("the flow is accounted for");
    assert!(ledger.closes(), "{ledger:?}");
    assert_eq!((ledger.sent, ledger.delivered), (sent, delivered), "{ledger:?}");
}

fn ends() -> Vec<Case> {
    vec![
        dialer("END after as many units as there were", At::Active, GoesOn, |arena| {
            send_units(arena, 0, 10);
            arena.say(end(0, 10));
            arena.run(40);
            expect_account(arena, 0, 10, 10);
        }),
        dialer("END with more units than were sent", At::Active, GoesOn, |arena| {
            send_units(arena, 0, 10);
            arena.say(end(0, 1_000));
            arena.run(500);
            expect_account(arena, 0, 1_000, 10);
        }),
        dialer("END with the most units that there can be", At::Active, GoesOn, |arena| {
            send_units(arena, 0, 10);
            arena.say(end(0, 1 << 56));
            arena.run(500);
            expect_account(arena, 0, 1 << 56, 10);
        }),
        dialer(
            "END with one unit more than there can be",
            At::Active,
            Session(Code::Violation),
            |arena| {
                arena.say(end(0, (1 << 56) + 1));
            },
        ),
        dialer(
            "END with all the units that a number can say",
            At::Active,
            Session(Code::Violation),
            |arena| {
                arena.say(end(0, u64::MAX));
            },
        ),
        dialer("END twice", At::Active, GoesOn, |arena| {
            send_units(arena, 0, 3);
            arena.say(end(0, 3));
            arena.say(end(0, 3));
            arena.run(500);
            assert_eq!(reports_of(arena).len(), 1, "one account");
        }),
        dialer("END again with other numbers", At::Active, GoesOn, |arena| {
            send_units(arena, 0, 3);
            (3..500).for_each(|units| arena.say(end(0, units)));
            arena.run(500);
            assert_eq!(reports_of(arena).len(), 1, "one account");
            expect_account(arena, 0, 3, 3);
        }),
        dialer(
            "END of a flow that the core sends",
            At::Active,
            Session(Code::Violation),
            |arena| {
                arena.say(end(1, 3));
            },
        ),
        dialer("END of a flow that is none", At::Active, Session(Code::Violation), |arena| {
            arena.say(end(3, 3));
        }),
        dialer("END of all flows", At::Active, Session(Code::Violation), |arena| {
            arena.say(end(0xFFFF, 3));
        }),
    ]
}

fn more_ends() -> Vec<Case> {
    vec![
        dialer("END before ACTIVATE", At::Ready, GoesOn, |arena| {
            arena.say(end(0, 0));
            arena.run(40);
            expect_account(arena, 0, 0, 0);
        }),
        dialer("END of an epoch that never was", At::Active, GoesOn, |arena| {
            send_units(arena, 0, 3);
            arena.say(End { epoch: u64::MAX, ..end(0, 3) });
            arena.run(500);
            expect_account(arena, 0, 3, 3);
        }),
        dialer("END with another hash", At::Active, GoesOn, |arena| {
            send_units(arena, 0, 3);
            arena.say(End { hash: [1; 32], ..end(0, 3) });
            arena.run(40);
            let differs = |event: &CoreEvent| {
                matches!(event, CoreEvent::FlowEnded { hash: Some(false), flow: 0, .. })
            };
            assert_eq!(arena.count(differs), 1, "the application is told that bytes differ");
        }),
        dialer("END with an error that is none", At::Active, GoesOn, |arena| {
            let text = "\u{1b}[31m\u{202E}".repeat(50);
            arena.say(End { code: u16::MAX, text, ..end(0, 0) });
            arena.run(40);
            let failed = arena.lab.log.iter().find_map(|(_, _, event)| match event {
                CoreEvent::FlowFailed { error, .. } => Some(error.clone()),
                _ => None,
            });
            let error = failed.expect("the flow failed");
            assert_eq!(error.code, Code::Refused);
            assert!(!error.text.contains(['\u{1b}', '\u{202E}']), "{:?}", error.text);
        }),
        listener("END of a listener with more units than were sent", At::Active, GoesOn, |arena| {
            send_units(arena, 1, 10);
            arena.say(end(1, 500));
            arena.run(500);
            expect_account(arena, 1, 500, 10);
        }),
        listener(
            "END of a listener of a flow that the core sends",
            At::Active,
            Session(Code::Violation),
            |arena| {
                arena.say(end(0, 1));
            },
        ),
        dialer("data after END", At::Active, GoesOn, |arena| {
            send_units(arena, 0, 5);
            arena.say(end(0, 5));
            arena.run(300);
            (5..200).for_each(|at| arena.unit(0, at, at));
            arena.run(100);
            expect_account(arena, 0, 5, 5);
        }),
    ]
}

/// The core's flow to the raw peer runs and is closed by the core's end of the session.
fn let_core_end(arena: &mut Arena) -> u64 {
    if arena.raw.answers_probes.is_none() {
        arena.open_path();
    }
    arena.run(100);
    let (now, session) = (arena.lab.now(), arena.session.unwrap());
    arena.lab.world.core(arena.core).handle_command(now, Command::Close(session)).unwrap();
    arena.run(60);
    let flow = arena.flow(true) as u16;
    let end = arena.take_all().into_iter().find_map(|it| match it {
        Message::End(end) if end.flow == flow => Some(end.units),
        _ => None,
    });
    end.expect("END")
}

fn report(flow: u16, delivered: u64) -> Report {
    Report { flow, delivered, ..Report::default() }
}

fn reports() -> Vec<Case> {
    vec![
        dialer("REPORT before END", At::Active, Session(Code::Violation), |arena| {
            arena.say(report(1, 0));
        }),
        dialer(
            "REPORT of a flow that the core receives",
            At::Active,
            Session(Code::Violation),
            |arena| {
                arena.say(report(0, 0));
            },
        ),
        dialer("REPORT of a flow that is none", At::Active, Session(Code::Violation), |arena| {
            arena.say(report(77, 0));
        }),
        dialer("REPORT of all flows", At::Active, Session(Code::Violation), |arena| {
            arena.say(report(0xFFFF, 0));
        }),
        dialer("REPORT twice", At::Active, Session(Code::Violation), |arena| {
            let units = let_core_end(arena);
            arena.say(report(1, units));
            arena.say(report(1, units));
        }),
        listener(
            "REPORT of a listener before END",
            At::Active,
            Session(Code::Violation),
            |arena| {
                arena.say(report(0, 0));
            },
        ),
        listener("REPORT of a listener twice", At::Active, Session(Code::Violation), |arena| {
            let units = let_core_end(arena);
            arena.say(report(0, units));
            arena.say(report(0, units));
        }),
    ]
}

fn more_reports() -> Vec<Case> {
    vec![
        dialer("REPORT with 257 reasons", At::Active, Session(Code::Malformed), |arena| {
            let_core_end(arena);
            let bytes =
                crate::wire::with_tail(report(1, 0), &crate::wire::field(27, &[1; 9]).repeat(257));
            arena.push(&bytes);
        }),
        dialer("REPORT that says nothing of any unit", At::Active, Seen, |arena| {
            let units = let_core_end(arena);
            arena.say(Report { unknown: units, ..report(1, 0) });
            arena.say(Close { code: 701, text: String::new() });
            arena.run(40);
            let ledger = arena.ledger(1).expect("an account");
            assert!(ledger.closes() && ledger.unknown == units, "{ledger:?}");
        }),
        dialer("REPORT with one reason many times", At::Active, Seen, |arena| {
            let units = let_core_end(arena);
            let dropped = vec![(200, 1); units.min(256) as usize];
            let lost = units - dropped.len() as u64;
            arena.say(Report { dropped, lost, ..report(1, 0) });
            arena.run(40);
            assert!(arena.ledger(1).expect("an account").closes());
        }),
        dialer("REPORT with another hash", At::Active, Seen, |arena| {
            let units = let_core_end(arena);
            arena.say(Report { hash: [1; 32], ..report(1, units) });
            arena.run(40);
            let differs = |event: &CoreEvent| {
                matches!(event, CoreEvent::FlowEnded { hash: Some(false), flow: 1, .. })
            };
            assert_eq!(arena.count(differs), 1, "the application is told that bytes differ");
        }),
        dialer("REPORT never comes", At::Active, Seen, |arena| {
            let units = let_core_end(arena);
            arena.run(10_100);
            assert_eq!(arena.ended(), Some(Some(Code::NoAnswer)));
            let ledger = arena.ledger(1).expect("an account");
            assert!(ledger.closes() && ledger.unknown == units, "{ledger:?}");
        }),
    ]
}
