//! What the table does with connections that behave as kernels seldom do.

use super::*;
use crate::{Outgoing, RECV_BYTES_MAX, SendError, Sent, TrafficClass};
use std::cell::RefCell;
use std::io::{ErrorKind, IoSliceMut};
use std::rc::Rc;

const TOKEN: Token = [7; 16];

/// A connection whose answers the test decides.
#[derive(Clone, Default)]
struct Fake(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    incoming: Vec<u8>,
    written: usize,
    write_error: Option<ErrorKind>,
    is_ended: bool,
}

impl Read for Fake {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut state = self.0.borrow_mut();
        let room: usize = into.iter().map(|part| part.len()).sum();
        let count = room.min(state.incoming.len());
        if count == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let bytes = state.incoming.drain(..count);
        into.iter_mut().flat_map(|part| part.iter_mut()).zip(bytes).for_each(|(to, it)| *to = it);
        Ok(count)
    }
}

impl Write for Fake {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.borrow_mut();
        if let Some(kind) = state.write_error {
            return Err(kind.into());
        }
        state.written += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Connection for Fake {
    const SHORT_READ_IS_ALL: bool = true;

    fn end_writing(&mut self) {
        self.0.borrow_mut().is_ended = true;
    }

    fn set_patience(&mut self, _: std::time::Duration) {}
}

fn address(port: u16) -> Address {
    Address::Ip(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
}

fn recv(streams: &mut Streams<Fake>, ms: u64) -> usize {
    let (mut pool, mut into) = (Pool::new(1 << 20), Vec::new());
    streams.recv(&mut Intake::new(Time::from_millis(ms), &mut pool, &mut into));
    into.len()
}

/// A connection from `remote` that has said its token.
fn claimed(streams: &mut Streams<Fake>, remote: Address, token: Token) -> Fake {
    let fake = Fake::default();
    fake.0.borrow_mut().incoming = [crate::stream::MAGIC.as_slice(), &token].concat();
    streams.expect(token, Time::NEVER);
    streams.accepted(fake.clone(), [address(1), remote], Time::ZERO);
    recv(streams, 0);
    fake
}

fn is_open(event: Option<StreamEvent>) -> bool {
    matches!(event, Some(StreamEvent::Open { .. }))
}

fn reason(event: Option<StreamEvent>) -> String {
    match event {
        Some(StreamEvent::Closed { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stream_whose_writes_fail_ends_after_what_came_before_though_its_reads_never_say_so() {
    let mut streams = Streams::new(8);
    let fake = claimed(&mut streams, address(9), TOKEN);
    assert!(is_open(streams.poll_stream()));
    fake.0.borrow_mut().write_error = Some(ErrorKind::ConnectionReset);
    fake.0.borrow_mut().incoming = vec![0, 0, 0, 1, 5];
    let outgoing = Outgoing::datagram(TrafficClass::Data, address(9), b"lost");
    assert!(matches!(streams.send(&outgoing), Err(SendError::Closed)));
    assert!(matches!(streams.send(&outgoing), Err(SendError::Closed)), "and it stays so");
    assert_eq!(streams.poll_stream(), None, "what came before is still to be read");
    assert_eq!(recv(&mut streams, 1), 1);
    assert!(reason(streams.poll_stream()).contains("broke the stream off"));
    assert_eq!((streams.stream_count(), streams.poll_stream()), (0, None));
}

#[test]
fn a_connection_that_could_not_be_begun_is_told() {
    let mut streams = Streams::<Fake>::new(8);
    streams.not_dialed(address(9), TOKEN, &Ending::Refused);
    assert!(reason(streams.poll_stream()).contains("nobody listens"));
    assert_eq!((streams.stats.streams.closed, streams.stream_count()), (1, 0));
}

#[test]
fn a_second_stream_from_the_same_address_is_refused_and_the_first_lives() {
    let mut streams = Streams::new(8);
    claimed(&mut streams, address(9), TOKEN);
    assert!(is_open(streams.poll_stream()));
    let second = claimed(&mut streams, address(9), [8; 16]);
    assert!(reason(streams.poll_stream()).contains("the same remote address"));
    assert_eq!(second.0.borrow().written, 0, "it gets no answer");
    let outgoing = Outgoing::datagram(TrafficClass::Data, address(9), b"first");
    assert_eq!(streams.send(&outgoing).unwrap(), Sent::All);
    assert_eq!((streams.stream_count(), streams.stats.streams.over_limit), (1, 1));
}

#[test]
fn a_stream_that_waits_for_memory_holds_no_other_up() {
    let mut streams = Streams::new(8);
    let large = claimed(&mut streams, address(8), [8; 16]);
    let small = claimed(&mut streams, address(9), [9; 16]);
    // A body of 16,384 bytes fits the pool, and the next larger one does not.
    let (mut pool, mut into) = (Pool::new(18_000), Vec::new());
    let half = [&30_000_u32.to_be_bytes(), [1; 20_000].as_slice()].concat();
    large.0.borrow_mut().incoming = half;
    streams.enqueue(0);
    streams.recv(&mut Intake::new(Time::ZERO, &mut pool, &mut into));
    small.0.borrow_mut().incoming = vec![0, 0, 0, 1, 5];
    streams.enqueue(1);
    let mut intake = Intake::new(Time::ZERO, &mut pool, &mut into);
    streams.recv(&mut intake);
    assert!(intake.outcome.blocked && !intake.outcome.more);
    assert_eq!(into.len(), 1);
    assert_eq!(into[0].remote, address(9));
    pool.free(into.remove(0).packet);
    streams.release(&mut pool);
    assert_eq!(pool.live_views(), 0);
}

#[test]
fn one_call_reads_a_bounded_number_of_bytes_whether_or_not_they_are_whole_records() {
    let records = [&1_000_u32.to_be_bytes(), [1; 1_000].as_slice()].concat().repeat(1_000);
    let mut streams = Streams::new(8);
    let fake = claimed(&mut streams, address(9), TOKEN);
    fake.0.borrow_mut().incoming = records.clone();
    let (mut pool, mut into) = (Pool::new(1 << 24), Vec::new());
    streams.enqueue(0);
    let (mut left, mut calls) = (records.len(), 0);
    while left > 0 {
        let mut intake = Intake::new(Time::ZERO, &mut pool, &mut into);
        streams.recv(&mut intake);
        assert_eq!(intake.outcome.more, !fake.0.borrow().incoming.is_empty());
        let now = fake.0.borrow().incoming.len();
        assert!(left - now <= RECV_BYTES_MAX + 65_540, "{} bytes", left - now);
        left = now;
        calls += 1;
    }
    assert!(calls >= 3);
    into.drain(..).for_each(|incoming| pool.free(incoming.packet));
    streams.release(&mut pool);
    assert_eq!(pool.live_views(), 0);
}

#[test]
fn streams_that_are_being_closed_are_bounded_in_number_and_time() {
    let mut streams = Streams::new(DATA_LANES_MAX);
    let mut fakes = Vec::new();
    for index in 0..=DATA_LANES_MAX as u16 {
        let token = [index.to_be_bytes(); 8].concat().try_into().unwrap();
        fakes.push(claimed(&mut streams, address(1_000 + index), token));
        streams.close_stream(address(1_000 + index));
        recv(&mut streams, u64::from(index));
    }
    assert_eq!(streams.stream_count(), DATA_LANES_MAX, "the first was given up");
    assert_eq!(Rc::strong_count(&fakes[0].0), 1, "it is gone");
    assert!(fakes.iter().all(|fake| fake.0.borrow().is_ended));
    assert_eq!(streams.next_deadline(), Some(Time::from_millis(1) + CLOSE_WAIT));
    recv(&mut streams, 10_000);
    assert_eq!((streams.stream_count(), streams.next_deadline()), (0, None));
}
