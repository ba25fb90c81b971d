//! Cases of CONTROL and its answers: rate, size, places and numbers that are none.

use crate::Case;
use crate::Outcome::{GoesOn, Open, Session};
use crate::arena::{Arena, At};
use crate::{dialer, listener};
use dacapo_core::{Code, Command, CoreEvent, Done};
use dacapo_wire::message::Message;
use dacapo_wire::session::{Control, ControlAnswer, FLOW_ALL, MODULE_ACCESS};

pub fn cases() -> Vec<Case> {
    [floods(), places(), unasked()].into_iter().flatten().collect()
}

fn ask(request: u32, flow: u16, module: u16, payload: Vec<u8>) -> Control {
    Control { request, flow, epoch: 0, module, payload }
}

/// The codes of all answers that have come.
fn codes(arena: &mut Arena) -> Vec<u16> {
    let all = arena.take_all().into_iter();
    all.filter_map(|it| match it {
        Message::ControlAnswer(answer) => Some(answer.code),
        _ => None,
    })
    .collect()
}

fn floods() -> Vec<Case> {
    vec![
        dialer("2,000 CONTROLs of 4 KiB of one who reads", At::Active, GoesOn, |arena| {
            for request in 0..2_000 {
                arena.say(ask(request, FLOW_ALL, MODULE_ACCESS, vec![7; 4_096]));
            }
            arena.run(6_000);
            assert_eq!(codes(arena), [0; 2_000], "each is answered once");
        }),
        dialer("CONTROLs of 4 KiB of one who does not read", At::Active, Open, |arena| {
            arena.raw.streams.remove(&arena.stream);
            for request in 0..2_000 {
                arena.say(ask(request, FLOW_ALL, MODULE_ACCESS, vec![7; 4_096]));
            }
            arena.run(4_000);
            assert_eq!(arena.ended(), Some(Some(Code::NoAnswer)), "what waits is bounded");
            // The hub shares the windows of the connection; it must not stay blocked.
            arena.raw.streams.insert(arena.stream, Default::default());
        }),
        dialer("10,000 empty CONTROLs", At::Active, GoesOn, |arena| {
            for request in 0..10_000 {
                arena.say(ask(request, FLOW_ALL, MODULE_ACCESS, Vec::new()));
            }
            arena.run(4_000);
            assert_eq!(codes(arena).len(), 10_000, "each is answered once");
        }),
        dialer("CONTROL with one number a hundred times", At::Active, GoesOn, |arena| {
            (0..100).for_each(|_| arena.say(ask(5, FLOW_ALL, MODULE_ACCESS, vec![1])));
            arena.run(200);
            assert_eq!(codes(arena), [0; 100]);
        }),
        dialer("CONTROL of 4,097 bytes", At::Active, Session(Code::Malformed), |arena| {
            let bytes = crate::wire::bytes_of(ask(1, 0, 0, Vec::new()));
            let at = bytes.windows(4).position(|it| it == [0, 30, 0, 0]).unwrap();
            let body = [&bytes[6..at], &crate::wire::field(30, &[1; 4_097])].concat();
            arena.push(&crate::wire::record(0x1D, &body));
        }),
        listener("2,000 CONTROLs of a listener", At::Active, GoesOn, |arena| {
            for request in 0..2_000 {
                arena.say(ask(request, FLOW_ALL, MODULE_ACCESS, vec![7; 512]));
            }
            arena.run(3_000);
            assert_eq!(codes(arena), [0; 2_000]);
        }),
    ]
}

/// Asks this and expects a refusal with that code.
fn expect_refused(arena: &mut Arena, control: Control, code: Code) {
    arena.say(control);
    arena.run(30);
    assert_eq!(codes(arena), [code as u16]);
}

