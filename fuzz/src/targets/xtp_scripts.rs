//! Scripts that lead an engine of XTP through associations, from where mutations start.

use super::xtp::{PORT, group};
use dacapo_xtp::wire::{
    Address, AddressSegment, Body, Code, Control, Diagnostic, Header, Key, Limits, Options,
    Payload, Reason, Span, Spans, Traffic, TrafficControl, Writer,
};

/// A packet of a script: `key` is that of the engine's which was shown so many before.
fn says(kind: u8, key: u8, options: Options, seq: u64, body: &Body<'_>) -> Vec<u8> {
    let header = Header { options, sync: 5, seq, ..Header::new(Key::own(9), body.format()) };
    let mut packet = Vec::new();
    Writer::packet(&header, body, &mut packet).expect("a seed is short");
    let mut script = vec![kind, 1, key, packet.len() as u8];
    script.extend_from_slice(&packet);
    script
}

/// The key as it is in the packet; a key of the engine's; the same, with the echo of its request.
const AS_IS: u8 = 6;
const KNOWN: u8 = 1;
const ECHO: u8 = 9;

/// The peer opens, sends with a gap, closes; and once more, with END in the middle.
fn accepting() -> Vec<u8> {
    let null = AddressSegment { domain: 0, address: Address::Null };
    let traffic = Traffic { service: 4, limits: None };
    let control = Control { rseq: 0, alloc: 9_000, echo: 0 };
    let data = |data| Body::Data(Payload { tag: None, data });
    let first = Body::First(null, traffic, Payload { tag: None, data: b"hello" });
    let ask = Options::SREQ;
    let closes = Options::WCLOSE | Options::SREQ | Options::EOM;
    [
        says(AS_IS, 0, ask, 0, &data(b"for nobody")),
        says(AS_IS, 0, ask | Options::EOM, 0, &first),
        says(KNOWN, 1, Options::FASTNAK, 10, &data(b"behind")),
        says(KNOWN, 1, ask, 5, &data(b"between")),
        says(KNOWN, 1, closes, 16, &data(b"end")),
        vec![0xD3, 0, 0xD0, 0, 3, 1, 2, 3, 0xD4, 0],
        says(ECHO, 1, Options::RCLOSE, 19, &Body::Cntl(Control { rseq: 3, ..control })),
        says(KNOWN, 1, ask, 19, &data(b"")),
        vec![0xD7, 0, 0xA0, 0xE0, 0, 0, 0xFF, 0xFF],
        says(AS_IS, 0, ask, 0, &first),
        says(KNOWN, 2, Options::END, 5, &Body::Cntl(control)),
    ]
    .concat()
}

/// The engine opens, sends, is told what lacks and what is wrong, and then nothing.
fn opening() -> Vec<u8> {
    let control = Control { rseq: 0, alloc: 9_000, echo: 0 };
    let traffic = Traffic { service: 4, limits: Some(Limits::default()) };
    let tcntl = Body::Tcntl(TrafficControl { control, xkey: 3 }, traffic);
    let spans = [Span { left: 100, right: 300 }];
    let (code, reason) = (Code::PROTOCOL_ERROR, Reason::UNSPECIFIED);
    let diagnostic = Body::Diag(Diagnostic { code, reason, message: b"no" });
    let none = Options::NONE;
    [
        vec![0xC0, 1],
        says(ECHO, 1, none, 0, &tcntl),
        vec![0xD2, 0],
        says(ECHO, 1, none, 0, &Body::Ecntl(control, Spans::List(&spans))),
        says(KNOWN, 1, none, 0, &diagnostic),
        [0xA0, 0xE0, 0, 1, 0x86, 0xA0].repeat(20),
    ]
    .concat()
}

