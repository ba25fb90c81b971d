//! Cases of JOIN and ANSWER: names, lists, labels, and how many flows are answered.

use crate::Case;
use crate::Outcome::{GoesOn, Open, Seen, Session, Stream};
use crate::arena::{Arena, At, answer, join, taken};
use crate::wire::{bytes_of, field, record_of, with_tail};
use crate::{dialer, listener};
use dacapo_core::Code;
use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::message::{Message, MessageKind};
use dacapo_wire::session::{Activate, Answer, FlowAnswer, Join};

pub fn cases() -> Vec<Case> {
    [names(), lists(), ends(), answers(), numbers(), reasons()].into_iter().flatten().collect()
}

fn join_as(arena: &mut Arena, name: &[u8]) {
    arena.push(&record_of(MessageKind::Join, &[field(11, name)]));
}

fn names() -> Vec<Case> {
    let malformed = |name, script| dialer(name, At::Opened, Stream(Code::Malformed), script);
    vec![
        malformed("JOIN of an empty name", |arena| join_as(arena, b"")),
        malformed("JOIN of a name of 65 bytes", |arena| join_as(arena, &[b'a'; 65])),
        malformed("JOIN of a name of 60,000 bytes", |arena| join_as(arena, &[b'a'; 60_000])),
        malformed("JOIN of a path", |arena| join_as(arena, b"../../etc/passwd")),
        malformed("JOIN of a name with a zero", |arena| join_as(arena, b"down\0")),
        malformed("JOIN of a name that begins with a point", |arena| join_as(arena, b".down")),
        malformed("JOIN of a name in capitals", |arena| join_as(arena, b"DOWN")),
        malformed("JOIN of a name that is no UTF-8", |arena| join_as(arena, &[0xC3, 0x28])),
        malformed("JOIN of a name that looks like another", |arena| {
            join_as(arena, "dоwn".as_bytes());
        }),
        malformed("JOIN without a name", |arena| {
            arena.push(&record_of(MessageKind::Join, &[]));
        }),
        malformed("JOIN with two names", |arena| {
            arena.push(&record_of(MessageKind::Join, &[field(11, b"down"), field(11, b"up")]));
        }),
        dialer(
            "JOIN of 64 bytes that nobody serves",
            At::Opened,
            Session(Code::NotServed),
            |arena| {
                join_as(arena, &[b'z'; 64]);
            },
        ),
    ]
}

fn expect_offer(arena: &mut Arena) {
    arena.run(40);
    assert!(matches!(arena.take(), Some(Message::Offer(_))), "no OFFER");
}

/// A JOIN that is more than may be said.
fn join_with(arena: &mut Arena, tag: u16, value: &[u8], count: usize) {
    let fields = [&field(11, b"down")[..], &field(tag, value).repeat(count)].concat();
    arena.push(&crate::wire::record(MessageKind::Join.code(), &fields));
}

fn lists() -> Vec<Case> {
    let malformed = |name, script| dialer(name, At::Opened, Stream(Code::Malformed), script);
    vec![
        malformed("JOIN with 257 modules", |arena| join_with(arena, 31, &[0xF0, 1], 257)),
        malformed("JOIN with 17 transports", |arena| join_with(arena, 40, &[0x90, 1], 17)),
        malformed("JOIN with 33 attributes", |arena| join_with(arena, 45, &[0; 20], 33)),
        malformed("JOIN with an attribute of 19 bytes", |arena| join_with(arena, 45, &[0; 19], 1)),
        malformed("JOIN that begins neither here nor there", |arena| join_with(arena, 49, &[2], 1)),
        dialer(
            "JOIN with 256 modules that nobody has",
            At::Opened,
            Session(Code::UnknownModule),
            |arena| {
                let modules = (0xF100..0xF200).collect();
                arena.say(Join { modules, ..join("down") });
            },
        ),
        dialer(
            "JOIN with a transport that nobody has",
            At::Opened,
            Session(Code::Unsupported),
            |arena| {
                arena.say(Join { transports: vec![0x9999], ..join("down") });
            },
        ),
        dialer("JOIN with 32 attributes that cannot be", At::Opened, Open, |arena| {
            let impossible = AttributeForm {
                key: 9,
                min: Some(i64::MAX),
                max: Some(i64::MIN),
                weight: Some(255),
            };
            arena.say(Join { attributes: vec![impossible; 32], ..join("down") });
            expect_offer(arena);
        }),
        dialer("JOIN with 10,000 fields that nobody knows", At::Opened, Open, |arena| {
            join_with(arena, 0xFFFF, &[], 10_000);
            expect_offer(arena);
        }),
        dialer("JOIN with a field of tag 0 and length 0", At::Opened, Open, |arena| {
            join_with(arena, 0, &[], 1);
            expect_offer(arena);
        }),
        malformed("JOIN with a byte behind its fields", |arena| {
            arena.push(&with_tail(join("down"), &[0]));
        }),
        malformed("JOIN with a field longer than itself", |arena| {
            arena.push(&with_tail(join("down"), &[0, 31, 0xFF, 0xFF, 1]));
        }),
    ]
}

