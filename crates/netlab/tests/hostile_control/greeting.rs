//! Cases of the hub: greetings, lists, and the end of a connection.

use crate::Case;
use crate::Outcome::{Connection, Open, Seen, Session};
use crate::arena::{Arena, At, join, welcome};
use crate::common::raw::hello;
use crate::{dialer, listener};
use dacapo_core::{Code, Command, CoreEvent};
use dacapo_wire::hub::{Goodbye, Hello, List, Listing, Refuse, SessionEntry, Welcome};
use dacapo_wire::message::Message;

pub fn cases() -> Vec<Case> {
    [versions(), hubs(), lists(), welcomes()].into_iter().flatten().collect()
}

/// Greets with these versions; what is answered.
fn greet_with(arena: &mut Arena, version_min: u16, version_max: u16) -> Message {
    arena.hub = arena.raw.open().unwrap();
    arena.raw.say(arena.hub, Hello { version_min, version_max, ..hello() });
    arena.run(20);
    arena.raw.next(arena.hub).expect("an answer")
}

fn expect_refused(arena: &mut Arena, version_min: u16, version_max: u16) {
    match greet_with(arena, version_min, version_max) {
        Message::Refuse(refuse) => assert_eq!(refuse.code, Code::NoCommonVersion as u16),
        other => panic!("no REFUSE but {other:?}"),
    }
}

fn versions() -> Vec<Case> {
    vec![
        dialer("HELLO with a least version above its greatest", At::Connected, Seen, |arena| {
            expect_refused(arena, 9, 1);
        }),
        dialer("HELLO of version 0", At::Connected, Seen, |arena| expect_refused(arena, 0, 0)),
        dialer("HELLO of the last version there can be", At::Connected, Seen, |arena| {
            expect_refused(arena, u16::MAX, u16::MAX);
        }),
        dialer(
            "HELLO of every version there can be",
            At::Connected,
            Open,
            |arena| match greet_with(arena, 0, u16::MAX) {
                Message::Welcome(welcome) => assert_eq!(welcome.version, 1),
                other => panic!("no WELCOME but {other:?}"),
            },
        ),
        dialer("500 greetings with a wrong version", At::Connected, Seen, |arena| {
            expect_refused(arena, 7, 9);
            for _ in 1..500 {
                arena.raw.say(arena.hub, Hello { version_min: 7, version_max: 9, ..hello() });
            }
            arena.run(500);
            let hub = arena.hub;
            let refused = std::iter::from_fn(|| arena.raw.next(hub)).count();
            assert!(refused <= 499, "{refused} answers");
            arena.run(10_000);
            assert_eq!(arena.raw.closed_with(), Some(Code::Unreachable), "{:?}", arena.raw.lost);
        }),
        dialer("HELLO that comes byte by byte", At::Connected, Open, |arena| {
            arena.hub = arena.raw.open().unwrap();
            for byte in crate::wire::bytes_of(hello()) {
                arena.raw.push(arena.hub, &[byte]);
                arena.run(10);
            }
            assert!(matches!(arena.raw.next(arena.hub), Some(Message::Welcome(_))));
        }),
        dialer("HELLO that takes longer than ten seconds", At::Connected, Seen, |arena| {
            arena.hub = arena.raw.open().unwrap();
            for byte in crate::wire::bytes_of(hello()) {
                arena.raw.push(arena.hub, &[byte]);
                arena.run(200);
            }
            assert_eq!(arena.raw.closed_with(), Some(Code::Unreachable), "{:?}", arena.raw.lost);
        }),
    ]
}

