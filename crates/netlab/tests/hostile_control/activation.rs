//! Cases of ACTIVATE and DEACTIVATE: again, unasked, with other numbers.

use crate::Case;
use crate::Outcome::{GoesOn, Session};
use crate::arena::At;
use crate::{dialer, listener};
use dacapo_core::{Code, Command, CoreEvent};
use dacapo_wire::message::Message;
use dacapo_wire::session::{Activate, Activated, Deactivate, Deactivated};

pub fn cases() -> Vec<Case> {
    vec![
        dialer("ACTIVATE twice in one datagram", At::Ready, Session(Code::Violation), |arena| {
            arena.say(Activate { request: 1 });
            arena.say(Activate { request: 1 });
        }),
        dialer("DEACTIVATE twice", At::Active, Session(Code::Violation), |arena| {
            arena.say(Deactivate { request: 2 });
            arena.say(Deactivate { request: 3 });
        }),
        dialer("ACTIVATE with the greatest number", At::Ready, GoesOn, |arena| {
            arena.say(Activate { request: u32::MAX });
            arena.run(40);
            assert_eq!(arena.take(), Some(Activated { request: u32::MAX }.into()));
        }),
        dialer("ACTIVATE that answers itself", At::Ready, Session(Code::Violation), |arena| {
            arena.say(Activated { request: 1 });
        }),
        dialer("500 times on and off", At::Active, GoesOn, |arena| {
            arena.open_path();
            for request in 0..500 {
                arena.say(Deactivate { request });
                arena.say(Activate { request });
            }
            arena.run(600);
            let answers = arena.take_all();
            let ons = answers.iter().filter(|it| matches!(it, Message::Activated(_))).count();
            assert_eq!((ons, answers.len()), (500, 1_000), "each is answered once");
        }),
        dialer("ACTIVATE with half a number", At::Ready, Session(Code::Malformed), |arena| {
            let number = crate::wire::field(10, &[0, 0, 1]);
            arena.push(&crate::wire::record(0x15, &number));
        }),
        listener(
            "ACTIVATED that was not asked for",
            At::Ready,
            Session(Code::Violation),
            |arena| {
                arena.say(Activated { request: 1 });
            },
        ),
        listener("ACTIVATED twice", At::Activating, Session(Code::Violation), |arena| {
            arena.say(Activated { request: 1 });
            arena.say(Activated { request: 1 });
        }),
        listener(
            "DEACTIVATED in place of ACTIVATED",
            At::Activating,
            Session(Code::Violation),
            |arena| {
                arena.say(Deactivated { request: 1 });
            },
        ),
        listener("ACTIVATED never comes", At::Activating, Session(Code::NoAnswer), |arena| {
            arena.run(10_000);
        }),
        listener("DEACTIVATED never comes", At::Active, Session(Code::NoAnswer), |arena| {
            let (now, session) = (arena.lab.now(), arena.session.unwrap());
            arena
                .lab
                .world
                .core(arena.core)
                .handle_command(now, Command::Deactivate(session))
                .unwrap();
            arena.run(10_000);
            assert_eq!(arena.count(|event| matches!(event, CoreEvent::Inactive { .. })), 0);
        }),
        listener("ACTIVATE from the creator", At::Ready, Session(Code::Violation), |arena| {
            arena.say(Activate { request: 1 });
        }),
    ]
}
