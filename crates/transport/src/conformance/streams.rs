//! Rules about streams that are open, or are being opened: what is sent arrives, in order, up to an
//! end that both sides are told.

use super::side::{WAITS_MAX, random_bytes, wait_for};
use super::{Ends, Pair, Side};
use crate::stream::{DIAL_WAIT, MAGIC, RECORD_LEN_MAX, Token};
use crate::{Outgoing, SendError, Sent, StreamEvent, StreamTransport, TrafficClass};
use dacapo_base::{Address, Random, Time};
use std::io::{self, Read, Write};

/// A bare connection, which says what the rule wants it to say. It never blocks.
pub trait Bare: Read + Write {
    /// The address of this end.
    fn local_addr(&self) -> Address;
}

/// A maker of transports over streams.
pub trait StreamNet {
    /// A transport that listens, and where.
    fn serve(&self) -> (Box<dyn StreamTransport>, Address);
    /// A transport that opens a stream.
    fn dial(&self, remote: Address, token: Token) -> Box<dyn StreamTransport>;
    /// A connection that is no transport, and says by itself no more of a token than goes before
    /// every packet.
    fn connect(&self, remote: Address, token: &Token) -> Box<dyn Bare>;
    /// An address at which nobody listens.
    fn nobody(&self) -> Address;
    /// The most streams of one transport.
    fn streams_max(&self) -> usize;
    /// False where who shows a token that nobody expects hears nothing at all.
    fn answers_strangers(&self) -> bool {
        true
    }
    /// True when nothing but the streams wakes it; false where a protocol of its own has
    /// acknowledgements and timers.
    fn is_quiet(&self) -> bool {
        true
    }
}

type StreamSide = Side<dyn StreamTransport>;
pub(super) type StreamEnds = Ends<dyn StreamTransport>;

pub(super) fn token(number: u64) -> Token {
    let mut token = Token::default();
    Random::from_number(number).fill(&mut token);
    token
}

pub(super) fn preface(token: &Token) -> Vec<u8> {
    [MAGIC.as_slice(), token].concat()
}

/// The first event of a transport, in turns of both.
pub(super) fn await_events(ends: &mut StreamEnds) -> [StreamEvent; 2] {
    let mut events = [None, None];
    for _ in 0..WAITS_MAX {
        ends.client.turn();
        ends.server.turn();
        for (event, side) in events.iter_mut().zip([&mut ends.client, &mut ends.server]) {
            *event = event.take().or_else(|| side.transport.poll_stream());
        }
        if let [Some(client), Some(server)] = &events {
            return [client.clone(), server.clone()];
        }
        wait_for([ends.client.transport.fd(), ends.server.transport.fd()]);
    }
    panic!("events of client and server: {events:?}");
}

/// The next event of one side.
pub(super) fn await_event(side: &mut StreamSide) -> StreamEvent {
    for _ in 0..WAITS_MAX {
        side.drain();
        if let Some(event) = side.transport.poll_stream() {
            return event;
        }
        side.wait();
    }
    panic!("no event, stats {:?}", side.stats());
}

pub(super) fn reason_of(event: StreamEvent) -> String {
    match event {
        StreamEvent::Closed { reason, .. } => reason,
        StreamEvent::Open { .. } => panic!("it is open"),
    }
}

/// Both ends of a stream that is not open yet.
fn opening(net: &dyn StreamNet, number: u64) -> StreamEnds {
    let (mut server, server_addr) = net.serve();
    server.expect(token(number), Time::NEVER);
    let client = net.dial(server_addr, token(number));
    let client_addr = client.local_addrs()[0];
    let (client, server) = (Side::new(client), Side::new(server));
    Ends { client, server, server_addr, client_addr, client_data: client_addr }
}