fn hubs() -> Vec<Case> {
    vec![
        dialer("a second hub", At::Greeted, Session(Code::Violation), |arena| {
            arena.stream = arena.raw.open().unwrap();
            arena.say(hello());
        }),
        dialer("the hub ends in order", At::Active, Connection(Code::Closed), |arena| {
            arena.raw.finish(arena.hub);
        }),
        dialer("the hub is reset", At::Active, Connection(Code::Closed), |arena| {
            arena.raw.reset(arena.hub);
        }),
        dialer("the hub is not to be written to", At::Active, Connection(Code::Closed), |arena| {
            arena.raw.stop(arena.hub);
        }),
        dialer(
            "half a record on the hub and its end",
            At::Greeted,
            Connection(Code::Closed),
            |arena| {
                arena.raw.push(arena.hub, &crate::wire::header(4, 8));
                arena.raw.finish(arena.hub);
            },
        ),
        dialer(
            "GOODBYE with a code that is none",
            At::Active,
            Connection(Code::Refused),
            |arena| {
                arena.raw.say(arena.hub, Goodbye { code: u16::MAX, text: String::new() });
            },
        ),
        dialer(
            "GOODBYE with the code of success",
            At::Active,
            Connection(Code::Refused),
            |arena| {
                arena.raw.say(arena.hub, Goodbye::default());
            },
        ),
        dialer(
            "GOODBYE and 1,000 records behind it",
            At::Active,
            Connection(Code::Closed),
            |arena| {
                arena.raw.say(arena.hub, Goodbye { code: 701, text: "bye".into() });
                (0..1_000).for_each(|request| arena.raw.say(arena.hub, List { request }));
            },
        ),
        listener(
            "the listener's hub ends in order",
            At::Active,
            Connection(Code::Closed),
            |arena| {
                arena.raw.finish(arena.hub);
            },
        ),
        listener("the listener's hub is reset", At::Offered, Connection(Code::Closed), |arena| {
            arena.raw.reset(arena.hub);
        }),
    ]
}

/// A listing of so many sessions.
fn listing(request: u32, count: usize) -> Listing {
    let entry = SessionEntry { name: "n".into(), title: "t".repeat(200), ..Default::default() };
    Listing { request, sessions: vec![entry; count] }
}

fn lists() -> Vec<Case> {
    vec![
        dialer("2,000 LISTs of one who reads", At::Greeted, Open, |arena| {
            (0..2_000).for_each(|request| arena.raw.say(arena.hub, List { request }));
            arena.extra_answers = 1_000;
            arena.run(3_000);
            let hub = arena.hub;
            let answers = std::iter::from_fn(|| arena.raw.next(hub)).count();
            assert_eq!(answers, 2_000, "each is answered once");
        }),
        dialer(
            "LISTs of one who does not read",
            At::Greeted,
            Connection(Code::NoAnswer),
            |arena| {
                arena.raw.streams.remove(&arena.hub);
                (0..20_000).for_each(|request| arena.raw.say(arena.hub, List { request }));
                arena.run(3_000);
            },
        ),
        dialer("LIST with one number a hundred times", At::Greeted, Open, |arena| {
            (0..100).for_each(|_| arena.raw.say(arena.hub, List { request: 7 }));
            arena.run(200);
            let hub = arena.hub;
            assert_eq!(std::iter::from_fn(|| arena.raw.next(hub)).count(), 100);
        }),
        dialer("LISTING that was not asked for", At::Greeted, Open, |arena| {
            arena.raw.say(arena.hub, listing(1, 3));
        }),
        dialer("300 LISTINGs of 64 KiB that were not asked for", At::Greeted, Open, |arena| {
            (0..300).for_each(|at| arena.raw.say(arena.hub, listing(at, 250)));
            arena.run(4_000);
            let listed = |event: &CoreEvent| matches!(event, CoreEvent::Listing { .. });
            assert_eq!(arena.lab.count(arena.core, listed), 0);
        }),
        listener("LISTING with another number than was asked", At::Greeted, Seen, |arena| {
            let now = arena.lab.now();
            let opened = |event: &CoreEvent| match event {
                CoreEvent::PeerOpen { peer } => Some(*peer),
                _ => None,
            };
            let peers = arena.lab.log.iter().filter(|(node, ..)| *node == arena.core);
            let peer = peers.rev().find_map(|(_, _, event)| opened(event)).unwrap();
            arena.lab.world.core(arena.core).handle_command(now, Command::List(peer)).unwrap();
            arena.run(20);
            let Some(Message::List(list)) = arena.raw.next(arena.hub) else { panic!("no LIST") };
            arena.raw.say(arena.hub, listing(list.request + 1, 3));
            arena.run(40);
            let told = |event: &CoreEvent| matches!(event, CoreEvent::Listing { .. });
            assert_eq!(arena.lab.count(arena.core, told), 0, "it is not the answer");
            arena.raw.say(arena.hub, listing(list.request, 3));
            arena.raw.say(arena.hub, listing(list.request, 9));
            arena.run(40);
            assert_eq!(arena.lab.count(arena.core, told), 1, "one question, one answer");
        }),
        listener("2,000 LISTs of a listener", At::Greeted, Seen, |arena| {
            (0..2_000).for_each(|request| arena.raw.say(arena.hub, List { request }));
            arena.extra_answers = 500;
            arena.run(2_000);
            let hub = arena.hub;
            assert_eq!(std::iter::from_fn(|| arena.raw.next(hub)).count(), 2_000);
        }),
    ]
}

