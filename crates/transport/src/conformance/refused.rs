//! Rules about who is let in: tokens, prefaces, their time and their number.

use super::Side;
use super::side::WAITS_MAX;
use super::streams::{Bare, StreamNet, await_event, hear, open, preface, reason_of, say, token};
use crate::stream::{DIAL_WAIT, MAGIC, PREFACE_WAIT, UNCLAIMED_MAX};
use crate::{DATA_LANES_MAX, Outgoing, StreamEvent, StreamTransport, TrafficClass};
use dacapo_base::Time;
use std::io;
use std::time::Duration;

type StreamSide = Side<dyn StreamTransport>;

fn serve(net: &dyn StreamNet) -> (StreamSide, dacapo_base::Address) {
    let (server, address) = net.serve();
    (Side::new(server), address)
}

/// Takes turns until the server has taken `count` connections.
fn await_accepted(server: &mut StreamSide, count: u64) {
    server.await_until(|side| side.stats().streams.accepted >= count);
    assert_eq!(server.stats().streams.accepted, count);
}

/// True when the other end has closed a bare connection by now.
fn is_closed(bare: &mut dyn Bare) -> bool {
    match bare.read(&mut [0; 8]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    }
}

/// A token that nobody expects, or no longer, is closed without a byte, or not even that; streams
/// go on.
pub fn an_unknown_token_is_closed_without_an_answer(net: &dyn StreamNet) {
    let mut ends = open(net, 1);
    ends.server.transport.expect(token(2), Time::NEVER);
    ends.server.transport.forget(&token(2));
    let now = ends.server.now();
    ends.server.transport.expect(token(3), now);
    for number in [2, 3, 4] {
        let mut bare = net.connect(ends.server_addr, &token(number));
        say(&mut *bare, &preface(&token(number)), &mut ends.server);
        assert_eq!(hear(&mut *bare, 1, &mut ends.server), b"", "token {number}");
    }
    let stats = ends.server.stats();
    let counted =
        if net.answers_strangers() { stats.streams.unknown } else { stats.drops.unlabelled };
    assert!(counted == 3 || counted > 3 && !net.answers_strangers(), "{stats:?}");
    assert_eq!(ends.server.transport.poll_stream(), None, "nobody waits for it");
    // A dialer with such a token is told.
    let mut late: StreamSide = Side::new(net.dial(ends.server_addr, token(5)));
    for _ in 0..WAITS_MAX {
        late.turn();
        ends.server.turn();
        if let Some(event) = late.transport.poll_stream() {
            let reason = reason_of(event);
            let is_told = reason.contains("before it was open") || reason.contains("broke");
            let is_silent = reason.contains("did not answer");
            assert!(if net.answers_strangers() { is_told } else { is_silent }, "{reason}");
            break;
        }
        if !net.answers_strangers() {
            late.pass(DIAL_WAIT / 10);
        }
        ends.server.wait();
    }
    assert_eq!(late.stats().streams.closed, 1);
    ends.client.send_all(&Outgoing::datagram(TrafficClass::Data, ends.server_addr, b"still here"));
    assert_eq!(ends.await_server(1)[0].bytes, b"still here");
    late.end();
    ends.end();
}

/// Whatever byte of the magic is another one, and however the bytes come, it is closed. So is who
/// leaves within the preface.
pub fn a_preface_that_is_not_ours_is_closed(net: &dyn StreamNet) {
    let (mut server, address) = serve(net);
    server.transport.expect(token(1), Time::NEVER);
    for at in 0..MAGIC.len() {
        let mut bytes = preface(&token(1));
        bytes[at] ^= 0x40;
        let mut bare = net.connect(address, &token(1));
        // What follows the altered byte is never asked for.
        for byte in &bytes[..=at] {
            say(&mut *bare, &[*byte], &mut server);
            server.turn();
        }
        assert_eq!(hear(&mut *bare, 1, &mut server), b"", "byte {at}");
        assert_eq!(server.stats().streams.malformed, at as u64 + 1);
    }
    let mut bare = net.connect(address, &token(1));
    say(&mut *bare, &MAGIC, &mut server);
    drop(bare);
    server.await_until(|side| side.stats().streams.malformed == MAGIC.len() as u64 + 1);
    assert_eq!(server.stats().streams.malformed, MAGIC.len() as u64 + 1);
    assert_eq!(server.transport.poll_stream(), None);
    server.end();
}

/// A preface that is not whole a second after the connection was taken is too late, and one that is
/// has all the time it wants.
pub fn a_late_preface_is_closed(net: &dyn StreamNet) {
    let (mut server, address) = serve(net);
    server.transport.expect(token(1), Time::NEVER);
    server.transport.expect(token(2), Time::NEVER);
    let mut late = net.connect(address, &token(1));
    await_accepted(&mut server, 1);
    let accepted_at = server.now();
    let deadline = server.transport.next_deadline();
    assert!(deadline.is_some_and(|at| at <= accepted_at + PREFACE_WAIT), "{deadline:?}");
    say(&mut *late, &preface(&token(1))[..23], &mut server);
    let mut quick = net.connect(address, &token(2));
    say(&mut *quick, &preface(&token(2)), &mut server);
    assert_eq!(hear(&mut *quick, MAGIC.len(), &mut server), MAGIC);
    server.pass(PREFACE_WAIT / 2);
    server.turn();
    assert!(!is_closed(&mut *late), "there is time left");
    assert_eq!(server.stats().streams.late, 0);
    server.pass(PREFACE_WAIT);
    server.turn();
    assert_eq!(server.stats().streams.late, 1);
    assert_eq!(hear(&mut *late, 1, &mut server), b"", "it is closed");
    let deadline = server.transport.next_deadline();
    assert!(!net.is_quiet() || deadline.is_none(), "nobody is late any more: {deadline:?}");
    let event = await_event(&mut server);
    assert!(matches!(event, StreamEvent::Open { .. }), "{event:?}");
    server.pass(Duration::from_secs(3_600));
    server.turn();
    assert_eq!(server.transport.stream_count(), 1, "an open stream has no such limit");
    server.end();
}