/// Both ends of an open stream.
pub(super) fn open(net: &dyn StreamNet, number: u64) -> StreamEnds {
    let mut ends = opening(net, number);
    let [client, server] = await_events(&mut ends);
    let token = token(number);
    assert_eq!(client, StreamEvent::Open { token, remote: ends.server_addr });
    assert_eq!(server, StreamEvent::Open { token, remote: ends.client_addr });
    ends
}

/// A pair for [`super::run_all`], whose stream is open.
pub fn open_pair(net: &dyn StreamNet) -> Pair {
    let ends = open(net, 1);
    Pair {
        client: ends.client.transport,
        server: ends.server.transport,
        server_addr: ends.server_addr,
        client_addr: ends.client_addr,
    }
}

/// While a stream is not read nothing comes up, nobody is woken for it, and nothing is lost.
pub fn what_is_not_read_now_is_there_later(net: &dyn StreamNet) {
    let mut ends = open(net, 7);
    let (client, server) = (ends.client_addr, ends.server_addr);
    let sent: Vec<Vec<u8>> = (1..=20).map(|seed| random_bytes(seed, 50 * seed as usize)).collect();
    ends.server.drain();
    ends.server.transport.set_reading(client, false);
    for bytes in &sent {
        ends.client.send_all(&Outgoing::datagram(TrafficClass::Data, server, bytes));
    }
    for _ in 0..3 {
        // A transport without a descriptor is looked at every turn.
        let woken = ends.server.wait() && ends.server.transport.fd().is_some();
        ends.server.drain();
        // What a send has kept of a record goes out in the sender's turns.
        ends.client.turn();
        let woken = woken && net.is_quiet();
        assert!(!woken && ends.server.arrival_count() == 0, "it is read all the same");
    }
    ends.server.transport.set_reading(client, true);
    for _ in 0..WAITS_MAX {
        ends.client.turn();
        ends.server.drain();
        if ends.server.arrival_count() >= sent.len() {
            break;
        }
        ends.server.wait();
    }
    let arrived = ends.server.take_exactly(sent.len());
    let arrived: Vec<_> = arrived.into_iter().map(|arrival| arrival.bytes).collect();
    assert_eq!(arrived, sent);
    ends.end();
}

/// Writes all of `bytes` by a bare connection, whose other end takes turns.
pub(super) fn say(bare: &mut dyn Bare, bytes: &[u8], server: &mut StreamSide) {
    let mut at = 0;
    for _ in 0..10 * WAITS_MAX {
        if at == bytes.len() {
            return;
        }
        match bare.write(&bytes[at..]) {
            Ok(count) => at += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                server.turn();
            }
            Err(error) => panic!("after {at} bytes: {error}"),
        }
    }
    panic!("{at} of {} bytes were taken", bytes.len());
}

/// What comes by a bare connection until it ends, or until `count` bytes are there.
pub(super) fn hear(bare: &mut dyn Bare, count: usize, server: &mut StreamSide) -> Vec<u8> {
    let mut heard = Vec::new();
    let mut buffer = [0; 1_000];
    let mut waits = 0;
    while waits < WAITS_MAX {
        match bare.read(&mut buffer) {
            Ok(0) => return heard,
            Ok(len) => heard.extend_from_slice(&buffer[..len]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                server.wait();
                server.turn();
                waits += 1;
            }
            Err(_) => return heard,
        }
        if heard.len() >= count {
            return heard;
        }
    }
    panic!("it neither ended nor said more than {} bytes", heard.len());
}

/// A bare connection that has opened a stream.
fn bare_stream(net: &dyn StreamNet, server: &mut StreamSide, at: Address) -> Box<dyn Bare> {
    server.transport.expect(token(9), Time::NEVER);
    let mut bare = net.connect(at, &token(9));
    say(&mut *bare, &preface(&token(9)), server);
    assert_eq!(hear(&mut *bare, MAGIC.len(), server), MAGIC);
    let remote = bare.local_addr();
    assert_eq!(await_event(server), StreamEvent::Open { token: token(9), remote });
    bare
}