fn expect_peer_lost(arena: &mut Arena, code: Code) {
    arena.run(40);
    let lost = arena.lab.log.iter().rev().find_map(|(node, _, event)| match event {
        CoreEvent::PeerLost { error, .. } if *node == arena.core => Some(error.code),
        _ => None,
    });
    assert_eq!(lost, Some(code));
}

fn welcomes() -> Vec<Case> {
    vec![
        listener("WELCOME of version 0", At::Connected, Seen, |arena| {
            arena.raw.say(arena.hub, Welcome { version: 0, ..welcome() });
            expect_peer_lost(arena, Code::NoCommonVersion);
        }),
        listener("WELCOME of a version that was not offered", At::Connected, Seen, |arena| {
            arena.raw.say(arena.hub, Welcome { version: 7, ..welcome() });
            expect_peer_lost(arena, Code::NoCommonVersion);
        }),
        listener(
            "WELCOME twice in one datagram",
            At::Connected,
            Connection(Code::Violation),
            |arena| {
                arena.raw.say(arena.hub, welcome());
                arena.raw.say(arena.hub, welcome());
            },
        ),
        listener("no WELCOME", At::Connected, Seen, |arena| {
            arena.run(10_100);
            expect_peer_lost(arena, Code::Unreachable);
        }),
        listener("REFUSE with a code that is none", At::Connected, Seen, |arena| {
            arena
                .raw
                .say(arena.hub, Refuse { code: 9, text: "\u{7}\u{202E}no".into(), port: None });
            expect_peer_lost(arena, Code::Refused);
        }),
        listener("GOODBYE in place of WELCOME", At::Connected, Seen, |arena| {
            arena.raw.say(arena.hub, Goodbye { code: 601, text: String::new() });
            expect_peer_lost(arena, Code::TooMany);
        }),
        listener("a session before WELCOME", At::Connected, Connection(Code::Violation), |arena| {
            let stream = arena.raw.open().unwrap();
            arena.raw.say(stream, join("down"));
        }),
        listener("the listener joins what is not served", At::Greeted, Seen, |arena| {
            let stream = arena.raw.open().unwrap();
            arena.raw.say(stream, join("down"));
            arena.run(40);
            match arena.raw.next(stream) {
                Some(Message::Refuse(refuse)) => assert_eq!(refuse.code, Code::NotServed as u16),
                other => panic!("no REFUSE but {other:?}"),
            }
        }),
        listener("WELCOME with a token of zeros", At::Connected, Open, |arena| {
            arena.raw.say(arena.hub, Welcome { path_token: [0; 16], ..welcome() });
        }),
    ]
}