/// JCNTL: `xkey` is offered.
fn asks(xkey: u64) -> Body<'static> {
    let control = Control { rseq: 0, alloc: 9_000, echo: 0 };
    let source = ([192, 0, 2, 1], PORT).into();
    let segment =
        AddressSegment { domain: 0, address: Address::Internet { destination: group(), source } };
    Body::Jcntl(TrafficControl { control, xkey }, segment, Traffic { service: 6, limits: None })
}

/// The engine transmits to a group of two, of which one complains, and the other gets everything.
fn transmitting() -> Vec<u8> {
    let control = Control { rseq: 0, alloc: 9_000, echo: 0 };
    let (multi, ask) = (Options::MULTI, Options::MULTI | Options::SREQ);
    let closes = multi | Options::RCLOSE | Options::WCLOSE | Options::END;
    let spans = [Span { left: 100, right: 300 }];
    let lacks = Body::Ecntl(control, Spans::List(&spans));
    let (code, reason) = (Code::CONTEXT_ABANDONED, Reason::UNSPECIFIED);
    let gone = Body::Diag(Diagnostic { code, reason, message: b"" });
    [
        vec![0xC8, 0],
        says(KNOWN, 1, ask, 0, &asks(70)),
        says(KNOWN, 2, ask, 0, &asks(70)),
        vec![0xD2, 0],
        says(KNOWN, 1, ask, 0, &asks(71)),
        says(KNOWN, 4, ask, 0, &asks(71)),
        says(KNOWN, 1, ask, 0, &asks(72)),
        says(ECHO, 2, ask, 0, &lacks),
        says(KNOWN, 4, multi, 0, &gone),
        vec![0xD4, 0, 0xA0, 0xC0, 3, 0xE8],
        says(ECHO, 2, closes, 0, &Body::Cntl(Control { rseq: 700, ..control })),
        says(KNOWN, 2, ask, 0, &Body::Cntl(control)),
    ]
    .concat()
}

/// The engine asks to join, is invited, is offered a key and admitted, hears data and END; then it
/// is invited as a listener and refused.
fn joining() -> Vec<u8> {
    let control = Control { rseq: 0, alloc: 0, echo: 0 };
    let ask = Options::MULTI | Options::SREQ;
    let closes = ask | Options::RCLOSE | Options::WCLOSE;
    let Body::Jcntl(_, segment, traffic) = asks(0) else { return Vec::new() };
    let invites = Body::First(segment, traffic, Payload::default());
    let data = Body::Data(Payload { tag: None, data: b"hello" });
    let (code, reason) = (Code::JOIN_REFUSED, Reason::JOIN_DENIED);
    let refuses = Body::Diag(Diagnostic { code, reason, message: b"" });
    [
        vec![0xCC],
        says(AS_IS, 0, ask, 0, &invites),
        vec![0xA0, 10],
        says(ECHO, 1, Options::MULTI, 0, &asks(8)),
        says(ECHO, 1, ask | Options::RCLOSE, 100, &asks(8)),
        says(AS_IS, 0, ask, 100, &data),
        vec![0xD3, 0],
        says(AS_IS, 0, closes, 105, &Body::Data(Payload::default())),
        vec![0xA0, 10],
        says(KNOWN, 1, ask, 105, &Body::Cntl(control)),
        vec![0xD7, 0, 0xA0, 0xE0, 0, 0, 0xFF, 0xFF],
        says(AS_IS, 0, ask, 0, &invites),
        vec![0xA0, 10],
        says(AS_IS, 0, Options::NONE, 0, &refuses),
    ]
    .concat()
}

/// Scripts that lead through associations, and users that do everything at once.
pub fn engine_seeds() -> Vec<Vec<u8>> {
    let user: Vec<u8> = (0xD0..0xD8).flat_map(|kind| [0xC0, 1, kind, 0, 3, 1, 2, 3]).collect();
    let alone = vec![0xC0, 0, 0xA0, 0xFF, 0xA0, 0xFF];
    vec![accepting(), opening(), user, alone, transmitting(), joining()]
}