/// Before a stream is open sending blocks, and then there is room; nothing is lost or doubled.
pub fn what_is_sent_before_the_stream_is_open_waits(net: &dyn StreamNet) {
    let mut ends = opening(net, 1);
    let early = Outgoing::datagram(TrafficClass::Data, ends.server_addr, b"early");
    let sent = ends.client.transport.send(&early).expect("it is being opened");
    assert_eq!(sent, Sent::Blocked { bytes_taken: 0 });
    let mut is_writable = false;
    for _ in 0..WAITS_MAX {
        ends.server.turn();
        is_writable |= ends.client.turn().writable;
        if is_writable {
            break;
        }
        wait_for([ends.client.transport.fd(), ends.server.transport.fd()]);
    }
    assert!(is_writable, "there is room once it is open");
    assert!(matches!(ends.client.transport.poll_stream(), Some(StreamEvent::Open { .. })));
    ends.client.send_all(&early);
    assert_eq!(ends.await_server(1)[0].bytes, b"early");
    ends.end();
}

/// A close lets arrive what was sent before it, then both transports are done with the stream. The
/// end that did not close is told; the other one asked for it.
pub fn what_was_sent_before_a_close_arrives(net: &dyn StreamNet) {
    let mut ends = open(net, 1);
    assert_eq!(
        (ends.client.transport.stream_count(), ends.server.transport.stream_count()),
        (1, 1)
    );
    let bytes = random_bytes(3, 60_000);
    let (lane, remote) = (TrafficClass::Data, ends.server_addr);
    ends.client.send_all(&Outgoing::train(lane, remote, &bytes, 1_000));
    ends.client.transport.close_stream(ends.server_addr);
    let late = ends.client.transport.send(&Outgoing::datagram(lane, remote, b"late"));
    assert!(matches!(late, Err(SendError::Closed)), "{late:?}");
    // The server does not know yet.
    ends.server.send_all(&Outgoing::datagram(lane, ends.client_addr, b"too late"));
    let arrived: Vec<u8> = ends.await_server(60).into_iter().flat_map(|a| a.bytes).collect();
    assert!(arrived == bytes, "everything before the close, and nothing after it");
    let closed = await_event(&mut ends.server);
    assert!(reason_of(closed).contains("closed the stream"));
    ends.await_until(|ends| ends.client.transport.stream_count() == 0);
    assert_eq!(
        (ends.client.transport.stream_count(), ends.server.transport.stream_count()),
        (0, 0)
    );
    assert_eq!(ends.client.transport.poll_stream(), None, "who closed it is told nothing");
    assert_eq!(ends.client.arrival_count(), 0, "who closed it gets nothing");
    assert_eq!(ends.client.stats().drops.closed, 1);
    ends.client.transport.close_stream(ends.server_addr);
    ends.end();
}

/// Who leaves in the middle of a record is told with the reason, after every whole record before
/// it, and nothing of the rest is held.
pub fn a_peer_that_leaves_within_a_record_is_told(net: &dyn StreamNet) {
    let (server, address) = net.serve();
    let mut server: StreamSide = Side::new(server);
    let mut bare = bare_stream(net, &mut server, address);
    let whole = [[0, 0, 0, 3, 7, 7, 7].as_slice(), &[0, 0, 0, 0]].concat();
    say(&mut *bare, &whole, &mut server);
    say(&mut *bare, &[0, 0, 1, 0, 5, 5], &mut server);
    server.await_until(|side| side.arrival_count() == 2);
    let remote = bare.local_addr();
    drop(bare);
    let event = await_event(&mut server);
    let StreamEvent::Closed { token: named, remote: from, reason } = event else {
        panic!("{event:?}");
    };
    assert_eq!((named, from), (token(9), remote));
    assert!(reason.contains("within a datagram, 2 of 256 bytes"), "{reason}");
    let bytes: Vec<_> = server.take_exactly(2).into_iter().map(|arrival| arrival.bytes).collect();
    assert_eq!(bytes, [vec![7; 3], vec![]]);
    assert_eq!(server.stats().streams.faults, 1);
    assert_eq!(server.transport.stream_count(), 0);
    let gone = server.transport.send(&Outgoing::datagram(TrafficClass::Data, remote, b"gone"));
    assert!(matches!(gone, Err(SendError::Closed)), "{gone:?}");
    server.end();
}