fn ends() -> Vec<Case> {
    vec![
        dialer("JOIN and the end of the stream", At::Opened, Seen, |arena| {
            arena.say(join("down"));
            arena.raw.finish(arena.stream);
            arena.run(40);
            assert_eq!(arena.ended(), Some(Some(Code::Violation)));
        }),
        dialer("JOIN and a reset", At::Opened, Open, |arena| {
            arena.say(join("down"));
            arena.run(3);
            arena.raw.reset(arena.stream);
            arena.run(40);
        }),
        dialer("an OFFER that is never answered", At::Offered, Session(Code::NoAnswer), |arena| {
            arena.run(59_000);
            assert_eq!(arena.ended(), None, "people may take a minute");
            arena.run(1_100);
        }),
        dialer("200 sessions that are begun and left", At::Greeted, Open, |arena| {
            let streams: Vec<_> = (0..200).map(|_| arena.raw.open().unwrap()).collect();
            streams.iter().for_each(|stream| arena.raw.say(*stream, join("down")));
            arena.run(400);
            streams.iter().for_each(|stream| arena.raw.reset(*stream));
            arena.run(100);
            assert_eq!(arena.lab.world.core(arena.core).sessions().count(), 1);
        }),
        listener("OFFER that never comes", At::Opened, Session(Code::NoAnswer), |arena| {
            arena.run(10_000);
        }),
        listener("REFUSE of a JOIN with a code that is none", At::Opened, Seen, |arena| {
            arena.say(dacapo_wire::hub::Refuse {
                code: 60_000,
                text: "\u{1b}[2J".into(),
                port: None,
            });
            arena.run(40);
            assert_eq!(arena.ended(), Some(Some(Code::Refused)));
        }),
    ]
}

fn answers() -> Vec<Case> {
    let broken = |name, script| dialer(name, At::Offered, Session(Code::Violation), script);
    vec![
        broken("ANSWER for no flow", |arena| arena.say(answer(0))),
        broken("ANSWER for fewer flows than there are", |arena| arena.say(answer(2))),
        broken("ANSWER for more flows than there are", |arena| arena.say(answer(4))),
        broken("ANSWER for 64 flows", |arena| arena.say(answer(64))),
        broken("ANSWER with the flows out of order", |arena| {
            arena.say(Answer { flows: vec![taken(1), taken(0), taken(2)] });
        }),
        broken("ANSWER with one flow twice", |arena| {
            arena.say(Answer { flows: vec![taken(0), taken(1), taken(1)] });
        }),
        broken("ANSWER with a flow that stands for all", |arena| {
            arena.say(Answer { flows: vec![taken(0), taken(1), taken(0xFFFF)] });
        }),
        dialer("ANSWER for 65 flows", At::Offered, Session(Code::Malformed), |arena| {
            let flows: Vec<u8> = bytes_of(answer(1))[6..].repeat(65);
            arena.push(&crate::wire::record(MessageKind::Answer.code(), &flows));
        }),
    ]
}

