//! Cases of bytes that are no records: lengths, types, fields, and records that come slowly.

use crate::Case;
use crate::Outcome::{GoesOn, Seen, Session};
use crate::arena::At;
use crate::wire::{bytes_of, field, header, record, with_tail};
use crate::{dialer, listener};
use dacapo_base::Random;
use dacapo_core::Code;
use dacapo_wire::message::{Message, MessageKind};
use dacapo_wire::session::{Activate, Control, MODULE_ACCESS};

pub fn cases() -> Vec<Case> {
    [headers(), bodies(), passed_over(), slow()].into_iter().flatten().collect()
}

fn headers() -> Vec<Case> {
    let malformed = |name, script| dialer(name, At::Active, Session(Code::Malformed), script);
    vec![
        malformed("a record of 65,537 bytes", |arena| arena.push(&header(0x1D, 65_537))),
        malformed("a record of 4 GiB", |arena| arena.push(&header(0x1D, u32::MAX))),
        malformed("a record of 4 GiB that may be passed over", |arena| {
            arena.push(&header(0x9000, u32::MAX));
        }),
        malformed("a record of type 0", |arena| arena.push(&header(0, 0))),
        malformed("a record of a type that nobody knows", |arena| arena.push(&header(0x7FFF, 0))),
        malformed("a record of the type that was left out", |arena| {
            arena.push(&record(0x14, &[]));
        }),
        malformed("10,000 bytes of noise", |arena| {
            let mut noise = vec![0; 10_000];
            Random::from_number(1).fill(&mut noise);
            arena.push(&noise);
        }),
        malformed("10,000 bytes of zeros", |arena| arena.push(&[0; 10_000])),
        malformed("a greeting of HTTP", |arena| arena.push(b"GET / HTTP/1.1\r\n\r\n")),
        listener("a listener's record of 4 GiB", At::Active, Session(Code::Malformed), |arena| {
            arena.push(&header(0x1D, u32::MAX));
        }),
        listener(
            "a listener's noise in place of OFFER",
            At::Opened,
            Session(Code::Malformed),
            |arena| {
                arena.push(&[0xA5; 3_000]);
            },
        ),
        dialer(
            "half a record and the end of its stream",
            At::Active,
            Session(Code::Violation),
            |arena| {
                arena.push(&bytes_of(Activate { request: 1 })[..9]);
                arena.raw.finish(arena.stream);
            },
        ),
    ]
}

fn bodies() -> Vec<Case> {
    let malformed = |name, script| dialer(name, At::Ready, Session(Code::Malformed), script);
    vec![
        malformed("a record with a byte behind its fields", |arena| {
            arena.push(&with_tail(Activate { request: 1 }, &[0]));
        }),
        malformed("a field that is longer than its record", |arena| {
            arena.push(&record(0x15, &[0, 10, 0xFF, 0xFF, 0, 0]));
        }),
        malformed("a field of no length", |arena| arena.push(&record(0x15, &field(10, &[])))),
        malformed("a field that is too long by one", |arena| {
            arena.push(&record(0x15, &field(10, &[0; 5])));
        }),
        malformed("a field that is there twice", |arena| {
            arena.push(&record(0x15, &field(10, &[0; 4]).repeat(2)));
        }),
        malformed("a text that is no UTF-8", |arena| {
            arena.push(&record(0x1B, &[field(8, &[2, 189]), field(9, &[0xFF, 0xFE])].concat()));
        }),
        malformed("16,384 empty fields of the one that must be there once", |arena| {
            arena.push(&record(0x15, &field(10, &[]).repeat(16_384)));
        }),
        dialer("every kind of record without a body", At::Greeted, Seen, |arena| {
            for kind in MessageKind::ALL.iter().filter(|kind| **kind != MessageKind::Closed) {
                arena.begin(At::Ready, "usual", Vec::new());
                arena.push(&record(kind.code(), &[]));
                // Those that are lists alone may be empty; then the state says what they are.
                let is_list = *kind == MessageKind::Answer;
                let code = if is_list { Code::Violation } else { Code::Malformed };
                arena.expect_end(code);
            }
        }),
    ]
}

fn passed_over() -> Vec<Case> {
    vec![
        dialer("1,000 records that may be passed over", At::Active, GoesOn, |arena| {
            (0..1_000_u16).for_each(|at| arena.push(&record(0x8000 + at, b"what")));
            arena.run(300);
            assert_eq!(arena.take_all(), [], "nothing is answered");
        }),
        dialer("50 records of 64 KiB that may be passed over", At::Active, GoesOn, |arena| {
            (0..50).for_each(|_| arena.push(&record(0xFFFF, &[9; 65_536])));
            arena.run(3_000);
            assert_eq!(arena.take_all(), [], "nothing is answered");
        }),
        dialer("fields of a later version in a record", At::Ready, GoesOn, |arena| {
            let body = [field(0xFFF0, &[1; 30_000]), field(10, &[0, 0, 0, 9]), field(0, &[])];
            arena.push(&record(0x15, &body.concat()));
            arena.run(40);
            assert!(matches!(arena.take(), Some(Message::Activated(it)) if it.request == 9));
        }),
        dialer("fields in fields in fields", At::Ready, GoesOn, |arena| {
            let nested = (0..10_000).fold(Vec::new(), |inner, _| field(14, &inner));
            arena.push(&record(0x15, &[field(10, &[0; 4]), nested].concat()));
            arena.run(60);
        }),
    ]
}

fn slow() -> Vec<Case> {
    vec![
        dialer("a record whose bytes come 10 s apart", At::Ready, GoesOn, |arena| {
            arena.open_path();
            for byte in bytes_of(Activate { request: 3 }) {
                arena.push(&[byte]);
                arena.run(10_000);
            }
            assert!(matches!(arena.take(), Some(Message::Activated(it)) if it.request == 3));
        }),
        dialer("20 records, a byte in each datagram", At::Active, GoesOn, |arena| {
            let control = Control { module: MODULE_ACCESS, ..Control::default() };
            for byte in bytes_of(control).repeat(20) {
                arena.push(&[byte]);
                arena.run(1);
            }
            arena.run(40);
            assert_eq!(arena.take_all().len(), 20);
        }),
        listener("an OFFER whose bytes come 5 ms apart", At::Opened, Seen, |arena| {
            arena.offer.flows = crate::arena::usual_flows();
            for byte in bytes_of(arena.offer.clone()) {
                arena.push(&[byte]);
                arena.run(5);
            }
            arena.core_answers();
            assert!(matches!(arena.take(), Some(Message::Answer(_))));
        }),
    ]
}