/// A length beyond the limit ends its stream with the reason; another stream goes on. So does junk,
/// sooner or later, and never more than that.
pub fn a_record_that_is_too_long_ends_its_stream_only(net: &dyn StreamNet) {
    let mut ends = open(net, 1);
    let mut bare = bare_stream(net, &mut ends.server, ends.server_addr);
    say(&mut *bare, &(RECORD_LEN_MAX as u32 + 1).to_be_bytes(), &mut ends.server);
    let reason = reason_of(await_event(&mut ends.server));
    assert!(reason.contains("a datagram of 65536 bytes, 65535 are the most"), "{reason}");
    assert_eq!(hear(&mut *bare, 1, &mut ends.server), b"", "it is closed");
    for seed in 0..20 {
        let mut bare = bare_stream(net, &mut ends.server, ends.server_addr);
        let junk = random_bytes(seed, 700);
        // It may be closed before all of it is said.
        let _ = bare.write(&junk);
        drop(bare);
        let event = await_event(&mut ends.server);
        assert!(matches!(event, StreamEvent::Closed { .. }), "seed {seed}: {event:?}");
        ends.server.take_arrivals();
    }
    ends.client.send_all(&Outgoing::datagram(TrafficClass::Data, ends.server_addr, b"still here"));
    assert_eq!(ends.await_server(1)[0].bytes, b"still here");
    ends.end();
}

/// Nothing is lost and the order is kept through a queue that is full again and again. The maker
/// gives transports with small queues.
pub fn a_full_queue_loses_nothing_and_keeps_the_order(net_small: &dyn StreamNet) {
    let mut ends = open(net_small, 1);
    let mut random = Random::from_number(5);
    let (mut sent, mut blocked) = (Vec::new(), 0);
    for _ in 0..300 {
        let len = 1 + random.below(9_000) as usize;
        let segment_len = 1 + random.below(1_500) as usize;
        let bytes = random_bytes(random.next_u64(), len);
        sent.extend(bytes.chunks(segment_len).map(<[u8]>::to_vec));
        let remote = ends.server_addr;
        let mut rest = Outgoing::train(TrafficClass::Data, remote, &bytes, segment_len);
        while let Sent::Blocked { bytes_taken } = ends.client.transport.send(&rest).expect("open") {
            assert!(bytes_taken.is_multiple_of(segment_len), "whole datagrams");
            rest.bytes = &rest.bytes[bytes_taken..];
            blocked += 1;
            ends.server.turn();
            ends.client.turn();
            assert!(blocked < 1_000_000, "there is never room");
        }
    }
    assert!(blocked > 0, "the queue was never full");
    let arrivals = ends.await_server(sent.len());
    assert!(arrivals.into_iter().map(|arrival| arrival.bytes).eq(sent), "the same, in order");
    let (sent, received) = (ends.client.stats().sent, ends.server.stats().received);
    assert_eq!((sent.datagrams, sent.bytes), (received.datagrams, received.bytes));
    ends.end();
}

/// What was taken before a close arrives, also when the queue was full and the rest of a record is
/// still to be written. The maker gives transports with small queues.
pub fn a_close_with_a_full_queue_loses_nothing(net_small: &dyn StreamNet) {
    let mut ends = open(net_small, 1);
    let outgoing = Outgoing::datagram(TrafficClass::Data, ends.server_addr, &[7; 9_000]);
    let mut taken = 0;
    while ends.client.transport.send(&outgoing).expect("it is open") == Sent::All {
        taken += 1;
        assert!(taken < 10_000, "the queue is never full");
    }
    ends.client.transport.close_stream(ends.server_addr);
    let arrivals = ends.await_server(taken);
    assert!(arrivals.iter().all(|arrival| arrival.bytes == [7; 9_000]));
    assert!(reason_of(await_event(&mut ends.server)).contains("closed the stream"));
    ends.await_until(|ends| ends.client.transport.stream_count() == 0);
    assert_eq!(ends.client.transport.stream_count(), 0);
    ends.end();
}