/// Answers with every flow changed so.
fn answer_with(arena: &mut Arena, change: impl Fn(usize, &mut FlowAnswer)) {
    let mut odd = answer(3);
    odd.flows.iter_mut().enumerate().for_each(|(at, flow)| change(at, flow));
    arena.answer = odd.clone();
    arena.say(odd);
    arena.run(40);
    let Some(Message::Accept(accept)) = arena.take() else { panic!("no ACCEPT") };
    arena.accept = accept;
    arena.say(Activate { request: 1 });
    arena.run(40);
    assert!(matches!(arena.take(), Some(Message::Activated(_))));
}

fn numbers() -> Vec<Case> {
    let goes_on = |name, script| dialer(name, At::Offered, GoesOn, script);
    vec![
        goes_on("ANSWER with labels of zero", |arena| {
            answer_with(arena, |_, flow| flow.label = 0);
            arena.open_path();
        }),
        goes_on("ANSWER with one label for all flows", |arena| {
            answer_with(arena, |_, flow| flow.label = 48);
            arena.open_path();
        }),
        goes_on("ANSWER with the greatest label", |arena| {
            answer_with(arena, |_, flow| flow.label = u32::MAX);
            arena.open_path();
        }),
        goes_on("ANSWER with datagrams of no length", |arena| {
            answer_with(arena, |_, flow| flow.datagram_len = 0);
            let refused = arena.accept.flows.iter().filter(|it| it.accepted.is_err()).count();
            assert_eq!(refused, 3, "{:?}", arena.accept);
        }),
        goes_on("ANSWER with datagrams of one byte", |arena| {
            answer_with(arena, |_, flow| flow.datagram_len = 1);
            assert!(arena.accept.flows.iter().all(|it| it.accepted.is_err()));
        }),
        goes_on("ANSWER with datagrams as long as the length allows", |arena| {
            answer_with(arena, |_, flow| flow.datagram_len = u16::MAX);
            arena.open_path();
            assert!(arena.accept.flows.iter().all(|it| it.datagram_len <= 1_452));
        }),
        goes_on("ANSWER with tokens of streams that are none", |arena| {
            answer_with(arena, |_, flow| flow.stream_token = Some([7; 16]));
            assert!(arena.accept.flows.iter().all(|it| it.stream_token.is_none()));
        }),
    ]
}

fn reasons() -> Vec<Case> {
    vec![
        dialer("ANSWER that takes no flow, and ACTIVATE", At::Offered, Open, |arena| {
            answer_with(arena, |at, flow| flow.accepted = Err((at as u16 * 30_000, "no".into())));
            arena.open_path();
            assert!(arena.accept.flows.iter().all(|it| it.accepted.is_err()));
        }),
        dialer(
            "ANSWER that neither takes nor refuses",
            At::Offered,
            Session(Code::Malformed),
            |arena| {
                let mut bytes = bytes_of(answer(3));
                let accepted = bytes.windows(5).position(|it| it == [0, 17, 0, 1, 1]).unwrap();
                bytes[accepted + 4] = 2;
                arena.push(&bytes);
            },
        ),
        dialer(
            "ANSWER with a reason of 513 bytes",
            At::Offered,
            Session(Code::Malformed),
            |arena| {
                let reason = [field(8, &[0, 1]), field(9, &[b'x'; 513])].concat();
                let flow = [field(15, &[0, 0]), field(17, &[0]), reason].concat();
                let flow = [flow, field(16, &[0; 4]), field(19, &[5, 0])].concat();
                arena.push(&record_of(MessageKind::Answer, &[field(14, &flow)]));
            },
        ),
        dialer(
            "ANSWER with a byte behind a flow's fields",
            At::Offered,
            Session(Code::Malformed),
            |arena| {
                let flow = bytes_of(Answer { flows: vec![taken(0)] });
                let flow = [&flow[10..], &[1]].concat();
                arena.push(&record_of(MessageKind::Answer, &[field(14, &flow)]));
            },
        ),
        dialer(
            "ANSWER with flows in flows in flows",
            At::Offered,
            Session(Code::Malformed),
            |arena| {
                let nested = (0..5_000).fold(Vec::new(), |inner, _| field(14, &inner));
                arena.push(&record_of(MessageKind::Answer, &[nested]));
            },
        ),
    ]
}