fn places() -> Vec<Case> {
    let goes_on = |name, script| dialer(name, At::Active, GoesOn, script);
    vec![
        goes_on("CONTROL to a flow that is none", |arena| {
            expect_refused(arena, ask(1, 900, 0, vec![1]), Code::NoSuchThing);
            expect_refused(arena, ask(1, 900, MODULE_ACCESS, vec![1]), Code::NoSuchThing);
        }),
        goes_on("CONTROL to a module of all flows", |arena| {
            expect_refused(arena, ask(1, FLOW_ALL, 0, vec![1]), Code::NoSuchThing);
        }),
        goes_on("CONTROL to a module that is none", |arena| {
            expect_refused(arena, ask(1, 0, 900, vec![1]), Code::Refused);
            expect_refused(arena, ask(1, 1, 900, vec![1]), Code::Refused);
        }),
        goes_on("CONTROL to the sink of a flow", |arena| {
            expect_refused(arena, ask(1, 0, MODULE_ACCESS, vec![1]), Code::NoSuchThing);
        }),
        goes_on("CONTROL to a module with every length of nothing", |arena| {
            for (request, len) in (0..64).enumerate() {
                arena.say(ask(request as u32, 0, 0, vec![0xFF; len]));
                arena.say(ask(request as u32, 1, 0, vec![0; len]));
            }
            arena.run(300);
            assert_eq!(codes(arena).len(), 128);
        }),
        goes_on("CONTROL to a module with values beyond its range", |arena| {
            for value in [0, 1, u64::MAX / 2, u64::MAX] {
                for code in 0..8_u8 {
                    let payload = [&[code][..], &value.to_be_bytes()].concat();
                    arena.say(ask(1, 0, 0, payload));
                }
            }
            arena.run(300);
            let codes = codes(arena);
            let taken = codes.iter().filter(|code| **code == 0).count();
            assert!(codes.len() == 32 && taken <= 2, "{codes:?}");
        }),
    ]
}

fn unasked() -> Vec<Case> {
    vec![
        dialer("2,000 answers to nothing", At::Active, GoesOn, |arena| {
            for request in 0..2_000 {
                arena.say(ControlAnswer { request, code: 0, payload: vec![1; 100] });
            }
            arena.run(1_500);
            let answered = |event: &CoreEvent| matches!(event, CoreEvent::ControlAnswered { .. });
            assert_eq!((arena.count(answered), arena.take_all().len()), (0, 0));
        }),
        dialer("answers to another number, and the right one twice", At::Active, GoesOn, |arena| {
            let (now, session) = (arena.lab.now(), arena.session.unwrap());
            let core = arena.lab.world.core(arena.core);
            let request = core
                .handle_command(
                    now,
                    Command::Control {
                        session,
                        flow: 0,
                        module: MODULE_ACCESS,
                        payload: b"what".to_vec(),
                    },
                )
                .and_then(Done::request)
                .unwrap();
            arena.run(20);
            for wrong in [request + 1, request.wrapping_sub(1), u32::MAX] {
                arena.say(ControlAnswer { request: wrong, code: 0, payload: Vec::new() });
            }
            arena.run(20);
            let answered = |event: &CoreEvent| matches!(event, CoreEvent::ControlAnswered { .. });
            assert_eq!(arena.count(answered), 0, "another number is another question");
            (0..3).for_each(|_| arena.say(ControlAnswer { request, code: 9, payload: vec![0xFF] }));
            arena.run(20);
            assert_eq!(arena.count(answered), 1, "one question, one answer");
            arena.take_all();
        }),
        listener("a CONTROL of the core that nobody answers", At::Active, GoesOn, |arena| {
            let (now, session) = (arena.lab.now(), arena.session.unwrap());
            let core = arena.lab.world.core(arena.core);
            core.handle_command(
                now,
                Command::Control {
                    session,
                    flow: 1,
                    module: MODULE_ACCESS,
                    payload: b"what".to_vec(),
                },
            )
            .and_then(Done::request)
            .unwrap();
            arena.run(10_100);
            let failed = |event: &CoreEvent| {
                matches!(event, CoreEvent::ControlAnswered { answer: Err(error), .. }
                    if error.code == Code::NoAnswer)
            };
            assert_eq!(arena.count(failed), 1);
            arena.take_all();
        }),
    ]
}
