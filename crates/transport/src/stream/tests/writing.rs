//! Writing: whole datagrams are taken, whatever the stream takes, and what was taken goes out.

use super::*;
use crate::stream::RECORD_LEN_MAX;

/// Sends all of `bytes` in segments into a stream that has `room` bytes at a time.
fn send(end: &mut StreamEnd, bytes: &[u8], segment_len: usize, room: usize) -> (Vec<u8>, usize) {
    let mut out = Narrow::default();
    let (mut at, mut blocked, mut left) = (0, 0, bytes.len().div_ceil(segment_len.max(1)).max(1));
    while left > 0 {
        out.room = room;
        let taken = end.write(&bytes[at..], segment_len, &mut out).unwrap();
        assert!(taken.datagrams <= left);
        let is_cut = !taken.bytes.is_multiple_of(segment_len.max(1));
        assert!(!is_cut || at + taken.bytes == bytes.len(), "whole datagrams");
        left -= taken.datagrams;
        at += taken.bytes;
        blocked += usize::from(left > 0);
    }
    while end.has_backlog() {
        out.room = room;
        end.flush(&mut out).unwrap();
    }
    assert_eq!(at, bytes.len());
    (out.bytes, blocked)
}

#[test]
fn whatever_the_stream_takes_at_a_time_the_records_are_whole() {
    for (len, segment_len) in [(0, 0), (1, 1), (40, 7), (64 * 3, 3), (1_000, 100), (130, 1)] {
        let mut bytes = vec![0; len];
        Random::from_number(len as u64).fill(&mut bytes);
        let expected = match len {
            0 => vec![Vec::new()],
            _ => bytes.chunks(segment_len).map(<[u8]>::to_vec).collect(),
        };
        for room in 1..60 {
            let mut pool = Pool::new(0);
            let mut end = open_end(&mut pool);
            let (out, blocked) = send(&mut end, &bytes, segment_len, room);
            assert!(out == records(&expected), "{len} in {segment_len}, {room} at a time");
            assert!(blocked > 0 || room > 2 || expected.len() == 1);
        }
    }
}

#[test]
fn a_datagram_in_two_places_is_one_record_whatever_the_stream_takes() {
    for (head, body) in [(9, 0), (9, 1), (0, 40), (0, 0), (9, 200)] {
        let mut bytes = vec![0; head + body];
        Random::from_number(body as u64).fill(&mut bytes);
        for room in 0..head + body + 8 {
            let mut pool = Pool::new(0);
            let mut end = open_end(&mut pool);
            let mut out = Narrow { room, ..Narrow::default() };
            let taken = end.write_split(&bytes[..head], &bytes[head..], &mut out).unwrap();
            // It is taken as soon as a byte of it is, and a second one waits for its rest.
            let is_taken = usize::from(room > 0);
            assert_eq!((taken.datagrams, taken.bytes), (is_taken, is_taken * bytes.len()));
            assert_eq!(end.has_backlog(), room > 0 && room < bytes.len() + 4);
            out.room = 0;
            assert_eq!(end.write_split(&[], b"next", &mut out).unwrap().datagrams, 0);
            out.room = usize::MAX;
            end.flush(&mut out).unwrap();
            let expected = if room == 0 { Vec::new() } else { records(&[bytes.clone()]) };
            assert!(out.bytes == expected, "{head} and {body}, room for {room}");
        }
    }
    let mut end = open_end(&mut Pool::new(0));
    let long = vec![0; RECORD_LEN_MAX];
    let refused = end.write_split(b"9", &long, &mut Narrow { room: 1 << 20, ..Narrow::default() });
    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn a_train_of_any_length_goes_out_in_calls_of_64_records() {
    let mut end = open_end(&mut Pool::new(0));
    let mut out = Narrow { room: 1_000_000, ..Narrow::default() };
    let taken = end.write(&[5; 20_000], 100, &mut out).unwrap();
    assert_eq!((taken.datagrams, taken.bytes, taken.calls), (200, 20_000, 4));
    assert_eq!(out.bytes.len(), 200 * 104);
}

#[test]
fn what_is_kept_is_never_more_than_the_rest_of_one_record() {
    let mut end = open_end(&mut Pool::new(0));
    let mut out = Narrow { room: 1, ..Narrow::default() };
    let taken = end.write(&[5; 65_535], 65_535, &mut out).unwrap();
    assert_eq!(taken.datagrams, 1, "it was begun, so it was taken");
    assert!(end.has_backlog());
    for _ in 0..3 {
        let taken = end.write(b"next", 4, &mut out).unwrap();
        assert_eq!(taken.datagrams, 0, "the rest goes first");
    }
    out.room = 100_000;
    end.flush(&mut out).unwrap();
    assert_eq!(out.bytes.len(), 4 + 65_535);
}

#[test]
fn a_datagram_that_no_record_carries_is_refused_and_the_stream_goes_on() {
    let mut end = open_end(&mut Pool::new(0));
    let mut out = Narrow { room: 1_000_000, ..Narrow::default() };
    let error = end.write(&[5; 65_536], 65_536, &mut out).unwrap_err();
    assert_eq!((error.kind(), out.bytes.len()), (io::ErrorKind::InvalidInput, 0));
    // A train of length 0 would have no end: it is one datagram.
    let taken = end.write(b"one", 0, &mut out).unwrap();
    assert_eq!((taken.datagrams, out.bytes.as_slice()), (1, b"\x00\x00\x00\x03one".as_slice()));
}

/// Says that it is full before every few bytes that it takes.
#[derive(Default)]
struct Stuttering {
    bytes: Vec<u8>,
    is_ready: bool,
}

impl Write for Stuttering {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_ready = !self.is_ready;
        if self.is_ready {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = bytes.len().min(7);
        self.bytes.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn room_that_comes_in_the_middle_of_a_call_mixes_no_records() {
    let mut end = open_end(&mut Pool::new(0));
    let mut out = Stuttering::default();
    let sent = datagrams(&[20; 30], 1);
    for datagram in &sent {
        while end.write(datagram, 20, &mut out).unwrap().datagrams == 0 {}
    }
    while end.has_backlog() {
        end.flush(&mut out).unwrap();
    }
    assert!(out.bytes == records(&sent));
}

/// Takes one call, then breaks.
struct Breaking {
    calls: usize,
}

impl Write for Breaking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls == 1 { Ok(bytes.len()) } else { Err(io::ErrorKind::ConnectionReset.into()) }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        self.write(&bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_error_after_a_part_of_a_train_is_told_by_the_next_call() {
    let mut end = open_end(&mut Pool::new(0));
    let mut out = Breaking { calls: 0 };
    let taken = end.write(&[5; 100], 1, &mut out).unwrap();
    assert_eq!(taken.datagrams, 64);
    let error = end.write(&[5; 36], 1, &mut out).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(out.calls, 2, "the stream was not asked again");
}
