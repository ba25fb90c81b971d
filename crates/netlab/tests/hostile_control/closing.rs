//! Cases of CLOSE and CLOSED: twice, too early, too late, never.

use crate::Case;
use crate::Outcome::{Open, Seen, Session};
use crate::arena::{Arena, At};
use crate::{dialer, listener};
use dacapo_core::{Code, Command, CoreEvent};
use dacapo_wire::message::Message;
use dacapo_wire::session::{Activate, Close, Closed, Control};

pub fn cases() -> Vec<Case> {
    [closes(), of_the_core()].into_iter().flatten().collect()
}

fn close(code: u16) -> Close {
    Close { code, text: String::new() }
}

fn expect_ended(arena: &mut Arena, error: Option<Code>) {
    arena.run(40);
    assert_eq!(arena.ended(), Some(error));
    let ends = arena.count(|event| matches!(event, CoreEvent::SessionEnded { .. }));
    assert_eq!(ends, 1, "the application is told once");
}

fn closes() -> Vec<Case> {
    vec![
        dialer("CLOSED without CLOSE", At::Active, Session(Code::Violation), |arena| {
            arena.say(Closed);
        }),
        dialer("CLOSE twice", At::Active, Open, |arena| {
            arena.say(close(701));
            arena.say(close(701));
            arena.run(10_200);
            expect_ended(arena, Some(Code::NoAnswer));
        }),
        dialer("CLOSE with a code that is none", At::Active, Open, |arena| {
            arena.say(close(u16::MAX));
            expect_ended(arena, Some(Code::Refused));
        }),
        dialer("CLOSE with the code of success", At::Active, Open, |arena| {
            arena.say(close(0));
            expect_ended(arena, Some(Code::Refused));
        }),
        dialer("CLOSE in place of JOIN", At::Opened, Open, |arena| {
            arena.say(close(701));
            arena.run(40);
            assert_eq!(arena.lab.world.core(arena.core).sessions().count(), 1);
        }),
        dialer("CLOSE in place of ANSWER", At::Offered, Open, |arena| {
            arena.say(close(701));
            expect_ended(arena, Some(Code::Closed));
        }),
        dialer("CLOSE and everything else behind it", At::Active, Open, |arena| {
            arena.say(close(304));
            (0..500).for_each(|request| arena.say(Activate { request }));
            (0..500).for_each(|request| arena.say(Control { request, ..Control::default() }));
            expect_ended(arena, Some(Code::Refused));
            arena.run(200);
            let answers = arena.take_all();
            let is_answer = |it: &&Message| !matches!(it, Message::End(_) | Message::Close(_));
            assert_eq!(answers.iter().filter(is_answer).count(), 0, "{answers:?}");
        }),
        dialer("CLOSE with a text of 513 bytes", At::Active, Session(Code::Malformed), |arena| {
            let fields = [crate::wire::field(8, &[2, 189]), crate::wire::field(9, &[b'x'; 513])];
            arena.push(&crate::wire::record(0x1B, &fields.concat()));
        }),
        dialer("CLOSE and the end of the stream", At::Active, Open, |arena| {
            arena.say(close(701));
            arena.raw.finish(arena.stream);
            arena.run(40);
            assert!(arena.ended().is_some(), "the session is over");
        }),
        dialer("100 sessions closed as soon as they run", At::Greeted, Open, |arena| {
            for _ in 0..100 {
                arena.begin(At::Active, "usual", Vec::new());
                arena.say(close(304));
                arena.run(10);
            }
            assert_eq!(arena.lab.world.core(arena.core).sessions().count(), 1);
        }),
        listener("CLOSE of a listener in place of OFFER", At::Opened, Open, |arena| {
            arena.say(close(701));
            arena.run(40);
            assert_eq!(arena.ended(), Some(Some(Code::Closed)));
        }),
        listener("CLOSE of a listener with a code that is none", At::Active, Open, |arena| {
            arena.say(close(9));
            expect_ended(arena, Some(Code::Refused));
        }),
        listener(
            "CLOSED of a listener without CLOSE",
            At::Activating,
            Session(Code::Violation),
            |arena| {
                arena.say(Closed);
            },
        ),
    ]
}

fn let_core_close(arena: &mut Arena) {
    let (now, session) = (arena.lab.now(), arena.session.unwrap());
    arena.lab.world.core(arena.core).handle_command(now, Command::Close(session)).unwrap();
    arena.run(20);
}

fn of_the_core() -> Vec<Case> {
    vec![
        dialer("a CLOSE of the core that nobody answers", At::Active, Open, |arena| {
            let_core_close(arena);
            arena.run(10_100);
            expect_ended(arena, Some(Code::NoAnswer));
        }),
        listener("a CLOSE of the core that no listener answers", At::Active, Open, |arena| {
            let_core_close(arena);
            arena.run(10_100);
            expect_ended(arena, Some(Code::NoAnswer));
        }),
        dialer("a CLOSE of the core answered with a reset", At::Active, Seen, |arena| {
            let_core_close(arena);
            arena.raw.reset(arena.stream);
            arena.run(40);
            assert!(arena.ended().is_some());
        }),
        dialer("a CLOSE of the core that crosses ACTIVATE", At::Ready, Open, |arena| {
            let_core_close(arena);
            arena.say(Activate { request: 1 });
            arena.run(10_100);
            expect_ended(arena, Some(Code::NoAnswer));
        }),
    ]
}