/// A token opens one stream, once.
pub fn a_token_opens_one_stream_once(net: &dyn StreamNet) {
    let mut ends = open(net, 1);
    let mut again = net.connect(ends.server_addr, &token(1));
    say(&mut *again, &preface(&token(1)), &mut ends.server);
    assert_eq!(hear(&mut *again, 1, &mut ends.server), b"");
    assert_eq!(ends.server.stats().streams.unknown, 1);
    assert_eq!(ends.server.transport.poll_stream(), None);
    ends.client.send_all(&Outgoing::datagram(TrafficClass::Data, ends.server_addr, b"still here"));
    assert_eq!(ends.await_server(1)[0].bytes, b"still here");
    ends.end();
}

/// Of those that have said nothing the oldest is closed when there are too many, and only that one.
pub fn the_65th_unclaimed_closes_the_oldest(net: &dyn StreamNet) {
    let (mut server, address) = serve(net);
    server.transport.expect(token(1), Time::NEVER);
    let mut silent = Vec::new();
    for count in 1..=UNCLAIMED_MAX as u64 + 1 {
        silent.push(net.connect(address, &token(1)));
        // Time stands nearly still: none of them is late.
        await_accepted(&mut server, count);
    }
    assert_eq!(server.stats().streams.displaced, 1);
    assert_eq!(hear(&mut *silent[0], 1, &mut server), b"", "the oldest is closed");
    for (index, bare) in silent.iter_mut().enumerate().skip(1) {
        assert!(!is_closed(&mut **bare), "number {index} is not");
    }
    say(&mut *silent[1], &preface(&token(1)), &mut server);
    assert_eq!(hear(&mut *silent[1], MAGIC.len(), &mut server), MAGIC);
    // A stream with a token is not among them: another two close one.
    for count in 1..=2 {
        silent.push(net.connect(address, &token(1)));
        await_accepted(&mut server, UNCLAIMED_MAX as u64 + 1 + count);
    }
    assert_eq!(server.stats().streams.displaced, 2);
    assert!(!is_closed(&mut *silent[1]));
    assert_eq!(hear(&mut *silent[2], 1, &mut server), b"", "the next oldest is closed");
    assert_eq!((server.stats().streams.late, server.transport.stream_count()), (0, 1));
    server.end();
}

/// Where nobody listens the dialer is told why its stream does not open.
pub fn nobody_listening_is_told(net: &dyn StreamNet) {
    let remote = net.nobody();
    let mut client: StreamSide = Side::new(net.dial(remote, token(1)));
    let event = await_event(&mut client);
    let StreamEvent::Closed { token: named, remote: from, reason } = event else {
        panic!("{event:?}");
    };
    assert_eq!((named, from), (token(1), remote));
    assert!(reason.contains("nobody listens"), "{reason}");
    assert!(client.now() < Time::ZERO + DIAL_WAIT, "not because it took too long");
    assert_eq!(client.transport.stream_count(), 0);
    client.end();
}

/// There are only so many streams, and only so many tokens that are expected; one more is refused
/// with the reason, and a stream that is closed makes room.
pub fn streams_and_tokens_are_bounded(net: &dyn StreamNet) {
    let limit = net.streams_max();
    let (mut server, address) = serve(net);
    let mut streams = Vec::new();
    let mut open_one = |server: &mut StreamSide, number: u64| {
        server.transport.expect(token(number), Time::NEVER);
        let mut bare = net.connect(address, &token(number));
        say(&mut *bare, &preface(&token(number)), server);
        let answer = hear(&mut *bare, MAGIC.len(), server);
        let remote = bare.local_addr();
        streams.push(bare);
        (answer, await_event(server), remote)
    };
    let mut first = None;
    for number in 0..limit as u64 {
        let (answer, event, remote) = open_one(&mut server, number);
        assert_eq!(answer, MAGIC);
        assert_eq!(event, StreamEvent::Open { token: token(number), remote });
        first.get_or_insert(remote);
    }
    let (answer, event, _) = open_one(&mut server, 1_000);
    assert_eq!(answer, b"");
    let reason = reason_of(event);
    assert!(reason.contains(&format!("{limit} streams are open")), "{reason}");
    server.transport.close_stream(first.expect("one was opened"));
    let (answer, event, _) = open_one(&mut server, 1_001);
    assert_eq!(answer, MAGIC);
    assert!(matches!(event, StreamEvent::Open { .. }), "{event:?}");
    for number in 0..DATA_LANES_MAX as u64 {
        server.transport.expect(token(2_000 + number), Time::NEVER);
    }
    assert_eq!(server.transport.poll_stream(), None);
    server.transport.expect(token(9_999), Time::NEVER);
    let StreamEvent::Closed { token: named, .. } = await_event(&mut server) else {
        panic!("the token is refused");
    };
    assert_eq!((named, server.stats().streams.over_limit), (token(9_999), 2));
    server.end();
}