/// What the half of a record holds of the pool is given back before the transport is dropped, and
/// everything is over then.
pub fn a_release_gives_back_what_half_a_record_holds(net: &dyn StreamNet) {
    let (server, address) = net.serve();
    let mut server: StreamSide = Side::new(server);
    let mut bare = bare_stream(net, &mut server, address);
    say(&mut *bare, &[[0, 0, 1, 0, 5].as_slice(), &[0; 200]].concat(), &mut server);
    server.await_until(|side| side.pool.live_views() > 0);
    assert_eq!(server.pool.live_views(), 1, "it keeps what has come");
    server.transport.release(&mut server.pool);
    assert_eq!((server.pool.live_views(), server.transport.stream_count()), (0, 0));
    let gone =
        server.transport.send(&Outgoing::datagram(TrafficClass::Data, bare.local_addr(), b"gone"));
    assert!(matches!(gone, Err(SendError::Closed)), "{gone:?}");
    assert_eq!(hear(&mut *bare, 1, &mut server), b"", "it is closed");
    server.end();
}

/// A stream that takes no more leaves the others alone. The maker gives transports with small
/// queues.
pub fn one_blocked_stream_holds_no_other_up(net_small: &dyn StreamNet) {
    let mut ends = open(net_small, 1);
    let stuck = bare_stream(net_small, &mut ends.server, ends.server_addr);
    let to_stuck = Outgoing::datagram(TrafficClass::Data, stuck.local_addr(), &[7; 5_000]);
    let is_full =
        (0..1_000).any(|_| ends.server.transport.send(&to_stuck).expect("it is open") != Sent::All);
    assert!(is_full, "nobody reads it");
    for number in 0..100_u8 {
        let bytes = [number; 900];
        ends.server.send_all(&Outgoing::datagram(TrafficClass::Data, ends.client_addr, &bytes));
        assert_eq!(ends.await_client(1)[0].bytes, bytes);
    }
    drop(stuck);
    assert!(matches!(await_event(&mut ends.server), StreamEvent::Closed { .. }));
    ends.client.release();
    ends.server.release();
}

/// A listener that does not answer a preface is given up in time, and the dialer says so.
pub fn a_listener_that_says_nothing_is_given_up(net: &dyn StreamNet) {
    let (silent, address) = net.serve();
    let mut client: StreamSide = Side::new(net.dial(address, token(1)));
    client.turn();
    let begun = client.now();
    let early = Outgoing::datagram(TrafficClass::Data, address, b"early");
    let sent = client.transport.send(&early).expect("it is being opened");
    assert_eq!(sent, Sent::Blocked { bytes_taken: 0 });
    for _ in 0..3 {
        client.wait();
        client.turn();
    }
    let is_idle = client.transport.fd().is_none() || !client.wait();
    assert!(is_idle, "who is blocked sleeps until there is an answer");
    let mut event = None;
    while event.is_none() {
        // Who sleeps until the deadlines learns it at the right one.
        let at = client.transport.next_deadline().expect("somebody will be late");
        assert!(at > client.now() && at <= begun + DIAL_WAIT);
        client.pass(at.since(client.now()));
        client.turn();
        event = client.transport.poll_stream();
    }
    assert!(client.now() >= begun + DIAL_WAIT, "there was time left");
    let reason = event.map(reason_of).unwrap_or_default();
    assert!(reason.contains("did not answer within 10 s"), "{reason}");
    assert_eq!((client.transport.stream_count(), client.transport.next_deadline()), (0, None));
    client.end();
    drop(silent);
}
